// Rows of a few to a few hundred numbers, without the cost of a library call or of a scalar remainder: where the
// numbers do not fill whole vectors, the last vector overlaps the one before it. cover_row() may be used inside
// for_range(), which compiles it for several instruction sets.
#pragma once

#include <cstdint>

namespace symbind::cpu_backend {

template <class C, int64_t lanes>
struct RowVector {
  using type [[gnu::vector_size(lanes * sizeof(C)), gnu::aligned(sizeof(C)), gnu::may_alias]] = C;
};

// Calls put.operator()<lanes>(i) for vectors that together are the elements [0, count). Elements may be in two of them:
// put() must be idempotent.
template <class C, class Put>
[[gnu::always_inline]] inline void cover_row(int64_t count, const Put& put) {
  constexpr int64_t most = 64 / static_cast<int64_t>(sizeof(C));
  const auto by = [&]<int64_t lanes>() __attribute__((always_inline)) {
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) put.template operator()<lanes>(i);
    if (i < count) put.template operator()<lanes>(count - lanes);
  };
  if (count >= most) return by.template operator()<most>();
  if (count >= most / 2) return by.template operator()<most / 2>();
  if (count >= most / 4) return by.template operator()<most / 4>();
  for (int64_t i = 0; i < count; ++i) put.template operator()<1>(i);
}

// to[i] = from[i · step]. Not for use inside for_range(), where the compiler would gather strided elements, which is
// several times slower than single loads on many processors.
template <class C>
[[gnu::always_inline]] inline void gather_row(const C* from, int64_t step, int64_t count, C* to) {
  if (step == 1)
    return cover_row<C>(
        count, [=]<int64_t lanes>(int64_t i) __attribute__((always_inline)) {
          using Vector = typename RowVector<C, lanes>::type;
          *reinterpret_cast<Vector*>(to + i) = *reinterpret_cast<const Vector*>(from + i);
        });
  for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
}

}  // namespace symbind::cpu_backend
