// ROIAlign: where the points of a region's cells are along an axis, and between which pixels. Compiled for every
// device.
#pragma once

#include "symbind/backend/freestanding.h"
#include "symbind/core/shape.h"
#include "symbind/ops/roi_align.h"

namespace symbind::roi_align_rule {

struct Range {
  int64_t begin, end;
};

template <class C>
constexpr C limited(C value, C low, C high) {
  return value > low ? (value < high ? value : high) : low;  // NaN becomes the lower limit
}

// The image that a region is in; -1: there is none.
template <class C>
constexpr int64_t image_of(C index, int64_t images) {
  return index >= C(0) && index < static_cast<C>(images) ? static_cast<int64_t>(index) : -1;
}

// A coordinate between two pixels, which are the same at the edges. Up to one pixel outside it is clamped to the edge.
template <class C>
struct Point {
  bool inside;
  int64_t low, high;
  C share;  // weight of the pixel `high`

  constexpr Point(C at, int64_t extent) : inside(false), low(0), high(0), share(0) {
    inside = at >= C(-1) && at <= static_cast<C>(extent) && extent > 0;
    if (!inside) return;
    const C point = at > C(0) ? at : C(0);
    low = static_cast<int64_t>(point);
    if (low >= extent - 1) {
      low = high = extent - 1;
      return;
    }
    high = low + 1;
    share = point - static_cast<C>(low);
  }
  constexpr C weight(int64_t pixel) const {
    if (!inside) return C(0);
    return (pixel == low ? C(1) - share : C(0)) + (pixel == high ? share : C(0));
  }
};

// A region along one axis: cells, and the points of each.
template <class C>
struct Axis {
  C start, cell, step;
  int64_t cells, points;  // points of a cell

  constexpr Axis(C start_, C length, int64_t cells_, int64_t sample_ratio)
      : start(start_), cell(length / static_cast<C>(cells_)), step(0), cells(cells_), points(sample_ratio) {
    constexpr C most_points = C(1 << 30);  // no point that far away is inside
    if (sample_ratio <= 0) points = static_cast<int64_t>(limited(libm::ceil(cell), C(0), most_points));
    step = points > 0 ? cell / static_cast<C>(points) : C(0);
  }

  constexpr C point(int64_t index, int64_t of_cell) const {
    return start + static_cast<C>(index) * cell + (static_cast<C>(of_cell) + C(0.5)) * cell / static_cast<C>(points);
  }
  // The points of a cell that may be in [low, high]: includes all that are, and a few others.
  constexpr Range points_between(int64_t index, C low, C high) const {
    if (!(step > C(0))) return {0, points};
    const C first = start + static_cast<C>(index) * cell, most = static_cast<C>(points);
    return {static_cast<int64_t>(limited((low - first) / step - C(2), C(0), most)),
            static_cast<int64_t>(limited((high - first) / step + C(2), C(0), most))};
  }
  // The cells that may have a point in [low, high].
  constexpr Range cells_between(C low, C high) const {
    if (!(cell > C(0))) return {0, cells};
    const C most = static_cast<C>(cells);
    return {static_cast<int64_t>(limited((low - start) / cell - C(1), C(0), most)),
            static_cast<int64_t>(limited((high - start) / cell + C(2), C(0), most))};
  }
  // The total weight of a pixel over the points of a cell.
  constexpr C weight(int64_t index, int64_t pixel, int64_t extent) const {
    const Range near = points_between(index, static_cast<C>(pixel - 1), static_cast<C>(pixel + 1));
    C sum = 0;
    for (int64_t i = near.begin; i < near.end; ++i) sum += Point<C>(point(index, i), extent).weight(pixel);
    return sum;
  }
};

struct AlignSize {
  int64_t images, channels, rows, columns, regions;
  int64_t out_channels, out_rows, out_columns;
  int64_t sample_ratio;
  bool position_sensitive, aligned;

  AlignSize(const ROIAlign& p, const Shape& data, const Shape& out)
      : images(data[0]),
        channels(data[1]),
        rows(data[2]),
        columns(data[3]),
        regions(out[0]),
        out_channels(out[1]),
        out_rows(out[2]),
        out_columns(out[3]),
        sample_ratio(p.sample_ratio),
        position_sensitive(p.position_sensitive),
        aligned(p.aligned) {}
  constexpr int64_t space() const { return rows * columns; }
  constexpr int64_t cells() const { return out_rows * out_columns; }
  // The channel of data that a cell of the output reads.
  constexpr int64_t channel(int64_t out_channel, int64_t cell) const {
    return position_sensitive ? out_channel * cells() + cell : out_channel;
  }
};

// Unless regions are aligned with the centres of pixels, they have at least one pixel.
template <class C>
constexpr Axis<C> axis_between(C first, C last, C scale, int64_t cells, int64_t sample_ratio, bool aligned) {
  const C shift = aligned ? C(0.5) : C(0), start = first * scale - shift, length = last * scale - shift - start;
  return {start, aligned || length > C(1) ? length : C(1), cells, sample_ratio};
}

// read(0 … 4) are the numbers of a region.
template <class C>
struct Region {
  int64_t image;
  Axis<C> down, across;

  template <class Read>
  constexpr Region(const AlignSize& size, C scale, const Read& read)
      : image(image_of(read(0), size.images)),
        down(axis_between(read(2), read(4), scale, size.out_rows, size.sample_ratio, size.aligned)),
        across(axis_between(read(1), read(3), scale, size.out_columns, size.sample_ratio, size.aligned)) {}
  // The divisor of the sum of a cell.
  constexpr C count() const {
    const C all = static_cast<C>(down.points) * static_cast<C>(across.points);
    return all > C(1) ? all : C(1);
  }
};

// ---- RROIAlign ------------------------------------------------------------------------------------------------------

struct RotatedSize {
  int64_t images, channels, rows, columns;
  int64_t out_rows, out_columns;
  int64_t sample_ratio;

  RotatedSize(const RROIAlign& p, const Shape& data)
      : images(data[0]),
        channels(data[1]),
        rows(data[2]),
        columns(data[3]),
        out_rows(p.pooled_size[0]),
        out_columns(p.pooled_size[1]),
        sample_ratio(p.sampling_ratio) {}
};

// A region around its centre (x, y), rotated. read(0 … 5) are its numbers.
template <class C>
struct RotatedRegion {
  int64_t image;
  C x, y, cosine, sine;
  Axis<C> down, across;

  template <class Read>
  constexpr RotatedRegion(const RotatedSize& size, C scale, const Read& read)
      : image(image_of(read(0), size.images)),
        x(read(1) * scale),
        y(read(2) * scale),
        cosine(libm::cos(read(5) * static_cast<C>(freestanding::pi / 180))),
        sine(libm::sin(read(5) * static_cast<C>(freestanding::pi / 180))),
        down(centred(read(4) * scale, size.out_rows, size.sample_ratio)),
        across(centred(read(3) * scale, size.out_columns, size.sample_ratio)) {}

  // The mean of the points of a cell; pixel(index) is an element of the plane.
  template <class Pixel>
  constexpr C mean(const RotatedSize& size, int64_t row, int64_t column, const Pixel& pixel) const {
    const Bounds<C> bounds = image_bounds(size);
    const Range rows = down.points_between(row, bounds.top, bounds.bottom);
    const Range columns = across.points_between(column, bounds.left, bounds.right);
    C sum = 0;
    for (int64_t i = rows.begin; i < rows.end; ++i)
      for (int64_t k = columns.begin; k < columns.end; ++k) {
        const C right = across.point(column, k), below = down.point(row, i);
        const Point<C> at_x(right * cosine + below * sine + x, size.columns);
        const Point<C> at_y(below * cosine - right * sine + y, size.rows);
        if (!at_x.inside || !at_y.inside) continue;
        const int64_t low = at_y.low * size.columns, high = at_y.high * size.columns;
        sum +=
            (C(1) - at_y.share) * ((C(1) - at_x.share) * pixel(low + at_x.low) + at_x.share * pixel(low + at_x.high)) +
            at_y.share * ((C(1) - at_x.share) * pixel(high + at_x.low) + at_x.share * pixel(high + at_x.high));
      }
    const C count = static_cast<C>(down.points) * static_cast<C>(across.points);
    return count > C(0) ? sum / count : C(0);
  }

 private:
  template <class D>
  struct Bounds {
    D left, right, top, bottom;
  };
  static constexpr Axis<C> centred(C length, int64_t cells, int64_t sample_ratio) {
    const C own = length > C(1) ? length : C(1);
    return {-own / C(2), own, cells, sample_ratio};
  }
  // The bounds of the image in the coordinates of the region: points outside contribute nothing.
  constexpr Bounds<C> image_bounds(const RotatedSize& size) const {
    Bounds<C> bounds{C(0), C(0), C(0), C(0)};
    for (int corner = 0; corner < 4; ++corner) {
      const C right = (corner % 2 ? static_cast<C>(size.columns) : C(-1)) - x;
      const C below = (corner / 2 ? static_cast<C>(size.rows) : C(-1)) - y;
      const C across_at = right * cosine - below * sine, down_at = right * sine + below * cosine;
      bounds.left = corner == 0 || across_at < bounds.left ? across_at : bounds.left;
      bounds.right = corner == 0 || across_at > bounds.right ? across_at : bounds.right;
      bounds.top = corner == 0 || down_at < bounds.top ? down_at : bounds.top;
      bounds.bottom = corner == 0 || down_at > bounds.bottom ? down_at : bounds.bottom;
    }
    return bounds;
  }
};

}  // namespace symbind::roi_align_rule
