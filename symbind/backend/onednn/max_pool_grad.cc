#include "symbind/backend/onednn/max_pool_grad.h"

#include <algorithm>
#include <array>

#include "symbind/backend/cpu/loops.h"

namespace symbind::onednn {
namespace {

struct Range {
  int64_t begin, end;
};

// The part of the window at `position` that is inside the input, along an axis.
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

// The loops below run along channels, which are adjacent, so that they vectorize. A window that starts with NaN has NaN
// as its maximum.

// Windows of two by two that touch every element exactly once, the common case: one pass without branches.
// The remaining gradient after an element is zero if that was the maximum.
void spread_quad(int64_t channels, const float* __restrict dy, const float* __restrict x0, const float* __restrict x1,
                 const float* __restrict x2, const float* __restrict x3, float* __restrict dx0, float* __restrict dx1,
                 float* __restrict dx2, float* __restrict dx3) {
  for (int64_t c = 0; c < channels; ++c) {
    const float a = x0[c], b = x1[c], d = x2[c], e = x3[c];
    float best = a;
    best = b > best ? b : best;
    best = d > best ? d : best;
    best = e > best ? e : best;
    const float after_nan = best != best ? 0.0f : dy[c];
    const float after_a = best == a ? 0.0f : after_nan;
    const float after_b = best == b ? 0.0f : after_a;
    dx0[c] = best == a ? dy[c] : best != best ? dy[c] : 0.0f;
    dx1[c] = best == b ? after_a : 0.0f;
    dx2[c] = best == d ? after_b : 0.0f;
    dx3[c] = best == d ? 0.0f : after_b;
  }
}

void spread_quads(const PoolingSize& size, const float* dy, const float* x, float* dx) {
  const int64_t channels = size.channels, row = size.in[2] * channels;
  for (int64_t h = 0; h < size.out[1]; ++h)
    for (int64_t w = 0; w < size.out[2]; ++w) {
      const int64_t at = 2 * h * row + 2 * w * channels, below = at + row;
      spread_quad(channels, dy, x + at, x + at + channels, x + below, x + below + channels, dx + at, dx + at + channels,
                  dx + below, dx + below + channels);
      dy += channels;
    }
}

// Any windows: they may overlap or leave elements out. `left` is the gradient whose maximum has not been found yet.
constexpr int64_t block = 64;

void raise(int64_t channels, const float* __restrict here, float* __restrict best) {
  for (int64_t c = 0; c < channels; ++c) best[c] = here[c] > best[c] ? here[c] : best[c];
}

void give(int64_t channels, const float* __restrict here, const float* __restrict best, float* __restrict left,
          float* __restrict dx) {
  for (int64_t c = 0; c < channels; ++c) {
    const bool found = (here[c] == best[c]) | (best[c] != best[c]);
    dx[c] += found ? left[c] : 0.0f;
    left[c] = found ? 0.0f : left[c];
  }
}

void spread_windows(const PoolingSize& size, const float* dy, const float* x, float* dx) {
  std::fill(dx, dx + size.in_size() * size.channels, 0.0f);
  each_window(size, [&](int64_t out, Range depth, Range height, Range width) {
    if (depth.begin >= depth.end || height.begin >= height.end || width.begin >= width.end) return;
    const int64_t first = (depth.begin * size.in[1] + height.begin) * size.in[2] + width.begin;
    for (int64_t c = 0; c < size.channels; c += block) {
      const int64_t channels = std::min(block, size.channels - c);
      float best[block], left[block];
      std::copy_n(x + first * size.channels + c, channels, best);
      std::copy_n(dy + out * size.channels + c, channels, left);
      each_position(size, depth, height, width,
                    [&](int64_t position) { raise(channels, x + position * size.channels + c, best); });
      each_position(size, depth, height, width, [&](int64_t position) {
        const int64_t at = position * size.channels + c;
        give(channels, x + at, best, left, dx + at);
      });
    }
  });
}

bool is_quads(const PoolingSize& size) {
  return size.in[0] == 1 && size.kernel == std::array<int64_t, 3>{1, 2, 2} && size.stride[1] == 2 &&
         size.stride[2] == 2 && size.pad == std::array<int64_t, 3>{} && size.out[1] * 2 == size.in[1] &&
         size.out[2] * 2 == size.in[2];
}

template <class Spread>
std::unique_ptr<Kernel> make(const PoolingSize& size, Spread spread) {
  const int64_t in = size.in_size() * size.channels, out = size.out_size() * size.channels;
  return make_kernel([=](const Args& args) {
    const float *dy = args.in<float>(0), *x = args.in<float>(1);
    float* dx = args.out<float>();
    cpu_backend::for_elements(
        size.batch,
        [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) spread(size, dy + i * out, x + i * in, dx + i * in);
        },
        cpu_backend::element_grain / (in + 1) + 1);
  });
}

}  // namespace

std::unique_ptr<Kernel> build_max_pool_grad(const PoolingSize& size) {
  // Lambdas, not functions: the loops are compiled for each instruction set around them.
  if (is_quads(size)) return make(size, [](auto&&... arguments) { spread_quads(arguments...); });
  return make(size, [](auto&&... arguments) { spread_windows(arguments...); });
}

}  // namespace symbind::onednn
