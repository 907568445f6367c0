// Element types. The numbers are those MXNet writes into files.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

enum class DType : int8_t {
  none = -1,  // not known yet
  float32 = 0,
  float64 = 1,
  float16 = 2,
  uint8 = 3,
  int32 = 4,
  int8 = 5,
  int64 = 6,
  boolean = 7,
  bfloat16 = 12,
};

size_t size_of(DType dtype);
std::string_view name_of(DType dtype);         // "float32"
DType dtype_from_name(std::string_view name);  // fails on an unknown name, listing the known ones
bool is_floating(DType dtype);
std::ostream& operator<<(std::ostream& out, DType dtype);

namespace detail {
constexpr uint16_t half_bits_of(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u)  // infinity, or NaN kept quiet
    return static_cast<uint16_t>(sign | 0x7c00u | (magnitude > 0x7f800000u ? 0x200u : 0u));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds past the largest half
  if (magnitude < 0x33000001u) return static_cast<uint16_t>(sign);             // rounds to zero
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const int shift = exponent < -14 ? 13 + (-14 - exponent) : 13;
  uint32_t half = mantissa >> shift;
  const uint32_t rest = mantissa & ((1u << shift) - 1), middle = 1u << (shift - 1);
  if (rest > middle || (rest == middle && (half & 1u))) ++half;
  if (exponent >= -14) half += static_cast<uint32_t>(exponent + 14) << 10;
  return static_cast<uint16_t>(sign | half);
}

constexpr float float_of_half_bits(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 0x1fu, mantissa = half & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    if (mantissa == 0) return std::bit_cast<float>(sign);
    exponent = 1;
    while (!(mantissa & 0x400u)) {
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= 0x3ffu;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}
}  // namespace detail

// IEEE half precision: stored in 16 bits, computed in float.
struct float16 {
  uint16_t bits = 0;
  float16() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr float16(T value) : bits(detail::half_bits_of(static_cast<float>(value))) {}
  constexpr operator float() const { return detail::float_of_half_bits(bits); }
};

// The upper half of a float, rounded to nearest even.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr bfloat16(T value) {
    const uint32_t from = std::bit_cast<uint32_t>(static_cast<float>(value));
    const bool nan = (from & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(nan ? (from >> 16) | 0x40u : (from + 0x7fffu + ((from >> 16) & 1u)) >> 16);
  }
  constexpr operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::float32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::float64;
  else if constexpr (std::is_same_v<T, float16>)
    return DType::float16;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return DType::bfloat16;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::uint8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::int8;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::int32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::int64;
  else if constexpr (std::is_same_v<T, bool>)
    return DType::boolean;
  else
    static_assert(sizeof(T) == 0, "no element type for this C++ type");
}

// The type sums and products of T are computed in.
template <class T>
using compute_type = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

[[noreturn]] void fail_unknown_dtype(DType dtype);

// Calls function with std::type_identity<T> for the C++ type of dtype.
template <class Function>
decltype(auto) visit_dtype(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::float32:
      return function(std::type_identity<float>{});
    case DType::float64:
      return function(std::type_identity<double>{});
    case DType::float16:
      return function(std::type_identity<float16>{});
    case DType::bfloat16:
      return function(std::type_identity<bfloat16>{});
    case DType::uint8:
      return function(std::type_identity<uint8_t>{});
    case DType::int8:
      return function(std::type_identity<int8_t>{});
    case DType::int32:
      return function(std::type_identity<int32_t>{});
    case DType::int64:
      return function(std::type_identity<int64_t>{});
    case DType::boolean:
      return function(std::type_identity<bool>{});
    case DType::none:
      break;
  }
  fail_unknown_dtype(dtype);
}

// The same for floating types alone; others fail with the type's name.
template <class Function>
decltype(auto) visit_floating(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::float32:
      return function(std::type_identity<float>{});
    case DType::float64:
      return function(std::type_identity<double>{});
    case DType::float16:
      return function(std::type_identity<float16>{});
    case DType::bfloat16:
      return function(std::type_identity<bfloat16>{});
    default:
      fail_unknown_dtype(dtype);
  }
}

}  // namespace symbind
