// The geometry of ROIPooling, on every device. Coordinates are computed in the type of the data (half precision: in
// float), as MXNet does: rounding decides whether a cell's edge is before or after an element.
#pragma once

#include <cstdint>

#include "symbind/backend/freestanding.h"

namespace symbind {

struct RoiWindow {
  int64_t begin, end;
};

// Cells along one axis of a region.
template <class C>
struct RoiCells {
  int64_t start;  // the region's first element, which may be outside of the image
  C length;       // of a cell

  constexpr RoiCells(C first, C last, C scale, int64_t count) : start(rounded(first * scale)), length(0) {
    const int64_t elements = rounded(last * scale) - start + 1;
    length = static_cast<C>(elements < 1 ? 1 : elements) / static_cast<C>(count);
  }
  constexpr RoiWindow within(int64_t cell, int64_t extent) const {
    const auto begin = static_cast<int64_t>(libm::floor(static_cast<C>(cell) * length));
    const auto end = static_cast<int64_t>(libm::ceil(static_cast<C>(cell + 1) * length));
    return {clamped(begin + start, extent), clamped(end + start, extent)};
  }

 private:
  static constexpr int64_t clamped(int64_t position, int64_t extent) {
    return position < 0 ? 0 : position > extent ? extent : position;
  }
  static constexpr int64_t rounded(C value) {
    constexpr C far = 1e9;
    if (value != value) return 0;
    return static_cast<int64_t>(libm::round(value < -far ? -far : value > far ? far : value));
  }
};

// The number of the image a region is in; -1: there is none.
template <class C>
constexpr int64_t roi_image(C number, int64_t images) {
  return number >= 0 && number < static_cast<C>(images) ? static_cast<int64_t>(number) : -1;
}

}  // namespace symbind
