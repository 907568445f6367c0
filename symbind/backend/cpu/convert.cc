// Half precision is converted without branches here, so that the loops over it become vector code.
#include "symbind/backend/cpu/convert.h"

#include <bit>

#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {
namespace {

// A half's exponent moved to a float's place; numbers below the normal ones are shifted up by a subtraction.
float float_of(float16 half) {
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(half.bits & 0x7fffu) << 13;
  const uint32_t normal = magnitude + (112u << 23);
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23));
  const uint32_t special = magnitude | 0x7f800000u;  // infinity and NaN
  const uint32_t finite = magnitude < 0x00800000u ? small : normal;
  return std::bit_cast<float>(sign | (magnitude < 0x0f800000u ? finite : special));
}

// To nearest even: by hand for normal halves, by an addition that has the right unit for those below.
float16 half_of(float value) {
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

template <class To, class From>
To convert_one(From value) {
  if constexpr (std::is_same_v<From, float16> && !std::is_same_v<To, float16>)
    return convert<To>(float_of(value));
  else if constexpr (std::is_same_v<To, float16> && std::is_same_v<From, float>)
    return half_of(value);
  else
    return convert<To>(value);
}

}  // namespace

void convert_array(void* dst, DType to, const void* src, DType from, int64_t count) {
  visit_dtype(to, [&]<class To>(std::type_identity<To>) {
    visit_dtype(from, [&]<class From>(std::type_identity<From>) {
      const From* const in = static_cast<const From*>(src);
      To* const out = static_cast<To*>(dst);
      for_elements<InstructionSet::avx2>(count, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) out[i] = convert_one<To>(in[i]);
      });
    });
  });
}

}  // namespace symbind::cpu_backend
