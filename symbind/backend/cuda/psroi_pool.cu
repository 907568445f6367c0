// Position-sensitive pooling. The gradients gather: each element sums the gradients of its readers, in the order of the
// regions and their cells, as on a CPU.
#include "symbind/backend/psroi_pool.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

using namespace psroi;

std::string refuse(const NodeView& node) {
  for (const Tensor& tensor : node.inputs)
    if (tensor.layout != Layout::plain) return "needs plain layouts";
  return "";
}

// ---- PSROIPooling ---------------------------------------------------------------------------------------------------

template <class C>
struct Region {
  int64_t image;
  Axis<C> down, across;

  template <class T>
  __device__ Region(const PoolSize& size, const T* roi, C scale)
      : image(image_of(C(load(roi[0])), size.images)),
        down(load(roi[2]), load(roi[4]), scale),
        across(load(roi[1]), load(roi[3]), scale) {}
};

template <class T>
__global__ void pool_cells(PoolSize size, compute_type<T> scale, const T* data, const T* rois, T* out, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const int64_t column = i % size.pooled, row = i / size.pooled % size.pooled;
    const int64_t plane = i / size.pooled / size.pooled, out_channel = plane % size.output_dim;
    const Region<C> region(size, rois + plane / size.output_dim * 5, scale);
    C result = 0;
    if (region.image >= 0) {
      const Window rows = region.down.window(row, size.pooled, size.rows);
      const Window columns = region.across.window(column, size.pooled, size.columns);
      const int64_t channel = size.channel(out_channel, row, column);
      const T* const from = data + (region.image * size.channels + channel) * size.rows * size.columns;
      for (int64_t y = rows.begin; y < rows.end; ++y)
        for (int64_t x = columns.begin; x < columns.end; ++x) result += load(from[y * size.columns + x]);
      const bool empty = rows.begin >= rows.end || columns.begin >= columns.end;
      result = empty ? C(0) : result / static_cast<C>((rows.end - rows.begin) * (columns.end - columns.begin));
    }
    out[i] = store<T>(result);
  }
}

template <class T>
__global__ void pool_gradient(PoolSize size, compute_type<T> scale, const T* dy, const T* rois, T* dx, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const int64_t x = i % size.columns, y = i / size.columns % size.rows;
    const int64_t plane = i / size.columns / size.rows, channel = plane % size.channels;
    const int64_t out_channel = channel / size.group / size.group;
    const Window down = size.cells_of(channel / size.group % size.group), across = size.cells_of(channel % size.group);
    C sum = 0;
    for (int64_t index = 0; index < size.regions && out_channel < size.output_dim; ++index) {
      if (image_of(C(load(rois[index * 5])), size.images) != plane / size.channels) continue;
      const Region<C> region(size, rois + index * 5, scale);
      const T* const from = dy + (index * size.output_dim + out_channel) * size.pooled * size.pooled;
      for (int64_t row = down.begin; row < down.end; ++row) {
        const Window rows = region.down.window(row, size.pooled, size.rows);
        if (y < rows.begin || y >= rows.end) continue;
        for (int64_t column = across.begin; column < across.end; ++column) {
          const Window columns = region.across.window(column, size.pooled, size.columns);
          if (x < columns.begin || x >= columns.end) continue;
          sum += load(from[row * size.pooled + column]) /
                 static_cast<C>((rows.end - rows.begin) * (columns.end - columns.begin));
        }
      }
    }
    dx[i] = store<T>(sum);
  }
}

// P is the operator or its gradient: both read (data or out_grad, rois) and write one array.
template <class P>
std::unique_ptr<Kernel> build_pool(const NodeView& node) {
  constexpr bool is_gradient = std::is_same_v<P, PSROIPoolingGrad>;
  const auto& p = node.as<P>();
  const PoolSize size(p, is_gradient ? node.outputs[0].shape : node.inputs[0].shape, node.inputs[1].shape);
  const int64_t count = node.outputs[0].shape.size();
  const auto scale = static_cast<float>(p.spatial_scale);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [=](const Args& args) {
      if (count == 0) return;
      constexpr auto kernel = is_gradient ? pool_gradient<T> : pool_cells<T>;
      kernel<<<blocks_for(count), block_size, 0, stream_of(args)>>>(size, static_cast<compute_type<T>>(scale),
                                                                    args.in<T>(0), args.in<T>(1), args.out<T>(), count);
    });
  });
}

// ---- DeformablePSROIPooling -----------------------------------------------------------------------------------------

// The arrays of a node and the numbers of its parameters.
template <class T>
struct Deformed {
  using C = compute_type<T>;
  DeformableSize size;
  C scale, trans_std;
  const T *data, *rois, *trans;

  Deformed(const DeformablePSROIPooling& p, const DeformableSize& of_node)
      : size(of_node),
        scale(static_cast<C>(static_cast<float>(p.spatial_scale))),
        trans_std(static_cast<C>(static_cast<float>(p.trans_std))),
        data(nullptr),
        rois(nullptr),
        trans(nullptr) {}

  // A cell of a region: its first point and the steps to the others.
  struct Cell {
    int64_t image;
    C top, left, step_down, step_across, height, width;  // height and width: of the region
  };
  __device__ Cell cell(int64_t index, int64_t out_channel, int64_t row, int64_t column) const {
    const T* const roi = rois + index * 5;
    const DeformableAxis<C> down(load(roi[2]), load(roi[4]), scale, size.pooled, size.samples);
    const DeformableAxis<C> across(load(roi[1]), load(roi[3]), scale, size.pooled, size.samples);
    C offset_across = 0, offset_down = 0;
    if (size.classes > 0) {
      const T* const offset = trans + size.offset_of(index, out_channel, row, column);
      offset_across = load(offset[0]) * trans_std;
      offset_down = load(offset[size.parts * size.parts]) * trans_std;
    }
    return {image_of(C(load(roi[0])), size.images),
            down.begin(row, offset_down),
            across.begin(column, offset_across),
            down.step,
            across.step,
            down.length,
            across.length};
  }
  __device__ int64_t points(const Cell& at) const {
    return points_inside(at.top, at.step_down, size.samples, size.rows) *
           points_inside(at.left, at.step_across, size.samples, size.columns);
  }
  __device__ Between<C> row_of(const Cell& at, int64_t i) const {
    return {at.top + static_cast<C>(i) * at.step_down, size.rows};
  }
  __device__ Between<C> column_of(const Cell& at, int64_t i) const {
    return {at.left + static_cast<C>(i) * at.step_across, size.columns};
  }
  __device__ const T* plane(const Cell& at, int64_t channel) const {
    return data + (at.image * size.channels + channel) * size.rows * size.columns;
  }
};

template <class T>
__global__ void pool_deformed(Deformed<T> all, T* out, int64_t count) {
  using C = compute_type<T>;
  const DeformableSize& size = all.size;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const int64_t column = i % size.pooled, row = i / size.pooled % size.pooled;
    const int64_t plane = i / size.pooled / size.pooled, out_channel = plane % size.output_dim;
    const auto cell = all.cell(plane / size.output_dim, out_channel, row, column);
    const int64_t points = cell.image < 0 ? 0 : all.points(cell);
    C sum = 0;
    if (points > 0) {
      const T* const from = all.plane(cell, size.channel(out_channel, row, column));
      for (int64_t a = 0; a < size.samples; ++a) {
        const Between<C> y = all.row_of(cell, a);
        if (!y.inside) continue;
        const T *const low = from + y.low * size.columns, *const high = from + y.high * size.columns;
        for (int64_t b = 0; b < size.samples; ++b) {
          const Between<C> x = all.column_of(cell, b);
          if (!x.inside) continue;
          sum += (C(1) - y.share) * ((C(1) - x.share) * load(low[x.low]) + x.share * load(low[x.high])) +
                 y.share * ((C(1) - x.share) * load(high[x.low]) + x.share * load(high[x.high]));
        }
      }
    }
    out[i] = store<T>(points > 0 ? sum / static_cast<C>(points) : C(0));
  }
}

// The total weight of pixel (y, x) over the points of a cell: a product of the weights along each axis.
template <class T>
__device__ compute_type<T> weight_of_pixel(const Deformed<T>& all, const typename Deformed<T>::Cell& cell, int64_t y,
                                           int64_t x) {
  using C = compute_type<T>;
  C down = 0, across = 0;
  for (int64_t i = 0; i < all.size.samples; ++i) {
    const Between<C> row = all.row_of(cell, i);
    if (row.inside) down += row.weight(y);
  }
  if (down == C(0)) return C(0);
  for (int64_t i = 0; i < all.size.samples; ++i) {
    const Between<C> column = all.column_of(cell, i);
    if (column.inside) across += column.weight(x);
  }
  return across == C(0) ? C(0) : down * across / static_cast<C>(all.points(cell));
}

template <class T>
__global__ void deformed_data_gradient(Deformed<T> all, const T* dy, T* dx, int64_t count) {
  using C = compute_type<T>;
  const DeformableSize& size = all.size;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const int64_t x = i % size.columns, y = i / size.columns % size.rows;
    const int64_t plane = i / size.columns / size.rows, channel = plane % size.channels;
    const int64_t out_channel = channel / size.group / size.group;
    const Window down = size.cells_of(channel / size.group % size.group), across = size.cells_of(channel % size.group);
    C sum = 0;
    for (int64_t index = 0; index < size.regions && out_channel < size.output_dim; ++index) {
      if (image_of(C(load(all.rois[index * 5])), size.images) != plane / size.channels) continue;
      const T* const from = dy + (index * size.output_dim + out_channel) * size.pooled * size.pooled;
      for (int64_t row = down.begin; row < down.end; ++row)
        for (int64_t column = across.begin; column < across.end; ++column) {
          const C weight = weight_of_pixel(all, all.cell(index, out_channel, row, column), y, x);
          if (weight != C(0)) sum += weight * load(from[row * size.pooled + column]);
        }
    }
    dx[i] = store<T>(sum);
  }
}

// A block for each offset: its threads share the channels of the class.
template <class T>
__global__ void deformed_trans_gradient(Deformed<T> all, const T* dy, T* dtrans, int64_t offsets) {
  using C = compute_type<T>;
  const DeformableSize& size = all.size;
  const int64_t parts = size.parts * size.parts, channels = size.channels_of_class();
  for (int64_t offset = blockIdx.x; offset < offsets; offset += gridDim.x) {
    const int64_t plane = offset / parts, part = offset % parts;
    const int64_t index = plane / size.classes, first = plane % size.classes * channels;
    const Window down = size.cells_of_part(part / size.parts), across = size.cells_of_part(part % size.parts);
    C by_x = 0, by_y = 0;
    for (int64_t k = threadIdx.x; k < channels; k += blockDim.x)
      for (int64_t row = down.begin; row < down.end; ++row)
        for (int64_t column = across.begin; column < across.end; ++column) {
          const int64_t out_channel = first + k;
          const auto cell = all.cell(index, out_channel, row, column);
          const int64_t points = cell.image < 0 ? 0 : all.points(cell);
          if (points == 0) continue;
          const C share =
              load(dy[((index * size.output_dim + out_channel) * size.pooled + row) * size.pooled + column]) /
              static_cast<C>(points) * all.trans_std;
          const T* const from = all.plane(cell, size.channel(out_channel, row, column));
          for (int64_t a = 0; a < size.samples; ++a) {
            const Between<C> y = all.row_of(cell, a);
            if (!y.inside) continue;
            const T *const low = from + y.low * size.columns, *const high = from + y.high * size.columns;
            for (int64_t b = 0; b < size.samples; ++b) {
              const Between<C> x = all.column_of(cell, b);
              if (!x.inside) continue;
              const C v00 = load(low[x.low]), v01 = load(low[x.high]), v10 = load(high[x.low]),
                      v11 = load(high[x.high]);
              by_x += share * cell.width * ((C(1) - y.share) * (v01 - v00) + y.share * (v11 - v10));
              by_y += share * cell.height * ((C(1) - x.share) * (v10 - v00) + x.share * (v11 - v01));
            }
          }
        }
    by_x = combine_block<Add>(by_x);
    by_y = combine_block<Add>(by_y);
    if (threadIdx.x == 0) {
      T* const own = dtrans + plane * 2 * parts + part;
      own[0] = store<T>(by_x);
      own[parts] = store<T>(by_y);
    }
  }
}

// Inputs are data, rois and trans, from number `first` on.
template <class T>
Deformed<T> with_arrays(Deformed<T> all, const Args& args, size_t first) {
  all.data = args.in<T>(first);
  all.rois = args.in<T>(first + 1);
  if (all.size.classes > 0) all.trans = args.in<T>(first + 2);
  return all;
}

std::unique_ptr<Kernel> build_deformable(const NodeView& node) {
  const auto& p = node.as<DeformablePSROIPooling>();
  const DeformableSize size(p, node.inputs[0].shape, node.inputs[1].shape, node.inputs.back().shape);
  const int64_t count = node.outputs[0].shape.size();
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [all = Deformed<T>(p, size), count](const Args& args) {
      if (count == 0) return;
      pool_deformed<<<blocks_for(count), block_size, 0, stream_of(args)>>>(with_arrays(all, args, 0), args.out<T>(),
                                                                           count);
    });
  });
}

std::unique_ptr<Kernel> build_deformable_gradient(const NodeView& node) {
  const auto& p = node.as<DeformablePSROIPoolingGrad>();
  const DeformableSize size(p, node.inputs[1].shape, node.inputs[2].shape, node.inputs.back().shape);
  const int64_t count = node.outputs[0].shape.size(), offsets = size.regions * size.classes * size.parts * size.parts;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [all = Deformed<T>(p, size), count, offsets](const Args& args) {
      const Deformed<T> own = with_arrays(all, args, 1);
      const T* const dy = args.in<T>(0);
      if (count > 0 && args.outputs[0])
        deformed_data_gradient<<<blocks_for(count), block_size, 0, stream_of(args)>>>(own, dy, args.out<T>(0), count);
      if (offsets > 0 && args.outputs[1])
        deformed_trans_gradient<<<blocks_for(offsets, 1), 128, 0, stream_of(args)>>>(own, dy, args.out<T>(1), offsets);
    });
  });
}

}  // namespace

void add_psroi_pool(ImplementationTable& table) {
  table.add<PSROIPooling>({"cuda", refuse, build_pool<PSROIPooling>});
  table.add<PSROIPoolingGrad>({"cuda", refuse, build_pool<PSROIPoolingGrad>});
  table.add<DeformablePSROIPooling>({"cuda", refuse, build_deformable});
  table.add<DeformablePSROIPoolingGrad>({"cuda", refuse, build_deformable_gradient});
}

}  // namespace symbind::cuda_backend
