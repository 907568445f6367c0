// Random arrays. The number at a position depends only on the seed, on the number of previous draws and on the
// position, not on the device or on the threads.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct RandomUniform {
  double low = 0;
  double high = 1;
  Tuple shape = {};
  std::string ctx = "";
  std::optional<DType> dtype = std::nullopt;  // none: float32
};
struct RandomNormal {
  double loc = 0;
  double scale = 1;
  Tuple shape = {};
  std::string ctx = "";
  std::optional<DType> dtype = std::nullopt;
};
inline constexpr Builder<RandomUniform> random_uniform;
inline constexpr Builder<RandomNormal> random_normal;

struct RandomExponential {
  double lam = 1;  // the rate
  Tuple shape = {};
  std::string ctx = "";
  std::optional<DType> dtype = std::nullopt;
};
struct RandomGamma {
  double alpha = 1;  // the shape
  double beta = 1;   // the scale
  Tuple shape = {};
  std::string ctx = "";
  std::optional<DType> dtype = std::nullopt;
};
struct RandomPoisson {
  double lam = 1;
  Tuple shape = {};
  std::string ctx = "";
  std::optional<DType> dtype = std::nullopt;
};
struct RandomNegativeBinomial {
  int64_t k = 1;
  double p = 1;
  Tuple shape = {};
  std::string ctx = "";
  std::optional<DType> dtype = std::nullopt;
};
struct RandomGeneralizedNegativeBinomial {
  double mu = 1;
  double alpha = 1;
  Tuple shape = {};
  std::string ctx = "";
  std::optional<DType> dtype = std::nullopt;
};
struct RandomRandint {
  Required<int64_t> low = {};
  Required<int64_t> high = {};  // exclusive
  Tuple shape = {};
  std::string ctx = "";
  std::optional<DType> dtype = std::nullopt;  // none: int32
};
inline constexpr Builder<RandomExponential> random_exponential;
inline constexpr Builder<RandomGamma> random_gamma;
inline constexpr Builder<RandomPoisson> random_poisson;
inline constexpr Builder<RandomNegativeBinomial> random_negative_binomial;
inline constexpr Builder<RandomGeneralizedNegativeBinomial> random_generalized_negative_binomial;
inline constexpr Builder<RandomRandint> random_randint;

// The same with the shape and type of an array.
struct RandomUniformLike {
  double low = 0;
  double high = 1;
};
struct RandomNormalLike {
  double loc = 0;
  double scale = 1;
};
struct RandomExponentialLike {
  double lam = 1;
};
struct RandomGammaLike {
  double alpha = 1;
  double beta = 1;
};
struct RandomPoissonLike {
  double lam = 1;
};
struct RandomNegativeBinomialLike {
  int64_t k = 1;
  double p = 1;
};
struct RandomGeneralizedNegativeBinomialLike {
  double mu = 1;
  double alpha = 1;
};
inline constexpr Builder<RandomUniformLike> random_uniform_like;
inline constexpr Builder<RandomNormalLike> random_normal_like;
inline constexpr Builder<RandomExponentialLike> random_exponential_like;
inline constexpr Builder<RandomGammaLike> random_gamma_like;
inline constexpr Builder<RandomPoissonLike> random_poisson_like;
inline constexpr Builder<RandomNegativeBinomialLike> random_negative_binomial_like;
inline constexpr Builder<RandomGeneralizedNegativeBinomialLike> random_generalized_negative_binomial_like;

// One distribution per element of the inputs; `shape` numbers are drawn from each. Invalid parameters give NaN.
struct SampleUniform {
  Tuple shape = {};
  std::optional<DType> dtype = std::nullopt;
};
struct SampleNormal {
  Tuple shape = {};
  std::optional<DType> dtype = std::nullopt;
};
inline constexpr Builder<SampleUniform> sample_uniform;
inline constexpr Builder<SampleNormal> sample_normal;

struct SampleExponential {
  Tuple shape = {};
  std::optional<DType> dtype = std::nullopt;
};
struct SampleGamma {
  Tuple shape = {};
  std::optional<DType> dtype = std::nullopt;
};
struct SamplePoisson {
  Tuple shape = {};
  std::optional<DType> dtype = std::nullopt;
};
struct SampleNegativeBinomial {
  Tuple shape = {};
  std::optional<DType> dtype = std::nullopt;
};
struct SampleGeneralizedNegativeBinomial {
  Tuple shape = {};
  std::optional<DType> dtype = std::nullopt;
};
inline constexpr Builder<SampleExponential> sample_exponential;
inline constexpr Builder<SampleGamma> sample_gamma;
inline constexpr Builder<SamplePoisson> sample_poisson;
inline constexpr Builder<SampleNegativeBinomial> sample_negative_binomial;
inline constexpr Builder<SampleGeneralizedNegativeBinomial> sample_generalized_negative_binomial;

// Indices along the last axis of data, drawn with the probabilities in data; with get_prob also the logarithms of
// these.
struct SampleMultinomial {
  Tuple shape = {};
  bool get_prob = false;
  DType dtype = DType::int32;
};
inline constexpr Builder<SampleMultinomial> sample_multinomial;

// (gradient of the logarithms, data, indices) → data_grad
struct SampleMultinomialGrad {};
inline constexpr Builder<SampleMultinomialGrad> sample_multinomial_grad;

// Different classes below range_max in each row, class c with a probability in proportion to log((c + 2) / (c + 1)),
// and the number of draws each row took.
struct SampleUniqueZipfian {
  Required<int64_t> range_max = {};
  Tuple shape = {};
};
inline constexpr Builder<SampleUniqueZipfian> sample_unique_zipfian;

// The slices along the first axis in a random order.
struct Shuffle {};
inline constexpr Builder<Shuffle> shuffle;

}  // namespace symbind
