// The two bits that the gradient of ReLU needs of its result, which is positive, NaN, or zero of either sign; as many
// as make the gradient the same in every bit.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "symbind/core/dtype.h"

namespace symbind {

inline constexpr unsigned bits_per_sign = 2, sign_mask = 3;
enum : unsigned { sign_of_zero = 0, sign_above_zero = 1, sign_of_minus_zero = 2, sign_of_nan = 3 };

// Of a result of ReLU.
constexpr unsigned sign_of(float result) {
  const unsigned not_zero = !(result <= 0), marked = result != result || std::bit_cast<uint32_t>(result) >> 31;
  return not_zero | marked << 1;
}
constexpr unsigned sign_of(double result) { return sign_of(static_cast<float>(result > 0 ? 1 : result)); }

// Of eight results of a type of 16 bits, two per word and the first in the lower half: the same as sign_of() of each in
// fewer instructions. A sum with a suitable number reaches the highest bit of a half if the half is not below a limit.
template <class Half>
constexpr uint32_t signs_of_eight(const uint32_t (&words)[4]) {
  constexpr uint32_t highest = 0x80008000, others = 0x7fff7fff;
  constexpr uint32_t infinity = 0x10001u * Half(std::numeric_limits<float>::infinity()).bits;
  uint32_t signs = 0;  // those of the second element of each word 16 bits above those of the first
  for (int i = 0; i < 4; ++i) {
    const uint32_t magnitude = words[i] & others;
    const uint32_t not_zero = magnitude + others, marked = (magnitude + (others - infinity)) | words[i];
    signs |= (not_zero & highest) >> (15 - 4 * i) | (marked & highest) >> (14 - 4 * i);
  }
  return (signs | signs >> 14) & 0xffff;
}

// A number with this sign.
template <class C>
constexpr C number_of_sign(unsigned sign) {
  return sign == sign_of_nan ? std::numeric_limits<C>::quiet_NaN() : static_cast<C>(std::bit_cast<float>(sign << 30));
}
static_assert(number_of_sign<float>(sign_of_zero) == 0 && number_of_sign<float>(sign_above_zero) > 0);
static_assert(sign_of(number_of_sign<float>(sign_of_minus_zero)) == sign_of_minus_zero);

}  // namespace symbind
