// The sampling positions of BilinearSampler, SpatialTransformer and Correlation, for every device.
#pragma once

#include <cstdint>

#include "symbind/backend/freestanding.h"
#include "symbind/core/shape.h"
#include "symbind/ops/spatial.h"

namespace symbind::spatial {

// ---- Grids ----------------------------------------------------------------------------------------------------------

struct Grid {
  int64_t images, rows, columns;
  constexpr int64_t space() const { return rows * columns; }
};

inline Grid grid_of(const Shape& shape) { return {shape[0], shape[2], shape[3]}; }

template <class C>
constexpr C coordinate(int64_t index, int64_t extent) {
  return C(-1) + static_cast<C>(index) * (C(2) / static_cast<C>(extent - 1));
}

// ---- Sampling -------------------------------------------------------------------------------------------------------

struct Sampled {
  int64_t channels, rows, columns;  // of the images read
  Grid grid;
  constexpr int64_t space() const { return rows * columns; }
};

inline Sampled sampled(const Shape& data, const Shape& result) { return {data[1], data[2], data[3], grid_of(result)}; }

// The pixel above and to the left of a sampled point, which may be just outside, and how far the point is from it.
template <class C>
struct SamplePoint {
  int64_t row = 0, column = 0;
  C down = 0, right = 0;
  bool inside = false;  // is any of the four pixels in the image?

  constexpr SamplePoint(const Sampled& size, C x, C y) {
    x = (x + 1) * static_cast<C>(size.columns - 1) / 2;
    y = (y + 1) * static_cast<C>(size.rows - 1) / 2;
    // Written so that NaN is outside.
    inside = x >= -1 && x < static_cast<C>(size.columns) && y >= -1 && y < static_cast<C>(size.rows);
    if (!inside) return;
    const C left = libm::floor(x), top = libm::floor(y);
    row = static_cast<int64_t>(top);
    column = static_cast<int64_t>(left);
    down = y - top;
    right = x - left;
  }

  // One of the four pixels: its index, its weight, and the weight's derivative by x and by y.
  struct Pixel {
    int64_t at;
    C weight, slope_x, slope_y;
  };
  // The pixel `i` rows down and `k` columns to the right, which must be inside.
  constexpr Pixel pixel(const Sampled& size, int64_t i, int64_t k) const {
    const C high = i == 1 ? down : 1 - down, wide = k == 1 ? right : 1 - right;
    return {(row + i) * size.columns + column + k, high * wide, k == 1 ? high : -high, i == 1 ? wide : -wide};
  }
  constexpr bool has_row(const Sampled& size, int64_t i) const { return row + i >= 0 && row + i < size.rows; }
  constexpr bool has_column(const Sampled& size, int64_t k) const {
    return column + k >= 0 && column + k < size.columns;
  }

  // visit(pixel, its weight, the weight's derivative by x and by y) for those of the four that are inside.
  template <class Visit>
  constexpr void for_pixels(const Sampled& size, const Visit& visit) const {
    if (!inside) return;
    for (int64_t i = 0; i < 2; ++i) {
      if (!has_row(size, i)) continue;
      for (int64_t k = 0; k < 2; ++k) {
        if (!has_column(size, k)) continue;
        const Pixel each = pixel(size, i, k);
        visit(each.at, each.weight, each.slope_x, each.slope_y);
      }
    }
  }
};

// ---- Correlation ----------------------------------------------------------------------------------------------------

struct Compared {
  Correlation params;
  int64_t channels, rows, columns;  // of both images
  Grid grid;                        // of the result
  int64_t reach, width;             // displacements on each side, and in all

  Compared(const Correlation& p, const Shape& data, const Shape& result)
      : params(p),
        channels(data[1]),
        rows(data[2]),
        columns(data[3]),
        grid(grid_of(result)),
        reach(p.max_displacement / p.stride2),
        width(2 * reach + 1) {}
  constexpr int64_t space() const { return rows * columns; }
  constexpr int64_t displacements() const { return width * width; }
  constexpr double elements() const { return static_cast<double>(params.kernel_size * params.kernel_size * channels); }
  // Rows and columns from the first patch to the second.
  constexpr int64_t down(int64_t displacement) const { return (displacement / width - reach) * params.stride2; }
  constexpr int64_t right(int64_t displacement) const { return (displacement % width - reach) * params.stride2; }

  // The pixel of an image, -1: it is padding.
  constexpr int64_t pixel(int64_t row, int64_t column) const {
    row -= params.pad_size;
    column -= params.pad_size;
    return row < 0 || row >= rows || column < 0 || column >= columns ? -1 : row * columns + column;
  }
  // visit(pixel of the first image, pixel of the second) for a displacement and an element of the result.
  template <class Visit>
  constexpr void for_pairs(int64_t displacement, int64_t i, const Visit& visit) const {
    const int64_t row = i / grid.columns * params.stride1 + params.max_displacement;
    const int64_t column = i % grid.columns * params.stride1 + params.max_displacement;
    const int64_t rows_down = down(displacement), columns_right = right(displacement);
    for (int64_t y = row; y < row + params.kernel_size; ++y)
      for (int64_t x = column; x < column + params.kernel_size; ++x)
        visit(pixel(y, x), pixel(y + rows_down, x + columns_right));
  }
};

}  // namespace symbind::spatial
