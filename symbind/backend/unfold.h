// im2col and col2im element by element, for every device.
#pragma once

#include <cstdint>

#include "symbind/core/dtype.h"
#include "symbind/ops/unfold.h"

namespace symbind {

// A plane is one channel of one image. Its columns are rows of windows: for each kernel element (k0, k1, k2) the
// element that each window (w0, w1, w2) sees there. A line is one (w0, w1) of them, w2 goes along it.
struct UnfoldIndex {
  int64_t image[3], windows[3], kernel[3], stride[3], dilate[3], pad[3];

  explicit UnfoldIndex(const UnfoldSize& size) {
    for (size_t axis = 0; axis < 3; ++axis) {
      image[axis] = size.image[axis];
      windows[axis] = size.windows[axis];
      kernel[axis] = size.kernel[axis];
      stride[axis] = size.stride[axis];
      dilate[axis] = size.dilate[axis];
      pad[axis] = size.pad[axis];
    }
  }

  constexpr int64_t lines_per_plane() const { return kernel[0] * kernel[1] * kernel[2] * windows[0] * windows[1]; }
  constexpr int64_t image_size() const { return image[0] * image[1] * image[2]; }
  constexpr int64_t window_count() const { return windows[0] * windows[1] * windows[2]; }

  // What a line reads: element `first + i · stride[2]` of the image's row that begins at `row`, where that is inside.
  struct Line {
    int64_t row;    // in all planes; -1: outside of the image
    int64_t first;  // column that the first window sees
  };
  constexpr Line line(int64_t number) const {
    const int64_t w1 = number % windows[1];
    number /= windows[1];
    const int64_t w0 = number % windows[0];
    number /= windows[0];
    const int64_t k2 = number % kernel[2];
    number /= kernel[2];
    const int64_t k1 = number % kernel[1];
    number /= kernel[1];
    const int64_t k0 = number % kernel[0], plane = number / kernel[0];
    const int64_t d = w0 * stride[0] - pad[0] + k0 * dilate[0], h = w1 * stride[1] - pad[1] + k1 * dilate[1];
    const bool inside = d >= 0 && d < image[0] && h >= 0 && h < image[1];
    return {inside ? (plane * image[0] + d) * image[1] * image[2] + h * image[2] : -1, k2 * dilate[2] - pad[2]};
  }

  // Along one axis: the window that sees element `at` at kernel element k, or -1.
  constexpr int64_t window_over(int axis, int64_t at, int64_t k) const {
    const int64_t begin = at + pad[axis] - k * dilate[axis];
    if (begin < 0 || begin % stride[axis] != 0) return -1;
    const int64_t window = begin / stride[axis];
    return window < windows[axis] ? window : -1;
  }

  // The sum of what the columns hold for element `number` of the image, in the order of the kernel elements. load(i) is
  // element i of the columns.
  template <class C, class Load>
  constexpr C sum_for(int64_t number, const Load& load) const {
    const int64_t column = number % image[2], h = number / image[2] % image[1];
    const int64_t d = number / (image[2] * image[1]) % image[0], plane = number / image_size();
    C sum = 0;
    for (int64_t k0 = 0; k0 < kernel[0]; ++k0) {
      const int64_t w0 = window_over(0, d, k0);
      if (w0 < 0) continue;
      for (int64_t k1 = 0; k1 < kernel[1]; ++k1) {
        const int64_t w1 = window_over(1, h, k1);
        if (w1 < 0) continue;
        for (int64_t k2 = 0; k2 < kernel[2]; ++k2) {
          const int64_t w2 = window_over(2, column, k2);
          if (w2 < 0) continue;
          const int64_t row = ((plane * kernel[0] + k0) * kernel[1] + k1) * kernel[2] + k2;
          sum += load(row * window_count() + (w0 * windows[1] + w1) * windows[2] + w2);
        }
      }
    }
    return sum;
  }
};

}  // namespace symbind
