// How far results move when arguments are disturbed in their last digits. It is far for values that cancel, and at a
// kink: there no two right ways to compute them agree, and a comparison of two must allow for it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "symbind/exec/executor.h"

namespace symbind::testing {

// Multiplies every element of every argument, labels excepted, by a factor near one.
inline void disturb(const Executor& executor, uint64_t noise, double size = 1e-6) {
  std::mt19937_64 engine(noise);
  std::uniform_real_distribution<> factor(1 - size, 1 + size);
  for (const auto& [name, array] : executor.arg_dict()) {
    if (name.find("label") != std::string::npos) continue;
    auto values = array.to_vector<double>();
    for (double& value : values) value *= factor(engine);
    array.copy_from(values);
  }
}

// `run(noise)` computes the arrays with arguments disturbed by that noise; the largest change of an element of each.
inline std::vector<double> sensitivity(const std::vector<NDArray>& undisturbed,
                                       const std::function<std::vector<NDArray>(uint64_t noise)>& run) {
  std::vector<double> largest(undisturbed.size(), 0);
  for (uint64_t noise = 1; noise <= 8; ++noise) {
    const std::vector<NDArray> moved = run(noise);
    for (size_t i = 0; i < largest.size(); ++i) {
      const auto before = undisturbed[i].to_vector<double>(), after = moved[i].to_vector<double>();
      for (size_t k = 0; k < before.size(); ++k) largest[i] = std::max(largest[i], std::abs(before[k] - after[k]));
    }
  }
  return largest;
}

}  // namespace symbind::testing
