#include "symbind/ops/linalg_product.h"

#include "symbind/graph/define.h"
#include "symbind/ops/linalg_element.h"
#include "symbind/ops/matrices.h"
#include "symbind/ops/scalar.h"

namespace symbind {
namespace {

// ---- General matrices -----------------------------------------------------------------------------------------------

// Each element of A has a product for every column of the result.
double multiply_adds(const Shape& a, const Shape& result) {
  return static_cast<double>(a.size()) * static_cast<double>(result[result.rank() - 1]);
}

template <class P>
Op<P>& gemm_fields(Op<P>& op) {
  op.param(&P::transpose_a, "transpose_a", "use the transpose of each matrix of A")
      .param(&P::transpose_b, "transpose_b", "use the transpose of each matrix of B")
      .param(&P::alpha, "alpha", "factor of the product");
  if constexpr (std::is_same_v<P, LinalgGemm>) op.param(&P::beta, "beta", "factor of C");
  op.multiply_adds([](const P&, auto in, auto out) { return multiply_adds(in[0], out[0]); });
  return op.param(&P::axis, "axis",
                  "axis of the rows of all matrices, negative ones count from the end; the columns are the last axis");
}

// The shape of the product, known where A and B are.
template <class P>
void infer_product(const P& p, Shapes& s) {
  const auto a = s["A"], b = s["B"];
  if (!has_matrices(s, a, "A") || !has_matrices(s, b, "B") || !a.known() || !b.known()) return;
  const int rank = a.rank(), columns = rank - 1;
  require(b.rank() == rank, s.where(), " A and B must have as many axes: A ", a.get(), ", B ", b.get());
  const int64_t rows = p.axis < 0 ? p.axis + rank : p.axis;
  require(rows >= 0 && rows < columns, s.where(), " axis ", p.axis,
          " must be that of the rows, which comes before the last: A ", a.get());
  const int row = static_cast<int>(rows);
  for (int axis = 0; axis < columns; ++axis)
    require(axis == row || a[axis] == b[axis], s.where(), " A and B may differ only in rows and columns, axis ", axis,
            " is neither of these: A ", a.get(), ", B ", b.get());
  const int a_inner = p.transpose_a ? row : columns, b_inner = p.transpose_b ? columns : row;
  require(a[a_inner] == b[b_inner], s.where(), " axis ", a_inner, " of A and axis ", b_inner,
          " of B must be equally long: A ", a.get(), ", B ", b.get());
  s.output().meet(a.get().with(row, a[p.transpose_a ? columns : row]).with(columns, b[p.transpose_b ? row : columns]));
}

// dA = alpha · dY · op(B)ᵀ, or its transpose op(B) · dYᵀ; dB the same with op(A)ᵀ · dY.
template <class P>
void differentiate_product(const P& p, Grad& g) {
  const bool ta = p.transpose_a, tb = p.transpose_b;
  const auto product = [&](const Symbol& left, const Symbol& right, bool transpose_left, bool transpose_right) {
    return linalg_gemm2(
        left, right, {.transpose_a = transpose_left, .transpose_b = transpose_right, .alpha = p.alpha, .axis = p.axis});
  };
  const Symbol dy = g.out_grad(), a = g.input("A"), b = g.input("B");
  if (g.wants("A")) g.set("A", ta ? product(b, dy, tb, true) : product(dy, b, false, !tb));
  if (g.wants("B")) g.set("B", tb ? product(dy, a, true, ta) : product(a, dy, !ta, false));
}

OpDef define(Op<LinalgGemm> op) {
  return gemm_fields(op)
      .aliases({"linalg_gemm"})
      .doc(
          "Product of matrices and a sum: alpha · op(A) · op(B) + beta · C, where op is the matrix or its transpose. A "
          "is (batch…, m, k), B (batch…, k, n), C and the output are (batch…, m, n).")
      .precision(Precision::full)
      .inputs({"A", "B", "C"})
      .infer_shape([](const LinalgGemm& p, Shapes& s) {
        infer_product(p, s);
        s["C"].meet(s.output());
      })
      .infer_type([](const LinalgGemm&, Types& t) { same_real_type(t); })
      .gradient([](const LinalgGemm& p, Grad& g) {
        differentiate_product(p, g);
        if (g.wants("C")) g.set("C", p.beta == 1 ? g.out_grad() : mul_scalar(g.out_grad(), {.scalar = p.beta}));
      });
}

OpDef define(Op<LinalgGemm2> op) {
  return gemm_fields(op)
      .aliases({"linalg_gemm2"})
      .doc(
          "Product of matrices: alpha · op(A) · op(B), where op is the matrix or its transpose. A is (batch…, m, k), B "
          "(batch…, k, n), the output (batch…, m, n).")
      .precision(Precision::full)
      .inputs({"A", "B"})
      .infer_shape(infer_product<LinalgGemm2>)
      .infer_type([](const LinalgGemm2&, Types& t) { same_real_type(t); })
      .gradient([](const LinalgGemm2& p, Grad& g) { differentiate_product(p, g); });
}

OpDef define(Op<LinalgSyrk> op) {
  return op.aliases({"linalg_syrk"})
      .doc("Product of a matrix (batch…, m, k) and its transpose: alpha · A · Aᵀ, (batch…, m, m).")
      .precision(Precision::full)
      .param(&LinalgSyrk::transpose, "transpose", "compute alpha · Aᵀ · A, (batch…, k, k)")
      .param(&LinalgSyrk::alpha, "alpha", "factor of the product")
      .inputs({"A"})
      .multiply_adds([](const LinalgSyrk&, auto in, auto out) { return multiply_adds(in[0], out[0]); })
      .infer_shape([](const LinalgSyrk& p, Shapes& s) {
        const auto a = s["A"];
        if (!has_matrices(s, a, "A")) return;
        const int rank = a.rank();
        const int64_t extent = a[p.transpose ? rank - 1 : rank - 2];
        s.output().meet(a.get().with(rank - 2, extent).with(rank - 1, extent));
      })
      .infer_type([](const LinalgSyrk&, Types& t) { same_real_type(t); })
      // alpha · (dY + dYᵀ) · A
      .gradient([](const LinalgSyrk& p, Grad& g) {
        const Symbol both = plus_transpose(g.out_grad()), a = g.input("A");
        g.set("A", p.transpose ? linalg_gemm2(a, both, {.alpha = p.alpha}) : linalg_gemm2(both, a, {.alpha = p.alpha}));
      });
}

// ---- Triangular matrices --------------------------------------------------------------------------------------------

template <class P>
Op<P>& triangular(Op<P>& op) {
  return op.param(&P::transpose, "transpose", "use the transpose of each matrix of A")
      .param(&P::rightside, "rightside", "A is on the right of B, or of the solution")
      .param(&P::lower, "lower", "A is lower triangular, else upper; its other triangle is not read")
      .param(&P::alpha, "alpha", "factor of the result")
      .inputs({"A", "B"})
      .multiply_adds([](const P&, auto in, auto) {  // half of each matrix of A is zero
        return static_cast<double>(in[1].size()) * static_cast<double>(in[0][in[0].rank() - 1]) / 2;
      })
      .infer_shape([](const P& p, Shapes& s) {
        auto a = s["A"], b = s["B"];
        b.meet(s.output());
        s.output().meet(b.get());
        if (!has_square_matrices(s, a, "A") || !has_matrices(s, b, "B")) return;
        const int rank = a.rank();
        require(b.rank() == rank, s.where(), " A and B must have as many axes: A ", a.get(), ", B ", b.get());
        const int side = p.rightside ? rank - 1 : rank - 2;
        for (int axis = 0; axis < rank - 2; ++axis) {
          a.meet_dim(axis, b[axis]);
          b.meet_dim(axis, a[axis]);
        }
        a.meet_dim(rank - 2, b[side]);
        a.meet_dim(rank - 1, b[side]);
        b.meet_dim(side, a[rank - 1]);
        s.output().meet(b.get());
      })
      .infer_type([](const P&, Types& t) { same_real_type(t); });
}

// The gradient of A: a triangle of left · rightᵀ, of the other order if A is transposed. On the right side the two
// matrices are multiplied along their rows.
Symbol triangle_of_product(const Symbol& left, const Symbol& right, bool rightside, bool transpose, bool lower,
                           double factor) {
  const Symbol &first = transpose ? right : left, &second = transpose ? left : right;
  const Symbol product = rightside ? linalg_gemm2(second, first, {.transpose_a = true})
                                   : linalg_gemm2(first, second, {.transpose_b = true});
  return triangle(product, {.lower = lower, .factor = factor});
}

OpDef define(Op<LinalgTrmm> op) {
  return triangular(op)
      .aliases({"linalg_trmm"})
      .doc(
          "Product with a triangular matrix: alpha · op(A) · B, where op is the matrix or its transpose. A is (batch…, "
          "m, m), B and the output are (batch…, m, n); with rightside alpha · B · op(A) of B (batch…, n, m).")
      .precision(Precision::full)
      .gradient([](const LinalgTrmm& p, Grad& g) {
        const Symbol dy = g.out_grad();
        if (g.wants("B")) {
          LinalgTrmm turned = p;
          turned.transpose = !p.transpose;
          g.set("B", linalg_trmm(g.input("A"), dy, turned));
        }
        if (g.wants("A")) g.set("A", triangle_of_product(dy, g.input("B"), p.rightside, p.transpose, p.lower, p.alpha));
      });
}

OpDef define(Op<LinalgTrsm> op) {
  return triangular(op)
      .aliases({"linalg_trsm"})
      .doc(
          "Solves a triangular system: the output X with op(A) · X = alpha · B, where op is the matrix or its "
          "transpose. A is (batch…, m, m), B and X are (batch…, m, n); with rightside X · op(A) = alpha · B of B "
          "(batch…, n, m). A zero on the diagonal of A gives infinities.")
      .precision(Precision::full)
      // With G = op(A)⁻ᵀ · dX: dB = alpha · G, d(op(A)) = -G · Xᵀ.
      .gradient([](const LinalgTrsm& p, Grad& g) {
        const LinalgTrsm turned{.transpose = !p.transpose, .rightside = p.rightside, .lower = p.lower};
        const Symbol solved = linalg_trsm(g.input("A"), g.out_grad(), turned);
        if (g.wants("B")) g.set("B", p.alpha == 1 ? solved : mul_scalar(solved, {.scalar = p.alpha}));
        if (g.wants("A")) g.set("A", triangle_of_product(solved, g.output(), p.rightside, p.transpose, p.lower, -1));
      });
}

}  // namespace

MatricesOf matrices_of(const Shape& shape, int64_t row_axis) {
  const int rank = shape.rank(), row = static_cast<int>(row_axis < 0 ? row_axis + rank : row_axis);
  return {shape.size(0, row), shape[row], shape.size(row + 1, rank - 1), shape[rank - 1]};
}

void register_linalg_product(OpRegistry& registry) {
  add<LinalgGemm>(registry, "_linalg_gemm", define);
  add<LinalgGemm2>(registry, "_linalg_gemm2", define);
  add<LinalgSyrk>(registry, "_linalg_syrk", define);
  add<LinalgTrmm>(registry, "_linalg_trmm", define);
  add<LinalgTrsm>(registry, "_linalg_trsm", define);
}

}  // namespace symbind
