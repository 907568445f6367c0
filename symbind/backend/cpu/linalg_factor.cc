// Matrices are divided among the threads; each is factorized by one thread.
#include "symbind/ops/linalg_factor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "symbind/backend/cpu/lapack.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/visit_types.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using lapack::Square;

// A kernel of body(square, matrix n) for every matrix of an array of square ones.
template <class Body>
std::unique_ptr<Kernel> build_for_square(const NodeView& node, Body body) {
  const MatricesOf matrices = matrices_of(node.inputs[0].shape);
  const int64_t extent = matrices.columns;
  lapack::check_extents({extent}, node.where());
  return visit_types<float, double>(node.inputs[0].dtype, [&]<class T>(std::type_identity<T> type) {
    return make_kernel([=](const Args& args) {
      const int64_t grain = std::max<int64_t>(1, element_grain / 4 / std::max<int64_t>(1, extent * extent * extent));
      parallel_for(matrices.outer, grain, [&](int64_t begin, int64_t end) {
        Square<T> square(extent);
        for (int64_t n = begin; n < end; ++n) body(type, square, args, n);
      });
    });
  });
}

// The lower triangle of a matrix, zeros above; false if it contains a NaN; it is then filled with NaN.
template <class T>
bool copy_lower(const T* from, T* to, int64_t extent) {
  std::fill_n(to, extent * extent, T(0));
  bool is_number = true;
  for (int64_t row = 0; row < extent; ++row)
    for (int64_t k = 0; k <= row; ++k) {
      to[row * extent + k] = from[row * extent + k];
      is_number = is_number && !std::isnan(from[row * extent + k]);
    }
  if (!is_number)
    for (int64_t row = 0; row < extent; ++row)
      std::fill_n(to + row * extent, row + 1, std::numeric_limits<T>::quiet_NaN());
  return is_number;
}

template <class T>
void mirror_lower(T* a, int64_t extent) {
  for (int64_t row = 0; row < extent; ++row)
    for (int64_t k = 0; k < row; ++k) a[k * extent + row] = a[row * extent + k];
}

std::unique_ptr<Kernel> build_potrf(const NodeView& node) {
  const int64_t extent = matrices_of(node.inputs[0].shape).columns;
  return build_for_square(node, [extent, where = node.where()]<class T>(std::type_identity<T>, Square<T>& square,
                                                                        const Args& args, int64_t n) {
    T* const l = args.out<T>() + n * extent * extent;
    if (!copy_lower(args.in<T>(0) + n * extent * extent, l, extent)) return;
    const int64_t failed = extent > 0 ? square.cholesky(l) : 0;
    require(failed == 0, where, " matrix ", n, " of A is not positive definite: its leading minor of order ", failed,
            " is not positive");
  });
}

std::unique_ptr<Kernel> build_potri(const NodeView& node) {
  const int64_t extent = matrices_of(node.inputs[0].shape).columns;
  return build_for_square(node, [extent, where = node.where()]<class T>(std::type_identity<T>, Square<T>& square,
                                                                        const Args& args, int64_t n) {
    T* const w = args.out<T>() + n * extent * extent;
    if (copy_lower(args.in<T>(0) + n * extent * extent, w, extent) && extent > 0) {
      const int64_t failed = square.inverse_of_cholesky(w);
      require(failed == 0, where, " matrix ", n, " of A is no Cholesky factor: element ", failed - 1,
              " of its diagonal is 0");
    }
    mirror_lower(w, extent);
  });
}

std::unique_ptr<Kernel> build_gelqf(const NodeView& node) {
  const MatricesOf a = matrices_of(node.inputs[0].shape);
  lapack::check_extents({a.columns, a.rows * 64}, node.where());
  return visit_types<float, double>(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel([=](const Args& args) {
      const int64_t size = a.rows * a.columns;
      if (size == 0) return;
      // Either output may be unread, but not both: a missing one is computed in a temporary vector.
      parallel_for(a.outer, std::max<int64_t>(1, element_grain / 4 / (size * a.rows)), [&](int64_t begin, int64_t end) {
        std::vector<T> own_q(args.outputs[0] ? 0 : static_cast<size_t>(size));
        std::vector<T> own_l(args.outputs[1] ? 0 : static_cast<size_t>(a.rows * a.rows));
        for (int64_t n = begin; n < end; ++n) {
          T* const q = args.outputs[0] ? args.out<T>(0) + n * size : own_q.data();
          T* const l = args.outputs[1] ? args.out<T>(1) + n * a.rows * a.rows : own_l.data();
          std::copy_n(args.in<T>(0) + n * size, size, q);
          lapack::factor_lq(q, l, a.rows, a.columns);
        }
      });
    });
  });
}

// Makes the largest element of each row positive: this chooses one of the two unit eigenvectors.
template <class T>
void fix_signs(T* u, int64_t extent) {
  for (T* row = u; row < u + extent * extent; row += extent) {
    const T* const largest = std::max_element(row, row + extent, [](T a, T b) { return std::abs(a) < std::abs(b); });
    if (*largest < T(0))
      for (int64_t k = 0; k < extent; ++k) row[k] = -row[k];
  }
}

std::unique_ptr<Kernel> build_syevd(const NodeView& node) {
  const int64_t extent = matrices_of(node.inputs[0].shape).columns;
  lapack::check_extents({2 * extent * extent + 6 * extent + 1}, node.where());
  return build_for_square(node, [extent, where = node.where()]<class T>(std::type_identity<T>, Square<T>& square,
                                                                        const Args& args, int64_t n) {
    if (extent == 0) return;
    std::vector<T> own_u(args.outputs[0] ? 0 : static_cast<size_t>(extent * extent));
    std::vector<T> own_values(args.outputs[1] ? 0 : static_cast<size_t>(extent));
    T* const u = args.outputs[0] ? args.out<T>(0) + n * extent * extent : own_u.data();
    T* const values = args.outputs[1] ? args.out<T>(1) + n * extent : own_values.data();
    if (!copy_lower(args.in<T>(0) + n * extent * extent, u, extent)) {
      std::fill_n(u, extent * extent, std::numeric_limits<T>::quiet_NaN());
      std::fill_n(values, extent, std::numeric_limits<T>::quiet_NaN());
      return;
    }
    require(square.eigen(u, values), where, " the eigenvalues of matrix ", n, " of A were not found: no convergence");
    fix_signs(u, extent);
  });
}

// On a singular matrix an error, or zeros.
template <bool or_zeros>
std::unique_ptr<Kernel> build_inverse(const NodeView& node) {
  const int64_t extent = matrices_of(node.inputs[0].shape).columns;
  lapack::check_extents({extent * 64}, node.where());
  return build_for_square(node, [extent, where = node.where()]<class T>(std::type_identity<T>, Square<T>& square,
                                                                        const Args& args, int64_t n) {
    if (extent == 0) return;
    T* const w = args.out<T>() + n * extent * extent;
    std::copy_n(args.in<T>(0) + n * extent * extent, extent * extent, w);
    int64_t failed = square.lu(w);
    if (failed == 0) failed = square.inverse_of_lu(w);
    if (failed != 0 && or_zeros) std::fill_n(w, extent * extent, T(0));
    require(failed == 0 || or_zeros, where, " matrix ", n, " of A is singular: it has no inverse");
  });
}

// The sign of the determinant of a factorized matrix, and the product (or the sum of logarithms) of its pivots.
template <class T>
struct Determinant {
  T sign = 1, value = 1, logarithm = 0;

  Determinant(const T* lu, const std::vector<int>& pivots) {
    const auto extent = static_cast<int64_t>(pivots.size());
    for (int64_t k = 0; k < extent; ++k) {
      const T pivot = lu[k * extent + k];
      const bool exchanged = pivots[static_cast<size_t>(k)] != k + 1;
      const T signed_pivot = exchanged ? -pivot : pivot;
      value *= signed_pivot;
      sign *= signed_pivot > T(0) ? T(1) : signed_pivot < T(0) ? T(-1) : signed_pivot * T(0);  // 0, or NaN
      logarithm += std::log(std::abs(pivot));
    }
  }
};

// write(args, n, determinant)
template <class Write>
std::unique_ptr<Kernel> build_determinant(const NodeView& node, Write write) {
  const int64_t extent = matrices_of(node.inputs[0].shape).columns;
  return build_for_square(
      node, [extent, write]<class T>(std::type_identity<T>, Square<T>& square, const Args& args, int64_t n) {
        const T* const a = args.in<T>(0) + n * extent * extent;
        std::vector<T> lu(a, a + extent * extent);
        if (extent > 0) square.lu(lu.data());
        write(args, n, Determinant<T>(lu.data(), square.pivots()));
      });
}

std::unique_ptr<Kernel> build_det(const NodeView& node) {
  return build_determinant(node, []<class T>(const Args& args, int64_t n, const Determinant<T>& determinant) {
    args.out<T>()[n] = determinant.value;
  });
}

std::unique_ptr<Kernel> build_slogdet(const NodeView& node) {
  return build_determinant(node, []<class T>(const Args& args, int64_t n, const Determinant<T>& determinant) {
    if (args.outputs[0]) args.out<T>(0)[n] = determinant.sign;
    if (args.outputs[1]) args.out<T>(1)[n] = determinant.logarithm;
  });
}

}  // namespace

void add_linalg_factor(ImplementationTable& table) {
  add_plain<LinalgPotrf>(table, build_potrf);
  add_plain<LinalgPotri>(table, build_potri);
  add_plain<LinalgGelqf>(table, build_gelqf);
  add_plain<LinalgSyevd>(table, build_syevd);
  add_plain<LinalgInverse>(table, build_inverse<false>);
  add_plain<InverseOrZeros>(table, build_inverse<true>);
  add_plain<LinalgDet>(table, build_det);
  add_plain<LinalgSlogdet>(table, build_slogdet);
}

}  // namespace symbind::cpu_backend
