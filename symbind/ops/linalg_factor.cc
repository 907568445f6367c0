// The gradients are those of matrix calculus; L is the factor, W the inverse, and mirror(M) the symmetric matrix whose
// lower triangle is that of M.
#include "symbind/ops/linalg_factor.h"

#include "symbind/graph/define.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/linalg_element.h"
#include "symbind/ops/linalg_product.h"
#include "symbind/ops/matrices.h"

namespace symbind {
namespace {

Symbol mirrored(const Symbol& matrices, double factor = 1) {
  return triangle(matrices, {.mirrored = true, .factor = factor});
}

// One input A of square matrices, and outputs of its shape.
template <class P>
Op<P>& of_square(Op<P>& op) {
  return op.inputs({"A"})
      .infer_shape([](const P&, Shapes& s) {
        same_shape(s);
        has_square_matrices(s, s["A"], "A");
        s.output().meet(s["A"].get());
      })
      .infer_type([](const P&, Types& t) { same_real_type(t); });
}

OpDef define(Op<LinalgPotrf> op) {
  return of_square(op)
      .aliases({"linalg_potrf"})
      .doc(
          "Cholesky factorization of symmetric positive definite matrices A (batch…, n, n): the output is lower "
          "triangular, and its product with its transpose is A. The lower triangle of A is read. A matrix that is not "
          "positive definite is an error on a CPU and gives NaN on a GPU.")
      .precision(Precision::full)
      // ½ · L⁻ᵀ · mirror(Lᵀ · dL) · L⁻¹
      .gradient([](const LinalgPotrf&, Grad& g) {
        const Symbol l = g.output();
        const Symbol middle = mirrored(linalg_gemm2(l, g.out_grad(), {.transpose_a = true}), 0.5);
        g.set("A", linalg_trsm(l, linalg_trsm(l, middle, {.transpose = true}), {.rightside = true}));
      });
}

OpDef define(Op<LinalgPotri> op) {
  return of_square(op)
      .aliases({"linalg_potri"})
      .doc(
          "Inverse from a Cholesky factor: (A · Aᵀ)⁻¹ of lower triangular matrices A (batch…, n, n). A zero on a "
          "diagonal is an error on a CPU and gives infinities on a GPU.")
      .precision(Precision::full)
      // The lower triangle of -W · (dW + dWᵀ) · L⁻ᵀ
      .gradient([](const LinalgPotri&, Grad& g) {
        const Symbol product = linalg_gemm2(g.output(), plus_transpose(g.out_grad()));
        const Symbol solved = linalg_trsm(g.input("A"), product, {.transpose = true, .rightside = true});
        g.set("A", triangle(solved, {.factor = -1}));
      });
}

OpDef define(Op<LinalgGelqf> op) {
  return op.aliases({"linalg_gelqf"})
      .doc(
          "LQ factorization of matrices A (batch…, m, n) with m ≤ n. The outputs are Q (batch…, m, n) with orthonormal "
          "rows and the lower triangular L (batch…, m, m), where A = L · Q.")
      .precision(Precision::full)
      .inputs({"A"})
      .outputs({"output0", "output1"})
      .infer_shape([](const LinalgGelqf&, Shapes& s) {
        auto a = s["A"];
        a.meet(s.output(0));
        if (!has_matrices(s, a, "A")) return;
        const int rank = a.rank();
        const int64_t rows = a[rank - 2], columns = a[rank - 1];
        require(rows == unknown_dim || columns == unknown_dim || rows <= columns, s.where(),
                " A must have at least as many columns as rows: A ", a.get());
        s.output(0).meet(a.get());
        s.output(1).meet(a.get().with(rank - 1, rows));
      })
      .infer_type([](const LinalgGelqf&, Types& t) { same_real_type(t); })
      // L⁻ᵀ · (dQ + mirror(Lᵀ · dL - dQ · Qᵀ) · Q)
      .gradient([](const LinalgGelqf&, Grad& g) {
        const Symbol q = g.output(0), l = g.output(1);
        const bool of_q = g.has_out_grad(0), of_l = g.has_out_grad(1);
        std::vector<Symbol> middle;
        if (of_l) middle.push_back(linalg_gemm2(l, g.out_grad(1), {.transpose_a = true}));
        if (of_q) middle.push_back(linalg_gemm2(g.out_grad(0), q, {.transpose_b = true, .alpha = -1}));
        if (middle.empty()) return;
        const Symbol both = mirrored(middle.size() == 2 ? elemwise_add(middle[0], middle[1]) : middle[0]);
        const Symbol right = of_q ? linalg_gemm(both, q, g.out_grad(0)) : linalg_gemm2(both, q);
        g.set("A", linalg_trsm(l, right, {.transpose = true}));
      });
}

OpDef define(Op<LinalgSyevd> op) {
  return op
      .doc(
          "Eigenvalues and eigenvectors of symmetric matrices A (batch…, n, n), of which the lower triangle is read. "
          "The outputs are U (batch…, n, n), whose rows are orthonormal eigenvectors, and L (batch…, n), the "
          "eigenvalues in ascending order: A = Uᵀ · diag(L) · U. The element of largest magnitude in each row of U is "
          "positive. The gradient ignores how eigenvectors of equal eigenvalues turn.")
      .precision(Precision::full)
      .inputs({"A"})
      .outputs({"output0", "output1"})
      .infer_shape([](const LinalgSyevd&, Shapes& s) {
        auto a = s["A"];
        a.meet(s.output(0));
        if (!has_square_matrices(s, a, "A")) return;
        s.output(0).meet(a.get());
        s.output(1).meet(a.get().slice(0, a.rank() - 1));
      })
      .infer_type([](const LinalgSyevd&, Types& t) { same_real_type(t); })
      .gradient([](const LinalgSyevd&, Grad& g) {
        const Symbol u = g.output(0), l = g.output(1);
        const bool of_u = g.has_out_grad(0), of_l = g.has_out_grad(1);
        if (!of_u && !of_l) return;
        const Symbol middle = !of_u ? linalg_makediag(g.out_grad(1)) : [&] {
          const Symbol turns = linalg_gemm2(g.out_grad(0), u, {.transpose_b = true});
          return of_l ? eigen_grad(turns, l, g.out_grad(1)) : eigen_grad(turns, l, {.values = false});
        }();
        g.set("A", linalg_gemm2(linalg_gemm2(u, middle, {.transpose_a = true}), u));
      });
}

OpDef define(Op<LinalgInverse> op) {
  return of_square(op)
      .aliases({"linalg_inverse"})
      .doc("Inverse of matrices A (batch…, n, n). A singular matrix is an error on a CPU and gives NaN on a GPU.")
      .precision(Precision::full)
      // -Wᵀ · dW · Wᵀ
      .gradient([](const LinalgInverse&, Grad& g) {
        const Symbol w = g.output();
        const Symbol left = linalg_gemm2(w, g.out_grad(), {.transpose_a = true, .alpha = -1});
        g.set("A", linalg_gemm2(left, w, {.transpose_b = true}));
      });
}

OpDef define(Op<InverseOrZeros> op) { return of_square(op); }

// One number per matrix in each output.
template <class P>
Op<P>& of_determinant(Op<P>& op) {
  return op.inputs({"A"})
      .infer_shape([](const P&, Shapes& s) {
        const auto a = s["A"];
        if (!has_square_matrices(s, a, "A")) return;
        for (size_t i = 0; i < s.outputs(); ++i) s.output(i).meet(one_per_matrix(a));
      })
      .infer_type([](const P&, Types& t) { same_real_type(t); });
}

OpDef define(Op<LinalgDet> op) {
  return of_determinant(op)
      .aliases({"linalg_det"})
      .doc(
          "Determinants of matrices A (batch…, n, n): (batch…), or (1) for a single one. The gradient of a singular "
          "matrix is zero.")
      .precision(Precision::full)
      .outputs({"output0"})
      .outputs_in_files([](const LinalgDet&) { return 3; })
      .gradient([](const LinalgDet&, Grad& g) {
        g.set("A", scaled_transpose(inverse_or_zeros(g.input("A")), elemwise_mul(g.out_grad(), g.output())));
      });
}

OpDef define(Op<LinalgSlogdet> op) {
  return of_determinant(op)
      .aliases({"linalg_slogdet"})
      .doc(
          "Signs of the determinants of matrices A (batch…, n, n), and logarithms of their absolute values, each "
          "(batch…), or (1) for a single one; 0 and minus infinity for a singular matrix, whose gradient is zero.")
      .precision(Precision::full)
      .outputs({"output0", "output1"})
      .outputs_in_files([](const LinalgSlogdet&) { return 4; })
      .gradient([](const LinalgSlogdet&, Grad& g) {
        if (g.has_out_grad(1)) g.set("A", scaled_transpose(inverse_or_zeros(g.input("A")), g.out_grad(1)));
      });
}

}  // namespace

void register_linalg_factor(OpRegistry& registry) {
  add<LinalgPotrf>(registry, "_linalg_potrf", define);
  add<LinalgPotri>(registry, "_linalg_potri", define);
  add<LinalgGelqf>(registry, "_linalg_gelqf", define);
  add<LinalgSyevd>(registry, "_linalg_syevd", define);
  add<LinalgInverse>(registry, "_linalg_inverse", define);
  add<LinalgDet>(registry, "_linalg_det", define);
  add<LinalgSlogdet>(registry, "_linalg_slogdet", define);
  add_internal<InverseOrZeros>(registry, "_backward_linalg_inverse", define);
}

}  // namespace symbind
