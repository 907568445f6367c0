#include "symbind/backend/cuda/conv_sums.h"

#include "symbind/backend/cuda/channels.cuh"

namespace symbind::cuda_backend {
namespace {

template <class T>
struct SumsOfSquares : ElementTerms<T> {
  template <int width>
  __device__ PairOf<compute_type<T>> operator()(typename ElementTerms<T>::OfChannel, const Pack<T, width>& values,
                                                int k) const {
    const compute_type<T> value = cuda_backend::load(values.element[k]);
    return {value, value * value};
  }
};

template <class C>
struct StoreSums {
  C *sum, *square_sum;
  __device__ void operator()(int64_t channel, double total, double squares) const {
    sum[channel] = static_cast<C>(total);
    square_sum[channel] = static_cast<C>(squares);
  }
};

ChannelShape output_shape(const ConvolutionProblem& problem) {
  const ConvolutionSize& size = problem.size;
  return problem.channels_last ? ChannelShape{size.batch * size.out_size(), size.filters, 1}
                               : ChannelShape{size.batch, size.filters, size.out_size()};
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

}  // namespace symbind::cuda_backend
