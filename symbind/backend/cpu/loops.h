// Loops over elements, compiled for several instruction sets and chosen at run time. A body is an ordinary lambda over
// a range; for_range() runs it in the widest version this processor has, for_elements() spreads it over cores as well.
#pragma once

#include <cstdint>

#include "symbind/core/parallel.h"

namespace symbind::cpu_backend {

// Elements that are worth a separate thread.
inline constexpr int64_t element_grain = 32768;

enum class InstructionSet { baseline, avx2, avx512 };
InstructionSet instruction_set();

#if defined(__x86_64__) && defined(__GNUC__)
// `flatten` inlines the body, and what it calls, into the function compiled for the wider instructions.
template <class Body>
[[gnu::target("arch=x86-64-v4"), gnu::flatten]] void run_avx512(const Body& body, int64_t begin, int64_t end) {
  body(begin, end);
}
template <class Body>
[[gnu::target("arch=x86-64-v3"), gnu::flatten]] void run_avx2(const Body& body, int64_t begin, int64_t end) {
  body(begin, end);
}
// `widest` avoids compiling versions that would not be faster: simple loops are memory-bound.
template <InstructionSet widest = InstructionSet::avx512, class Body>
void for_range(int64_t begin, int64_t end, const Body& body) {
  if constexpr (widest >= InstructionSet::avx512)
    if (instruction_set() == InstructionSet::avx512) return run_avx512(body, begin, end);
  if constexpr (widest >= InstructionSet::avx2)
    if (instruction_set() >= InstructionSet::avx2) return run_avx2(body, begin, end);
  body(begin, end);
}
#else
template <InstructionSet widest = InstructionSet::avx512, class Body>
void for_range(int64_t begin, int64_t end, const Body& body) {
  body(begin, end);
}
#endif

template <InstructionSet widest = InstructionSet::avx512, class Body>
void for_elements(int64_t count, const Body& body, int64_t grain = element_grain) {
  parallel_for(count, grain, [&](int64_t begin, int64_t end) { for_range<widest>(begin, end, body); });
}

}  // namespace symbind::cpu_backend
