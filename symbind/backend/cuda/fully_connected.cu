// FullyConnected by cuBLASLt, which adds the bias and applies a ReLU in the same pass if it can. A kernel over its
// result does the rest.
#include "symbind/ops/fully_connected.h"

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

}  // namespace

void add_fully_connected(ImplementationTable& table) {
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
