// A thread per cell and channel. The gradient sorts the cells by the element that each of them selected (index_sort.h),
// so that one thread sums those of one element, in order.
#include "symbind/ops/roi_pool.h"

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/index_sort.h"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/wide_array.cuh"
#include "symbind/backend/roi_pool.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

struct Extents {
  int64_t images, channels, rows, columns;  // of the data
  int64_t regions, high, wide;              // of the result

  Extents(const Shape& data, const Shape& result)
      : images(data[0]),
        channels(data[1]),
        rows(data[2]),
        columns(data[3]),
        regions(result[0]),
        high(result[2]),
        wide(result[3]) {}
  __host__ __device__ int64_t space() const { return rows * columns; }
  __host__ __device__ int64_t cells() const { return regions * channels * high * wide; }
  __host__ __device__ int64_t elements() const { return images * channels * space(); }
};

template <class C>
__global__ void pool_regions(WideArray<C> x, WideArray<C> rois, WideArray<C> y, int32_t* indices, Extents size,
                             C scale) {
  for (int64_t i = first_element(); i < size.cells(); i += element_step()) {
    const Divided column = divided(i, size.wide), row = divided(column.quotient, size.high);
    const Divided part = divided(row.quotient, size.channels);
    const int64_t region = part.quotient * 5, image = roi_image(rois[region], size.images);
    const RoiCells<C> down(rois[region + 2], rois[region + 4], scale, size.high);
    const RoiCells<C> across(rois[region + 1], rois[region + 3], scale, size.wide);
    const RoiWindow lines = down.within(row.rest, image < 0 ? 0 : size.rows);
    const RoiWindow along = across.within(column.rest, size.columns);
    const int64_t plane = ((image < 0 ? 0 : image) * size.channels + part.rest) * size.space();
    int64_t best = -1;
    C largest = 0;
    for (int64_t line = lines.begin; line < lines.end; ++line)
      for (int64_t at = line * size.columns + along.begin; at < line * size.columns + along.end; ++at) {
        const C value = x[plane + at];
        if (best < 0 || value > largest) {
          best = at;
          largest = value;
        }
      }
    y.set(i, largest);
    if (indices) indices[i] = static_cast<int32_t>(best);
  }
}

// Cells without an element are sorted after all others.
template <class C>
__global__ void write_indices(WideArray<C> rois, const int32_t* taken, uint32_t* indices, uint32_t* order,
                              Extents size) {
  for (int64_t i = first_element(); i < size.cells(); i += element_step()) {
    const Divided part = divided(divided(i, size.high * size.wide).quotient, size.channels);
    const int64_t image = roi_image(rois[part.quotient * 5], size.images);
    const bool is_there = image >= 0 && taken[i] >= 0 && taken[i] < size.space();
    indices[i] = static_cast<uint32_t>(is_there ? (image * size.channels + part.rest) * size.space() + taken[i]
                                                : size.elements());
    order[i] = static_cast<uint32_t>(i);
  }
}

template <class C>
__global__ void add_cells(WideArray<C> dy, IndexSort::Sorted sorted, WideArray<C> dx, Extents size) {
  for (int64_t first = first_element(); first < size.cells(); first += element_step()) {
    const uint32_t index = sorted.indices[first];
    if (index >= size.elements() || (first > 0 && sorted.indices[first - 1] == index)) continue;
    C sum = 0;
    for (int64_t i = first; i < size.cells() && sorted.indices[i] == index; ++i) sum += dy[sorted.order[i]];
    dx.set(index, sum);
  }
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  // MXNet's scale is a float.
  const auto scale = static_cast<float>(node.as<ROIPooling>().spatial_scale);
  return visit_computed(dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(node,
                     [size = Extents(node.inputs[0].shape, node.outputs[0].shape), scale, dtype](const Args& args) {
                       if (size.cells() == 0) return;
                       pool_regions<<<blocks_for(size.cells()), block_size, 0, stream_of(args)>>>(
                           WideArray<C>(args.inputs[0], dtype), WideArray<C>(args.inputs[1], dtype),
                           WideArray<C>(args.outputs[0], dtype), args.out<int32_t>(1), size, static_cast<C>(scale));
                     });
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  const Extents size(node.outputs[0].shape, node.inputs[0].shape);
  const CurrentDevice current(CudaDevice::of(node.context).id());
  const IndexSort sort(size.cells(), size.elements() + 1);
  return visit_computed(dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(node,
                     [size, sort, dtype, bytes = node.outputs[0].bytes()](const Args& args) {
                       if (bytes == 0) return;
                       const cudaStream_t stream = stream_of(args);
                       cudaMemsetAsync(args.outputs[0], 0, bytes, stream);
                       if (size.cells() == 0) return;
                       const unsigned blocks = blocks_for(size.cells());
                       write_indices<<<blocks, block_size, 0, stream>>>(WideArray<C>(args.inputs[2], dtype),
                                                                        args.in<int32_t>(1), sort.indices(args.scratch),
                                                                        sort.order(args.scratch), size);
                       const IndexSort::Sorted sorted = sort.queue(stream, args.scratch);
                       add_cells<<<blocks, block_size, 0, stream>>>(WideArray<C>(args.inputs[0], dtype), sorted,
                                                                    WideArray<C>(args.outputs[0], dtype), size);
                     },
                     {.scratch_bytes = sort.bytes()});
  });
}

std::string refuse(const NodeView& node, const Shape& data, const Shape& result) {
  const Extents size(data, result);
  if (size.cells() >= IndexSort::most || size.elements() + 1 >= IndexSort::most) return "2^31 elements or more";
  return refuse_layouts(node);
}

}  // namespace

void add_roi_pool(ImplementationTable& table) {
  table.add<ROIPooling>({"cuda",
                         [](const NodeView& node) { return refuse(node, node.inputs[0].shape, node.outputs[0].shape); },
                         build_forward});
  table.add<ROIPoolingGrad>(
      {"cuda", [](const NodeView& node) { return refuse(node, node.outputs[0].shape, node.inputs[0].shape); },
       build_backward});
}

}  // namespace symbind::cuda_backend
