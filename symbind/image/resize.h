// Images in other sizes. The conventions (where a pixel's centre is, how borders continue, the constants of the
// kernels) are OpenCV's, so that results equal MXNet's up to one unit in the last place.
#pragma once

#include <string_view>

#include "symbind/image/pixels.h"

namespace symbind {

// MXNet's numbers of interpolation methods.
namespace interpolation {
constexpr int nearest = 0, linear = 1, cubic = 2, area = 3, lanczos = 4, automatic = 9, random = 10;
}

// What `automatic` means for these sizes: cubic to enlarge both sides, area to shrink both, linear otherwise. Other
// methods are returned unchanged; unknown ones fail, with `who` in the message.
int interpolation_for(int method, int64_t from_height, int64_t from_width, int64_t to_height, int64_t to_width,
                      std::string_view who);

// Computes a window of `from` resized to height × width: starting at (y, x), of the size of `to`. `method` is one of
// the first five. Elements are uint8_t or float.
template <class Element>
void resize_window(BasicPixelView<const Element> from, int64_t height, int64_t width, int64_t y, int64_t x,
                   BasicPixelView<Element> to, int method);

// The whole image.
template <class Element>
void resize(BasicPixelView<const Element> from, BasicPixelView<Element> to, int method) {
  resize_window(from, to.height, to.width, 0, 0, to, method);
}

}  // namespace symbind
