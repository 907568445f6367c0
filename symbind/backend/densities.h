// Densities of distributions and their derivatives, for every device. A distribution defines the logarithm of its
// density at a sample and the derivatives of that logarithm; the density and its gradients follow: d p = p · d log p.
// Math has log_gamma. Compiled by g++ and nvcc.
#pragma once

#include <cstdint>
#include <limits>

#include "symbind/backend/convert.h"
#include "symbind/backend/functions.h"

namespace symbind::densities {

inline constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// How many samples have the same parameters; none where there are no samples.
constexpr int64_t samples_each(int64_t samples, int64_t parameters) {
  return parameters == 0 ? 0 : samples / parameters;
}

// Of the logarithm of the density: by the sample and by the parameters. A distribution over integers has none by the
// sample.
struct Slopes {
  double sample = 0, first = 0, second = 0;
};

template <class Math>
struct Uniform {
  static constexpr double log_density(double x, double low, double high) {
    return x < low || x > high ? minus_infinity : -libm::log(high - low);
  }
  static constexpr Slopes slopes(double, double low, double high) { return {0, 1 / (high - low), -1 / (high - low)}; }
};

template <class Math>
struct Normal {
  static constexpr double log_density(double x, double mu, double sigma) {
    const double z = (x - mu) / sigma;
    return -0.5 * z * z - libm::log(sigma * libm::sqrt(2 * freestanding::pi));
  }
  static constexpr Slopes slopes(double x, double mu, double sigma) {
    const double z = (x - mu) / sigma;
    return {-z / sigma, z / sigma, (z * z - 1) / sigma};
  }
};

template <class Math>
struct Gamma {
  static constexpr double log_density(double x, double alpha, double beta) {
    if (x < 0) return minus_infinity;
    return alpha * libm::log(beta) + (alpha - 1) * libm::log(x) - beta * x - Math::log_gamma(alpha);
  }
  static constexpr Slopes slopes(double x, double alpha, double beta) {
    return {(alpha - 1) / x - beta, libm::log(beta) + libm::log(x) - functions::digamma(alpha), alpha / beta - x};
  }
};

template <class Math>
struct Exponential {
  static constexpr double log_density(double x, double lam, double) {
    return x < 0 ? minus_infinity : libm::log(lam) - lam * x;
  }
  static constexpr Slopes slopes(double x, double lam, double) { return {-lam, 1 / lam - x, 0}; }
};

template <class Math>
struct Poisson {
  static constexpr double log_density(double x, double lam, double) {
    return x < 0 ? minus_infinity : x * libm::log(lam) - Math::log_gamma(x + 1) - lam;
  }
  static constexpr Slopes slopes(double x, double lam, double) { return {0, x / lam - 1, 0}; }
};

template <class Math>
struct NegativeBinomial {
  static constexpr double log_density(double x, double k, double p) {
    if (x < 0) return minus_infinity;
    return Math::log_gamma(x + k) - Math::log_gamma(x + 1) - Math::log_gamma(k) + k * libm::log(p) +
           x * libm::log1p(-p);
  }
  static constexpr Slopes slopes(double x, double k, double p) {
    return {0, functions::digamma(x + k) - functions::digamma(k) + libm::log(p), k / p - x / (1 - p)};
  }
};

// The same with k = 1 / alpha and p = 1 / (1 + mu · alpha).
template <class Math>
struct GeneralizedNegativeBinomial {
  static constexpr double log_density(double x, double mu, double alpha) {
    return NegativeBinomial<Math>::log_density(x, 1 / alpha, 1 / (1 + mu * alpha));
  }
  static constexpr Slopes slopes(double x, double mu, double alpha) {
    const double p = 1 / (1 + mu * alpha);
    const Slopes inner = NegativeBinomial<Math>::slopes(x, 1 / alpha, p);
    return {0, inner.second * -alpha * p * p, inner.first * -1 / (alpha * alpha) + inner.second * -mu * p * p};
  }
};

// The factor of the derivatives: out_grad is that of the density, or of its logarithm.
constexpr double scale_of(double out_grad, double log_density, bool is_log) {
  if (log_density == minus_infinity) return 0;  // the density is zero there
  return is_log ? out_grad : out_grad * libm::exp(log_density);
}

// Of Dirichlet's distribution: a sample and its parameters are rows.
template <class Math, class T>
constexpr double dirichlet_log_density(const T* x, const T* alpha, int64_t length) {
  double log_density = 0, sum = 0;
  for (int64_t k = 0; k < length; ++k) {
    const auto value = convert<double>(x[k]), a = convert<double>(alpha[k]);
    if (value < 0) return minus_infinity;
    log_density += (a - 1) * libm::log(value) - Math::log_gamma(a);
    sum += a;
  }
  return log_density + Math::log_gamma(sum);
}

}  // namespace symbind::densities
