// Matrix products by oneDNN: dot, batch_dot, and FullyConnected with its bias and activation in the same pass. All
// matrices are passed without reorders, transposed ones by their strides: packing the weight beforehand, or the
// inner_product primitive with its own weight order, is a few percent faster by itself but not with the reorder it
// needs at every run.
#include <algorithm>

#include "symbind/backend/cpu/dot.h"
#include "symbind/backend/onednn/program.h"
#include "symbind/ops/dot.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/passes/target.h"

namespace symbind::onednn {
namespace {

// With fewer multiply-adds than this the plain loops take less time than oneDNN's call overhead.
constexpr int64_t least_products = 8192;

// A matrix product and its post-ops.
struct Product : MatrixProduct {
  std::optional<Eltwise> activation = std::nullopt;
  bool has_bias = false;
  int64_t batch = 0;  // 0: matrices alone

  int64_t count() const { return std::max<int64_t>(batch, 1) * rows * inner * columns; }
  int threads() const { return threads_for(count(), thread_products); }
};

Desc matrix(int64_t rows, int64_t columns, DType dtype, bool transposed) {
  constexpr int row_major[] = {0, 1}, column_major[] = {1, 0};
  return dense({rows, columns}, dtype, transposed ? column_major : row_major);
}

Desc matrices(const Product& product, int64_t rows, int64_t columns, DType dtype, bool transposed) {
  if (product.batch == 0) return matrix(rows, columns, dtype, transposed);
  constexpr int row_major[] = {0, 1, 2}, column_major[] = {0, 2, 1};
  return dense({product.batch, rows, columns}, dtype, transposed ? column_major : row_major);
}

void assemble(Program& program, const NodeView& node, const Product& product) {
  const DType type = node.outputs[0].dtype;
  const Desc a = matrices(product, product.rows, product.inner, node.inputs[product.a].dtype, product.transpose_a);
  const Desc b = matrices(product, product.inner, product.columns, node.inputs[product.b].dtype, product.transpose_b);
  const Desc c = matrices(product, product.rows, product.columns, type, false);
  const Desc bias = product.has_bias ? matrix(1, product.columns, node.inputs[2].dtype, false) : Desc();
  const auto describe = [&](const dnnl::primitive_attr& attr) {
    return product.has_bias ? dnnl::matmul::primitive_desc(engine(), a, b, bias, c, attr)
                            : dnnl::matmul::primitive_desc(engine(), a, b, c, attr);
  };
  auto descriptor = describe(attributes(product.activation));
  const bool activate_apart = product.activation && is_slow_with_post_ops(descriptor);
  if (activate_apart) descriptor = describe(attributes());
  const auto output = program.output(0, c);
  std::vector<std::pair<int, Program::Array>> arrays{{DNNL_ARG_SRC, program.input(product.a, a)},
                                                     {DNNL_ARG_WEIGHTS, program.input(product.b, b)},
                                                     {DNNL_ARG_DST, output}};
  if (product.has_bias) arrays.emplace_back(DNNL_ARG_BIAS, program.input(2, bias));
  program.execute(dnnl::matmul(descriptor), descriptor, arrays);
  if (activate_apart) program.activate(output, *product.activation);
}

template <class P>
Product product_of(const NodeView& node) {
  const P& p = node.as<P>();
  const auto shape = [&](size_t input) -> const Shape& { return node.inputs[input].shape; };
  if constexpr (std::is_same_v<P, BatchDot>) {
    const Shape& out = node.outputs[0].shape;
    const int rank = out.rank();
    Product product{{.transpose_a = p.transpose_a,
                     .transpose_b = p.transpose_b,
                     .rows = out[rank - 2],
                     .inner = shape(0)[p.transpose_a ? rank - 2 : rank - 1],
                     .columns = out[rank - 1]}};
    product.batch = out.size(0, rank - 2);
    return product;
  } else if constexpr (std::is_same_v<P, Dot>) {
    return {product_of_dot(p, shape(0), shape(1))};
  } else if constexpr (std::is_same_v<P, DotLhsGrad>) {
    return {product_of_lhs_grad(p, shape(2), shape(1))};
  } else if constexpr (std::is_same_v<P, DotRhsGrad>) {
    return {product_of_rhs_grad(p, shape(0), shape(2))};
  } else {
    const FullyConnectedSize size = size_of(p, shape(0));
    constexpr bool transposed = std::is_same_v<P, FullyConnectedTransposed>;
    Product product{{.transpose_b = !transposed, .rows = size.rows, .inner = size.inner, .columns = size.hidden}};
    product.has_bias = !p.no_bias;
    if constexpr (std::is_same_v<P, FullyConnectedActivation>) product.activation = eltwise_of(p.act_type);
    return product;
  }
}

template <class P>
std::string refuse(const NodeView& node) {
  if (std::string reason = refuse_arrays(node); !reason.empty()) return reason;
  if constexpr (std::is_same_v<P, FullyConnectedActivation>)
    if (std::string reason = refuse_activation(node.as<P>().act_type); !reason.empty()) return reason;
  const Product product = product_of<P>(node);
  constexpr bool is_batch = std::is_same_v<P, BatchDot>;
  if (is_batch && node.outputs[0].dtype == DType::float32 && cpu_backend::as_row_dots(product, DType::float32))
    return join("dot products along rows: ", product.rows, " × ", product.columns);
  if (product.count() < least_products) return join("only ", product.count(), " multiply-adds");
  return Program::refuse(node, product.threads(), [&](Program& program) { assemble(program, node, product); });
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  const Product product = product_of<P>(node);
  return Program::build(node, product.threads(), [&](Program& program) {
    assemble(program, node, product);
    program.set_fallback(build_plain(node));
  });
}

template <class P>
void add(ImplementationTable& table) {
  table.add<P>({"onednn", refuse<P>, build<P>, {}, true, Tier::library});
}

}  // namespace

void add_matmul(ImplementationTable& table) {
  add<BatchDot>(table);
  add<Dot>(table);
  add<DotLhsGrad>(table);
  add<DotRhsGrad>(table);
  add<FullyConnected>(table);
  add<FullyConnectedActivation>(table);
  add<FullyConnectedTransposed>(table);
}

}  // namespace symbind::onednn
