// The pixels and weights of a region's points are computed once and used for all its channels. For the gradient of data
// each thread processes all regions of some planes, so that the order of each sum is fixed.
#include "symbind/backend/roi_align.h"

#include <algorithm>
#include <span>
#include <vector>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using namespace roi_align_rule;

int64_t grain(int64_t work) { return element_grain / 8 / (work + 1) + 1; }

// The points of all cells along an axis that are inside of it.
template <class C>
struct Points {
  std::vector<Point<C>> points;
  std::vector<size_t> begin{0};  // of each cell, and the end

  Points(const Axis<C>& axis, int64_t extent) {
    for (int64_t cell = 0; cell < axis.cells; ++cell) {
      const Range near = axis.points_between(cell, C(-1), static_cast<C>(extent));
      for (int64_t i = near.begin; i < near.end; ++i)
        if (const Point<C> point(axis.point(cell, i), extent); point.inside) points.push_back(point);
      begin.push_back(points.size());
    }
  }
  // Of one cell.
  size_t most() const {
    size_t largest = 0;
    for (size_t i = 1; i < begin.size(); ++i) largest = std::max(largest, begin[i] - begin[i - 1]);
    return largest;
  }
};

// The four pixels around a point of a cell, and the weight of each in the cell's mean.
template <class C>
struct Reading {
  int32_t pixel[4];
  C weight[4];
};

// Those of a region, for some cells at a time: of many points only a part is stored.
template <class C>
class Readings {
 public:
  Readings(const AlignSize& size, const Region<C>& region)
      : size_(size),
        down_(region.down, size.rows),
        across_(region.across, size.columns),
        share_(C(1) / region.count()) {}

  // visit(cells) for ranges that cover all cells in order; of_cell() has the readings of these.
  template <class Visit>
  void for_cells(const Visit& visit) {
    constexpr size_t most_readings = 1 << 14;
    const size_t of_a_cell = std::max<size_t>(1, down_.most() * across_.most());
    const auto step = static_cast<int64_t>(std::max<size_t>(1, most_readings / of_a_cell));
    for (first_ = 0; first_ < size_.cells(); first_ += step) {
      const int64_t last = std::min(first_ + step, size_.cells());
      readings_.clear();
      begin_.assign(1, 0);
      for (int64_t cell = first_; cell < last; ++cell) {
        add_cell(static_cast<size_t>(cell / size_.out_columns), static_cast<size_t>(cell % size_.out_columns));
        begin_.push_back(readings_.size());
      }
      visit(Range{first_, last});
    }
  }
  std::span<const Reading<C>> of_cell(int64_t cell) const {
    const auto index = static_cast<size_t>(cell - first_);
    return std::span(readings_).subspan(begin_[index], begin_[index + 1] - begin_[index]);
  }

 private:
  void add_cell(size_t row, size_t column) {
    for (size_t i = down_.begin[row]; i < down_.begin[row + 1]; ++i)
      for (size_t k = across_.begin[column]; k < across_.begin[column + 1]; ++k) {
        const Point<C>&y = down_.points[i], &x = across_.points[k];
        const auto pixel = [&](int64_t at_y, int64_t at_x) {
          return static_cast<int32_t>(at_y * size_.columns + at_x);
        };
        const C top = (C(1) - y.share) * share_, bottom = y.share * share_;
        readings_.push_back({{pixel(y.low, x.low), pixel(y.low, x.high), pixel(y.high, x.low), pixel(y.high, x.high)},
                             {top * (C(1) - x.share), top * x.share, bottom * (C(1) - x.share), bottom * x.share}});
      }
  }

  const AlignSize& size_;
  Points<C> down_, across_;
  C share_;
  int64_t first_ = 0;
  std::vector<Reading<C>> readings_;
  std::vector<size_t> begin_;  // of each cell, and the end
};

template <class C>
Region<C> region_at(const AlignSize& size, C scale, const C* rois, int64_t index) {
  return Region<C>(size, scale, [roi = rois + index * 5](int i) { return roi[i]; });
}

template <class C>
C mean(std::span<const Reading<C>> readings, const C* plane) {
  C sum = 0;
  for (const Reading<C>& from : readings)
    sum += from.weight[0] * plane[from.pixel[0]] + from.weight[1] * plane[from.pixel[1]] +
           from.weight[2] * plane[from.pixel[2]] + from.weight[3] * plane[from.pixel[3]];
  return sum;
}

template <class C>
void align(const AlignSize& size, C scale, const C* x, const C* rois, C* y) {
  parallel_for(size.regions, grain(size.out_channels * size.cells() * 16), [=](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const Region<C> region = region_at(size, scale, rois, index);
      C* const out = y + index * size.out_channels * size.cells();
      if (region.image < 0) {
        std::fill(out, out + size.out_channels * size.cells(), C(0));
        continue;
      }
      const C* const image = x + region.image * size.channels * size.space();
      Readings<C> readings(size, region);
      readings.for_cells([&](const Range& cells) {
        for (int64_t channel = 0; channel < size.out_channels; ++channel)
          for (int64_t cell = cells.begin; cell < cells.end; ++cell)
            out[channel * size.cells() + cell] =
                mean(readings.of_cell(cell), image + size.channel(channel, cell) * size.space());
      });
    }
  });
}

// Adds a cell's gradient to the pixels of a plane.
template <class C>
void add_cell(std::span<const Reading<C>> readings, C arrived, C* plane) {
  for (const Reading<C>& from : readings)
    for (int corner = 0; corner < 4; ++corner) plane[from.pixel[corner]] += from.weight[corner] * arrived;
}

// Adds a region's part to the gradient of a plane; `readings` has those of `cells`.
template <class C>
void add_cells(const AlignSize& size, const Readings<C>& readings, const Range& cells, int64_t channel, const C* dy,
               C* plane) {
  if (!size.position_sensitive) {
    for (int64_t cell = cells.begin; cell < cells.end; ++cell)
      add_cell(readings.of_cell(cell), dy[channel * size.cells() + cell], plane);
    return;
  }
  const int64_t cell = channel % size.cells();
  if (cell >= cells.begin && cell < cells.end) add_cell(readings.of_cell(cell), dy[channel], plane);
}

template <class C>
void align_grad(const AlignSize& size, C scale, const C* dy, const C* rois, C* dx) {
  const int64_t planes = size.images * size.channels;
  parallel_for(planes, grain(size.space() + size.regions * size.cells() * 16), [=](int64_t begin, int64_t end) {
    std::fill(dx + begin * size.space(), dx + end * size.space(), C(0));
    for (int64_t index = 0; index < size.regions; ++index) {
      const Region<C> region = region_at(size, scale, rois, index);
      const int64_t first = std::max(begin, region.image * size.channels);
      const int64_t last = std::min(end, (region.image + 1) * size.channels);
      if (region.image < 0 || first >= last) continue;
      Readings<C> readings(size, region);
      readings.for_cells([&](const Range& cells) {
        for (int64_t plane = first; plane < last; ++plane)
          add_cells(size, readings, cells, plane % size.channels, dy + index * size.out_channels * size.cells(),
                    dx + plane * size.space());
      });
    }
  });
}

std::unique_ptr<Kernel> build_align(const NodeView& node) {
  const auto& p = node.as<ROIAlign>();
  const AlignSize size(p, node.inputs[0].shape, node.outputs[0].shape);
  return widened_kernel(node, [size, scale = static_cast<float>(p.spatial_scale)](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) { align(size, static_cast<C>(scale), in[0], in[1], out[0]); };
  });
}

std::unique_ptr<Kernel> build_align_grad(const NodeView& node) {
  const auto& p = node.as<ROIAlignGrad>();
  const AlignSize size(p, node.outputs[0].shape, node.inputs[0].shape);
  return widened_kernel(node, [size, scale = static_cast<float>(p.spatial_scale)](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) { align_grad(size, static_cast<C>(scale), in[0], in[1], out[0]); };
  });
}

// ---- RROIAlign ------------------------------------------------------------------------------------------------------

template <class C>
void align_rotated(const RotatedSize& size, C scale, const C* x, const C* rois, C* y, int64_t planes) {
  const int64_t cells = size.out_rows * size.out_columns, space = size.rows * size.columns;
  parallel_for(planes, grain(cells * 32), [=](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const C* const roi = rois + plane / size.channels * 6;
      const RotatedRegion<C> region(size, scale, [roi](int i) { return roi[i]; });
      const C* const from = x + (std::max<int64_t>(0, region.image) * size.channels + plane % size.channels) * space;
      for (int64_t cell = 0; cell < cells; ++cell)
        y[plane * cells + cell] = region.image < 0 ? C(0)
                                                   : region.mean(size, cell / size.out_columns, cell % size.out_columns,
                                                                 [from](int64_t i) { return from[i]; });
    }
  });
}

std::unique_ptr<Kernel> build_rotated(const NodeView& node) {
  const auto& p = node.as<RROIAlign>();
  const RotatedSize size(p, node.inputs[0].shape);
  const int64_t planes = node.outputs[0].shape[0] * size.channels;
  return widened_kernel(node, [size, planes, scale = static_cast<float>(p.spatial_scale)](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      align_rotated(size, static_cast<C>(scale), in[0], in[1], out[0], planes);
    };
  });
}

}  // namespace

void add_roi_align(ImplementationTable& table) {
  add_plain<ROIAlign>(table, build_align);
  add_plain<ROIAlignGrad>(table, build_align_grad);
  add_plain<RROIAlign>(table, build_rotated);
}

}  // namespace symbind::cpu_backend
