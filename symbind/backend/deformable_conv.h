// Deformable convolution: the sampling positions of kernel elements, and the extents of its matrix products. Compiled
// for every device.
#pragma once

#include "symbind/backend/freestanding.h"
#include "symbind/core/shape.h"
#include "symbind/ops/deformable_conv.h"

namespace symbind::deformable {

// For each image and group of channels the output is weight · columns, where a row of columns holds the values that one
// kernel element reads from one channel, and a column is a position of the output.
struct Size {
  int64_t images, channels, rows, columns;
  int64_t filters, out_rows, out_columns;
  int64_t groups, offset_groups;
  int64_t kernel_rows, kernel_columns;
  int64_t stride_y, stride_x, pad_y, pad_x, dilate_y, dilate_x;
  bool modulated;  // then the elements are multiplied by a mask, and pixels outside are 0 between pixels as well

  Size(const DeformableConvolution& p, bool has_mask, const Shape& data, const Shape& out)
      : images(data[0]),
        channels(data[1]),
        rows(data[2]),
        columns(data[3]),
        filters(p.num_filter),
        out_rows(out[2]),
        out_columns(out[3]),
        groups(p.num_group),
        offset_groups(p.num_deformable_group),
        kernel_rows(p.kernel[0]),
        kernel_columns(p.kernel[1]),
        stride_y(p.stride[0]),
        stride_x(p.stride[1]),
        pad_y(p.pad[0]),
        pad_x(p.pad[1]),
        dilate_y(p.dilate[0]),
        dilate_x(p.dilate[1]),
        modulated(has_mask) {}

  constexpr int64_t space() const { return rows * columns; }
  constexpr int64_t positions() const { return out_rows * out_columns; }
  constexpr int64_t taps() const { return kernel_rows * kernel_columns; }
  constexpr int64_t group_channels() const { return channels / groups; }
  constexpr int64_t group_filters() const { return filters / groups; }
  constexpr int64_t group_rows() const { return group_channels() * taps(); }  // of the columns of a group
  constexpr int64_t offset_channels() const { return channels / offset_groups; }
  // Points of an image: (group of offsets, tap, position).
  constexpr int64_t points() const { return offset_groups * taps() * positions(); }
  // The offset down of a point of an image; the offset across is positions() further.
  constexpr int64_t offset_of(int64_t point) const {
    return point / positions() * 2 * positions() + point % positions();
  }
};

// The four pixels around a point; `down` and `right` are the weights of the second row and column.
template <class C>
struct Sample {
  bool inside;
  int64_t row[2], column[2];
  C down, right;

  // The point of the image that is read with the given offsets.
  constexpr Sample(const Size& size, int64_t point, C offset_y, C offset_x)
      : inside(false), row{0, 0}, column{0, 0}, down(0), right(0) {
    const int64_t position = point % size.positions(), tap = point / size.positions() % size.taps();
    const int64_t top = position / size.out_columns * size.stride_y - size.pad_y;
    const int64_t left = position % size.out_columns * size.stride_x - size.pad_x;
    const C y = static_cast<C>(top + tap / size.kernel_columns * size.dilate_y) + offset_y;
    const C x = static_cast<C>(left + tap % size.kernel_columns * size.dilate_x) + offset_x;
    inside = size.modulated ? y > C(-1) && x > C(-1) : y >= C(0) && x >= C(0);
    inside = inside && y < static_cast<C>(size.rows) && x < static_cast<C>(size.columns);
    if (!inside) return;
    down = find_pixels(y, size.rows, size.modulated, row);
    right = find_pixels(x, size.columns, size.modulated, column);
  }

  constexpr bool has(const Size& size, int corner) const {
    const int64_t r = row[corner / 2], c = column[corner % 2];
    return inside && r >= 0 && r < size.rows && c >= 0 && c < size.columns;
  }
  constexpr int64_t pixel(const Size& size, int corner) const {
    return row[corner / 2] * size.columns + column[corner % 2];
  }
  constexpr C weight(int corner) const {
    return (corner / 2 ? down : C(1) - down) * (corner % 2 ? right : C(1) - right);
  }
  // The derivatives of the weight by y and by x.
  constexpr C slope_y(int corner) const { return (corner / 2 ? C(1) : C(-1)) * (corner % 2 ? right : C(1) - right); }
  constexpr C slope_x(int corner) const { return (corner / 2 ? down : C(1) - down) * (corner % 2 ? C(1) : C(-1)); }

 private:
  // Finds the two pixels around a coordinate and returns the distance from the first of them. Without zeros around the
  // image the last pixel extends to the end.
  static constexpr C find_pixels(C at, int64_t extent, bool zeros_around, int64_t* pixels) {
    const C low = libm::floor(at);
    pixels[0] = static_cast<int64_t>(low);
    pixels[1] = pixels[0] + 1;
    if (zeros_around || pixels[1] < extent) return at - low;
    pixels[1] = pixels[0];
    return C(0);
  }
};

}  // namespace symbind::deformable
