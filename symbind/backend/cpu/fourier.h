// The discrete Fourier transform of one row, of any length: powers of two by Cooley and Tukey's algorithm, others as a
// convolution of twice the length (Bluestein's).
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace symbind::cpu_backend {

// May be used by any number of threads, each with its own scratch.
class Fourier {
 public:
  using Complex = std::complex<double>;

  explicit Fourier(int64_t length);

  // row[k] = Σ row[j] · e^(-2πijk/length). `scratch` is grown as needed.
  void transform(Complex* row, std::vector<Complex>& scratch) const;

 private:
  void transform_power_of_two(Complex* row) const;
  void transform_by_convolution(Complex* row, std::vector<Complex>& scratch) const;

  size_t length_;
  std::vector<Complex> roots_;  // e^(-2πik/length), half of them; for a convolution e^(-πik²/length)
  // For lengths that are no powers of two.
  std::shared_ptr<const Fourier> longer_;
  std::vector<Complex> filter_;  // the transform of the roots' conjugates, divided by the longer length
};

}  // namespace symbind::cpu_backend
