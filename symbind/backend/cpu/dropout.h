// Random masks of 0 and 1/(1-p).
#pragma once

#include <algorithm>

#include "symbind/backend/cpu/loops.h"
#include "symbind/core/dtype.h"
#include "symbind/core/random.h"

namespace symbind::cpu_backend {

// A thread processes whole blocks of four draws. The mask uses those from `first_block` on.
template <class T>
void draw_mask(const RandomCursor& cursor, uint64_t draw, double p, T* mask, int64_t count, int64_t first_block = 0) {
  const auto keep = static_cast<float>(1 - p);
  const T scale = static_cast<T>(static_cast<compute_type<T>>(1 / (1 - p)));
  for_elements((count + 3) / 4,
               [=](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block) {
                   const PhiloxBlock random = philox(cursor.key, draw, static_cast<uint64_t>(first_block + block));
                   for (int64_t i = block * 4; i < std::min(count, block * 4 + 4); ++i)
                     mask[i] = unit_float(random.words[i % 4]) < keep ? scale : T(0.0f);
                 }
               },
               element_grain / 16);
}

template <class T>
void apply_mask(const T* x, const T* mask, T* y, int64_t count) {
  using C = compute_type<T>;
  for_elements(count, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(static_cast<C>(x[i]) * static_cast<C>(mask[i]));
  });
}

}  // namespace symbind::cpu_backend
