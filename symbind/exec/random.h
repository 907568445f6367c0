// Random arrays: random::uniform({.low = -1, .high = 1, .shape = {100, 2}}). They continue the device's stream of
// random numbers, which seed() restarts. (On symbols, use the builders of ops/random.h: random_uniform.)
#pragma once

#include "symbind/exec/invoke.h"
#include "symbind/ops/random.h"

namespace SYMBIND_API symbind {
namespace random {

inline NDArray uniform(const RandomUniform& params, Context context = cpu()) {
  return invoke(random_uniform, {}, params, {.context = context})[0];
}
inline NDArray normal(const RandomNormal& params, Context context = cpu()) {
  return invoke(random_normal, {}, params, {.context = context})[0];
}
inline NDArray exponential(const RandomExponential& params, Context context = cpu()) {
  return invoke(random_exponential, {}, params, {.context = context})[0];
}
inline NDArray gamma(const RandomGamma& params, Context context = cpu()) {
  return invoke(random_gamma, {}, params, {.context = context})[0];
}
inline NDArray poisson(const RandomPoisson& params, Context context = cpu()) {
  return invoke(random_poisson, {}, params, {.context = context})[0];
}
inline NDArray negative_binomial(const RandomNegativeBinomial& params, Context context = cpu()) {
  return invoke(random_negative_binomial, {}, params, {.context = context})[0];
}
inline NDArray generalized_negative_binomial(const RandomGeneralizedNegativeBinomial& params, Context context = cpu()) {
  return invoke(random_generalized_negative_binomial, {}, params, {.context = context})[0];
}
inline NDArray randint(const RandomRandint& params, Context context = cpu()) {
  return invoke(random_randint, {}, params, {.context = context})[0];
}

}  // namespace random
}  // namespace symbind
