// Distributions whose samples take a variable number of random words. Every element has its own stream, so the result
// depends neither on the thread and device that draw it, nor on how many words previous elements took. All arithmetic
// is in double. Compiled by g++ and nvcc.
#pragma once

#include <cstdint>
#include <limits>

#include "symbind/backend/finite.h"
#include "symbind/backend/freestanding.h"
#include "symbind/core/random.h"

namespace symbind::sampling {

// The random words of one element of one draw. The counter of Philox is split: 40 bits say which element, 24 which
// block of its stream; no distribution here takes more than a few blocks.
class RandomStream {
 public:
  constexpr RandomStream(uint64_t key, uint64_t draw, uint64_t element) : key_(key), draw_(draw), element_(element) {}

  constexpr uint64_t word() {
    if (at_ == 2) {
      block_ = philox(key_, draw_, element_ + (count_++ << 40));
      at_ = 0;
    }
    const int first = 2 * at_++;
    return (uint64_t{block_.words[first]} << 32) | block_.words[first + 1];
  }
  constexpr double uniform() { return static_cast<double>(word() >> 11) * 0x1p-53; }  // in [0, 1)
  constexpr double positive() { return 1 - uniform(); }                               // in (0, 1]
  constexpr double normal() {
    const double radius = libm::sqrt(-2 * libm::log(positive()));
    return radius * libm::cos(6.283185307179586 * uniform());
  }
  // A uniform integer less than `bound`: words of the last, incomplete range are rejected.
  constexpr uint64_t below(uint64_t bound) {
    const uint64_t most = std::numeric_limits<uint64_t>::max(), whole_rounds = most - most % bound;
    uint64_t drawn = word();
    while (drawn >= whole_rounds) drawn = word();
    return drawn % bound;
  }

 private:
  uint64_t key_, draw_, element_, count_ = 0;
  PhiloxBlock block_{};
  int at_ = 2;
};

inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// The method of Marsaglia and Tsang; a shape below one is drawn with shape + 1 and scaled down.
constexpr double standard_gamma(RandomStream& stream, double shape) {
  if (!is_finite(shape)) return shape;
  const bool below_one = shape < 1;
  const double d = (below_one ? shape + 1 : shape) - 1.0 / 3, c = 1 / libm::sqrt(9 * d);
  while (true) {
    const double x = stream.normal(), root = 1 + c * x, v = root * root * root;
    if (v > 0 && libm::log(stream.positive()) < 0.5 * x * x + d - d * v + d * libm::log(v))
      return below_one ? d * v * libm::pow(stream.positive(), 1 / shape) : d * v;
  }
}

// log(k!) by Stirling's series, to ten digits and more. (lgamma writes to a variable that all threads share.)
constexpr double log_factorial(double k) {
  if (k < 10) {
    double product = 1;
    for (int i = 2; i <= static_cast<int>(k); ++i) product *= i;
    return libm::log(product);
  }
  const double inverse = 1 / k, square = inverse * inverse;
  const double rest = inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
  return (k + 0.5) * libm::log(k) - k + 0.9189385332046727 + rest;
}

// For means of 10 and more: Hörmann's transformed rejection (PTRS, 1993).
constexpr double large_poisson(RandomStream& stream, double mean) {
  const double b = 0.931 + 2.53 * libm::sqrt(mean), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_of_box = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = stream.uniform() - 0.5, v = stream.positive(), distance = 0.5 - libm::fabs(u);
    const double k = libm::floor((2 * a / distance + b) * u + mean + 0.43);
    if (distance >= 0.07 && v <= v_of_box) return k;
    if (k < 0 || (distance < 0.013 && v > distance)) continue;
    const double bound = libm::log(v * inverse_alpha / (a / (distance * distance) + b));
    if (bound <= k * libm::log(mean) - mean - log_factorial(k)) return k;
  }
}

// Uniform numbers are multiplied until they fall below exp(-mean).
constexpr double small_poisson(RandomStream& stream, double mean) {
  const double bound = libm::exp(-mean);
  double count = 0;
  for (double product = stream.positive(); product > bound; product *= stream.positive()) ++count;
  return count;
}

constexpr double poisson(RandomStream& stream, double mean) {
  if (!(mean >= 0)) return no_number;
  if (!is_finite(mean) || mean == 0) return mean;
  return mean < 10 ? small_poisson(stream, mean) : large_poisson(stream, mean);
}

// Each draws a number for two parameters, of which the second may be unused. Invalid parameters give NaN.
struct ExponentialNumbers {
  static constexpr double draw(RandomStream& stream, double rate, double) {
    return rate > 0 ? -libm::log(stream.positive()) / rate : no_number;
  }
};
struct GammaNumbers {
  static constexpr double draw(RandomStream& stream, double shape, double scale) {
    return shape > 0 && scale > 0 ? standard_gamma(stream, shape) * scale : no_number;
  }
};
struct PoissonNumbers {
  static constexpr double draw(RandomStream& stream, double mean, double) { return poisson(stream, mean); }
};
// A mixture: the mean of a Poisson distribution is itself drawn from a gamma distribution.
struct NegativeBinomialNumbers {
  static constexpr double draw(RandomStream& stream, double k, double p) {
    if (!(k >= 0 && p > 0 && p <= 1)) return no_number;
    return k == 0 || p == 1 ? 0 : poisson(stream, standard_gamma(stream, k) * (1 - p) / p);
  }
};
struct GeneralizedNegativeBinomialNumbers {
  static constexpr double draw(RandomStream& stream, double mean, double dispersion) {
    if (!(mean >= 0 && dispersion >= 0)) return no_number;
    if (mean == 0 || dispersion == 0) return poisson(stream, mean);
    return poisson(stream, standard_gamma(stream, 1 / dispersion) * dispersion * mean);
  }
};

// ---- Classes --------------------------------------------------------------------------------------------------------

// The first of `count` ascending numbers that is greater than `value` (or_equal: or equal to it); count if there is
// none.
constexpr int64_t first_above(const double* numbers, int64_t count, double value, bool or_equal = false) {
  int64_t begin = 0, length = count;
  while (length > 0) {
    const int64_t half = length / 2;
    const double middle = numbers[begin + half];
    if (or_equal ? middle < value : middle <= value) {
      begin += half + 1;
      length -= half + 1;
    } else {
      length = half;
    }
  }
  return begin;
}

// The class selected by a number drawn from [0, 1), from the cumulative sums of the probabilities: the first class
// whose sum is greater than the number times the total, which is 1 up to rounding. A class with probability 0 is never
// chosen. For invalid sums the class is unspecified.
constexpr int64_t class_of(const double* sums, int64_t classes, double drawn) {
  const double whole = sums[classes - 1];
  const int64_t found = first_above(sums, classes, drawn * whole);
  const int64_t chosen = found < classes ? found : first_above(sums, classes, whole, true);
  return chosen < classes ? chosen : classes - 1;
}

// A class below range_max, with the probability of Zipf's law, for a number drawn from [0, 1).
constexpr int64_t zipfian_class(double drawn, int64_t range_max) {
  constexpr double largest = 9.2e18;  // that an int64 holds
  const double power = libm::exp(drawn * libm::log(static_cast<double>(range_max) + 1));
  const auto chosen = static_cast<int64_t>(power < largest ? power : largest) - 1;
  return chosen < 0 ? 0 : chosen < range_max ? chosen : range_max - 1;
}

}  // namespace symbind::sampling
