#include "symbind/backend/cpu/fourier.h"

#include <bit>
#include <numbers>
#include <utility>

namespace symbind::cpu_backend {
namespace {

// e^(-πi·numerator/denominator)
std::complex<double> root(size_t numerator, size_t denominator) {
  return std::polar(1.0, -std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator));
}

}  // namespace

Fourier::Fourier(int64_t length) : length_(static_cast<size_t>(length)) {
  if (std::has_single_bit(length_) || length_ == 0) {
    for (size_t k = 0; k < length_ / 2; ++k) roots_.push_back(root(2 * k, length_));
    return;
  }
  // jk = (j² + k² - (k - j)²) / 2, so the sum is a convolution with e^(πij²/length). Squares are reduced to a period,
  // so that the angles are exact.
  for (size_t k = 0; k < length_; ++k) roots_.push_back(root(k * k % (2 * length_), length_));
  const size_t longer = std::bit_ceil(2 * length_ - 1);
  longer_ = std::make_shared<Fourier>(static_cast<int64_t>(longer));
  filter_.resize(longer);
  for (size_t k = 0; k < length_; ++k)
    filter_[k] = filter_[(longer - k) % longer] = std::conj(roots_[k]) / static_cast<double>(longer);
  longer_->transform_power_of_two(filter_.data());
}

void Fourier::transform(Complex* row, std::vector<Complex>& scratch) const {
  if (longer_)
    transform_by_convolution(row, scratch);
  else
    transform_power_of_two(row);
}

void Fourier::transform_power_of_two(Complex* row) const {
  for (size_t i = 1, reversed = 0; i < length_; ++i) {
    size_t bit = length_ / 2;
    for (; reversed & bit; bit /= 2) reversed ^= bit;
    reversed |= bit;
    if (i < reversed) std::swap(row[i], row[reversed]);
  }
  for (size_t half = 1; half < length_; half *= 2) {
    const size_t step = length_ / (2 * half);
    for (size_t begin = 0; begin < length_; begin += 2 * half)
      for (size_t k = 0; k < half; ++k) {
        const Complex &w = roots_[k * step], &x = row[begin + half + k];
        // Written out: the operator of std::complex checks for infinities.
        const Complex turned(w.real() * x.real() - w.imag() * x.imag(), w.real() * x.imag() + w.imag() * x.real());
        row[begin + half + k] = row[begin + k] - turned;
        row[begin + k] += turned;
      }
  }
}

void Fourier::transform_by_convolution(Complex* row, std::vector<Complex>& scratch) const {
  scratch.assign(filter_.size(), Complex());
  for (size_t k = 0; k < length_; ++k) scratch[k] = row[k] * roots_[k];
  longer_->transform_power_of_two(scratch.data());
  // The inverse transform is that of the conjugate, conjugated.
  for (size_t k = 0; k < scratch.size(); ++k) scratch[k] = std::conj(scratch[k] * filter_[k]);
  longer_->transform_power_of_two(scratch.data());
  for (size_t k = 0; k < length_; ++k) row[k] = std::conj(scratch[k]) * roots_[k];
}

}  // namespace symbind::cpu_backend
