#include "symbind/backend/cpu/convert_array.h"

#include "symbind/backend/cpu/half.h"
#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {
namespace {

template <class To, class From>
To convert_one(From value) {
  if constexpr (std::is_same_v<From, float16> && !std::is_same_v<To, float16>)
    return convert<To>(widened(value));
  else if constexpr (std::is_same_v<To, float16> && std::is_same_v<From, float>)
    return narrowed<float16>(value);
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
        if constexpr (std::is_same_v<From, float16> && std::is_same_v<To, float>)
          return widen(in + begin, out + begin, end - begin);
        if constexpr (std::is_same_v<From, float> && std::is_same_v<To, float16>)
          return narrow(in + begin, out + begin, end - begin);
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) out[i] = convert_one<To>(in[i]);
      });
    });
  });
}

}  // namespace symbind::cpu_backend
