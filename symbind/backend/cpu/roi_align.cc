// Between which pixels the points of a region are is computed once and used for all its channels. The gradient of data:
// a thread takes all regions of some planes, so that each sum has one order.
#include "symbind/backend/roi_align.h"

#include <algorithm>
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

  void set(const Axis<C>& axis, int64_t extent) {
    points.clear();
    begin.assign(1, 0);
    for (int64_t cell = 0; cell < axis.cells; ++cell) {
      const Range near = axis.points_between(cell, C(-1), static_cast<C>(extent));
      for (int64_t i = near.begin; i < near.end; ++i)
        if (const Point<C> point(axis.point(cell, i), extent); point.inside) points.push_back(point);
      begin.push_back(points.size());
    }
  }
};

template <class C>
struct RegionPoints {
  Points<C> down, across;
  C count = 1;

  void set(const AlignSize& size, const Region<C>& region) {
    down.set(region.down, size.rows);
    across.set(region.across, size.columns);
    count = region.count();
  }
  // visit(point down, point across) for the points of a cell.
  template <class Visit>
  void for_points(const AlignSize& size, int64_t cell, const Visit& visit) const {
    const auto row = static_cast<size_t>(cell / size.out_columns),
               column = static_cast<size_t>(cell % size.out_columns);
    for (size_t i = down.begin[row]; i < down.begin[row + 1]; ++i)
      for (size_t k = across.begin[column]; k < across.begin[column + 1]; ++k) visit(down.points[i], across.points[k]);
  }
};

template <class C>
Region<C> region_at(const AlignSize& size, C scale, const C* rois, int64_t index) {
  return Region<C>(size, scale, [roi = rois + index * 5](int i) { return roi[i]; });
}

template <class C>
void align(const AlignSize& size, C scale, const C* x, const C* rois, C* y) {
  parallel_for(size.regions, grain(size.out_channels * size.cells() * 16), [=](int64_t begin, int64_t end) {
    RegionPoints<C> points;
    for (int64_t index = begin; index < end; ++index) {
      const Region<C> region = region_at(size, scale, rois, index);
      C* const out = y + index * size.out_channels * size.cells();
      if (region.image < 0) {
        std::fill(out, out + size.out_channels * size.cells(), C(0));
        continue;
      }
      points.set(size, region);
      for (int64_t i = 0; i < size.out_channels * size.cells(); ++i) {
        const int64_t cell = i % size.cells();
        const C* const plane = x + (region.image * size.channels + size.channel(i / size.cells(), cell)) * size.space();
        C sum = 0;
        points.for_points(size, cell, [&](const Point<C>& row, const Point<C>& column) {
          const C *const low = plane + row.low * size.columns, *const high = plane + row.high * size.columns;
          sum += (C(1) - row.share) * ((C(1) - column.share) * low[column.low] + column.share * low[column.high]) +
                 row.share * ((C(1) - column.share) * high[column.low] + column.share * high[column.high]);
        });
        out[i] = sum / points.count;
      }
    }
  });
}

// Adds a cell's share to the gradient of a plane.
template <class C>
void add_cell(const AlignSize& size, const RegionPoints<C>& points, int64_t cell, C share, C* plane) {
  points.for_points(size, cell, [&](const Point<C>& row, const Point<C>& column) {
    C *const low = plane + row.low * size.columns, *const high = plane + row.high * size.columns;
    low[column.low] += (C(1) - row.share) * (C(1) - column.share) * share;
    low[column.high] += (C(1) - row.share) * column.share * share;
    high[column.low] += row.share * (C(1) - column.share) * share;
    high[column.high] += row.share * column.share * share;
  });
}

template <class C>
void align_grad(const AlignSize& size, C scale, const C* dy, const C* rois, C* dx) {
  const int64_t planes = size.images * size.channels;
  parallel_for(planes, grain(size.space() + size.regions * size.cells() * 16), [=](int64_t begin, int64_t end) {
    std::fill(dx + begin * size.space(), dx + end * size.space(), C(0));
    RegionPoints<C> points;
    for (int64_t index = 0; index < size.regions; ++index) {
      const Region<C> region = region_at(size, scale, rois, index);
      const int64_t first = std::max(begin, region.image * size.channels);
      const int64_t last = std::min(end, (region.image + 1) * size.channels);
      if (region.image < 0 || first >= last) continue;
      points.set(size, region);
      for (int64_t plane = first; plane < last; ++plane) {
        const int64_t channel = plane % size.channels;
        const int64_t out_channel = size.position_sensitive ? channel / size.cells() : channel;
        const C* const from = dy + (index * size.out_channels + out_channel) * size.cells();
        C* const to = dx + plane * size.space();
        if (size.position_sensitive) {
          add_cell(size, points, channel % size.cells(), from[channel % size.cells()] / points.count, to);
          continue;
        }
        for (int64_t cell = 0; cell < size.cells(); ++cell) add_cell(size, points, cell, from[cell] / points.count, to);
      }
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
