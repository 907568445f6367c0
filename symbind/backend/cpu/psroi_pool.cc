// The gradient of data: each thread processes all regions of some planes, so that the order of each sum is fixed.
#include "symbind/backend/psroi_pool.h"

#include <algorithm>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using namespace psroi;

int64_t grain(int64_t work) { return element_grain / 8 / (work + 1) + 1; }

// ---- PSROIPooling ---------------------------------------------------------------------------------------------------

template <class C>
struct Region {
  int64_t image;
  Axis<C> down, across;
  Region(const PoolSize& size, const C* roi, C scale)
      : image(image_of(roi[0], size.images)), down(roi[2], roi[4], scale), across(roi[1], roi[3], scale) {}
};

template <class C>
C mean(const C* plane, Window rows, Window columns, int64_t width) {
  if (rows.begin >= rows.end || columns.begin >= columns.end) return 0;
  C sum = 0;
  for (int64_t row = rows.begin; row < rows.end; ++row)
    for (int64_t column = columns.begin; column < columns.end; ++column) sum += plane[row * width + column];
  return sum / static_cast<C>((rows.end - rows.begin) * (columns.end - columns.begin));
}

template <class C>
void pool(const PoolSize& size, C scale, const C* x, const C* rois, C* y) {
  const int64_t cells = size.pooled * size.pooled;
  parallel_for(size.regions * size.output_dim, grain(size.rows * size.columns), [=](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const Region<C> region(size, rois + plane / size.output_dim * 5, scale);
      for (int64_t cell = 0; cell < cells; ++cell) {
        C& result = y[plane * cells + cell];
        result = 0;
        if (region.image < 0) continue;
        const int64_t row = cell / size.pooled, column = cell % size.pooled;
        const int64_t channel = size.channel(plane % size.output_dim, row, column);
        result = mean(x + (region.image * size.channels + channel) * size.rows * size.columns,
                      region.down.window(row, size.pooled, size.rows),
                      region.across.window(column, size.pooled, size.columns), size.columns);
      }
    }
  });
}

// Adds to the gradient of channel (out_channel, grid_row, grid_column) what a region's cells read of it.
template <class C>
void add_region(const PoolSize& size, const Region<C>& region, int64_t grid_row, int64_t grid_column, const C* dy,
                C* dx) {
  const Window down = size.cells_of(grid_row), across = size.cells_of(grid_column);
  for (int64_t row = down.begin; row < down.end; ++row)
    for (int64_t column = across.begin; column < across.end; ++column) {
      const Window rows = region.down.window(row, size.pooled, size.rows);
      const Window columns = region.across.window(column, size.pooled, size.columns);
      if (rows.begin >= rows.end || columns.begin >= columns.end) continue;
      const C share =
          dy[row * size.pooled + column] / static_cast<C>((rows.end - rows.begin) * (columns.end - columns.begin));
      for (int64_t i = rows.begin; i < rows.end; ++i)
        for (int64_t k = columns.begin; k < columns.end; ++k) dx[i * size.columns + k] += share;
    }
}

template <class C>
void pool_grad(const PoolSize& size, C scale, const C* dy, const C* rois, C* dx) {
  const int64_t space = size.rows * size.columns, cells = size.pooled * size.pooled, grid = size.group * size.group;
  parallel_for(size.images * size.channels, grain(space + size.regions * 8), [=](int64_t begin, int64_t end) {
    std::fill(dx + begin * space, dx + end * space, C(0));
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t channel = plane % size.channels, out_channel = channel / grid;
      if (out_channel >= size.output_dim) continue;
      for (int64_t i = 0; i < size.regions; ++i) {
        const Region<C> region(size, rois + i * 5, scale);
        if (region.image != plane / size.channels) continue;
        add_region(size, region, channel / size.group % size.group, channel % size.group,
                   dy + (i * size.output_dim + out_channel) * cells, dx + plane * space);
      }
    }
  });
}

std::unique_ptr<Kernel> build_pool(const NodeView& node) {
  const auto& p = node.as<PSROIPooling>();
  const PoolSize size(p, node.inputs[0].shape, node.inputs[1].shape);
  return widened_kernel(node, [size, scale = static_cast<float>(p.spatial_scale)](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) { pool(size, static_cast<C>(scale), in[0], in[1], out[0]); };
  });
}

std::unique_ptr<Kernel> build_pool_grad(const NodeView& node) {
  const auto& p = node.as<PSROIPoolingGrad>();
  const PoolSize size(p, node.outputs[0].shape, node.inputs[1].shape);
  return widened_kernel(node, [size, scale = static_cast<float>(p.spatial_scale)](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) { pool_grad(size, static_cast<C>(scale), in[0], in[1], out[0]); };
  });
}

// ---- DeformablePSROIPooling -----------------------------------------------------------------------------------------

template <class C>
struct Deformed {
  DeformableSize size;
  C scale, trans_std;

  Deformed(const DeformablePSROIPooling& p, const DeformableSize& of_node)
      : size(of_node),
        scale(static_cast<C>(static_cast<float>(p.spatial_scale))),
        trans_std(static_cast<C>(static_cast<float>(p.trans_std))) {}

  struct Region {
    int64_t image;
    DeformableAxis<C> down, across;
  };
  Region region(const C* roi) const {
    return {image_of(roi[0], size.images),
            {roi[2], roi[4], scale, size.pooled, size.samples},
            {roi[1], roi[3], scale, size.pooled, size.samples}};
  }

  // Calls visit(row, column) for the points of a cell that are inside; returns their number.
  template <class Visit>
  int64_t for_points(const Region& region, const C* trans, int64_t index, int64_t out_channel, int64_t row,
                     int64_t column, const Visit& visit) const {
    C offset_across = 0, offset_down = 0;
    if (trans) {
      const C* const offset = trans + size.offset_of(index, out_channel, row, column);
      offset_across = offset[0] * trans_std;
      offset_down = offset[size.parts * size.parts] * trans_std;
    }
    const C top = region.down.begin(row, offset_down), left = region.across.begin(column, offset_across);
    const int64_t count = points_inside(top, region.down.step, size.samples, size.rows) *
                          points_inside(left, region.across.step, size.samples, size.columns);
    for (int64_t i = 0; i < size.samples && count > 0; ++i) {
      const Between<C> between_rows(top + static_cast<C>(i) * region.down.step, size.rows);
      if (!between_rows.inside) continue;
      for (int64_t k = 0; k < size.samples; ++k) {
        const Between<C> between_columns(left + static_cast<C>(k) * region.across.step, size.columns);
        if (between_columns.inside) visit(between_rows, between_columns, count);
      }
    }
    return count;
  }

  void pool(const C* x, const C* rois, const C* trans, C* y) const {
    const int64_t cells = size.pooled * size.pooled;
    parallel_for(size.regions * size.output_dim, grain(cells * size.samples * size.samples * 8),
                 [=, this](int64_t begin, int64_t end) {
                   for (int64_t plane = begin; plane < end; ++plane) {
                     const int64_t index = plane / size.output_dim, out_channel = plane % size.output_dim;
                     const Region of_plane = region(rois + index * 5);
                     for (int64_t cell = 0; cell < cells; ++cell)
                       y[plane * cells + cell] = mean(x, trans, of_plane, index, out_channel, cell);
                   }
                 });
  }

  C mean(const C* x, const C* trans, const Region& of_plane, int64_t index, int64_t out_channel, int64_t cell) const {
    if (of_plane.image < 0) return 0;
    const int64_t row = cell / size.pooled, column = cell % size.pooled;
    const C* const plane =
        x + (of_plane.image * size.channels + size.channel(out_channel, row, column)) * size.rows * size.columns;
    C sum = 0;
    const int64_t count = for_points(
        of_plane, trans, index, out_channel, row, column, [&](const Between<C>& i, const Between<C>& k, int64_t) {
          const C *const low = plane + i.low * size.columns, *const high = plane + i.high * size.columns;
          sum += (C(1) - i.share) * ((C(1) - k.share) * low[k.low] + k.share * low[k.high]) +
                 i.share * ((C(1) - k.share) * high[k.low] + k.share * high[k.high]);
        });
    return count > 0 ? sum / static_cast<C>(count) : C(0);
  }

  void data_grad(const C* dy, const C* rois, const C* trans, C* dx) const {
    const int64_t space = size.rows * size.columns;
    parallel_for(size.images * size.channels, grain(space + size.regions * size.samples * size.samples * 8),
                 [=, this](int64_t begin, int64_t end) {
                   std::fill(dx + begin * space, dx + end * space, C(0));
                   for (int64_t plane = begin; plane < end; ++plane)
                     for (int64_t index = 0; index < size.regions; ++index)
                       add_region(dy, rois, trans, plane, index, dx + plane * space);
                 });
  }

  void add_region(const C* dy, const C* rois, const C* trans, int64_t plane, int64_t index, C* dx) const {
    const int64_t channel = plane % size.channels, out_channel = channel / (size.group * size.group);
    if (out_channel >= size.output_dim) return;
    const Region own = region(rois + index * 5);
    if (own.image != plane / size.channels) return;
    const Window down = size.cells_of(channel / size.group % size.group), across = size.cells_of(channel % size.group);
    for (int64_t row = down.begin; row < down.end; ++row)
      for (int64_t column = across.begin; column < across.end; ++column) {
        const C arrived = dy[((index * size.output_dim + out_channel) * size.pooled + row) * size.pooled + column];
        for_points(own, trans, index, out_channel, row, column,
                   [&](const Between<C>& i, const Between<C>& k, int64_t count) {
                     const C share = arrived / static_cast<C>(count);
                     C *const low = dx + i.low * size.columns, *const high = dx + i.high * size.columns;
                     low[k.low] += (C(1) - i.share) * (C(1) - k.share) * share;
                     low[k.high] += (C(1) - i.share) * k.share * share;
                     high[k.low] += i.share * (C(1) - k.share) * share;
                     high[k.high] += i.share * k.share * share;
                   });
      }
  }

  void trans_grad(const C* dy, const C* x, const C* rois, const C* trans, C* dtrans) const {
    const int64_t parts = size.parts * size.parts;
    parallel_for(size.regions * size.classes * parts,
                 grain(size.channels_of_class() * size.samples * size.samples * 16),
                 [=, this](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     C by_x = 0, by_y = 0;
                     sum_part(dy, x, rois, trans, i / parts, i % parts, by_x, by_y);
                     C* const own = dtrans + i / parts * 2 * parts + i % parts;
                     own[0] = by_x;
                     own[parts] = by_y;
                   }
                 });
  }

  // `plane` counts the classes of all regions.
  void sum_part(const C* dy, const C* x, const C* rois, const C* trans, int64_t plane, int64_t part, C& by_x,
                C& by_y) const {
    const int64_t index = plane / size.classes, first = plane % size.classes * size.channels_of_class();
    const Region own = region(rois + index * 5);
    if (own.image < 0) return;
    const Window down = size.cells_of_part(part / size.parts), across = size.cells_of_part(part % size.parts);
    for (int64_t out_channel = first; out_channel < first + size.channels_of_class(); ++out_channel)
      for (int64_t row = down.begin; row < down.end; ++row)
        for (int64_t column = across.begin; column < across.end; ++column) {
          const C arrived = dy[((index * size.output_dim + out_channel) * size.pooled + row) * size.pooled + column];
          const C* const from =
              x + (own.image * size.channels + size.channel(out_channel, row, column)) * size.rows * size.columns;
          for_points(own, trans, index, out_channel, row, column,
                     [&](const Between<C>& i, const Between<C>& k, int64_t count) {
                       const C share = arrived / static_cast<C>(count) * trans_std;
                       const C *const low = from + i.low * size.columns, *const high = from + i.high * size.columns;
                       by_x += share * own.across.length *
                               ((C(1) - i.share) * (low[k.high] - low[k.low]) + i.share * (high[k.high] - high[k.low]));
                       by_y += share * own.down.length *
                               ((C(1) - k.share) * (high[k.low] - low[k.low]) + k.share * (high[k.high] - low[k.high]));
                     });
        }
  }
};

std::unique_ptr<Kernel> build_deformable(const NodeView& node) {
  const auto& p = node.as<DeformablePSROIPooling>();
  const DeformableSize size(p, node.inputs[0].shape, node.inputs[1].shape, node.inputs.back().shape);
  return widened_kernel(node, [&p, size](auto type) {
    using C = typename decltype(type)::type;
    return [size, all = Deformed<C>(p, size)](const C* const* in, C* const* out) {
      all.pool(in[0], in[1], size.classes > 0 ? in[2] : nullptr, out[0]);
    };
  });
}

std::unique_ptr<Kernel> build_deformable_grad(const NodeView& node) {
  const auto& p = node.as<DeformablePSROIPoolingGrad>();
  const DeformableSize size(p, node.inputs[1].shape, node.inputs[2].shape, node.inputs.back().shape);
  return widened_kernel(node, [&p, size](auto type) {
    using C = typename decltype(type)::type;
    return [size, all = Deformed<C>(p, size)](const C* const* in, C* const* out) {
      const C* const trans = size.classes > 0 ? in[3] : nullptr;
      if (out[0]) all.data_grad(in[0], in[2], trans, out[0]);
      if (size.classes > 0 && out[1]) all.trans_grad(in[0], in[1], in[2], trans, out[1]);
    };
  });
}

}  // namespace

void add_psroi_pool(ImplementationTable& table) {
  add_plain<PSROIPooling>(table, build_pool);
  add_plain<PSROIPoolingGrad>(table, build_pool_grad);
  add_plain<DeformablePSROIPooling>(table, build_deformable);
  add_plain<DeformablePSROIPoolingGrad>(table, build_deformable_grad);
}

}  // namespace symbind::cpu_backend
