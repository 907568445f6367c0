#include "symbind/ops/linalg_product.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/cpu/gemm.h"
#include "symbind/backend/cpu/lapack.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/linalg_product.h"
#include "symbind/backend/visit_types.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Small matrices are divided among the cores; large ones run one after the other on all cores.
template <class Body>
void for_matrices(int64_t count, int64_t work_of_each, const Body& body) {
  if (work_of_each > (1 << 21))
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

template <class T>
void copy_triangle(const T* from, T* to, int64_t extent, bool lower) {
  std::fill_n(to, extent * extent, T(0));
  for (int64_t row = 0; row < extent; ++row) {
    const int64_t begin = lower ? 0 : row, end = lower ? row + 1 : extent;
    std::copy(from + row * extent + begin, from + row * extent + end, to + row * extent + begin);
  }
}

// The product with a copy of the triangle that is zero outside of it.
std::unique_ptr<Kernel> build_trmm(const NodeView& node) {
  const auto p = node.as<LinalgTrmm>();
  const MatricesOf b = matrices_of(node.outputs[0].shape);
  const int64_t extent = p.rightside ? b.columns : b.rows, work = b.rows * b.columns * extent;
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Args& args) {
      for_matrices(b.outer, work, [&](int64_t begin, int64_t end) {
        std::vector<T> triangle(static_cast<size_t>(extent * extent));
        for (int64_t n = begin; n < end; ++n) {
          copy_triangle(args.in<T>(0) + n * extent * extent, triangle.data(), extent, p.lower);
          const Matrix<const T> a{triangle.data(), extent, p.transpose};
          const Matrix<const T> other{args.in<T>(1) + b.begin(n, 0), b.columns};
          T* const out = args.out<T>() + b.begin(n, 0);
          gemm<T, T>(b.rows, b.columns, extent, p.rightside ? other : a, p.rightside ? a : other, {out, b.columns});
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
