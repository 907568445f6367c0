// ROIAlign: a thread per element of the output. The gradient gathers: the weight of a pixel in a cell is a product of
// the weights along each axis, so that each pixel sums over the cells around it, in the order of the regions.
#include "symbind/backend/roi_align.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

using namespace roi_align_rule;

std::string refuse(const NodeView& node) {
  for (const Tensor& tensor : node.inputs)
    if (tensor.layout != Layout::plain) return "needs plain layouts";
  return "";
}

template <class T>
__device__ Region<compute_type<T>> region_at(const AlignSize& size, compute_type<T> scale, const T* rois,
                                             int64_t index) {
  const T* const roi = rois + index * 5;
  return {size, scale, [roi](int i) -> compute_type<T> { return load(roi[i]); }};
}

template <class T>
__global__ void align_cells(AlignSize size, compute_type<T> scale, const T* data, const T* rois, T* out,
                            int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const int64_t cell = i % size.cells(), plane = i / size.cells();
    const Region<C> region = region_at(size, scale, rois, plane / size.out_channels);
    C sum = 0;
    if (region.image >= 0) {
      const int64_t row = cell / size.out_columns, column = cell % size.out_columns;
      const int64_t channel = size.channel(plane % size.out_channels, cell);
      const T* const from = data + (region.image * size.channels + channel) * size.space();
      const Range down = region.down.points_between(row, C(-1), static_cast<C>(size.rows));
      const Range across = region.across.points_between(column, C(-1), static_cast<C>(size.columns));
      for (int64_t a = down.begin; a < down.end; ++a) {
        const Point<C> y(region.down.point(row, a), size.rows);
        if (!y.inside) continue;
        const T *const low = from + y.low * size.columns, *const high = from + y.high * size.columns;
        for (int64_t b = across.begin; b < across.end; ++b) {
          const Point<C> x(region.across.point(column, b), size.columns);
          if (!x.inside) continue;
          sum += (C(1) - y.share) * ((C(1) - x.share) * load(low[x.low]) + x.share * load(low[x.high])) +
                 y.share * ((C(1) - x.share) * load(high[x.low]) + x.share * load(high[x.high]));
        }
      }
      sum /= region.count();
    }
    out[i] = store<T>(sum);
  }
}

// Channels of a pixel per thread: they share the computations of a region.
constexpr int channels_at_once = 8;

template <class T>
__global__ void align_gradient(AlignSize size, compute_type<T> scale, const T* dy, const T* rois, T* dx,
                               int64_t chunks) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < size.images * chunks * size.space(); i += element_step()) {
    const int64_t x = i % size.columns, y = i / size.columns % size.rows;
    const int64_t first = i / size.space() % chunks * channels_at_once, image = i / size.space() / chunks;
    C sums[channels_at_once] = {};
    for (int64_t index = 0; index < size.regions; ++index) {
      if (image_of(C(load(rois[index * 5])), size.images) != image) continue;
      const Region<C> region = region_at(size, scale, rois, index);
      const Range rows = region.down.cells_between(static_cast<C>(y - 1), static_cast<C>(y + 1));
      const Range columns = region.across.cells_between(static_cast<C>(x - 1), static_cast<C>(x + 1));
      const C count = region.count();
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const C down = region.down.weight(row, y, size.rows);
        if (down == C(0)) continue;
        for (int64_t column = columns.begin; column < columns.end; ++column) {
          const C weight = down * region.across.weight(column, x, size.columns) / count;
          if (weight == C(0)) continue;
          const T* const from =
              dy + (index * size.out_channels + first) * size.cells() + row * size.out_columns + column;
          for (int k = 0; k < channels_at_once; ++k)
            if (first + k < size.channels) sums[k] += weight * load(from[k * size.cells()]);
        }
      }
    }
    for (int k = 0; k < channels_at_once; ++k)
      if (first + k < size.channels)
        dx[(image * size.channels + first + k) * size.space() + i % size.space()] = store<T>(sums[k]);
  }
}

// Each channel is read by one cell of a region.
template <class T>
__global__ void position_sensitive_gradient(AlignSize size, compute_type<T> scale, const T* dy, const T* rois, T* dx,
                                            int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const int64_t x = i % size.columns, y = i / size.columns % size.rows;
    const int64_t channel = i / size.space() % size.channels, image = i / size.space() / size.channels;
    const int64_t cell = channel % size.cells(), out_channel = channel / size.cells();
    C sum = 0;
    for (int64_t index = 0; index < size.regions; ++index) {
      if (image_of(C(load(rois[index * 5])), size.images) != image) continue;
      const Region<C> region = region_at(size, scale, rois, index);
      const C down = region.down.weight(cell / size.out_columns, y, size.rows);
      if (down == C(0)) continue;
      const C weight = down * region.across.weight(cell % size.out_columns, x, size.columns) / region.count();
      if (weight != C(0)) sum += weight * load(dy[(index * size.out_channels + out_channel) * size.cells() + cell]);
    }
    dx[i] = store<T>(sum);
  }
}

std::unique_ptr<Kernel> build_align(const NodeView& node) {
  const auto& p = node.as<ROIAlign>();
  const AlignSize size(p, node.inputs[0].shape, node.outputs[0].shape);
  const int64_t count = node.outputs[0].shape.size();
  const auto scale = static_cast<float>(p.spatial_scale);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [=](const Args& args) {
      if (count == 0) return;
      align_cells<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
          size, static_cast<compute_type<T>>(scale), args.in<T>(0), args.in<T>(1), args.out<T>(), count);
    });
  });
}

std::unique_ptr<Kernel> build_gradient(const NodeView& node) {
  const auto& p = node.as<ROIAlignGrad>();
  const AlignSize size(p, node.outputs[0].shape, node.inputs[0].shape);
  const int64_t count = node.outputs[0].shape.size();
  const int64_t chunks = (size.channels + channels_at_once - 1) / channels_at_once;
  const auto scale = static_cast<float>(p.spatial_scale);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [=](const Args& args) {
      if (count == 0) return;
      const auto own_scale = static_cast<compute_type<T>>(scale);
      const T *const dy = args.in<T>(0), *const rois = args.in<T>(1);
      if (size.position_sensitive)
        position_sensitive_gradient<<<blocks_for(count), block_size, 0, stream_of(args)>>>(size, own_scale, dy, rois,
                                                                                           args.out<T>(), count);
      else
        align_gradient<<<blocks_for(size.images * chunks * size.space()), block_size, 0, stream_of(args)>>>(
            size, own_scale, dy, rois, args.out<T>(), chunks);
    });
  });
}

// ---- RROIAlign ------------------------------------------------------------------------------------------------------

template <class T>
__global__ void align_rotated(RotatedSize size, compute_type<T> scale, const T* data, const T* rois, T* out,
                              int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const int64_t column = i % size.out_columns, row = i / size.out_columns % size.out_rows;
    const int64_t plane = i / size.out_columns / size.out_rows;
    const T* const roi = rois + plane / size.channels * 6;
    const RotatedRegion<C> region(size, scale, [roi](int k) -> C { return load(roi[k]); });
    C mean = 0;
    if (region.image >= 0) {
      const int64_t channel = region.image * size.channels + plane % size.channels;
      const T* const from = data + channel * size.rows * size.columns;
      mean = region.mean(size, row, column, [from](int64_t k) -> C { return load(from[k]); });
    }
    out[i] = store<T>(mean);
  }
}

std::unique_ptr<Kernel> build_rotated(const NodeView& node) {
  const auto& p = node.as<RROIAlign>();
  const RotatedSize size(p, node.inputs[0].shape);
  const int64_t count = node.outputs[0].shape.size();
  const auto scale = static_cast<float>(p.spatial_scale);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [=](const Args& args) {
      if (count == 0) return;
      align_rotated<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
          size, static_cast<compute_type<T>>(scale), args.in<T>(0), args.in<T>(1), args.out<T>(), count);
    });
  });
}

}  // namespace

void add_roi_align(ImplementationTable& table) {
  table.add<ROIAlign>({"cuda", refuse, build_align});
  table.add<ROIAlignGrad>({"cuda", refuse, build_gradient});
  table.add<RROIAlign>({"cuda", refuse, build_rotated});
}

}  // namespace symbind::cuda_backend
