// Half-precision numbers as float and back, without branches, so that loops over them become vector code.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "symbind/core/dtype.h"

namespace symbind::cpu_backend {

// Moves a half's exponent to the bits of a float's; subnormal numbers are normalized by a subtraction.
[[gnu::always_inline]] inline float float_of(float16 half) {
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(half.bits & 0x7fffu) << 13;
  const uint32_t normal = magnitude + (112u << 23);
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23));
  const uint32_t special = magnitude | 0x7f800000u;  // infinity and NaN
  const uint32_t finite = magnitude < 0x00800000u ? small : normal;
  return std::bit_cast<float>(sign | (magnitude < 0x0f800000u ? finite : special));
}

// To nearest even: by integer arithmetic for normal halves, by an addition with the right unit in the last place for
// subnormal ones.
[[gnu::always_inline]] inline float16 half_of(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  const uint32_t finite = magnitude < 0x38800000u ? small : normal;
  const uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  float16 half;
  half.bits = static_cast<uint16_t>((bits >> 16 & 0x8000u) | (magnitude < 0x477ff000u ? finite : large));
  return half;
}

// A number in the type that sums and products of it are computed in, and back.
template <class T>
[[gnu::always_inline]] inline compute_type<T> widened(T value) {
  if constexpr (std::is_same_v<T, float16>)
    return float_of(value);
  else
    return static_cast<compute_type<T>>(value);
}
template <class T>
[[gnu::always_inline]] inline T narrowed(compute_type<T> value) {
  if constexpr (std::is_same_v<T, float16>)
    return half_of(value);
  else
    return static_cast<T>(value);
}

// to[i] = widened(from[i]) and to[i] = narrowed(from[i]), by the processor's own instructions where it has them.
void widen(const float16* from, float* to, int64_t count);
void narrow(const float* from, float16* to, int64_t count);

}  // namespace symbind::cpu_backend
