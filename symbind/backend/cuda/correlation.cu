// A thread per element: of the result, or of an image, which then sums the gradients of all patches over it.
#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/spatial.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/wide_array.cuh"
#include "symbind/backend/spatial.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

using spatial::Compared;

template <class C>
__global__ void correlate(Compared size, WideArray<C> first, WideArray<C> second, WideArray<C> out) {
  const int64_t planes = size.displacements(), result = size.grid.space(), image_size = size.channels * size.space();
  for (int64_t all = first_element(); all < size.grid.images * planes * result; all += element_step()) {
    const Divided at = divided(all, result), plane = divided(at.quotient, planes);
    double sum = 0;
    size.for_pairs(plane.rest, at.rest, [&](int64_t a_pixel, int64_t b_pixel) {
      const int64_t begin = plane.quotient * image_size;
      for (int64_t channel = begin; channel < begin + image_size; channel += size.space()) {
        const double a = a_pixel < 0 ? 0 : static_cast<double>(first[channel + a_pixel]);
        const double b = b_pixel < 0 ? 0 : static_cast<double>(second[channel + b_pixel]);
        sum += size.params.is_multiply ? a * b : fabs(a - b);
      }
    });
    out.set(all, static_cast<C>(sum / size.elements()));
  }
}

// The row or column of the result whose patch of the first image starts at a row or column, -1 if there is none.
__device__ int64_t result_from(const Compared& size, int64_t begin, int64_t extent) {
  const int64_t distance = begin - size.params.max_displacement;
  if (distance < 0 || distance % size.params.stride1 != 0) return -1;
  const int64_t index = distance / size.params.stride1;
  return index < extent ? index : -1;
}

// The gradient of the first image (is_second: of the second one). Rows and columns are those of the padded images; a
// pixel of the second image is one of the first shifted by the displacement.
template <class C>
__global__ void collect(Compared size, WideArray<C> dy, WideArray<C> own, WideArray<C> other, WideArray<C> out,
                        bool is_second) {
  const int64_t planes = size.displacements(), result = size.grid.space();
  const auto scale = static_cast<C>(size.elements());
  for (int64_t i = first_element(); i < size.grid.images * size.channels * size.space(); i += element_step()) {
    const Divided in_plane = divided(i, size.space()), pixel = divided(in_plane.rest, size.columns);
    const int64_t image = divided(in_plane.quotient, size.channels).quotient;
    const int64_t row = pixel.quotient + size.params.pad_size, column = pixel.rest + size.params.pad_size;
    C sum = 0;
    for (int64_t displacement = 0; displacement < planes; ++displacement) {
      const int64_t down = size.down(displacement), right = size.right(displacement);
      const int64_t first_row = is_second ? row - down : row, first_column = is_second ? column - right : column;
      const int64_t there = is_second ? size.pixel(first_row, first_column) : size.pixel(row + down, column + right);
      const C a = own[i], b = there < 0 ? C(0) : other[in_plane.quotient * size.space() + there];
      for (int64_t y = size.params.kernel_size; y-- > 0;) {
        const int64_t result_row = result_from(size, first_row - y, size.grid.rows);
        if (result_row < 0) continue;
        for (int64_t x = size.params.kernel_size; x-- > 0;) {
          const int64_t result_column = result_from(size, first_column - x, size.grid.columns);
          if (result_column < 0) continue;
          const C slope =
              dy[(image * planes + displacement) * result + result_row * size.grid.columns + result_column] / scale;
          const bool first_is_larger = is_second ? b >= a : a >= b;
          const C sign = first_is_larger == is_second ? -slope : slope;
          sum += size.params.is_multiply ? slope * b : sign;
        }
      }
    }
    out.set(i, sum);
  }
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  return visit_computed(dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(node, [size = Compared(node.as<Correlation>(), node.inputs[0].shape, node.outputs[0].shape),
                            count = node.outputs[0].shape.size(), dtype](const Args& args) {
      if (count > 0)
        correlate<<<blocks_for(count), block_size, 0, stream_of(args)>>>(size, WideArray<C>(args.inputs[0], dtype),
                                                                         WideArray<C>(args.inputs[1], dtype),
                                                                         WideArray<C>(args.outputs[0], dtype));
    });
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  return visit_computed(dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(node, [size = Compared(node.as<CorrelationGrad>(), node.inputs[1].shape, node.inputs[0].shape),
                            count = node.inputs[1].shape.size(), dtype](const Args& args) {
      if (count == 0) return;
      const WideArray<C> dy(args.inputs[0], dtype);
      const WideArray<C> image[] = {{args.inputs[1], dtype}, {args.inputs[2], dtype}};
      for (const int side : {0, 1})
        if (args.outputs[side])
          collect<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
              size, dy, image[side], image[1 - side], WideArray<C>(args.outputs[side], dtype), side == 1);
    });
  });
}

}  // namespace

void add_correlation(ImplementationTable& table) {
  table.add<Correlation>({"cuda", refuse_mixed_floating, build_forward});
  table.add<CorrelationGrad>({"cuda", refuse_mixed_floating, build_backward});
}

}  // namespace symbind::cuda_backend
