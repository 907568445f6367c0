#include "symbind/backend/onednn/max_pool_grad.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/cpu/loops.h"

namespace symbind::onednn {
namespace {

struct Range {
  int64_t begin, end;
};

// What lies inside the input of the window at `position` along an axis.
Range window_along(const PoolingSize& size, size_t axis, int64_t position) {
  const int64_t start = position * size.stride[axis] - size.pad[axis];
  return {std::max<int64_t>(start, 0), std::min(start + size.kernel[axis], size.in[axis])};
}

// Calls visit(output position, depth range, height range, width range) for each window of an image.
template <class Visit>
void each_window(const PoolingSize& size, const Visit& visit) {
  int64_t out = 0;
  for (int64_t d = 0; d < size.out[0]; ++d) {
    const Range depth = window_along(size, 0, d);
    for (int64_t h = 0; h < size.out[1]; ++h) {
      const Range height = window_along(size, 1, h);
      for (int64_t w = 0; w < size.out[2]; ++w) visit(out++, depth, height, window_along(size, 2, w));
    }
  }
}

template <class Visit>
void each_position(const PoolingSize& size, Range depth, Range height, Range width, const Visit& visit) {
  for (int64_t d = depth.begin; d < depth.end; ++d)
    for (int64_t h = height.begin; h < height.end; ++h)
      for (int64_t w = width.begin; w < width.end; ++w) visit((d * size.in[1] + h) * size.in[2] + w);
}

// Do the windows touch every element exactly once? Then gradients are written, not added to zeros.
bool is_tiling(const PoolingSize& size) {
  for (size_t axis = 0; axis < 3; ++axis)
    if (size.kernel[axis] != size.stride[axis] || size.pad[axis] != 0 ||
        size.out[axis] * size.stride[axis] != size.in[axis])
      return false;
  return true;
}

// `width` channels side by side: vector instructions go along them.
template <int64_t width>
struct Lanes {
  typedef float Type [[gnu::vector_size(width * sizeof(float))]];
};

// One window. `left` is the gradient that has not found its maximum yet. A window that starts with NaN has NaN as its
// maximum.
template <bool tiling, int64_t width>
void spread_window(const PoolingSize& size, Range depth, Range height, Range columns, const float* dy, const float* x,
                   float* dx) {
  using Vector = typename Lanes<width>::Type;
  const int64_t first = (depth.begin * size.in[1] + height.begin) * size.in[2] + columns.begin;
  Vector best, left, here;
  std::memcpy(&best, x + first * size.channels, sizeof(Vector));
  std::memcpy(&left, dy, sizeof(Vector));
  each_position(size, depth, height, columns, [&](int64_t position) {
    std::memcpy(&here, x + position * size.channels, sizeof(Vector));
    best = here > best ? here : best;
  });
  const Vector none = {};
  each_position(size, depth, height, columns, [&](int64_t position) {
    std::memcpy(&here, x + position * size.channels, sizeof(Vector));
    const auto found = (here == best) | (best != best);
    Vector given = found ? left : none;
    left = found ? none : left;
    float* to = dx + position * size.channels;
    if constexpr (!tiling) {
      Vector before;
      std::memcpy(&before, to, sizeof(Vector));
      given += before;
    }
    std::memcpy(to, &given, sizeof(Vector));
  });
}

template <bool tiling>
void spread_image(const PoolingSize& size, const float* dy, const float* x, float* dx) {
  if constexpr (!tiling) std::fill(dx, dx + size.in_size() * size.channels, 0.0f);
  each_window(size, [&](int64_t out, Range depth, Range height, Range columns) {
    if (depth.begin >= depth.end || height.begin >= height.end || columns.begin >= columns.end) return;
    const float* from = dy + out * size.channels;
    int64_t c = 0;
    for (; c + 16 <= size.channels; c += 16)
      spread_window<tiling, 16>(size, depth, height, columns, from + c, x + c, dx + c);
    for (; c + 4 <= size.channels; c += 4)
      spread_window<tiling, 4>(size, depth, height, columns, from + c, x + c, dx + c);
    for (; c < size.channels; ++c) spread_window<tiling, 1>(size, depth, height, columns, from + c, x + c, dx + c);
  });
}

template <bool tiling>
std::unique_ptr<Kernel> make(const PoolingSize& size) {
  const int64_t in = size.in_size() * size.channels, out = size.out_size() * size.channels;
  return make_kernel([=](const Args& args) {
    const float *dy = args.in<float>(0), *x = args.in<float>(1);
    float* dx = args.out<float>();
    cpu_backend::for_elements(
        size.batch,
        [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) spread_image<tiling>(size, dy + i * out, x + i * in, dx + i * in);
        },
        cpu_backend::element_grain / (in + 1) + 1);
  });
}

}  // namespace

std::unique_ptr<Kernel> build_max_pool_grad(const PoolingSize& size) {
  return is_tiling(size) ? make<true>(size) : make<false>(size);
}

}  // namespace symbind::onednn
