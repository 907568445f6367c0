// im2col and col2im element by element, for every device.
#pragma once

#include <cstdint>

#include "symbind/backend/divisor.h"
#include "symbind/core/dtype.h"
#include "symbind/ops/unfold.h"

namespace symbind {

// A plane is one channel of one image. Its columns are rows of windows: for each kernel element (k0, k1, k2) the
// element that each window (w0, w1, w2) reads there. A line is one (w0, w1) of them and runs along w2.
struct UnfoldIndex {
  Divisor image[3], windows[3], kernel[3], stride[3];
  int64_t dilate[3], pad[3];

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

  constexpr int64_t lines_per_plane() const { return kernel_size() * windows[0] * windows[1]; }
  constexpr int64_t kernel_size() const { return product(kernel); }
  constexpr int64_t image_size() const { return product(image); }
  constexpr int64_t window_count() const { return product(windows); }

  // What a line reads: element `first + i · stride[2]` of the image's row that starts at `row`, where that is inside.
  struct Line {
    int64_t row;    // in all planes; -1: outside of the image
    int64_t first;  // column that the first window reads
  };
  constexpr Line line(int64_t number) const {
    const Divided w1 = windows[1].divide(number), w0 = windows[0].divide(w1.quotient);
    const Divided k2 = kernel[2].divide(w0.quotient), k1 = kernel[1].divide(k2.quotient);
    const Divided k0 = kernel[0].divide(k1.quotient);
    const int64_t d = w0.rest * stride[0] - pad[0] + k0.rest * dilate[0];
    const int64_t h = w1.rest * stride[1] - pad[1] + k1.rest * dilate[1];
    const bool inside = d >= 0 && d < image[0] && h >= 0 && h < image[1];
    const int64_t row = (k0.quotient * image[0] + d) * image[1] + h;
    return {inside ? row * image[2] : -1, k2.rest * dilate[2] - pad[2]};
  }

  // Along one axis: the window that reads element `at` at kernel element k, or -1.
  constexpr int64_t window_over(int axis, int64_t at, int64_t k) const {
    const int64_t begin = at + pad[axis] - k * dilate[axis];
    if (begin < 0) return -1;
    const Divided window = stride[axis].divide(begin);
    return window.rest == 0 && window.quotient < windows[axis] ? window.quotient : -1;
  }

  // The sum of the column entries for element `number` of the image, in the order of the kernel elements. load(i) is
  // element i of the columns.
  template <class C, class Load>
  constexpr C sum_for(int64_t number, const Load& load) const {
    const Divided column = image[2].divide(number), h = image[1].divide(column.quotient);
    const Divided d = image[0].divide(h.quotient);
    C sum = 0;
    for (int64_t k0 = 0; k0 < kernel[0]; ++k0) {
      const int64_t w0 = window_over(0, d.rest, k0);
      if (w0 < 0) continue;
      for (int64_t k1 = 0; k1 < kernel[1]; ++k1) {
        const int64_t w1 = window_over(1, h.rest, k1);
        if (w1 < 0) continue;
        for (int64_t k2 = 0; k2 < kernel[2]; ++k2) {
          const int64_t w2 = window_over(2, column.rest, k2);
          if (w2 < 0) continue;
          const int64_t row = ((d.quotient * kernel[0] + k0) * kernel[1] + k1) * kernel[2] + k2;
          sum += load(row * window_count() + (w0 * windows[1] + w1) * windows[2] + w2);
        }
      }
    }
    return sum;
  }

 private:
  static constexpr int64_t product(const Divisor (&extents)[3]) { return extents[0] * extents[1] * extents[2]; }
};

}  // namespace symbind
