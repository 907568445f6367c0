#include "symbind/kvstore/sum.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "symbind/core/parallel.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/elementwise.h"

namespace symbind {
namespace {

// Integers wrap around as they do in every other operator.
template <class C>
C plus(C a, C b) {
  if constexpr (std::is_integral_v<C> && !std::is_same_v<C, bool>) {
    using Unsigned = std::make_unsigned_t<C>;
    return static_cast<C>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return static_cast<C>(a + b);
  }
}

// Block by block, so that the running sum stays in the nearest cache and every array crosses memory once.
template <class T>
void sum_range(T* out, std::span<const T* const> inputs, int64_t begin, int64_t end) {
  using C = compute_type<T>;
  constexpr int64_t block = 1024;
  std::array<C, block> total;
  for (int64_t start = begin; start < end; start += block) {
    const int64_t count = std::min(block, end - start);
    const T* const first = inputs[0] + start;
    for (int64_t i = 0; i < count; ++i) total[static_cast<size_t>(i)] = static_cast<C>(first[i]);
    for (const T* const input : inputs.subspan(1)) {
      const T* const next = input + start;
      for (int64_t i = 0; i < count; ++i)
        total[static_cast<size_t>(i)] = plus(total[static_cast<size_t>(i)], static_cast<C>(next[i]));
    }
    for (int64_t i = 0; i < count; ++i) out[start + i] = static_cast<T>(total[static_cast<size_t>(i)]);
  }
}

void sum_on_host(const NDArray& out, std::span<const NDArray> arrays, std::vector<NDArray>& copies) {
  visit_dtype(out.dtype(), [&]<class T>(std::type_identity<T>) {
    std::vector<const T*> inputs;
    inputs.reserve(arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i)
      inputs.push_back(static_cast<const T*>(brought_to(out.context(), arrays[i], copies[i]).data()));
    T* const result = static_cast<T*>(out.mutable_data());
    constexpr int64_t grain = 1 << 15;
    parallel_for(out.size(), grain, [&](int64_t begin, int64_t end) { sum_range<T>(result, inputs, begin, end); });
  });
}

void sum_on_device(const NDArray& out, std::span<const NDArray> arrays, std::vector<NDArray>& copies) {
  NDArray total = brought_to(out.context(), arrays[0], copies[0]);
  for (size_t i = 1; i < arrays.size(); ++i)
    total = invoke(elemwise_add, {total, brought_to(out.context(), arrays[i], copies[i])}, {}, {.out = {out}})[0];
}

}  // namespace

bool readable_from(Context context, const NDArray& array) {
  return array.context() == context || (!context.is_gpu() && !array.context().is_gpu());
}

const NDArray& brought_to(Context context, const NDArray& array, NDArray& slot) {
  if (readable_from(context, array)) return array;
  if (!slot || slot.context() != context || slot.shape() != array.shape() || slot.dtype() != array.dtype())
    slot = NDArray(array.shape(), context, array.dtype());
  array.copyto(slot);
  return slot;
}

void sum_to(const NDArray& out, std::span<const NDArray> arrays, std::vector<NDArray>& copies) {
  if (out.size() == 0) return;
  if (arrays.size() == 1) return arrays[0].copyto(out);
  if (copies.size() < arrays.size()) copies.resize(arrays.size());
  out.context().is_gpu() ? sum_on_device(out, arrays, copies) : sum_on_host(out, arrays, copies);
}

}  // namespace symbind
