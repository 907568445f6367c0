#include "symbind/ops/dot.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

int lhs_inner_axis(const Dot& p, int rank) { return p.transpose_a ? 0 : rank - 1; }
int rhs_inner_axis(const Dot& p, int rank) { return p.transpose_b ? rank - 1 : 0; }

void infer_dot(const Dot& p, Shapes& s, Inferred<Shape> lhs, Inferred<Shape> rhs, Inferred<Shape> output) {
  if (!lhs.rank_known() || !rhs.rank_known()) return;
  require(lhs.rank() > 0 && rhs.rank() > 0, s.where(), " lhs and rhs must have an axis: lhs ", lhs.get(), ", rhs ",
          rhs.get());
  const int left = lhs_inner_axis(p, lhs.rank()), right = rhs_inner_axis(p, rhs.rank());
  if (lhs[left] == unknown_dim) lhs.meet_dim(left, rhs[right]);
  if (rhs[right] == unknown_dim) rhs.meet_dim(right, lhs[left]);
  require(lhs[left] == rhs[right], s.where(), " axis ", left, " of lhs and axis ", right,
          " of rhs must be equally long: lhs ", lhs.get(), ", rhs ", rhs.get());
  Shape shape = Shape::scalar();
  for (int axis = 0; axis < lhs.rank(); ++axis)
    if (axis != left) shape.push_back(lhs[axis]);
  for (int axis = 0; axis < rhs.rank(); ++axis)
    if (axis != right) shape.push_back(rhs[axis]);
  output.meet(shape.rank() == 0 ? Shape{1} : shape);
}

template <class P>
void add_fields(Op<P>& op) {
  op.param(&Dot::transpose_a, "transpose_a",
           "contract the first axis of lhs instead of the last: the transpose of a matrix")
      .param(&Dot::transpose_b, "transpose_b",
             "contract the last axis of rhs instead of the first: the transpose of a matrix")
      .param(
          &Dot::forward_stype, "forward_stype",
          "storage type of the result: 'default', 'row_sparse' or 'csr'; accepted for compatibility, results are dense",
          one_of({"default", "row_sparse", "csr"}));
}

double multiply_adds(const MatrixProduct& product) {
  return static_cast<double>(product.rows) * static_cast<double>(product.inner) * static_cast<double>(product.columns);
}

OpDef define(Op<Dot> op) {
  add_fields(op);
  return op
      .doc(
          "Matrix product of lhs (m, k) and rhs (k, n); for vectors their inner product. For higher ranks the last "
          "axis of lhs is contracted with the first axis of rhs.")
      .precision(Precision::widest)
      .inputs({"lhs", "rhs"})
      .multiply_adds([](const Dot& p, auto in, auto) { return multiply_adds(product_of_dot(p, in[0], in[1])); })
      .infer_shape([](const Dot& p, Shapes& s) { infer_dot(p, s, s["lhs"], s["rhs"], s.output()); })
      .gradient([](const Dot& p, Grad& g) {
        if (g.wants("lhs")) g.set("lhs", dot_lhs_grad(g.out_grad(), g.input("rhs"), g.input("lhs"), {p}));
        if (g.wants("rhs")) g.set("rhs", dot_rhs_grad(g.input("lhs"), g.out_grad(), g.input("rhs"), {p}));
      });
}

OpDef define(Op<DotLhsGrad> op) {
  add_fields(op);
  return op.inputs({"out_grad", "rhs", "lhs"})
      .shape_only({"lhs"})
      .multiply_adds([](const Dot& p, auto in, auto) { return multiply_adds(product_of_lhs_grad(p, in[2], in[1])); })
      .infer_shape([](const Dot& p, Shapes& s) {
        infer_dot(p, s, s["lhs"], s["rhs"], s["out_grad"]);
        s.output().meet(s["lhs"]);
      });
}

OpDef define(Op<DotRhsGrad> op) {
  add_fields(op);
  return op.inputs({"lhs", "out_grad", "rhs"})
      .shape_only({"rhs"})
      .multiply_adds([](const Dot& p, auto in, auto) { return multiply_adds(product_of_rhs_grad(p, in[0], in[2])); })
      .infer_shape([](const Dot& p, Shapes& s) {
        infer_dot(p, s, s["lhs"], s["rhs"], s["out_grad"]);
        s.output().meet(s["rhs"]);
      });
}

// ---- batch_dot ------------------------------------------------------------------------------------------------------

OpDef define(Op<BatchDot> op) {
  return op.doc("Batched matrix product: lhs (batch…, m, k) times rhs (batch…, k, n) is (batch…, m, n).")
      .precision(Precision::widest)
      .param(&BatchDot::transpose_a, "transpose_a",
             "use the transpose of each matrix of lhs, which is then (batch…, k, m)")
      .param(&BatchDot::transpose_b, "transpose_b",
             "use the transpose of each matrix of rhs, which is then (batch…, n, k)")
      .param(
          &BatchDot::forward_stype, "forward_stype",
          "storage type of the result: 'default', 'row_sparse' or 'csr'; accepted for compatibility, results are dense",
          one_of({"default", "row_sparse", "csr"}))
      .inputs({"lhs", "rhs"})
      .multiply_adds([](const BatchDot& p, auto in, auto out) {
        const int rank = in[0].rank();
        return static_cast<double>(out[0].size()) * static_cast<double>(in[0][p.transpose_a ? rank - 2 : rank - 1]);
      })
      .infer_shape([](const BatchDot& p, Shapes& s) {
        const auto lhs = s["lhs"], rhs = s["rhs"];
        if (!lhs.known() || !rhs.known()) return;
        const int rank = lhs.rank();
        require(rank >= 3 && rhs.rank() == rank, s.where(), " both need as many axes, at least 3: lhs ", lhs.get(),
                ", rhs ", rhs.get());
        const int rows = p.transpose_a ? rank - 1 : rank - 2, left = p.transpose_a ? rank - 2 : rank - 1;
        const int columns = p.transpose_b ? rank - 2 : rank - 1, right = p.transpose_b ? rank - 1 : rank - 2;
        Shape shape = lhs.get().slice(0, rank - 2);
        require(shape == rhs.get().slice(0, rank - 2) && lhs[left] == rhs[right], s.where(),
                " the matrices do not fit: lhs ", lhs.get(), ", rhs ", rhs.get());
        shape.push_back(lhs[rows]);
        shape.push_back(rhs[columns]);
        s.output().meet(shape);
      })
      .gradient([](const BatchDot& p, Grad& g) {
        const bool ta = p.transpose_a, tb = p.transpose_b;
        const auto dy = g.out_grad(), a = g.input("lhs"), b = g.input("rhs");
        // As for dot: dL = dY · Rᵀ or R · dYᵀ, dR = Lᵀ · dY or dYᵀ · L.
        if (g.wants("lhs"))
          g.set("lhs", ta ? batch_dot(b, dy, {.transpose_a = tb, .transpose_b = true})
                          : batch_dot(dy, b, {.transpose_b = !tb}));
        if (g.wants("rhs"))
          g.set("rhs", tb ? batch_dot(dy, a, {.transpose_a = true, .transpose_b = ta})
                          : batch_dot(a, dy, {.transpose_a = !ta}));
      });
}

}  // namespace

MatrixProduct product_of_dot(const Dot& p, const Shape& lhs, const Shape& rhs) {
  MatrixProduct product{.transpose_a = p.transpose_a, .transpose_b = p.transpose_b};
  const int left = lhs_inner_axis(p, lhs.rank()), right = rhs_inner_axis(p, rhs.rank());
  product.inner = lhs[left];
  product.rows = p.transpose_a ? lhs.size(1, lhs.rank()) : lhs.size(0, left);
  product.columns = p.transpose_b ? rhs.size(0, right) : rhs.size(1, rhs.rank());
  return product;
}

MatrixProduct product_of_lhs_grad(const Dot& p, const Shape& lhs, const Shape& rhs) {
  const auto [a, b, ta, tb, rows, inner, columns] = product_of_dot(p, lhs, rhs);
  // dL = dY · Rᵀ, or transposed R · dYᵀ.
  if (!ta) return {.a = 0, .b = 1, .transpose_b = !tb, .rows = rows, .inner = columns, .columns = inner};
  return {.a = 1, .b = 0, .transpose_a = tb, .transpose_b = true, .rows = inner, .inner = columns, .columns = rows};
}

MatrixProduct product_of_rhs_grad(const Dot& p, const Shape& lhs, const Shape& rhs) {
  const auto [a, b, ta, tb, rows, inner, columns] = product_of_dot(p, lhs, rhs);
  // dR = Lᵀ · dY, or transposed dYᵀ · L.
  if (!tb) return {.a = 0, .b = 1, .transpose_a = !ta, .rows = inner, .inner = rows, .columns = columns};
  return {.a = 1, .b = 0, .transpose_a = true, .transpose_b = ta, .rows = columns, .inner = rows, .columns = inner};
}

void register_dot(OpRegistry& registry) {
  add<Dot>(registry, "dot", define);
  add_internal<DotLhsGrad>(registry, "_backward_dot_lhs", define);
  add_internal<DotRhsGrad>(registry, "_backward_dot_rhs", define);
  add<BatchDot>(registry, "batch_dot", define);
}

}  // namespace symbind
