// Position-sensitive pooling: where the cells of regions are, and which channels they read. Compiled for every device.
#pragma once

#include "symbind/backend/freestanding.h"
#include "symbind/core/shape.h"
#include "symbind/ops/psroi_pool.h"

namespace symbind::psroi {

// The image that a region is in; -1: there is none.
template <class C>
constexpr int64_t image_of(C index, int64_t images) {
  return index >= C(0) && index < static_cast<C>(images) ? static_cast<int64_t>(index) : -1;
}

template <class C>
constexpr C limited(C value, C low, C high) {
  return value > low ? (value < high ? value : high) : low;  // NaN becomes the lower limit
}

struct Window {
  int64_t begin, end;
};

// The channels of data as grids of group × group, one grid per output channel, and the output's cells.
struct Cells {
  int64_t output_dim, pooled, group;

  constexpr int64_t group_of(int64_t cell) const { return cell * group / pooled; }
  // The cells that read row or column `index` of a grid.
  constexpr Window cells_of(int64_t index) const {
    return {(index * pooled + group - 1) / group, ((index + 1) * pooled + group - 1) / group};
  }
  constexpr int64_t channel(int64_t out_channel, int64_t row, int64_t column) const {
    return (out_channel * group + group_of(row)) * group + group_of(column);
  }
};

// ---- PSROIPooling ---------------------------------------------------------------------------------------------------

template <class C>
struct Axis {  // of a region: down or across
  C start, length;

  constexpr Axis(C first, C last, C scale) : start(0), length(0) {
    start = libm::round(first) * scale;
    length = (libm::round(last) + C(1)) * scale - start;
    length = length > C(0.1) ? length : C(0.1);
  }
  constexpr Window window(int64_t cell, int64_t cells, int64_t extent) const {
    const C size = length / static_cast<C>(cells), most = static_cast<C>(extent);
    const C begin = libm::floor(static_cast<C>(cell) * size + start);
    const C end = libm::ceil(static_cast<C>(cell + 1) * size + start);
    return {static_cast<int64_t>(limited(begin, C(0), most)), static_cast<int64_t>(limited(end, C(0), most))};
  }
};

struct PoolSize : Cells {
  int64_t images, channels, rows, columns, regions;

  PoolSize(const PSROIPooling& p, const Shape& data, const Shape& rois)
      : Cells{p.output_dim, p.pooled_size, p.group_size},
        images(data[0]),
        channels(data[1]),
        rows(data[2]),
        columns(data[3]),
        regions(rois[0]) {}
  int64_t outputs() const { return regions * output_dim * pooled * pooled; }
};

// ---- DeformablePSROIPooling -----------------------------------------------------------------------------------------

struct DeformableSize : Cells {
  int64_t images, channels, rows, columns, regions;
  int64_t parts, samples;  // along each axis
  int64_t classes;         // with offsets of their own; 0: there are no offsets

  DeformableSize(const DeformablePSROIPooling& p, const Shape& data, const Shape& rois, const Shape& trans)
      : Cells{p.output_dim, p.pooled_size, p.group_size},
        images(data[0]),
        channels(data[1]),
        rows(data[2]),
        columns(data[3]),
        regions(rois[0]),
        parts(p.part_size),
        samples(p.sample_per_part),
        classes(p.no_trans ? 0 : trans[1] / 2) {}
  int64_t outputs() const { return regions * output_dim * pooled * pooled; }

  constexpr int64_t part_of(int64_t cell) const { return cell * parts / pooled; }
  constexpr Window cells_of_part(int64_t part) const {
    return {(part * pooled + parts - 1) / parts, ((part + 1) * pooled + parts - 1) / parts};
  }
  constexpr int64_t channels_of_class() const { return classes > 0 ? output_dim / classes : output_dim; }
  // The offset across of a cell; the offset down is parts² further.
  constexpr int64_t offset_of(int64_t region, int64_t out_channel, int64_t row, int64_t column) const {
    const int64_t plane = (region * classes + out_channel / channels_of_class()) * 2;
    return (plane * parts + part_of(row)) * parts + part_of(column);
  }
};

// A region along an axis, where pixels are the unit and the first pixel's centre is 0.
template <class C>
struct DeformableAxis {
  C start, length, cell, step;  // step: between the points of a cell

  constexpr DeformableAxis(C first, C last, C scale, int64_t cells, int64_t samples)
      : start(libm::round(first) * scale - C(0.5)), length(0), cell(0), step(0) {
    length = (libm::round(last) + C(1)) * scale - C(0.5) - start;
    length = length > C(0.1) ? length : C(0.1);
    cell = length / static_cast<C>(cells);
    step = cell / static_cast<C>(samples);
  }
  constexpr C begin(int64_t index, C offset) const { return static_cast<C>(index) * cell + start + offset * length; }
};

// A point of an axis between two pixels, which may be one.
template <class C>
struct Between {
  bool inside;
  int64_t low, high;
  C share;  // of the pixel `high`

  constexpr Between(C at, int64_t extent) : inside(false), low(0), high(0), share(0) {
    const C last = static_cast<C>(extent - 1);
    inside = at >= C(-0.5) && at <= last + C(0.5);
    if (!inside) return;
    const C point = limited(at, C(0), last);
    low = static_cast<int64_t>(libm::floor(point));
    high = static_cast<int64_t>(libm::ceil(point));
    share = point - static_cast<C>(low);
  }
  constexpr C weight(int64_t pixel) const {
    return (pixel == low ? C(1) - share : C(0)) + (pixel == high ? share : C(0));
  }
};

// How many points of a cell, which starts at `begin`, are inside the axis.
template <class C>
constexpr int64_t points_inside(C begin, C step, int64_t samples, int64_t extent) {
  int64_t count = 0;
  for (int64_t i = 0; i < samples; ++i) count += Between<C>(begin + static_cast<C>(i) * step, extent).inside;
  return count;
}

}  // namespace symbind::psroi
