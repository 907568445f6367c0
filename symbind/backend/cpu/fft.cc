// Rows are transformed in double, whatever the type of the arrays.
#include "symbind/ops/fft.h"

#include <algorithm>

#include "symbind/backend/cpu/fourier.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using Complex = Fourier::Complex;

// Calls body(row, buffer, scratch) for all rows.
template <class Body>
void for_rows(int64_t rows, int64_t length, const Body& body) {
  parallel_for(rows, element_grain / 16 / (length + 1) + 1, [&](int64_t begin, int64_t end) {
    std::vector<Complex> buffer(static_cast<size_t>(length)), scratch;
    for (int64_t row = begin; row < end; ++row) body(row, buffer.data(), scratch);
  });
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const Shape& data = node.inputs[0].shape;
  const int64_t length = data[data.rank() - 1], rows = data.size(0, data.rank() - 1);
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel([=, fourier = Fourier(length)](const Args& args) {
      const T* const x = args.in<T>(0);
      T* const y = args.out<T>();
      for_rows(rows, length, [&](int64_t row, Complex* buffer, std::vector<Complex>& scratch) {
        for (int64_t k = 0; k < length; ++k) buffer[k] = static_cast<double>(x[row * length + k]);
        fourier.transform(buffer, scratch);
        for (int64_t k = 0; k < length; ++k) {
          y[2 * (row * length + k)] = T(static_cast<compute_type<T>>(buffer[k].real()));
          y[2 * (row * length + k) + 1] = T(static_cast<compute_type<T>>(buffer[k].imag()));
        }
      });
    });
  });
}

// The real part of the inverse transform is that of the transform of the conjugate.
std::unique_ptr<Kernel> build_inverse(const NodeView& node) {
  const Shape& result = node.outputs[0].shape;
  const int64_t length = result[result.rank() - 1], rows = result.size(0, result.rank() - 1);
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel([=, fourier = Fourier(length)](const Args& args) {
      const T* const x = args.in<T>(0);
      T* const y = args.out<T>();
      for_rows(rows, length, [&](int64_t row, Complex* buffer, std::vector<Complex>& scratch) {
        for (int64_t k = 0; k < length; ++k)
          buffer[k] = {static_cast<double>(x[2 * (row * length + k)]),
                       -static_cast<double>(x[2 * (row * length + k) + 1])};
        fourier.transform(buffer, scratch);
        for (int64_t k = 0; k < length; ++k) y[row * length + k] = T(static_cast<compute_type<T>>(buffer[k].real()));
      });
    });
  });
}

}  // namespace

void add_fft(ImplementationTable& table) {
  add_plain<ContribFFT>(table, build_forward);
  add_plain<ContribIFFT>(table, build_inverse);
}

}  // namespace symbind::cpu_backend
