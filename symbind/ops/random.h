// Random arrays. The number at a position depends on the seed, on the count of draws before and on the position alone,
// not on the device or on the threads.
#pragma once

#include "symbind/graph/builder.h"

namespace symbind {

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

// One distribution per element of the inputs; `shape` numbers are drawn from each.
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

void register_random(OpRegistry& registry);

}  // namespace symbind
