#include "symbind/backend/cpu/lapack.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <type_traits>

#include "symbind/core/error.h"
#include "symbind/core/shared_library.h"

namespace symbind::cpu_backend::lapack {
namespace {

// The names of this copy's functions begin with scipy_, so that they cannot be confused with another LAPACK in the
// process.
constinit SharedLibrary openblas({.title = "LAPACK",
                                  .file = "libscipy_openblas.so",
                                  .version = no_version,
                                  .remedy = "install it (pip install scipy-openblas32)"});

// Fortran's calling convention: everything by address, the lengths of strings at the end.
using Text = const char*;
using Number = const int*;
template <class Pointer>
using Function = SharedFunction<Pointer>;

template <class T>
struct Functions {
  using Trsm = void (*)(Text side, Text uplo, Text trans, Text diag, Number m, Number n, const T* alpha, const T* a,
                        Number lda, T* b, Number ldb, size_t, size_t, size_t, size_t);
  using Potrf = void (*)(Text uplo, Number n, T* a, Number lda, int* info, size_t);
  using Getrf = void (*)(Number m, Number n, T* a, Number lda, int* pivots, int* info);
  using Getri = void (*)(Number n, T* a, Number lda, Number pivots, T* work, Number lwork, int* info);
  using Geqrf = void (*)(Number m, Number n, T* a, Number lda, T* tau, T* work, Number lwork, int* info);
  using Orgqr = void (*)(Number m, Number n, Number k, T* a, Number lda, const T* tau, T* work, Number lwork,
                         int* info);
  using Syevd = void (*)(Text jobz, Text uplo, Number n, T* a, Number lda, T* w, T* work, Number lwork, int* iwork,
                         Number liwork, int* info, size_t, size_t);

  Function<Trsm> trsm;
  Function<Potrf> potrf, potri;
  Function<Getrf> getrf;
  Function<Getri> getri;
  Function<Geqrf> geqrf;
  Function<Orgqr> orgqr;
  Function<Syevd> syevd;
};
constinit Functions<float> of_float{
    {openblas, "scipy_strsm_"},  {openblas, "scipy_spotrf_"}, {openblas, "scipy_spotri_"}, {openblas, "scipy_sgetrf_"},
    {openblas, "scipy_sgetri_"}, {openblas, "scipy_sgeqrf_"}, {openblas, "scipy_sorgqr_"}, {openblas, "scipy_ssyevd_"}};
constinit Functions<double> of_double{
    {openblas, "scipy_dtrsm_"},  {openblas, "scipy_dpotrf_"}, {openblas, "scipy_dpotri_"}, {openblas, "scipy_dgetrf_"},
    {openblas, "scipy_dgetri_"}, {openblas, "scipy_dgeqrf_"}, {openblas, "scipy_dorgqr_"}, {openblas, "scipy_dsyevd_"}};
constinit SharedFunction<void (*)(int)> set_num_threads{openblas, "scipy_openblas_set_num_threads"};

// Its own threads would compete with ours, which take one matrix each.
template <class T>
Functions<T>& functions() {
  static std::once_flag once;
  std::call_once(once, [] { set_num_threads(1); });
  if constexpr (std::is_same_v<T, float>)
    return of_float;
  else
    return of_double;
}

constexpr int64_t block = 64;  // columns that are worked on together

void check_arguments(int info, const char* function) {
  require(info >= 0, "LAPACK's ", function, " refuses its argument ", -info, ": a mistake of Symbind's");
}

}  // namespace

Part part() { return openblas.part(); }

void check_extents(std::initializer_list<int64_t> extents, std::string_view where) {
  for (const int64_t extent : extents)
    require(extent <= std::numeric_limits<int>::max(), where, " a matrix has ", extent,
            " rows or columns; LAPACK can count to ", std::numeric_limits<int>::max());
}

template <class T>
void solve_triangular(const LinalgTrsm& params, Matrix<const T> a, Matrix<T> b, int64_t rows) {
  const int m = static_cast<int>(b.step), n = static_cast<int>(rows);
  const int lda = static_cast<int>(a.step);
  const T alpha = static_cast<T>(params.alpha);
  functions<T>().trsm(params.rightside ? "L" : "R", params.lower ? "U" : "L", params.transpose ? "T" : "N", "N", &m, &n,
                      &alpha, a.data, &lda, b.data, &m, 1, 1, 1, 1);
}

template <class T>
Square<T>::Square(int64_t extent) : extent_(static_cast<int>(extent)), pivots_(static_cast<size_t>(extent)) {}

template <class T>
T* Square<T>::work(int64_t count) {
  work_.resize(std::max(work_.size(), static_cast<size_t>(count)));
  return work_.data();
}

template <class T>
int64_t Square<T>::cholesky(T* a) {
  int info = 0;
  functions<T>().potrf("U", &extent_, a, &extent_, &info, 1);
  check_arguments(info, "potrf");
  return info;
}

template <class T>
int64_t Square<T>::inverse_of_cholesky(T* a) {
  int info = 0;
  functions<T>().potri("U", &extent_, a, &extent_, &info, 1);
  check_arguments(info, "potri");
  return info;
}

template <class T>
int64_t Square<T>::lu(T* a) {
  int info = 0;
  functions<T>().getrf(&extent_, &extent_, a, &extent_, pivots_.data(), &info);
  check_arguments(info, "getrf");
  return info;
}

template <class T>
int64_t Square<T>::inverse_of_lu(T* a) {
  int info = 0;
  const int size = extent_ * static_cast<int>(block);
  functions<T>().getri(&extent_, a, &extent_, pivots_.data(), work(size), &size, &info);
  check_arguments(info, "getri");
  return info;
}

template <class T>
bool Square<T>::eigen(T* a, T* values) {
  const int64_t n = extent_;
  int info = 0;
  const int size = static_cast<int>(std::min<int64_t>(1 + 6 * n + 2 * n * n, std::numeric_limits<int>::max()));
  const int whole = static_cast<int>(3 + 5 * n);
  std::vector<int> numbers(static_cast<size_t>(whole));
  functions<T>().syevd("V", "U", &extent_, a, &extent_, values, work(size), &size, numbers.data(), &whole, &info, 1, 1);
  check_arguments(info, "syevd");
  return info == 0;
}

// Aᵀ = Q · R, so A = Rᵀ · Qᵀ.
template <class T>
void factor_lq(T* a, T* l, int64_t rows, int64_t columns) {
  const int m = static_cast<int>(columns), n = static_cast<int>(rows), size = n * static_cast<int>(block);
  std::vector<T> tau(static_cast<size_t>(rows)), work(static_cast<size_t>(size));
  int info = 0;
  functions<T>().geqrf(&m, &n, a, &m, tau.data(), work.data(), &size, &info);
  check_arguments(info, "geqrf");
  std::fill_n(l, rows * rows, T(0));
  for (int64_t row = 0; row < rows; ++row) std::copy_n(a + row * columns, row + 1, l + row * rows);
  functions<T>().orgqr(&m, &n, &n, a, &m, tau.data(), work.data(), &size, &info);
  check_arguments(info, "orgqr");
}

template void solve_triangular<float>(const LinalgTrsm&, Matrix<const float>, Matrix<float>, int64_t);
template void solve_triangular<double>(const LinalgTrsm&, Matrix<const double>, Matrix<double>, int64_t);
template class Square<float>;
template class Square<double>;
template void factor_lq<float>(float*, float*, int64_t, int64_t);
template void factor_lq<double>(double*, double*, int64_t, int64_t);

}  // namespace symbind::cpu_backend::lapack
