// How much results change when arguments are disturbed in their last digits. The change is large with cancellation and
// at a kink: there correct implementations disagree, and a comparison must allow for it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "symbind/exec/executor.h"

namespace symbind::testing {

struct Noise {
  uint64_t seed = 0;
  double size = 0;  // relative; 0: none
};

// Multiplies every element of every argument, labels excepted, by a factor near one.
inline void disturb(const Executor& executor, Noise noise) {
  std::mt19937_64 engine(noise.seed);
  std::uniform_real_distribution<> factor(1 - noise.size, 1 + noise.size);
  for (const auto& [name, array] : executor.arg_dict()) {
    if (name.find("label") != std::string::npos) continue;
    auto values = array.to_vector<double>();
    for (double& value : values) value *= factor(engine);
    array.copy_from(values);
  }
}

// `run(noise)` computes the arrays with arguments disturbed by that noise; the largest change of an element of each, by
// noise of this size.
inline std::vector<double> sensitivity(const std::vector<NDArray>& undisturbed, double size,
                                       const std::function<std::vector<NDArray>(Noise noise)>& run) {
  std::vector<double> largest(undisturbed.size(), 0);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const std::vector<NDArray> moved = run({seed, size});
    for (size_t i = 0; i < largest.size(); ++i) {
      const auto before = undisturbed[i].to_vector<double>(), after = moved[i].to_vector<double>();
      for (size_t k = 0; k < before.size(); ++k) largest[i] = std::max(largest[i], std::abs(before[k] - after[k]));
    }
  }
  return largest;
}

}  // namespace symbind::testing
