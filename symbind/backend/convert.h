// Elements of one type as another, with the same result for values out of range on every device: that of x86, since it
// is what MXNet's users have seen.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "symbind/core/dtype.h"

namespace symbind {

// A floating value becomes an integer by cutting off. One that does not fit, and NaN, become the least int32 (int64 for
// int64), of which the small types keep the lowest byte. Anything but zero is true.
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
    using Wide = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
    constexpr auto low = static_cast<From>(std::numeric_limits<Wide>::min());
    const bool fits = value > low - From(1) && value < -low;
    return static_cast<To>(fits ? static_cast<Wide>(value) : std::numeric_limits<Wide>::min());
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace symbind
