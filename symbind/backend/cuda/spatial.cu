// Grids, images sampled at their points, and images compared. Everything is computed in float, or double for float64:
// half precision is too coarse for a grid. The gradient of sampled images sorts the pixels that points read
// (index_sort.h), so that one thread sums the gradient of one pixel, in the order of the points; all channels share the
// sort.
#include "symbind/ops/spatial.h"

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/index_sort.h"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/spatial.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/wide_array.cuh"
#include "symbind/backend/spatial.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

using namespace spatial;

size_t rounded_up(size_t bytes) { return (bytes + 255) / 256 * 256; }

// ---- Grids ----------------------------------------------------------------------------------------------------------

// An element of a grid (image, x or y, row, column).
struct GridElement {
  int64_t plane, row, column;  // plane: 2 · image for x, one more for y
  __device__ GridElement(const Grid& grid, int64_t i) {
    const Divided in_row = divided(i, grid.columns), in_plane = divided(in_row.quotient, grid.rows);
    plane = in_plane.quotient;
    row = in_plane.rest;
    column = in_row.rest;
  }
};

template <class C>
__global__ void write_affine(Grid grid, WideArray<C> matrices, WideArray<C> coordinates) {
  for (int64_t i = first_element(); i < grid.images * 2 * grid.space(); i += element_step()) {
    const GridElement at(grid, i);
    const C rest = matrices[at.plane * 3 + 1] * coordinate<C>(at.row, grid.rows) + matrices[at.plane * 3 + 2];
    coordinates.set(i, matrices[at.plane * 3] * coordinate<C>(at.column, grid.columns) + rest);
  }
}

// A block per row of a matrix.
template <class C>
__global__ void sum_affine(Grid grid, WideArray<C> coordinates_grad, WideArray<C> matrices_grad) {
  for (int64_t plane = blockIdx.x; plane < grid.images * 2; plane += gridDim.x) {
    double by_x = 0, by_y = 0, by_one = 0;
    for (int64_t i = threadIdx.x; i < grid.space(); i += blockDim.x) {
      const auto dy = static_cast<double>(coordinates_grad[plane * grid.space() + i]);
      const Divided at = divided(i, grid.columns);
      by_x += dy * coordinate<double>(at.rest, grid.columns);
      by_y += dy * coordinate<double>(at.quotient, grid.rows);
      by_one += dy;
    }
    by_x = combine_block<Add>(by_x);
    by_y = combine_block<Add>(by_y);
    by_one = combine_block<Add>(by_one);
    if (threadIdx.x == 0) {
      matrices_grad.set(plane * 3, static_cast<C>(by_x));
      matrices_grad.set(plane * 3 + 1, static_cast<C>(by_y));
      matrices_grad.set(plane * 3 + 2, static_cast<C>(by_one));
    }
  }
}

// The coordinates given by a flow, or the flow's gradient.
template <class C>
__global__ void follow_flow(Grid grid, WideArray<C> in, WideArray<C> out, bool is_gradient) {
  for (int64_t i = first_element(); i < grid.images * 2 * grid.space(); i += element_step()) {
    const GridElement at(grid, i);
    const bool down = at.plane % 2 == 1;
    const C half = static_cast<C>((down ? grid.rows : grid.columns) - 1) / 2;
    out.set(i, is_gradient ? in[i] / half : (in[i] + static_cast<C>(down ? at.row : at.column)) / half - 1);
  }
}

template <class C>
void queue_affine(cudaStream_t stream, const Grid& grid, WideArray<C> matrices, WideArray<C> coordinates) {
  if (const int64_t count = grid.images * 2 * grid.space(); count > 0)
    write_affine<<<blocks_for(count), block_size, 0, stream>>>(grid, matrices, coordinates);
}

template <class C>
void queue_affine_grad(cudaStream_t stream, const Grid& grid, WideArray<C> coordinates_grad,
                       WideArray<C> matrices_grad) {
  if (grid.images > 0)
    sum_affine<<<blocks_for(grid.images * 2, 1), block_size, 0, stream>>>(grid, coordinates_grad, matrices_grad);
}

std::unique_ptr<Kernel> build_grid(const NodeView& node, const std::string& type, const Shape& shape,
                                   bool is_gradient) {
  const DType dtype = node.outputs[0].dtype;
  return visit_computed(dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(node, [grid = grid_of(shape), affine = type == "affine", is_gradient, dtype](const Args& args) {
      const WideArray<C> in(args.inputs[0], dtype), out(args.outputs[0], dtype);
      const int64_t count = grid.images * 2 * grid.space();
      if (affine && is_gradient)
        queue_affine_grad(stream_of(args), grid, in, out);
      else if (affine)
        queue_affine(stream_of(args), grid, in, out);
      else if (count > 0)
        follow_flow<<<blocks_for(count), block_size, 0, stream_of(args)>>>(grid, in, out, is_gradient);
    });
  });
}

// ---- Sampling -------------------------------------------------------------------------------------------------------

template <class C>
__device__ SamplePoint<C> sample_point(const Sampled& size, const WideArray<C>& coordinates, int64_t image, int64_t i) {
  const int64_t own = image * 2 * size.grid.space() + i;
  return {size, coordinates[own], coordinates[own + size.grid.space()]};
}

template <class C>
__global__ void sample(Sampled size, WideArray<C> x, WideArray<C> coordinates, WideArray<C> y) {
  const int64_t result = size.grid.space();
  for (int64_t all = first_element(); all < size.grid.images * size.channels * result; all += element_step()) {
    const Divided at = divided(all, result);
    C sum = 0;
    sample_point(size, coordinates, divided(at.quotient, size.channels).quotient, at.rest)
        .for_pixels(size,
                    [&](int64_t pixel, C weight, C, C) { sum += weight * x[at.quotient * size.space() + pixel]; });
    y.set(all, sum);
  }
}

// Term `corner` of point i is number 4 · i + corner. Terms without a pixel are sorted after all others.
template <class C>
__global__ void write_terms(Sampled size, WideArray<C> coordinates, uint32_t* pixels, uint32_t* order, C* weights) {
  const int64_t result = size.grid.space();
  for (int64_t term = first_element(); term < size.grid.images * result * 4; term += element_step()) {
    const Divided at = divided(term / 4, result);
    const SamplePoint<C> point = sample_point(size, coordinates, at.quotient, at.rest);
    const int64_t down = term / 2 % 2, right = term % 2;
    const bool is_there = point.inside && point.has_row(size, down) && point.has_column(size, right);
    const auto pixel = point.pixel(size, down, right);
    pixels[term] =
        static_cast<uint32_t>(is_there ? at.quotient * size.space() + pixel.at : size.grid.images * size.space());
    order[term] = static_cast<uint32_t>(term);
    weights[term] = pixel.weight;
  }
}

template <class C>
__global__ void add_terms(Sampled size, IndexSort::Sorted sorted, const C* weights, WideArray<C> dy, WideArray<C> dx) {
  const int64_t result = size.grid.space(), terms = size.grid.images * result * 4;
  for (int64_t i = first_element(); i < terms * size.channels; i += element_step()) {
    const Divided at = divided(i, terms);  // a channel and a term
    const uint32_t index = sorted.indices[at.rest];
    if (index >= size.grid.images * size.space() || (at.rest > 0 && sorted.indices[at.rest - 1] == index)) continue;
    const Divided pixel = divided(index, size.space());
    const int64_t plane = pixel.quotient * size.channels + at.quotient;
    C sum = 0;
    for (int64_t next = at.rest; next < terms && sorted.indices[next] == index; ++next) {
      const uint32_t term = sorted.order[next];
      sum += weights[term] * dy[plane * result + divided(term / 4, result).rest];
    }
    dx.set(plane * size.space() + pixel.rest, sum);
  }
}

template <class C>
__global__ void write_grid_grad(Sampled size, WideArray<C> dy, WideArray<C> x, WideArray<C> coordinates,
                                WideArray<C> coordinates_grad) {
  const int64_t result = size.grid.space();
  for (int64_t all = first_element(); all < size.grid.images * result; all += element_step()) {
    const Divided at = divided(all, result);
    C by_x = 0, by_y = 0;
    sample_point(size, coordinates, at.quotient, at.rest).for_pixels(size, [&](int64_t pixel, C, C slope_x, C slope_y) {
      C sum = 0;
      for (int64_t plane = at.quotient * size.channels; plane < (at.quotient + 1) * size.channels; ++plane)
        sum += dy[plane * result + at.rest] * x[plane * size.space() + pixel];
      by_x += slope_x * sum;
      by_y += slope_y * sum;
    });
    const int64_t own = at.quotient * 2 * result + at.rest;
    coordinates_grad.set(own, by_x * static_cast<C>(size.columns - 1) / 2);
    coordinates_grad.set(own + result, by_y * static_cast<C>(size.rows - 1) / 2);
  }
}

template <class C>
void queue_sample(cudaStream_t stream, const Sampled& size, WideArray<C> x, WideArray<C> coordinates, WideArray<C> y) {
  if (const int64_t count = size.grid.images * size.channels * size.grid.space(); count > 0)
    sample<<<blocks_for(count), block_size, 0, stream>>>(size, x, coordinates, y);
}

// The gradients of sampled images and of the coordinates; each may be omitted (null address). Scratch: the sort, then
// weights.
class SampleGrad {
 public:
  explicit SampleGrad(const Sampled& size)
      : size_(size),
        terms_(size.grid.images * size.grid.space() * 4),
        sort_(terms_, size.grid.images * size.space() + 1) {}

  template <class C>
  size_t bytes() const {
    return rounded_up(sort_.bytes()) + rounded_up(static_cast<size_t>(terms_) * sizeof(C));
  }
  template <class C>
  void queue_data(cudaStream_t stream, void* scratch, WideArray<C> dy, WideArray<C> coordinates,
                  WideArray<C> dx) const {
    const int64_t elements = size_.grid.images * size_.channels * size_.space();
    if (elements == 0 || !dx.data) return;
    cudaMemsetAsync(dx.data, 0, static_cast<size_t>(elements) * size_of(dx.dtype), stream);
    if (terms_ == 0) return;
    C* const weights = reinterpret_cast<C*>(static_cast<std::byte*>(scratch) + rounded_up(sort_.bytes()));
    write_terms<<<blocks_for(terms_), block_size, 0, stream>>>(size_, coordinates, sort_.indices(scratch),
                                                               sort_.order(scratch), weights);
    const IndexSort::Sorted sorted = sort_.queue(stream, scratch);
    add_terms<<<blocks_for(terms_ * size_.channels), block_size, 0, stream>>>(size_, sorted, weights, dy, dx);
  }
  template <class C>
  void queue_grid(cudaStream_t stream, WideArray<C> dy, WideArray<C> x, WideArray<C> coordinates,
                  WideArray<C> coordinates_grad) const {
    if (const int64_t count = size_.grid.images * size_.grid.space(); count > 0 && coordinates_grad.data)
      write_grid_grad<<<blocks_for(count), block_size, 0, stream>>>(size_, dy, x, coordinates, coordinates_grad);
  }

 private:
  Sampled size_;
  int64_t terms_;
  IndexSort sort_;
};

std::unique_ptr<Kernel> build_sampler(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  return visit_computed(dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(node, [size = sampled(node.inputs[0].shape, node.outputs[0].shape), dtype](const Args& args) {
      queue_sample(stream_of(args), size, WideArray<C>(args.inputs[0], dtype), WideArray<C>(args.inputs[1], dtype),
                   WideArray<C>(args.outputs[0], dtype));
    });
  });
}

std::unique_ptr<Kernel> build_sampler_grad(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  const SampleGrad grad(sampled(node.inputs[1].shape, node.inputs[0].shape));
  return visit_computed(dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(
        node,
        [grad, dtype](const Args& args) {
          const WideArray<C> dy(args.inputs[0], dtype), x(args.inputs[1], dtype), coordinates(args.inputs[2], dtype);
          grad.queue_data(stream_of(args), args.scratch, dy, coordinates, WideArray<C>(args.outputs[0], dtype));
          grad.queue_grid(stream_of(args), dy, x, coordinates, WideArray<C>(args.outputs[1], dtype));
        },
        {.scratch_bytes = grad.bytes<C>()});
  });
}

// Scratch: the grid.
std::unique_ptr<Kernel> build_transformer(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  const Sampled size = sampled(node.inputs[0].shape, node.outputs[0].shape);
  return visit_computed(dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(node,
                     [size, dtype](const Args& args) {
                       const WideArray<C> coordinates(args.scratch, dtype_of<C>());
                       queue_affine(stream_of(args), size.grid, WideArray<C>(args.inputs[1], dtype), coordinates);
                       queue_sample(stream_of(args), size, WideArray<C>(args.inputs[0], dtype), coordinates,
                                    WideArray<C>(args.outputs[0], dtype));
                     },
                     {.scratch_bytes = static_cast<size_t>(size.grid.images * 2 * size.grid.space()) * sizeof(C)});
  });
}

// Scratch: the grid, its gradient, and that of the samples' gradients.
std::unique_ptr<Kernel> build_transformer_grad(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  const Sampled size = sampled(node.inputs[1].shape, node.inputs[0].shape);
  const SampleGrad grad(size);
  return visit_computed(dtype, [&]<class C>(std::type_identity<C>) {
    const size_t of_grid = rounded_up(static_cast<size_t>(size.grid.images * 2 * size.grid.space()) * sizeof(C));
    return make_step(
        node,
        [size, grad, of_grid, dtype](const Args& args) {
          const cudaStream_t stream = stream_of(args);
          std::byte* const base = static_cast<std::byte*>(args.scratch);
          const WideArray<C> dy(args.inputs[0], dtype), x(args.inputs[1], dtype), loc(args.inputs[2], dtype);
          const WideArray<C> coordinates(base, dtype_of<C>()), coordinates_grad(base + of_grid, dtype_of<C>());
          queue_affine(stream, size.grid, loc, coordinates);
          grad.queue_data(stream, base + 2 * of_grid, dy, coordinates, WideArray<C>(args.outputs[0], dtype));
          if (!args.outputs[1]) return;
          grad.queue_grid(stream, dy, x, coordinates, coordinates_grad);
          queue_affine_grad(stream, size.grid, coordinates_grad, WideArray<C>(args.outputs[1], dtype));
        },
        {.scratch_bytes = 2 * of_grid + grad.bytes<C>()});
  });
}

std::string refuse_sampled(const NodeView& node, const Shape& data, const Shape& result) {
  const Sampled size = sampled(data, result);
  if (size.grid.images * size.grid.space() * 4 >= IndexSort::most ||
      size.grid.images * size.space() + 1 >= IndexSort::most)
    return "2^31 elements or more";
  return refuse_mixed_floating(node);
}

template <class P>
void add_sampling(ImplementationTable& table, std::unique_ptr<Kernel> (*build)(const NodeView&)) {
  table.add<P>({"cuda",
                [](const NodeView& node) { return refuse_sampled(node, node.inputs[0].shape, node.outputs[0].shape); },
                build});
}
template <class P>
void add_sampling_grad(ImplementationTable& table, std::unique_ptr<Kernel> (*build)(const NodeView&)) {
  table.add<P>({"cuda",
                [](const NodeView& node) { return refuse_sampled(node, node.inputs[1].shape, node.inputs[0].shape); },
                build});
}

}  // namespace

void add_spatial(ImplementationTable& table) {
  table.add<GridGenerator>({"cuda", refuse_mixed_floating, [](const NodeView& node) {
                              return build_grid(node, node.as<GridGenerator>().transform_type, node.outputs[0].shape,
                                                false);
                            }});
  table.add<GridGeneratorGrad>({"cuda", refuse_mixed_floating, [](const NodeView& node) {
                                  return build_grid(node, node.as<GridGeneratorGrad>().transform_type,
                                                    node.inputs[0].shape, true);
                                }});
  add_sampling<BilinearSampler>(table, build_sampler);
  add_sampling_grad<BilinearSamplerGrad>(table, build_sampler_grad);
  add_sampling<SpatialTransformer>(table, build_transformer);
  add_sampling_grad<SpatialTransformerGrad>(table, build_transformer_grad);
  add_correlation(table);
}

}  // namespace symbind::cuda_backend
