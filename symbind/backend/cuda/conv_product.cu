#include "symbind/backend/cuda/conv_product.h"

#include <array>

#include "symbind/backend/cuda/tensor_product.cuh"
#include "symbind/core/error.h"

namespace symbind::cuda_backend {
namespace {

// A form is the number of columns of a tile.
constexpr int forms[] = {128, 64};

// The sums are of the products before they are rounded.
template <class T>
struct StoreWithSquares {
  T* out;

  __device__ void operator()(int64_t index, int /*column*/, bool inside, const float (&values)[product_width],
                             PairOf<float> (&sums)[product_width]) const {
    const RowPart<T> rounded(values);
    if (inside) *reinterpret_cast<RowPart<T>*>(out + index) = rounded;
#pragma unroll
    for (int i = 0; i < product_width; ++i) {
      sums[i].first += values[i];
      sums[i].second += values[i] * values[i];
    }
  }
};

struct StoreSums {
  float *sum, *square_sum;
  __device__ void operator()(int64_t channel, double total, double squares) const {
    sum[channel] = static_cast<float>(total);
    square_sum[channel] = static_cast<float>(squares);
  }
};

int attribute(const CudaDevice& device, cudaDeviceAttr name) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, name, device.id()) == cudaSuccess ? value : 0;
}

ProductShape product_of(const ConvolutionSize& size) {
  return {static_cast<int>(size.batch * size.out_size()), static_cast<int>(size.filters),
          static_cast<int>(size.channels)};
}

int element_bytes(const ConvolutionProblem& problem) { return static_cast<int>(size_of(problem.dtype)); }

ProductCut cut_of(const CudaDevice& device, const ConvolutionProblem& problem, int form) {
  return cut_product(product_of(problem.size), element_bytes(problem), form,
                     attribute(device, cudaDevAttrMultiProcessorCount));
}

bool is_product(const ConvolutionProblem& problem) {
  constexpr std::array<int64_t, 3> ones{1, 1, 1}, none{0, 0, 0};
  const ConvolutionSize& size = problem.size;
  return size.kernel == ones && size.stride == ones && size.pad == none && size.groups == 1 &&
         (problem.channels_last || size.out_size() == 1) &&
         suits_tensor_product(size.batch * size.out_size(), size.filters, size.channels, element_bytes(problem));
}

template <class T>
class ProductPlan final : public ConvolutionPlan {
 public:
  ProductPlan(const CudaDevice& device, const ConvolutionProblem& problem, int form)
      : shape_(product_of(problem.size)),
        cut_(cut_of(device, problem, form)),
        kernel_(form == 64 ? multiply_tiles<T, 64, StoreWithSquares<T>> : multiply_tiles<T, 128, StoreWithSquares<T>>) {
    // Not what this plan needs: another plan with the same kernel may need more.
    const int most = attribute(device, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    check(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, most), "setting up a product");
    check(cudaFuncSetAttribute(kernel_, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared),
          "setting up a product");
  }

  void run(cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) override {
    auto* const partial = static_cast<PairOf<float>*>(workspace);
    kernel_<<<static_cast<unsigned>(cut_.blocks()), product_threads, static_cast<size_t>(cut_.shared_bytes), stream>>>(
        shape_, static_cast<const T*>(arrays.data), static_cast<const T*>(arrays.weight), cut_.groups,
        StoreWithSquares<T>{static_cast<T*>(arrays.output)}, partial);
    queue_finish_sums(
        stream, partial, cut_.groups, shape_.columns,
        StoreSums{static_cast<float*>(arrays.channel_sum), static_cast<float*>(arrays.channel_square_sum)});
  }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(cut_.groups) * static_cast<size_t>(shape_.columns) * sizeof(PairOf<float>);
  }
  bool applies_epilogue() const override { return true; }

 private:
  using Multiply = void (*)(ProductShape, const T*, const T*, int, StoreWithSquares<T>, PairOf<float>*);
  const ProductShape shape_;
  const ProductCut cut_;
  const Multiply kernel_;
};

}  // namespace

std::vector<int> product_forms(const CudaDevice& device, const ConvolutionProblem& problem) {
  const ConvolutionEpilogue& epilogue = problem.epilogue;
  const bool has_type = problem.dtype == DType::float16 || problem.dtype == DType::bfloat16 ||
                        (problem.dtype == DType::float32 && !requires_exact_results(problem));
  if (problem.pass != ConvolutionPass::forward || !epilogue.statistics || epilogue.residual || epilogue.bias ||
      epilogue.relu || !has_type || !is_product(problem))
    return {};
  constexpr int first_capability = 8;  // with these types on tensor cores, and asynchronous copies
  if (attribute(device, cudaDevAttrComputeCapabilityMajor) < first_capability) return {};
  const int most = attribute(device, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  std::vector<int> suitable;
  for (const int form : forms)
    if ((form == 64 || problem.size.filters > 64) && cut_of(device, problem, form).shared_bytes <= most)
      suitable.push_back(form);
  return suitable;
}

std::unique_ptr<ConvolutionPlan> make_product_plan(const CudaDevice& device, const ConvolutionProblem& problem,
                                                   int form) {
  if (problem.dtype == DType::float16) return std::make_unique<ProductPlan<float16>>(device, problem, form);
  if (problem.dtype == DType::bfloat16) return std::make_unique<ProductPlan<bfloat16>>(device, problem, form);
  return std::make_unique<ProductPlan<float>>(device, problem, form);
}

}  // namespace symbind::cuda_backend
