// Factorizations by cuSOLVER and cuBLAS, of many matrices with one call where the libraries support it. Failures that
// LAPACK would report stay on the device: a matrix that cannot be factorized becomes NaN. Row-major matrices are the
// transposes of those the libraries see; linalg_blas.h says what follows from that.
#include "symbind/ops/linalg_factor.h"

#include "symbind/backend/cuda/cusolver.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/linalg_blas.h"
#include "symbind/backend/cuda/scratch_layout.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/divisor.h"
#include "symbind/backend/visit_types.h"
#include "symbind/core/error.h"

namespace symbind::cuda_backend {
namespace {

// ---- cuSOLVER -------------------------------------------------------------------------------------------------------

void check_solver(cusolverStatus_t status, std::string_view where, std::string_view doing) {
  require(status == CUSOLVER_STATUS_SUCCESS, where, " ", doing, ": cuSOLVER reports the status ",
          static_cast<int>(status));
}

struct SolverHandle {
  cusolverDnHandle_t handle = nullptr;
  ~SolverHandle() {
    if (handle) cusolverDnDestroy(handle);
  }
};

cusolverDnHandle_t solver_handle(CudaDevice& device, cudaStream_t stream) {
  const auto held = std::static_pointer_cast<SolverHandle>(device.library("cusolver", [] {
    const auto made = std::make_shared<SolverHandle>();
    check_solver(cusolverDnCreate(&made->handle), "[linalg]", "starting cuSOLVER");
    return std::static_pointer_cast<void>(made);
  }));
  check_solver(cusolverDnSetStream(held->handle, stream), "[linalg]", "choosing a stream");
  return held->handle;
}

std::string refuse_solver(const NodeView& node) {
  const std::string reason = refuse_linalg(node);
  return reason.empty() ? cusolver.problem() : reason;
}

// The functions of both libraries for each type.
template <class T>
struct Library;
template <>
struct Library<float> {
  static constexpr auto& potrf = cusolverDnSpotrfBatched;
  static constexpr auto& geqrf_size = cusolverDnSgeqrf_bufferSize;
  static constexpr auto& geqrf = cusolverDnSgeqrf;
  static constexpr auto& orgqr_size = cusolverDnSorgqr_bufferSize;
  static constexpr auto& orgqr = cusolverDnSorgqr;
  static constexpr auto& syevd_size = cusolverDnSsyevd_bufferSize;
  static constexpr auto& syevd = cusolverDnSsyevd;
  static constexpr auto& getrf = cublasSgetrfBatched;
  static constexpr auto& getri = cublasSgetriBatched;
};
template <>
struct Library<double> {
  static constexpr auto& potrf = cusolverDnDpotrfBatched;
  static constexpr auto& geqrf_size = cusolverDnDgeqrf_bufferSize;
  static constexpr auto& geqrf = cusolverDnDgeqrf;
  static constexpr auto& orgqr_size = cusolverDnDorgqr_bufferSize;
  static constexpr auto& orgqr = cusolverDnDorgqr;
  static constexpr auto& syevd_size = cusolverDnDsyevd_bufferSize;
  static constexpr auto& syevd = cusolverDnDsyevd;
  static constexpr auto& getrf = cublasDgetrfBatched;
  static constexpr auto& getri = cublasDgetriBatched;
};

template <class T>
T* part(const Args& args, size_t begin) {
  return scratch_at<T>(args.scratch, begin);
}

// Square matrices, `count` of them.
struct Squares {
  int64_t extent, count;

  explicit Squares(const Shape& shape) {
    const MatricesOf matrices = matrices_of(shape);
    extent = matrices.columns;
    count = matrices.outer;
  }
  __host__ __device__ int64_t elements() const { return count * extent * extent; }
};

// ---- Kernels --------------------------------------------------------------------------------------------------------

// Each of `count` matrices of `size` elements whose factorization failed gets `value`.
template <class T>
__global__ void mark_failures(T* out, const int* info, int64_t size, int64_t count, T value) {
  for (int64_t i = first_element(); i < size * count; i += element_step())
    if (info[i / size] != 0) out[i] = value;
}

template <class T>
void queue_failures(cudaStream_t stream, T* out, const int* info, int64_t size, int64_t count, T value) {
  mark_failures<<<blocks_for(size * count), block_size, 0, stream>>>(out, info, size, count, value);
}

template <class T>
constexpr T not_a_number() {
  return static_cast<T>(freestanding::quiet_nan<float>());
}

template <class T>
__global__ void write_identity(T* out, int64_t extent, int64_t elements) {
  for (int64_t i = first_element(); i < elements; i += element_step())
    out[i] = i / extent % extent == i % extent ? T(1) : T(0);
}

// A thread applies the exchanges of rows of a factorization to the numbers of the rows: row k of the factors is row
// order[k] of the matrix.
__global__ void write_orders(const int* pivots, int* orders, Squares squares) {
  for (int64_t n = first_element(); n < squares.count; n += element_step()) {
    const int* const pivot = pivots + n * squares.extent;
    int* const order = orders + n * squares.extent;
    for (int64_t k = 0; k < squares.extent; ++k) order[k] = static_cast<int>(k);
    for (int64_t k = 0; k < squares.extent; ++k) {
      const int other = pivot[k] - 1, own = order[k];
      if (other < 0 || other >= squares.extent) break;  // a factorization that failed
      order[k] = order[other];
      order[other] = own;
    }
  }
}

// The permutations as column-major matrices, which move row order[k] to row k.
template <class T>
__global__ void write_permutations(const int* orders, T* out, Squares squares, Divisor extent) {
  for (int64_t i = first_element(); i < squares.elements(); i += element_step()) {
    const Divided line = extent.divide(i), matrix = extent.divide(line.quotient);
    out[i] = orders[matrix.quotient * squares.extent + line.rest] == matrix.rest ? T(1) : T(0);
  }
}

// A thread multiplies the pivots of a matrix; the factorization of a singular matrix stops early.
template <class T>
__global__ void write_determinants(const T* lu, const int* pivots, const int* info, T* value, T* sign, T* logarithm,
                                   Squares squares) {
  for (int64_t n = first_element(); n < squares.count; n += element_step()) {
    const bool singular = info[n] != 0;
    T all = singular ? 0 : 1, positive = all, sum = singular ? -freestanding::infinity<T>() : T(0);
    for (int64_t k = 0; k < squares.extent && !singular; ++k) {
      const T pivot = lu[(n * squares.extent + k) * squares.extent + k];
      const T turned = pivots[n * squares.extent + k] != k + 1 ? -pivot : pivot;
      all *= turned;
      positive *= turned > T(0) ? T(1) : turned < T(0) ? T(-1) : turned * T(0);  // 0, or NaN
      sum += log(pivot < T(0) ? -pivot : pivot);
    }
    if (value) value[n] = all;
    if (sign) sign[n] = positive;
    if (logarithm) logarithm[n] = sum;
  }
}

// The lower triangle of (rows, columns) matrices as (rows, rows) ones.
template <class T>
__global__ void take_lower(const T* from, T* to, int64_t rows, int64_t columns, int64_t count) {
  for (int64_t i = first_element(); i < count * rows * rows; i += element_step()) {
    const int64_t column = i % rows, row = i / rows % rows, matrix = i / (rows * rows);
    to[i] = column <= row ? from[(matrix * rows + row) * columns + column] : T(0);
  }
}

// A thread makes the largest element of a row positive.
template <class T>
__global__ void fix_signs(T* u, int64_t extent, int64_t rows) {
  for (int64_t n = first_element(); n < rows; n += element_step()) {
    T* const row = u + n * extent;
    T largest = 0;
    for (int64_t k = 0; k < extent; ++k) {
      const T size = row[k] < T(0) ? -row[k] : row[k];
      if (size > (largest < T(0) ? -largest : largest)) largest = row[k];
    }
    if (largest < T(0))
      for (int64_t k = 0; k < extent; ++k) row[k] = -row[k];
  }
}

// ---- Operators ------------------------------------------------------------------------------------------------------

// cuSOLVER may wait for the device or allocate: its steps are not captured. cuBLAS can be.

std::unique_ptr<Kernel> build_potrf(const NodeView& node) {
  const Squares squares(node.inputs[0].shape);
  CudaDevice& device = CudaDevice::of(node.context);
  ScratchLayout parts;
  const size_t addresses = parts.add_bytes(address_bytes(squares.count));
  const size_t info = parts.add_bytes(static_cast<size_t>(squares.count) * sizeof(int));
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [=, &device, where = node.where()](const Args& args) {
                       const cudaStream_t stream = stream_of(args);
                       const int extent = static_cast<int>(squares.extent);
                       queue_triangle<T>(stream, args.in<T>(0), args.out<T>(), squares.extent, squares.count, true);
                       queue_addresses<T>(stream, part<T*>(args, addresses), args.out<T>(),
                                          squares.extent * squares.extent, squares.count);
                       check_solver(Library<T>::potrf(solver_handle(device, stream), CUBLAS_FILL_MODE_UPPER, extent,
                                                      part<T*>(args, addresses), extent, part<int>(args, info),
                                                      static_cast<int>(squares.count)),
                                    where, "factorizing matrices");
                       // It writes the factor's transpose to the other triangle.
                       queue_triangle<T>(stream, args.out<T>(), args.out<T>(), squares.extent, squares.count, true);
                       queue_failures<T>(stream, args.out<T>(), part<int>(args, info), squares.extent * squares.extent,
                                         squares.count, not_a_number<T>());
                     },
                     {.scratch_bytes = parts.total(), .capturable = false});
  });
}

// (A · Aᵀ)⁻¹ = A⁻ᵀ · A⁻¹
std::unique_ptr<Kernel> build_potri(const NodeView& node) {
  const Squares squares(node.inputs[0].shape);
  const MatricesOf matrices = matrices_of(node.inputs[0].shape);
  CudaDevice& device = CudaDevice::of(node.context);
  ScratchLayout parts;
  const size_t addresses = parts.add_bytes(address_bytes(squares.count)),
               inverse = parts.add_bytes(node.inputs[0].bytes());
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [=, &device, where = node.where()](const Args& args) {
                       const cudaStream_t stream = stream_of(args);
                       const cublasHandle_t handle = blas_handle(device, stream);
                       T* const w = part<T>(args, inverse);
                       write_identity<<<blocks_for(squares.elements()), block_size, 0, stream>>>(w, squares.extent,
                                                                                                 squares.elements());
                       queue_solve<T>(handle, stream, {}, matrices, args.in<T>(0), w, part<void>(args, addresses),
                                      where);
                       queue_product<T>(handle, {.a = matrices, .b = matrices, .out = matrices, .transpose_a = true}, w,
                                        w, args.out<T>(), where);
                     },
                     {.scratch_bytes = parts.total()});
  });
}

// Scratch for factors L · U of all matrices, and their factorization.
template <class T>
struct LU {
  Squares squares;
  CudaDevice& device;
  std::string where;
  ScratchLayout parts;
  size_t factors, addresses, pivots, info;

  LU(const NodeView& node) : squares(node.inputs[0].shape), device(CudaDevice::of(node.context)), where(node.where()) {
    factors = parts.add_bytes(static_cast<size_t>(squares.elements()) * sizeof(T));
    addresses = parts.add_bytes(address_bytes(squares.count));
    pivots = parts.add_bytes(static_cast<size_t>(squares.count * squares.extent) * sizeof(int));
    info = parts.add_bytes(static_cast<size_t>(squares.count) * sizeof(int));
  }
  int extent() const { return static_cast<int>(squares.extent); }
  int count() const { return static_cast<int>(squares.count); }

  void queue(const Args& args) const {
    const cudaStream_t stream = stream_of(args);
    T* const lu = part<T>(args, factors);
    device.check(cudaMemcpyAsync(lu, args.inputs[0], static_cast<size_t>(squares.elements()) * sizeof(T),
                                 cudaMemcpyDeviceToDevice, stream),
                 "copying A");
    queue_addresses<T>(stream, part<T*>(args, addresses), lu, squares.extent * squares.extent, squares.count);
    check_blas_call(Library<T>::getrf(blas_handle(device, stream), extent(), part<T*>(args, addresses), extent(),
                                      part<int>(args, pivots), part<int>(args, info), count()),
                    where, "factorizing matrices");
  }
};

// cuBLAS inverts smaller matrices from their factors with one call; for larger ones two triangular systems are faster.
constexpr int64_t largest_getri = 32;

template <class T>
void queue_getri(const LU<T>& lu, const Args& args) {
  const cudaStream_t stream = stream_of(args);
  T** const of_lu = part<T*>(args, lu.addresses);
  T** const of_out = of_lu + lu.squares.count;
  queue_addresses<T>(stream, of_out, args.out<T>(), lu.squares.extent * lu.squares.extent, lu.squares.count);
  // It reports a zero on the diagonal of U, as the factorization does.
  check_blas_call(
      Library<T>::getri(blas_handle(lu.device, stream), lu.extent(), of_lu, lu.extent(), part<int>(args, lu.pivots),
                        of_out, lu.extent(), part<int>(args, lu.info), lu.count()),
      lu.where, "inverting matrices");
}

// cuBLAS factorizes the transpose: P · Aᵀ = L · U. So A = Uᵀ · Lᵀ · P and A⁻¹ = Pᵀ · L⁻ᵀ · U⁻ᵀ. Row-major, the memory
// of the factors is Uᵀ below and Lᵀ above the diagonal, which belongs to Uᵀ; that of P by columns is Pᵀ.
template <class T>
void queue_inverse_by_solves(const LU<T>& lu, size_t orders, const Args& args) {
  const cudaStream_t stream = stream_of(args);
  const Squares& squares = lu.squares;
  const cublasHandle_t handle = blas_handle(lu.device, stream);
  int* const order = part<int>(args, orders);
  write_orders<<<blocks_for(squares.count), block_size, 0, stream>>>(part<int>(args, lu.pivots), order, squares);
  write_permutations<T><<<blocks_for(squares.elements()), block_size, 0, stream>>>(order, args.out<T>(), squares,
                                                                                   Divisor(squares.extent));
  const MatricesOf matrices = matrices_of(Shape{squares.count, squares.extent, squares.extent});
  LinalgTrsm above, below;
  above.rightside = below.rightside = true;
  above.lower = false;
  const auto solve = [&](const LinalgTrsm& side, bool unit_diagonal) {
    queue_solve<T>(handle, stream, side, matrices, part<T>(args, lu.factors), args.out<T>(),
                   part<void>(args, lu.addresses), lu.where, unit_diagonal);
  };
  solve(above, true);
  solve(below, false);
}

template <bool or_zeros>
std::unique_ptr<Kernel> build_inverse(const NodeView& node) {
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    LU<T> lu(node);
    const Squares squares = lu.squares;
    const size_t orders = lu.parts.add_bytes(static_cast<size_t>(squares.count * squares.extent) * sizeof(int));
    const size_t scratch = lu.parts.total();
    return make_step(node,
                     [lu = std::move(lu), orders](const Args& args) {
                       lu.queue(args);
                       if (lu.squares.extent <= largest_getri)
                         queue_getri(lu, args);
                       else
                         queue_inverse_by_solves(lu, orders, args);
                       queue_failures<T>(stream_of(args), args.out<T>(), part<int>(args, lu.info),
                                         lu.squares.extent * lu.squares.extent, lu.squares.count,
                                         or_zeros ? T(0) : not_a_number<T>());
                     },
                     {.scratch_bytes = scratch});
  });
}

template <bool with_sign>
std::unique_ptr<Kernel> build_determinant(const NodeView& node) {
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    const LU<T> lu(node);
    return make_step(node,
                     [lu](const Args& args) {
                       lu.queue(args);
                       T *value = nullptr, *sign = nullptr, *logarithm = nullptr;
                       if (with_sign) {
                         sign = args.out<T>(0);
                         logarithm = args.out<T>(1);
                       } else {
                         value = args.out<T>(0);
                       }
                       write_determinants<T><<<blocks_for(lu.squares.count), block_size, 0, stream_of(args)>>>(
                           part<T>(args, lu.factors), part<int>(args, lu.pivots), part<int>(args, lu.info), value, sign,
                           logarithm, lu.squares);
                     },
                     {.scratch_bytes = lu.parts.total()});
  });
}

// One after the other: there is no batched function.
std::unique_ptr<Kernel> build_gelqf(const NodeView& node) {
  const MatricesOf a = matrices_of(node.inputs[0].shape);
  CudaDevice& device = CudaDevice::of(node.context);
  const int m = static_cast<int>(a.columns), n = static_cast<int>(a.rows);
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    int first = 0, second = 0;
    {
      const Queueing queueing(device);
      const cusolverDnHandle_t handle = solver_handle(device, device.stream());
      check_solver(Library<T>::geqrf_size(handle, m, n, nullptr, m, &first), node.where(), "planning");
      check_solver(Library<T>::orgqr_size(handle, m, n, n, nullptr, m, nullptr, &second), node.where(), "planning");
    }
    const int words = std::max(first, second);
    ScratchLayout parts;
    const size_t own_q = parts.add_bytes(node.inputs[0].bytes()),
                 tau = parts.add_bytes(static_cast<size_t>(n) * sizeof(T));
    const size_t info = parts.add_bytes(sizeof(int)), work = parts.add_bytes(static_cast<size_t>(words) * sizeof(T));
    return make_step(node,
                     [=, &device, where = node.where(), bytes = node.inputs[0].bytes()](const Args& args) {
                       const cudaStream_t stream = stream_of(args);
                       const cusolverDnHandle_t handle = solver_handle(device, stream);
                       T* const q = args.outputs[0] ? args.out<T>(0) : part<T>(args, own_q);
                       T* const l = args.out<T>(1);
                       device.check(cudaMemcpyAsync(q, args.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream),
                                    "copying A");
                       for (int64_t i = 0; i < a.outer; ++i) {
                         T* const each = q + i * a.rows * a.columns;
                         check_solver(Library<T>::geqrf(handle, m, n, each, m, part<T>(args, tau), part<T>(args, work),
                                                        words, part<int>(args, info)),
                                      where, "factorizing a matrix");
                         if (l)
                           take_lower<<<blocks_for(a.rows * a.rows), block_size, 0, stream>>>(
                               each, l + i * a.rows * a.rows, a.rows, a.columns, int64_t{1});
                         check_solver(Library<T>::orgqr(handle, m, n, n, each, m, part<T>(args, tau),
                                                        part<T>(args, work), words, part<int>(args, info)),
                                      where, "making an orthonormal matrix");
                       }
                     },
                     {.scratch_bytes = parts.total(), .capturable = false});
  });
}

std::unique_ptr<Kernel> build_syevd(const NodeView& node) {
  const Squares squares(node.inputs[0].shape);
  CudaDevice& device = CudaDevice::of(node.context);
  const int extent = static_cast<int>(squares.extent);
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    int words = 0;
    {
      const Queueing queueing(device);
      check_solver(Library<T>::syevd_size(solver_handle(device, device.stream()), CUSOLVER_EIG_MODE_VECTOR,
                                          CUBLAS_FILL_MODE_UPPER, extent, nullptr, extent, nullptr, &words),
                   node.where(), "planning");
    }
    ScratchLayout parts;
    const size_t own_u = parts.add_bytes(node.inputs[0].bytes());
    const size_t own_values = parts.add_bytes(static_cast<size_t>(squares.count * squares.extent) * sizeof(T));
    const size_t info = parts.add_bytes(static_cast<size_t>(squares.count) * sizeof(int));
    const size_t work = parts.add_bytes(static_cast<size_t>(words) * sizeof(T));
    return make_step(
        node,
        [=, &device, where = node.where(), bytes = node.inputs[0].bytes()](const Args& args) {
          const cudaStream_t stream = stream_of(args);
          const cusolverDnHandle_t handle = solver_handle(device, stream);
          const int64_t size = squares.extent * squares.extent;
          T* const u = args.outputs[0] ? args.out<T>(0) : part<T>(args, own_u);
          T* const values = args.outputs[1] ? args.out<T>(1) : part<T>(args, own_values);
          device.check(cudaMemcpyAsync(u, args.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream), "copying A");
          for (int64_t i = 0; i < squares.count; ++i)
            check_solver(Library<T>::syevd(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, extent,
                                           u + i * size, extent, values + i * squares.extent, part<T>(args, work),
                                           words, part<int>(args, info) + i),
                         where, "computing eigenvalues");
          const int64_t rows = squares.count * squares.extent;
          fix_signs<<<blocks_for(rows), block_size, 0, stream>>>(u, squares.extent, rows);
          queue_failures<T>(stream, u, part<int>(args, info), size, squares.count, not_a_number<T>());
          queue_failures<T>(stream, values, part<int>(args, info), squares.extent, squares.count, not_a_number<T>());
        },
        {.scratch_bytes = parts.total(), .capturable = false});
  });
}

template <class P>
void add_to(ImplementationTable& table, const char* name, std::string (*refuse)(const NodeView&),
            std::unique_ptr<Kernel> (*build)(const NodeView&)) {
  table.add<P>({.name = name, .refuse = refuse, .build = build, .tier = Tier::library});
}

}  // namespace

void add_linalg_factor(ImplementationTable& table) {
  add_to<LinalgPotrf>(table, "cusolver", refuse_solver, build_potrf);
  add_to<LinalgPotri>(table, "cublas", refuse_linalg, build_potri);
  add_to<LinalgGelqf>(table, "cusolver", refuse_solver, build_gelqf);
  add_to<LinalgSyevd>(table, "cusolver", refuse_solver, build_syevd);
  add_to<LinalgInverse>(table, "cublas", refuse_linalg, build_inverse<false>);
  add_to<InverseOrZeros>(table, "cublas", refuse_linalg, build_inverse<true>);
  add_to<LinalgDet>(table, "cublas", refuse_linalg, build_determinant<false>);
  add_to<LinalgSlogdet>(table, "cublas", refuse_linalg, build_determinant<true>);
}

}  // namespace symbind::cuda_backend
