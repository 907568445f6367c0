// FullyConnected by cuBLASLt, which adds the bias and applies a ReLU in the same pass if it can. A kernel over its
// result does the rest. Products with few rows or columns, as those of a prediction for one image, have a kernel of
// their own: the library's tiles are mostly empty then.
#include "symbind/ops/fully_connected.h"

#include <algorithm>

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/matmul.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/function_tables.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// out = function(out + bias), without bias if it is null.
template <class T, class Function>
__global__ void finish_rows(T* out, const T* bias, int64_t rows, int64_t columns, Function function) {
  for (int64_t i = first_element(); i < rows * columns; i += element_step()) {
    compute_type<T> value = load(out[i]);
    if (bias) value += load(bias[i % columns]);
    out[i] = store<T>(function(value));
  }
}

template <class Function>
void queue_finish(cudaStream_t stream, DType dtype, void* out, const void* bias, FullyConnectedSize size,
                  Function function) {
  if (size.rows * size.hidden == 0) return;
  visit_floating(dtype, [&]<class T>(std::type_identity<T>) {
    finish_rows<<<blocks_for(size.rows * size.hidden), block_size, 0, stream>>>(
        static_cast<T*>(out), static_cast<const T*>(bias), size.rows, size.hidden, function);
  });
}

// `act_type` is empty for no activation.
std::unique_ptr<Kernel> build(const NodeView& node, const FullyConnected& params, const std::string& act_type) {
  const FullyConnectedSize size = size_of(params, node.inputs[0].shape);
  const DType dtype = node.outputs[0].dtype;
  const bool has_bias = !params.no_bias;
  const auto matmul = std::make_shared<Matmul>(CudaDevice::of(node.context),
                                               MatmulProblem{.rows = size.rows,
                                                             .inner = size.inner,
                                                             .columns = size.hidden,
                                                             .transpose_b = true,
                                                             .dtype = dtype,
                                                             .bias = has_bias,
                                                             .relu = act_type == "relu"},
                                               node.where());
  const bool add_bias = has_bias && !matmul->adds_bias();
  const std::string remaining = matmul->applies_relu() ? "" : act_type;
  return make_step(node,
                   [=](const Args& args) {
                     const void* const bias = has_bias ? args.inputs[2] : nullptr;
                     matmul->run(stream_of(args), args.inputs[0], args.inputs[1], bias, args.outputs[0], args.scratch);
                     const void* const bias_left = add_bias ? bias : nullptr;
                     if (!remaining.empty())
                       functions::visit_activation(functions::ActivationTable{}, remaining, [&](auto function) {
                         queue_finish(stream_of(args), dtype, args.outputs[0], bias_left, size, function);
                       });
                     else if (bias_left)
                       queue_finish(stream_of(args), dtype, args.outputs[0], bias_left, size, functions::Identity{});
                   },
                   {.scratch_bytes = matmul->scratch_bytes()});
}

// ---- Few rows or columns --------------------------------------------------------------------------------------------

constexpr int64_t most_few = 16;
// Larger products are worth the library's tiles.
constexpr int64_t most_multiplications = int64_t{1} << 23;

// The rows of two matrices that are multiplied: every one of `few` by every one of `many`, along `inner` elements.
struct FewRows {
  int64_t few, many, inner;
  bool few_are_data;  // otherwise they are the weight

  explicit FewRows(FullyConnectedSize size)
      : few(std::min(size.rows, size.hidden)),
        many(std::max(size.rows, size.hidden)),
        inner(size.inner),
        few_are_data(size.rows <= size.hidden) {}
};

// A warp for each of the many rows and `at_once` of the few ones, whose elements are all loaded before they are
// multiplied. width: the elements that are read with one access.
template <class T, int at_once, int width>
__global__ void multiply_few_rows(FewRows size, const T* few, const T* many, const T* bias, T* out) {
  using C = compute_type<T>;
  constexpr int warps = block_size / 32;
  const int64_t row = int64_t{blockIdx.x} * warps + threadIdx.x / 32, first = int64_t{blockIdx.y} * at_once;
  if (row >= size.many) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const T* of_few[at_once];
#pragma unroll
  for (int i = 0; i < at_once; ++i) of_few[i] = few + min(first + i, size.few - 1) * size.inner;
  C sums[at_once] = {};
#pragma unroll 4
  for (int64_t k = lane * width; k < size.inner; k += 32 * width) {
    const auto from_many = *reinterpret_cast<const Pack<T, width>*>(many + row * size.inner + k);
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const auto from_few = *reinterpret_cast<const Pack<T, width>*>(of_few[i] + k);
#pragma unroll
      for (int e = 0; e < width; ++e) sums[i] += load(from_few.element[e]) * load(from_many.element[e]);
    }
  }
#pragma unroll
  for (int i = 0; i < at_once; ++i) {
    for (int offset = 16; offset > 0; offset /= 2) sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], offset);
    if (lane != 0 || first + i >= size.few) continue;
    const int64_t of_weight = size.few_are_data ? row : first + i;
    if (bias) sums[i] += load(bias[of_weight]);
    out[size.few_are_data ? (first + i) * size.many + row : row * size.few + first + i] = store<T>(sums[i]);
  }
}

std::string refuse_few_rows(const NodeView& node) {
  if (std::string reason = refuse_product(node); !reason.empty()) return reason;
  const FewRows size(size_of(node.as<FullyConnected>(), node.inputs[0].shape));
  if (size.few == 0 || size.inner == 0) return "an empty array";
  if (size.few > most_few) return "many rows and columns";
  return size.few * size.many * size.inner <= most_multiplications ? "" : "a large product";
}

std::unique_ptr<Kernel> build_few_rows(const NodeView& node) {
  const auto& params = node.as<FullyConnected>();
  const FewRows size(size_of(params, node.inputs[0].shape));
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [size, has_bias = !params.no_bias](const Args& args) {
      const T *const data = args.in<T>(0), *const weight = args.in<T>(1);
      const T* const bias = has_bias ? args.in<T>(2) : nullptr;
      const T *const few = size.few_are_data ? data : weight, *const many = size.few_are_data ? weight : data;
      const bool wide = aligned_for_packs(few) && aligned_for_packs(many) && size.inner % widest<T> == 0;
      constexpr int64_t warps = block_size / 32, several = 4;
      const auto kernel = size.few == 1
                              ? (wide ? multiply_few_rows<T, 1, widest<T>> : multiply_few_rows<T, 1, 1>)
                              : (wide ? multiply_few_rows<T, several, widest<T>> : multiply_few_rows<T, several, 1>);
      const dim3 grid(static_cast<unsigned>((size.many + warps - 1) / warps),
                      static_cast<unsigned>(size.few == 1 ? 1 : (size.few + several - 1) / several));
      kernel<<<grid, block_size, 0, stream_of(args)>>>(size, few, many, bias, args.out<T>());
    });
  });
}

}  // namespace

void add_fully_connected(ImplementationTable& table) {
  table.add<FullyConnected>(
      {.name = "few_rows", .refuse = refuse_few_rows, .build = build_few_rows, .tier = Tier::specialised});
  table.add<FullyConnected>({.name = "cublaslt",
                             .refuse = refuse_product,
                             .build = [](const NodeView& node) { return build(node, node.as<FullyConnected>(), ""); },
                             .cache_when_invoked = true,
                             .tier = Tier::library});
  table.add<FullyConnectedActivation>({.name = "cublaslt",
                                       .refuse = refuse_product,
                                       .build =
                                           [](const NodeView& node) {
                                             const auto& params = node.as<FullyConnectedActivation>();
                                             return build(node, params, params.act_type);
                                           },
                                       .cache_when_invoked = true,
                                       .tier = Tier::library});
}

}  // namespace symbind::cuda_backend
