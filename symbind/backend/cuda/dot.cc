// dot and its gradients: one matrix product each, whatever the ranks.
#include "symbind/ops/dot.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/matmul.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

std::unique_ptr<Kernel> build_product(const NodeView& node, const MatrixProduct& product) {
  const MatmulProblem problem{.rows = product.rows,
                              .inner = product.inner,
                              .columns = product.columns,
                              .transpose_a = product.transpose_a,
                              .transpose_b = product.transpose_b,
                              .dtype = node.outputs[0].dtype};
  const auto matmul = std::make_shared<Matmul>(CudaDevice::of(node.context), problem, node.where());
  return make_step(node,
                   [matmul, a = product.a, b = product.b](const Args& args) {
                     matmul->run(stream_of(args), args.inputs[a], args.inputs[b], nullptr, args.outputs[0],
                                 args.scratch);
                   },
                   {.scratch_bytes = matmul->scratch_bytes()});
}

// `lhs` and `rhs` say which inputs have the shapes of the two operands.
template <class P>
void add_product(ImplementationTable& table, MatrixProduct (*product_of)(const Dot&, const Shape&, const Shape&),
                 size_t lhs, size_t rhs) {
  table.add<P>({.name = "cublaslt",
                .refuse = refuse_product,
                .build =
                    [=](const NodeView& node) {
                      const auto product = product_of(node.as<P>(), node.inputs[lhs].shape, node.inputs[rhs].shape);
                      return build_product(node, product);
                    },
                .worth_keeping = true,
                .tier = Tier::library});
}

}  // namespace

void add_dot(ImplementationTable& table) {
  add_product<Dot>(table, product_of_dot, 0, 1);
  add_product<DotLhsGrad>(table, product_of_lhs_grad, 2, 1);
  add_product<DotRhsGrad>(table, product_of_rhs_grad, 0, 2);
}

}  // namespace symbind::cuda_backend
