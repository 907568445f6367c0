// Conversion between element types, with the same result for values out of range on every device: that of x86, which
// MXNet's users expect.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "symbind/backend/functions.h"
#include "symbind/core/dtype.h"

namespace symbind {

// A floating value becomes an integer by truncation (functions::truncate). Anything but zero is true.
template <class To, class From>
constexpr To convert(From value) {
  constexpr bool from_small = std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>;
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (from_small) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return functions::truncate<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// Converts a number to an index. Values beyond the range of int64 saturate, so that clipping finds the nearest index;
// NaN becomes the lower end.
template <class From>
constexpr int64_t index_of(From value) {
  if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>) {
    return index_of(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From>) {
    constexpr auto bound = static_cast<From>(0x1p63);
    return value >= bound ? std::numeric_limits<int64_t>::max() : convert<int64_t>(value);
  } else {
    return static_cast<int64_t>(value);
  }
}

}  // namespace symbind
