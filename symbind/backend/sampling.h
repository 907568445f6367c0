// Random numbers from the words of a Philox block, the same on every device: four floats or two doubles to a block. A
// normal pair (positions 2k and 2k + 1) comes from one pair of uniform numbers by the method of Box and Muller.
#pragma once

#include <cmath>
#include <cstdint>

#include "symbind/core/random.h"

namespace symbind::sampling {

// How many numbers of type C (float or double) one block gives.
template <class C>
inline constexpr int64_t per_block = sizeof(C) == 8 ? 2 : 4;

// Number `index` of a block, in [0, 1).
template <class C>
constexpr C uniform(const PhiloxBlock& block, int index) {
  if constexpr (sizeof(C) == 8)
    return unit_double(block.words[2 * index], block.words[2 * index + 1]);
  else
    return unit_float(block.words[index]);
}

// Number `index` of a block, from the standard normal distribution.
template <class C>
constexpr C normal(const PhiloxBlock& block, int index) {
  const int pair = index & ~1;
  const C radius = std::sqrt(C(-2) * std::log(C(1) - uniform<C>(block, pair)));
  const C angle = C(6.283185307179586) * uniform<C>(block, pair + 1);
  return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

// A number for two parameters of its distribution.
struct UniformNumbers {
  template <class C>
  static constexpr C draw(const PhiloxBlock& block, int index, C low, C high) {
    return low + uniform<C>(block, index) * (high - low);
  }
};
struct NormalNumbers {
  template <class C>
  static constexpr C draw(const PhiloxBlock& block, int index, C mean, C deviation) {
    return mean + normal<C>(block, index) * deviation;
  }
};

}  // namespace symbind::sampling
