// The products of attention by cuBLASLt. Queries, keys and values of the heads are interleaved in one array, where the
// matrices of a batch are evenly spaced: no head is copied.
#include "symbind/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "symbind/backend/cuda/matmul.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// One of `parts` vectors of each head, as a (length, features) matrix for each batch element and head of an array
// (length, batch, heads · parts · features).
struct Heads {
  int64_t length, features, count;
  int64_t first;  // element of the array
  MatrixSteps steps;

  Heads(const Shape& shape, int64_t heads, int64_t parts, int64_t index)
      : length(shape[0]),
        features(shape[2] / (heads * parts)),
        count(shape[1] * heads),
        first(index * features),
        steps{shape[1] * shape[2], parts * features} {}
};

// A product of two inputs, each from an element on.
struct Product {
  MatmulProblem problem;
  size_t a = 0, b = 0;               // inputs
  int64_t a_first = 0, b_first = 0;  // elements
};

// Each query with each key, divided by √features.
Product scores(const Heads& queries, size_t queries_input, const Heads& keys, size_t keys_input) {
  return {.problem = {.rows = queries.length,
                      .inner = queries.features,
                      .columns = keys.length,
                      .transpose_b = true,
                      .batch = queries.count,
                      .scale = 1 / std::sqrt(static_cast<double>(queries.features)),
                      .a_steps = queries.steps,
                      .b_steps = keys.steps},
          .a = queries_input,
          .b = keys_input,
          .a_first = queries.first,
          .b_first = keys.first};
}

// The values weighted by the attention, input 1.
Product weighted(const Heads& values, const Heads& out) {
  return {.problem = {.rows = out.length,
                      .inner = values.length,
                      .columns = values.features,
                      .batch = values.count,
                      .b_steps = values.steps,
                      .out_steps = out.steps},
          .a = 1,
          .b = 0,
          .b_first = values.first};
}

Product product_of(const SelfAttentionQK& p, const NodeView& node) {
  const Shape& data = node.inputs[0].shape;
  return scores({data, p.heads, 3, 0}, 0, {data, p.heads, 3, 1}, 0);
}
Product product_of(const SelfAttentionValues& p, const NodeView& node) {
  return weighted({node.inputs[0].shape, p.heads, 3, 2}, {node.outputs[0].shape, p.heads, 1, 0});
}
Product product_of(const CrossAttentionQK& p, const NodeView& node) {
  return scores({node.inputs[0].shape, p.heads, 1, 0}, 0, {node.inputs[1].shape, p.heads, 2, 0}, 1);
}
Product product_of(const CrossAttentionValues& p, const NodeView& node) {
  return weighted({node.inputs[0].shape, p.heads, 2, 1}, {node.outputs[0].shape, p.heads, 1, 0});
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  Product product = product_of(node.as<P>(), node);
  MatmulProblem& problem = product.problem;
  problem.dtype = node.outputs[0].dtype;
  const auto element = static_cast<int64_t>(size_of(problem.dtype));
  if (const auto offsets = static_cast<size_t>((product.a_first | product.b_first) * element); offsets != 0)
    problem.alignment = std::min(problem.alignment, offsets & -offsets);
  const auto matmul = std::make_shared<Matmul>(CudaDevice::of(node.context), problem, node.where());
  return make_step(node,
                   [matmul, product, element](const Args& args) {
                     const auto from = [&](size_t input, int64_t first) {
                       return args.in<unsigned char>(input) + first * element;
                     };
                     matmul->run(stream_of(args), from(product.a, product.a_first), from(product.b, product.b_first),
                                 nullptr, args.outputs[0], args.scratch);
                   },
                   {.scratch_bytes = matmul->scratch_bytes()});
}

template <class P>
void add(ImplementationTable& table) {
  table.add<P>({.name = "cublaslt",
                .refuse = refuse_product,
                .build = build<P>,
                .cache_when_invoked = true,
                .tier = Tier::library});
}

}  // namespace

void add_attention(ImplementationTable& table) {
  add<SelfAttentionQK>(table);
  add<SelfAttentionValues>(table);
  add<CrossAttentionQK>(table);
  add<CrossAttentionValues>(table);
}

}  // namespace symbind::cuda_backend
