// Pooling with one window that is the whole plane. A maximum's gradient goes to the first element that has it.
#include <functional>

#include "symbind/backend/cpu/half.h"
#include "symbind/backend/cpu/lane_sums.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/pool.h"

namespace symbind::cpu_backend {
namespace {

// Elements that a mean divides by.
int64_t divisor_of(const PoolingSize& size, PoolKind kind) {
  int64_t divisor = 1;
  if (kind == PoolKind::avg)
    for (size_t axis = 0; axis < 3; ++axis) divisor *= extent_at(size, axis, 0).counted;
  return divisor;
}

// Reading is so fast that a thread pays off only for twice the usual number of elements.
int64_t grain(const PoolingSize& size) { return 2 * element_grain / (size.in_size() + 1) + 1; }

// The index of the first element that no other exceeds. NaN is selected only if it comes first.
template <class T>
[[gnu::always_inline]] inline int64_t first_largest(const T* x, int64_t count) {
  using C = compute_type<T>;
  const C first = widened(x[0]);
  const C most = largest_of(x, count, first, std::identity{});
  constexpr int64_t block = 64;
  int64_t i = 0;
  for (; i + block <= count; i += block) {
    int found = 0;
    for (int64_t lane = 0; lane < block; ++lane) found |= widened(x[i + lane]) == most;
    if (found) break;
  }
  for (; i < count; ++i)
    if (widened(x[i]) == most) return i;
  return 0;
}

}  // namespace

bool is_whole_plane(const PoolingSize& size, PoolKind kind) {
  if (size.channels_last || size.out_size() != 1 || kind == PoolKind::lp || size.in_size() == 0) return false;
  for (size_t axis = 0; axis < 3; ++axis)
    if (size.pad[axis] != 0 || size.kernel[axis] < size.in[axis]) return false;
  return true;
}

template <class T>
std::unique_ptr<Kernel> build_whole_planes(const PoolingSize& size, PoolKind kind) {
  using C = compute_type<T>;
  const int64_t count = size.in_size(), divisor = divisor_of(size, kind);
  return make_kernel([=](const Args& args) {
    for_elements(
        size.batch * size.channels,
        [=, x = args.in<T>(0), y = args.out<T>()](int64_t begin, int64_t end) {
          for (int64_t plane = begin; plane < end; ++plane) {
            const T* const from = x + plane * count;
            if (kind == PoolKind::max)
              y[plane] = static_cast<T>(largest_of(from, count, lowest<T>(), std::identity{}));
            else
              y[plane] = static_cast<T>(static_cast<C>(sum_of(from, count) / static_cast<double>(divisor)));
          }
        },
        grain(size));
  });
}

template <class T>
std::unique_ptr<Kernel> build_whole_planes_grad(const PoolingSize& size, PoolKind kind) {
  using C = compute_type<T>;
  const int64_t count = size.in_size();
  const C divisor = static_cast<C>(divisor_of(size, kind));
  const bool is_max = kind == PoolKind::max;
  return make_kernel([=](const Args& args) {
    for_elements(
        size.batch * size.channels,
        [=, dy = args.in<T>(0), x = is_max ? args.in<T>(1) : nullptr, dx = args.out<T>()](int64_t begin, int64_t end) {
          for (int64_t plane = begin; plane < end; ++plane) {
            T* const to = dx + plane * count;
            std::fill_n(to, count, is_max ? T(0) : static_cast<T>(widened(dy[plane]) / divisor));
            if (is_max) to[first_largest(x + plane * count, count)] = dy[plane];
          }
        },
        grain(size));
  });
}

#define SYMBIND_WHOLE_PLANES(T)                                                              \
  template std::unique_ptr<Kernel> build_whole_planes<T>(const PoolingSize& size, PoolKind); \
  template std::unique_ptr<Kernel> build_whole_planes_grad<T>(const PoolingSize& size, PoolKind);
SYMBIND_WHOLE_PLANES(float)
SYMBIND_WHOLE_PLANES(double)
SYMBIND_WHOLE_PLANES(float16)
SYMBIND_WHOLE_PLANES(bfloat16)
#undef SYMBIND_WHOLE_PLANES

}  // namespace symbind::cpu_backend
