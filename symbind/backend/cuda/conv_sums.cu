#include "symbind/backend/cuda/conv_sums.h"

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/cuda/relu_gradient_sums.cuh"
#include "symbind/backend/cuda/relu_signs.cuh"

namespace symbind::cuda_backend {
namespace {

template <class T>
struct SumsOfSquares : ElementTerms<T> {
  template <int width>
  __device__ PairOf<compute_type<T>> operator()(typename ElementTerms<T>::OfChannel, const Packed<T, width>& values,
                                                int k) const {
    const compute_type<T> value = values[k];
    return {value, value * value};
  }
};

ChannelShape output_shape(const ConvolutionProblem& problem) {
  const ConvolutionSize& size = problem.size;
  return problem.channels_last ? ChannelShape{size.batch * size.out_size(), size.filters, 1}
                               : ChannelShape{size.batch, size.filters, size.out_size()};
}

ChannelShape data_shape(const ConvolutionProblem& problem) {
  const ConvolutionSize& size = problem.size;
  return problem.channels_last ? ChannelShape{size.batch * size.in_size(), size.channels, 1}
                               : ChannelShape{size.batch, size.channels, size.in_size()};
}

}  // namespace

size_t output_sums_bytes(const ConvolutionProblem& problem) {
  return piece_bytes(output_shape(problem), problem.dtype == DType::float64 ? sizeof(double) : sizeof(float));
}

void queue_output_sums(cudaStream_t stream, const ConvolutionProblem& problem, const void* output, void* sum,
                       void* square_sum, void* scratch) {
  visit_floating(problem.dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    queue_channel_sums<T>(stream, output_shape(problem), aligned_for_packs(output),
                          SumsOfSquares<T>{{static_cast<const T*>(output)}}, scratch,
                          StoreSums<C>{static_cast<C*>(sum), static_cast<C*>(square_sum)});
  });
}

size_t relu_gradient_bytes(const ConvolutionProblem& problem) {
  return piece_bytes(data_shape(problem), sizeof(float));
}

void queue_relu_gradient(cudaStream_t stream, const ConvolutionProblem& problem, const ConvolutionArrays& arrays,
                         void* scratch) {
  const ChannelShape shape = data_shape(problem);
  const auto queue_with = [&]<class T, class Results>(std::type_identity<T>, const Results& results) {
    T* const gradient = static_cast<T*>(arrays.data);
    const bool wide =
        all_aligned_for_packs({arrays.data, arrays.more_grad, arrays.activation, arrays.norm_data, arrays.mean});
    queue_channel_sums<T>(
        stream, shape, wide,
        ReluGradientSums<T, Results>{gradient, static_cast<const T*>(arrays.more_grad),
                                     static_cast<const T*>(arrays.norm_data), results, gradient,
                                     static_cast<const float*>(arrays.mean)},
        scratch,
        StoreSums<float>{static_cast<float*>(arrays.channel_sum), static_cast<float*>(arrays.channel_square_sum)});
  };
  const auto queue = [&]<class T>(std::type_identity<T> type) {
    if (problem.epilogue.signs)
      queue_with(type, SignReader{static_cast<const uint8_t*>(arrays.activation), shape});
    else
      queue_with(type, ResultReader<T>{static_cast<const T*>(arrays.activation)});
  };
  if (problem.dtype == DType::float16)
    queue(std::type_identity<float16>{});
  else if (problem.dtype == DType::bfloat16)
    queue(std::type_identity<bfloat16>{});
  else
    queue(std::type_identity<float>{});
}

}  // namespace symbind::cuda_backend
