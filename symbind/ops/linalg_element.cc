#include "symbind/ops/linalg_element.h"

#include <cmath>
#include <cstdlib>

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/matrices.h"

namespace symbind {
namespace {

constexpr double furthest = 1e9;

template <class P>
Op<P>& offset_field(Op<P>& op) {
  return op
      .param(&P::offset, "offset", "diagonal: 0 is the main diagonal, k > 0 the k-th above it, k < 0 the k-th below it",
             between(-furthest, furthest))
      .inputs({"A"})
      .infer_type([](const P&, Types& t) { same_real_type(t); });
}

// How many elements the diagonal of square matrices has; unknown while the matrices are.
int64_t diagonal_length(Shapes& s, int64_t offset) {
  const auto a = s["A"];
  if (!has_square_matrices(s, a, "A") || a[a.rank() - 1] == unknown_dim) return unknown_dim;
  const int64_t extent = a[a.rank() - 1], length = extent - std::abs(offset);
  require(length > 0 || (offset == 0 && extent == 0), s.where(), " there is no diagonal ", offset, " in matrices of ",
          extent, " rows: A ", a.get());
  return length;
}

// Matrices out of rows: (batch…, length) is (batch…, extent + |offset|, extent + |offset|).
void meet_made(Shapes& s, int64_t extent, int64_t offset) {
  const auto a = s["A"];
  const int64_t all = extent_sum(extent, std::abs(offset), s.where());
  extent_product(all, all, s.where());
  Shape shape = a.get().slice(0, a.rank() - 1);
  shape.push_back(all);
  shape.push_back(all);
  s.output().meet(shape);
}
bool has_rows(const Shapes& s, Inferred<Shape> a) {
  if (!a.rank_known()) return false;
  require(a.rank() >= 1 && a.rank() < Shape::max_rank, s.where(), " A must have 1 to ", Shape::max_rank - 1,
          " axes: A ", a.get());
  return a[a.rank() - 1] != unknown_dim;
}

OpDef define(Op<LinalgSumlogdiag> op) {
  return op.aliases({"linalg_sumlogdiag"})
      .doc(
          "Sums of the logarithms of the diagonals of matrices A (batch…, n, n): (batch…), or (1) for a single one. "
          "NaN where an element of a diagonal is negative.")
      .precision(Precision::full)
      .inputs({"A"})
      .infer_shape([](const LinalgSumlogdiag&, Shapes& s) {
        if (has_square_matrices(s, s["A"], "A")) s.output().meet(one_per_matrix(s["A"]));
      })
      .infer_type([](const LinalgSumlogdiag&, Types& t) { same_real_type(t); })
      .gradient([](const LinalgSumlogdiag&, Grad& g) { g.set("A", sumlogdiag_grad(g.out_grad(), g.input("A"))); });
}

OpDef define(Op<SumlogdiagGrad> op) {
  return op.inputs({"out_grad", "A"})
      .infer_shape([](const SumlogdiagGrad&, Shapes& s) {
        if (!has_square_matrices(s, s["A"], "A")) return;
        s["out_grad"].meet(one_per_matrix(s["A"]));
        s.output().meet(s["A"].get());
      })
      .infer_type([](const SumlogdiagGrad&, Types& t) { same_real_type(t); });
}

OpDef define(Op<LinalgExtractdiag> op) {
  return offset_field(op)
      .aliases({"linalg_extractdiag"})
      .doc("Diagonals of square matrices A (batch…, n, n): (batch…, n - |offset|).")
      .precision(Precision::full)
      .infer_shape([](const LinalgExtractdiag& p, Shapes& s) {
        const int64_t length = diagonal_length(s, p.offset);
        if (length == unknown_dim) return;
        Shape shape = s["A"].get().slice(0, s["A"].rank() - 2);
        shape.push_back(length);
        s.output().meet(shape);
      })
      .gradient(
          [](const LinalgExtractdiag& p, Grad& g) { g.set("A", linalg_makediag(g.out_grad(), {.offset = p.offset})); });
}

OpDef define(Op<LinalgMakediag> op) {
  return offset_field(op)
      .aliases({"linalg_makediag"})
      .doc(
          "Square matrices with the rows of A (batch…, n) as diagonals and zeros elsewhere: (batch…, n + |offset|, n + "
          "|offset|).")
      .precision(Precision::full)
      .infer_shape([](const LinalgMakediag& p, Shapes& s) {
        if (has_rows(s, s["A"])) meet_made(s, s["A"][s["A"].rank() - 1], p.offset);
      })
      .gradient(
          [](const LinalgMakediag& p, Grad& g) { g.set("A", linalg_extractdiag(g.out_grad(), {.offset = p.offset})); });
}

constexpr auto lower_text =
    "the lower triangle; False: the upper one. With an offset other than 0 its sign decides: below the main diagonal "
    "the lower triangle, above it the upper one";

OpDef define(Op<LinalgExtracttrian> op) {
  return offset_field(op)
      .aliases({"linalg_extracttrian"})
      .doc(
          "Triangles of square matrices A (batch…, n, n), from a diagonal outwards: (batch…, m(m + 1)/2) with m = n - "
          "|offset|, a lower triangle row by row, an upper one column by column.")
      .precision(Precision::full)
      .param(&LinalgExtracttrian::lower, "lower", lower_text)
      .infer_shape([](const LinalgExtracttrian& p, Shapes& s) {
        const int64_t length = diagonal_length(s, p.offset);
        if (length == unknown_dim) return;
        Shape shape = s["A"].get().slice(0, s["A"].rank() - 2);
        shape.push_back(extent_product(length, extent_sum(length, 1, s.where()), s.where()) / 2);
        s.output().meet(shape);
      })
      .gradient([](const LinalgExtracttrian& p, Grad& g) {
        g.set("A", linalg_maketrian(g.out_grad(), {.offset = p.offset, .lower = p.lower}));
      });
}

OpDef define(Op<LinalgMaketrian> op) {
  return offset_field(op)
      .aliases({"linalg_maketrian"})
      .doc(
          "Square matrices with the rows of A (batch…, m(m + 1)/2) as triangles and zeros elsewhere: (batch…, m + "
          "|offset|, m + |offset|). A lower triangle is read row by row, an upper one column by column.")
      .precision(Precision::full)
      .param(&LinalgMaketrian::lower, "lower", lower_text)
      .infer_shape([](const LinalgMaketrian& p, Shapes& s) {
        const auto a = s["A"];
        if (!has_rows(s, a)) return;
        const int64_t count = a[a.rank() - 1];
        auto extent = static_cast<int64_t>((std::sqrt(8 * static_cast<double>(count) + 1) - 1) / 2);
        while (extent * (extent + 1) / 2 < count) ++extent;
        require(extent * (extent + 1) / 2 == count, s.where(),
                " the last axis of A must have m(m + 1)/2 elements for some m: A ", a.get());
        meet_made(s, extent, p.offset);
      })
      .gradient([](const LinalgMaketrian& p, Grad& g) {
        g.set("A", linalg_extracttrian(g.out_grad(), {.offset = p.offset, .lower = p.lower}));
      });
}

// ---- Parts of gradients ---------------------------------------------------------------------------------------------

template <class P>
Op<P>& same_square(Op<P>& op) {
  return op.inputs({"A"})
      .infer_shape([](const P&, Shapes& s) {
        same_shape(s);
        has_square_matrices(s, s["A"], "A");
      })
      .infer_type([](const P&, Types& t) { same_real_type(t); });
}

OpDef define(Op<Triangle> op) {
  return same_square(op)
      .param(&Triangle::lower, "lower", "the lower triangle, else the upper one")
      .param(&Triangle::mirrored, "mirrored", "mirror the triangle across the diagonal; False: zeros")
      .param(&Triangle::factor, "factor", "factor of all elements");
}
OpDef define(Op<PlusTranspose> op) { return same_square(op); }

OpDef define(Op<ScaledTranspose> op) {
  return op.inputs({"A", "factor"})
      .infer_shape([](const ScaledTranspose&, Shapes& s) {
        if (!has_square_matrices(s, s["A"], "A")) return;
        s["factor"].meet(one_per_matrix(s["A"]));
        s.output().meet(s["A"].get());
      })
      .infer_type([](const ScaledTranspose&, Types& t) { same_real_type(t); });
}

OpDef define(Op<EigenGrad> op) {
  return op.param(&EigenGrad::values, "values", "take the gradient of the eigenvalues")
      .inputs([](const EigenGrad& p) {
        return p.values ? Names{"turns", "L", "L_grad"} : Names{"turns", "L"};
      })
      .infer_shape([](const EigenGrad&, Shapes& s) {
        const auto turns = s["turns"];
        if (!has_square_matrices(s, turns, "turns")) return;
        for (size_t i = 1; i < s.inputs(); ++i) s.input(i).meet(turns.get().slice(0, turns.rank() - 1));
        s.output().meet(turns.get());
      })
      .infer_type([](const EigenGrad&, Types& t) { same_real_type(t); });
}

}  // namespace

void register_linalg_element(OpRegistry& registry) {
  add<LinalgSumlogdiag>(registry, "_linalg_sumlogdiag", define);
  add<LinalgExtractdiag>(registry, "_linalg_extractdiag", define);
  add<LinalgMakediag>(registry, "_linalg_makediag", define);
  add<LinalgExtracttrian>(registry, "_linalg_extracttrian", define);
  add<LinalgMaketrian>(registry, "_linalg_maketrian", define);
  add_internal<SumlogdiagGrad>(registry, "_backward_linalg_sumlogdiag", define);
  add_internal<Triangle>(registry, "_backward_linalg_triangle", define);
  add_internal<PlusTranspose>(registry, "_backward_linalg_plus_transpose", define);
  add_internal<ScaledTranspose>(registry, "_backward_linalg_scaled_transpose", define);
  add_internal<EigenGrad>(registry, "_backward_linalg_eigen", define);
}

}  // namespace symbind
