#include "symbind/ops/linalg_product.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/cpu/gemm.h"
#include "symbind/backend/cpu/lapack.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/product.h"
#include "symbind/backend/linalg_product.h"
#include "symbind/backend/visit_types.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Small matrices, and many, are divided among the cores; a few large ones run one after the other on all cores.
template <class Body>
void for_matrices(int64_t count, int64_t work_of_each, const Body& body) {
  if (work_of_each > (1 << 21) && count < 4 * available_threads())
    body(0, count);
  else
    parallel_for(count, std::max<int64_t>(1, element_grain / std::max<int64_t>(1, work_of_each)), body);
}

// ---- General matrices -----------------------------------------------------------------------------------------------

template <class T>
void scale_and_add(const MatrixProduct& p, const T* c, T* out) {
  const T alpha = static_cast<T>(p.alpha), beta = static_cast<T>(p.beta);
  for (int64_t row = 0; row < p.out.rows; ++row) {
    T* const to = out + row * p.out.row_step();
    const T* const from = c ? c + row * p.out.row_step() : nullptr;
    for (int64_t k = 0; k < p.out.columns; ++k) to[k] = alpha * to[k] + (from ? beta * from[k] : T(0));
  }
}

template <class T>
void multiply(const MatrixProduct& p, const T* a, const T* b, const T* c, T* out) {
  const int64_t work = p.out.rows * p.inner() * p.out.columns;
  for_matrices(p.out.outer * p.out.between, work, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t i = n / p.out.between, j = n % p.out.between, at = p.out.begin(i, j);
      gemm<T, T>(p.out.rows, p.out.columns, p.inner(), {a + p.a.begin(i, j), p.a.row_step(), p.transpose_a},
                 {b + p.b.begin(i, j), p.b.row_step(), p.transpose_b}, {out + at, p.out.row_step()});
      if (c || p.alpha != 1) scale_and_add(p, c ? c + at : nullptr, out + at);
    }
  });
}

// `second` is the input that is b.
std::unique_ptr<Kernel> build_product(const NodeView& node, const MatrixProduct& p, size_t second, bool adds) {
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Args& args) {
      multiply<T>(p, args.in<T>(0), args.in<T>(second), adds ? args.in<T>(2) : nullptr, args.out<T>());
    });
  });
}

// ---- Triangular matrices --------------------------------------------------------------------------------------------

constexpr int64_t strip = 64;  // rows of the triangle, or columns, that are multiplied together

// to = `count` rows and columns of the triangle, from the diagonal element `at` on, with zeros outside of it.
template <class T>
void copy_triangle(const T* from, int64_t extent, int64_t at, int64_t count, bool lower, T* to) {
  std::fill_n(to, count * count, T(0));
  for (int64_t row = 0; row < count; ++row) {
    const int64_t begin = lower ? 0 : row, end = lower ? row + 1 : count;
    const T* const own = from + (at + row) * extent + at;
    std::copy(own + begin, own + end, to + row * count + begin);
  }
}

// out = op(A) · B (or B · op(A)) strip by strip: what is zero is not multiplied, but for half of the squares on the
// diagonal, which are copied. `triangle` is space for one.
template <class T>
void multiply_triangle(const LinalgTrmm& p, const MatricesOf& size, const T* a, const T* b, T* out, T* triangle) {
  const int64_t extent = p.rightside ? size.columns : size.rows, step = size.columns;
  const bool begins_at_zero = (p.lower != p.transpose) != p.rightside;  // the elements that are not zero
  for (int64_t at = 0; at < extent; at += strip) {
    const int64_t count = std::min(strip, extent - at);
    copy_triangle(a, extent, at, count, p.lower, triangle);
    const auto multiply_part = [&](Matrix<const T> part, int64_t begin, int64_t inner) {
      const bool adds = begin != at;
      if (p.rightside)
        product<T>(size.rows, count, inner, {b + begin, step}, part, {out + at, step}, adds);
      else
        product<T>(count, step, inner, part, {b + begin * step, step}, {out + at * step, step}, adds);
    };
    multiply_part({triangle, count, p.transpose}, at, count);
    const int64_t begin = begins_at_zero ? 0 : at + count, end = begins_at_zero ? at : extent;
    // Element (at, begin) of op(A), on the right side (begin, at).
    const bool from_column = p.rightside == p.transpose;
    const T* const part = from_column ? a + at * extent + begin : a + begin * extent + at;
    if (begin < end) multiply_part({part, extent, p.transpose}, begin, end - begin);
  }
}

std::unique_ptr<Kernel> build_trmm(const NodeView& node) {
  const auto p = node.as<LinalgTrmm>();
  const MatricesOf b = matrices_of(node.outputs[0].shape);
  const int64_t extent = p.rightside ? b.columns : b.rows, work = b.rows * b.columns * extent;
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Args& args) {
      for_matrices(b.outer, work, [&](int64_t begin, int64_t end) {
        std::vector<T> triangle(static_cast<size_t>(strip * strip));
        for (int64_t n = begin; n < end; ++n) {
          T* const out = args.out<T>() + b.begin(n, 0);
          multiply_triangle(p, b, args.in<T>(0) + n * extent * extent, args.in<T>(1) + b.begin(n, 0), out,
                            triangle.data());
          if (p.alpha != 1)
            for (int64_t k = 0; k < b.rows * b.columns; ++k) out[k] *= static_cast<T>(p.alpha);
        }
      });
    });
  });
}

std::unique_ptr<Kernel> build_trsm(const NodeView& node) {
  const auto p = node.as<LinalgTrsm>();
  const MatricesOf b = matrices_of(node.outputs[0].shape);
  const int64_t extent = p.rightside ? b.columns : b.rows;
  lapack::check_extents({b.rows, b.columns}, node.where());
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Args& args) {
      if (b.rows * b.columns == 0) return;
      const int64_t work = b.rows * b.columns * extent;
      parallel_for(b.outer, std::max<int64_t>(1, element_grain / work), [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          T* const out = args.out<T>() + b.begin(n, 0);
          std::copy_n(args.in<T>(1) + b.begin(n, 0), b.rows * b.columns, out);
          lapack::solve_triangular<T>(p, {args.in<T>(0) + n * extent * extent, extent}, {out, b.columns}, b.rows);
        }
      });
    });
  });
}

}  // namespace

void add_linalg_product(ImplementationTable& table) {
  add_plain<LinalgGemm>(
      table, [](const NodeView& node) { return build_product(node, gemm_product<LinalgGemm>(node), 1, true); });
  add_plain<LinalgGemm2>(
      table, [](const NodeView& node) { return build_product(node, gemm_product<LinalgGemm2>(node), 1, false); });
  add_plain<LinalgSyrk>(table, [](const NodeView& node) { return build_product(node, syrk_product(node), 0, false); });
  add_plain<LinalgTrmm>(table, build_trmm);
  add_plain<LinalgTrsm>(table, build_trsm);
}

}  // namespace symbind::cpu_backend
