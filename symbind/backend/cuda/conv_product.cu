#include "symbind/backend/cuda/conv_product.h"

#include <array>
#include <optional>
#include <span>

#include "symbind/backend/cuda/relu_signs.cuh"
#include "symbind/backend/cuda/shared_memory.h"
#include "symbind/backend/cuda/tensor_product.cuh"
#include "symbind/backend/functions.h"
#include "symbind/core/error.h"

namespace symbind::cuda_backend {
namespace {

// A form is known by its number here. In the gradient more slices are on their way, where shared memory has room for
// them. (Its tiles of 128 columns, with 256 or 512 threads, take 1.1 to 1.2 times as long as those of 64.)
using Form0 = ProductForm<128, 256, 3>;
using Form1 = ProductForm<64, 256, 3>;
using Form2 = ProductForm<64, 256, 5>;
constexpr ProductSizes forms[] = {Form0::sizes, Form1::sizes, Form2::sizes};
using FormNumbers = std::span<const int>;

// Those to be tried.
FormNumbers forms_of(ConvolutionPass pass) {
  static constexpr int forward[] = {0, 1}, gradient[] = {2, 1};
  return pass == ConvolutionPass::forward ? FormNumbers(forward) : FormNumbers(gradient);
}

struct Nothing {};

// Forward: the sums are of the products and their squares, before they are rounded.
template <class T>
struct StoreWithSquares {
  static constexpr bool by_depth = false, sums_by_tile = true;
  static constexpr int operands = 0;
  T* out;

  __device__ static Nothing load(int64_t /*index*/, bool /*inside*/) { return {}; }
  __device__ static const T* operand(int /*i*/) { return nullptr; }
  template <class Parts>
  __device__ void write(int64_t index, int /*column*/, bool inside, const Parts& /*none*/, Nothing,
                        const float (&values)[product_width], PairOf<float> (&sums)[product_width]) const {
    const RowPart<T> rounded(values);
    if (inside) store_packed(out + index, rounded);
#pragma unroll
    for (int i = 0; i < product_width; ++i) {
      sums[i].first += values[i];
      sums[i].second += values[i] * values[i];
    }
  }
};

// The results of ReLU, for its gradient: they come as an operand.
template <class T>
struct ActivationReader {
  static constexpr int operands = 1;
  const T* activation;

  __device__ const T* operand() const { return activation; }
  __device__ static Nothing load(int64_t /*index*/, bool /*inside*/) { return {}; }
  __device__ static float number(const RowPart<T>& part, Nothing, int k) { return part[k]; }
};
// Their signs: two bytes for the columns of a thread.
template <class T>
struct ProductSignReader {
  static constexpr int operands = 0;
  const uint8_t* signs;

  __device__ static const T* operand() { return nullptr; }
  __device__ unsigned load(int64_t index, bool inside) const {
    // Rows of the product are of an array with its channels last, whose shape is then not used.
    return inside ? SignReader{signs, {}}.load<product_width>(index) : 0u;
  }
  __device__ static float number(const RowPart<T>& /*none*/, unsigned loaded, int k) {
    return SignReader::number<float>(loaded, k);
  }
};

// The gradient of the data: of the products and `more` together, where the result of ReLU is above zero. The sums are
// those of BatchNorm's gradient, of the result and of its products with the distance of x from its mean, before it is
// rounded.
template <class T, class Results>
struct StoreWithGradientSums {
  static constexpr bool by_depth = true, sums_by_tile = false;
  static constexpr int operands = 2 + Results::operands;
  T* out;
  const T *more, *x;
  Results results;
  const float* mean;

  __device__ const T* operand(int i) const { return i == 0 ? more : i == 1 ? x : results.operand(); }
  __device__ auto load(int64_t index, bool inside) const { return results.load(index, inside); }
  template <class Loaded>
  __device__ void write(int64_t index, int column, bool inside, const RowPart<T> (&parts)[operands],
                        const Loaded& loaded, const float (&values)[product_width],
                        PairOf<float> (&sums)[product_width]) const {
    const RowPart<float> means = load_packed<product_width>(mean + column);
    float gradients[product_width];
#pragma unroll
    for (int i = 0; i < product_width; ++i) {
      gradients[i] = functions::ReluGrad{}(values[i] + parts[0][i], Results::number(parts[operands - 1], loaded, i));
      sums[i].first += gradients[i];
      sums[i].second += gradients[i] * (parts[1][i] - means[i]);
    }
    const RowPart<T> rounded(gradients);
    if (inside) store_packed(out + index, rounded);
  }
};

int element_bytes(const ConvolutionProblem& problem) { return static_cast<int>(size_of(problem.dtype)); }

// Of the pass. The rows are positions.
struct Extents {
  int64_t rows, columns, depth;
};
Extents extents_of(const ConvolutionProblem& problem) {
  const ConvolutionSize& size = problem.size;
  const int64_t rows = size.batch * size.out_size();
  return problem.pass == ConvolutionPass::forward ? Extents{rows, size.filters, size.channels}
                                                  : Extents{rows, size.channels, size.filters};
}
ProductShape product_of(const ConvolutionProblem& problem) {
  const Extents extents = extents_of(problem);
  return {static_cast<int>(extents.rows), static_cast<int>(extents.columns), static_cast<int>(extents.depth)};
}

std::optional<ProductCut> cut_of(const CudaDevice& device, const ConvolutionProblem& problem, int form) {
  return cut_product(product_of(problem), element_bytes(problem), forms[form],
                     device.attribute(cudaDevAttrMultiProcessorCount), SharedMemory(device));
}

bool is_product(const ConvolutionProblem& problem) {
  constexpr std::array<int64_t, 3> ones{1, 1, 1}, none{0, 0, 0};
  const ConvolutionSize& size = problem.size;
  const Extents extents = extents_of(problem);
  return size.kernel == ones && size.stride == ones && size.pad == none && size.groups == 1 &&
         (problem.channels_last || size.out_size() == 1) &&
         suits_tensor_product(extents.rows, extents.columns, extents.depth, element_bytes(problem));
}

template <class T>
StoreWithSquares<T> epilogue_of(std::type_identity<StoreWithSquares<T>>, const ConvolutionArrays& arrays) {
  return {static_cast<T*>(arrays.output)};
}
template <class T>
ActivationReader<T> reader_of(std::type_identity<ActivationReader<T>>, const void* activation) {
  return {static_cast<const T*>(activation)};
}
template <class T>
ProductSignReader<T> reader_of(std::type_identity<ProductSignReader<T>>, const void* signs) {
  return {static_cast<const uint8_t*>(signs)};
}
template <class T, class Results>
StoreWithGradientSums<T, Results> epilogue_of(std::type_identity<StoreWithGradientSums<T, Results>>,
                                              const ConvolutionArrays& arrays) {
  return {static_cast<T*>(arrays.data), static_cast<const T*>(arrays.more_grad),
          static_cast<const T*>(arrays.norm_data), reader_of(std::type_identity<Results>{}, arrays.activation),
          static_cast<const float*>(arrays.mean)};
}

template <class T, class Epilogue>
class ProductPlan final : public ConvolutionPlan {
 public:
  ProductPlan(const CudaDevice& device, const ConvolutionProblem& problem, int form)
      : shape_(product_of(problem)),
        cut_(cut_of(device, problem, form).value()),
        is_forward_(problem.pass == ConvolutionPass::forward),
        threads_(static_cast<unsigned>(forms[form].threads)),
        kernel_(kernel_of(form)) {
    allow_shared_memory(device, kernel_, cudaSharedmemCarveoutMaxShared);
  }

  void run(cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) override {
    auto* const partial = static_cast<PairOf<float>*>(workspace);
    kernel_<<<static_cast<unsigned>(cut_.blocks()), threads_, static_cast<size_t>(cut_.shared_bytes), stream>>>(
        shape_, static_cast<const T*>(is_forward_ ? arrays.data : arrays.output), static_cast<const T*>(arrays.weight),
        cut_.groups, epilogue_of(std::type_identity<Epilogue>{}, arrays), partial);
    queue_finish_sums(
        stream, partial, cut_.groups, shape_.columns,
        StoreSums<float>{static_cast<float*>(arrays.channel_sum), static_cast<float*>(arrays.channel_square_sum)});
  }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(cut_.groups) * static_cast<size_t>(shape_.columns) * sizeof(PairOf<float>);
  }
  bool applies_epilogue() const override { return true; }

 private:
  using Multiply = void (*)(ProductShape, const T*, const T*, int, Epilogue, PairOf<float>*);
  static Multiply kernel_of(int form) {
    using OtherForm = std::conditional_t<Epilogue::operands == 0, Form0, Form2>;
    return form == 1 ? multiply_tiles<T, Form1, Epilogue> : multiply_tiles<T, OtherForm, Epilogue>;
  }

  const ProductShape shape_;
  const ProductCut cut_;
  const bool is_forward_;
  const unsigned threads_;
  const Multiply kernel_;
};

template <class T>
std::unique_ptr<ConvolutionPlan> make_plan(const CudaDevice& device, const ConvolutionProblem& problem, int form) {
  if (problem.pass == ConvolutionPass::forward)
    return std::make_unique<ProductPlan<T, StoreWithSquares<T>>>(device, problem, form);
  if (problem.epilogue.signs)
    return std::make_unique<ProductPlan<T, StoreWithGradientSums<T, ProductSignReader<T>>>>(device, problem, form);
  return std::make_unique<ProductPlan<T, StoreWithGradientSums<T, ActivationReader<T>>>>(device, problem, form);
}

}  // namespace

std::vector<int> product_forms(const CudaDevice& device, const ConvolutionProblem& problem) {
  const ConvolutionEpilogue& epilogue = problem.epilogue;
  const bool has_epilogue = problem.pass == ConvolutionPass::forward
                                ? epilogue.statistics && !epilogue.residual && !epilogue.bias && !epilogue.relu
                                : epilogue.relu_gradient;
  const bool has_type = problem.dtype == DType::float16 || problem.dtype == DType::bfloat16 ||
                        (problem.dtype == DType::float32 && !requires_exact_results(problem));
  if (!has_epilogue || !has_type || !is_product(problem)) return {};
  constexpr int first_capability = 8;  // with these types on tensor cores, and asynchronous copies
  if (device.attribute(cudaDevAttrComputeCapabilityMajor) < first_capability) return {};
  std::vector<int> suitable;
  for (const int form : forms_of(problem.pass))
    if ((forms[form].columns == 64 || extents_of(problem).columns > 64) && cut_of(device, problem, form))
      suitable.push_back(form);
  return suitable;
}

std::unique_ptr<ConvolutionPlan> make_product_plan(const CudaDevice& device, const ConvolutionProblem& problem,
                                                   int form) {
  if (problem.dtype == DType::float16) return make_plan<float16>(device, problem, form);
  if (problem.dtype == DType::bfloat16) return make_plan<bfloat16>(device, problem, form);
  return make_plan<float>(device, problem, form);
}

}  // namespace symbind::cuda_backend
