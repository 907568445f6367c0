#include "symbind/backend/cpu/convert.h"

#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {

void convert_array(void* dst, DType to, const void* src, DType from, int64_t count) {
  visit_dtype(to, [&]<class To>(std::type_identity<To>) {
    visit_dtype(from, [&]<class From>(std::type_identity<From>) {
      const From* const in = static_cast<const From*>(src);
      To* const out = static_cast<To*>(dst);
      for_elements(count, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) out[i] = convert<To>(in[i]);
      });
    });
  });
}

}  // namespace symbind::cpu_backend
