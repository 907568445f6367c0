// dot and its gradients, one matrix product each for any ranks, and batch_dot.
#include "symbind/ops/dot.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/integer_product.h"
#include "symbind/backend/cuda/matmul.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// A product, and the numbers of the inputs that are multiplied.
struct Product {
  MatmulProblem problem;
  size_t a, b;
};
using ProductOf = Product (*)(const NodeView&);

Product product_of(const NodeView& node, const MatrixProduct& p) {
  const MatmulProblem problem{.rows = p.rows,
                              .inner = p.inner,
                              .columns = p.columns,
                              .transpose_a = p.transpose_a,
                              .transpose_b = p.transpose_b,
                              .dtype = node.outputs[0].dtype};
  return {problem, p.a, p.b};
}

Product product_of_batch_dot(const NodeView& node) {
  const auto& p = node.as<BatchDot>();
  const Shape &lhs = node.inputs[0].shape, &out = node.outputs[0].shape;
  const int rank = lhs.rank();
  const MatmulProblem problem{.rows = out[rank - 2],
                              .inner = lhs[p.transpose_a ? rank - 2 : rank - 1],
                              .columns = out[rank - 1],
                              .transpose_a = p.transpose_a,
                              .transpose_b = p.transpose_b,
                              .dtype = node.outputs[0].dtype,
                              .batch = out.size(0, rank - 2)};
  return {problem, 0, 1};
}

std::unique_ptr<Kernel> build(const NodeView& node, const Product& product) {
  const auto matmul = std::make_shared<Matmul>(CudaDevice::of(node.context), product.problem, node.where());
  return make_step(node,
                   [matmul, a = product.a, b = product.b](const Args& args) {
                     matmul->run(stream_of(args), args.inputs[a], args.inputs[b], nullptr, args.outputs[0],
                                 args.scratch);
                   },
                   {.scratch_bytes = matmul->scratch_bytes()});
}

std::string refuse_integers(const NodeView& node) {
  for (const auto& input : node.inputs) {
    if (input.dtype != node.outputs[0].dtype) return "arrays of different types";
    if (input.layout != Layout::plain) return "needs plain layouts";
  }
  return is_floating(node.outputs[0].dtype) ? "floating types are cuBLASLt's" : "";
}

std::unique_ptr<Kernel> build_integers(const NodeView& node, const Product& product) {
  return make_step(node, [product](const Args& args) {
    queue_integer_product(stream_of(args), product.problem, args.inputs[product.a], args.inputs[product.b],
                          args.outputs[0]);
  });
}

template <class P>
void add_product(ImplementationTable& table, ProductOf of) {
  table.add<P>({.name = "cublaslt",
                .refuse = refuse_product,
                .build = [of](const NodeView& node) { return build(node, of(node)); },
                .cache_when_invoked = true,
                .tier = Tier::library});
  table.add<P>({"cuda", refuse_integers, [of](const NodeView& node) { return build_integers(node, of(node)); }});
}

}  // namespace

void add_dot(ImplementationTable& table) {
  add_product<Dot>(table, [](const NodeView& node) {
    return product_of(node, product_of_dot(node.as<Dot>(), node.inputs[0].shape, node.inputs[1].shape));
  });
  add_product<DotLhsGrad>(table, [](const NodeView& node) {
    return product_of(node, product_of_lhs_grad(node.as<DotLhsGrad>(), node.inputs[2].shape, node.inputs[1].shape));
  });
  add_product<DotRhsGrad>(table, [](const NodeView& node) {
    return product_of(node, product_of_rhs_grad(node.as<DotRhsGrad>(), node.inputs[0].shape, node.inputs[2].shape));
  });
  add_product<BatchDot>(table, product_of_batch_dot);
}

}  // namespace symbind::cuda_backend
