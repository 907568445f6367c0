// Nearest neighbours: an element of the result copies one of an input, and a gradient sums the block that did.
// Interpolation is a deconvolution.
#include "symbind/ops/upsample.h"

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/wide_array.cuh"
#include "symbind/backend/deconv.h"
#include "symbind/backend/functions.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// One input and where its planes are in the result.
struct Source {
  int64_t planes, channels, rows, columns;  // of the input
  int64_t high, wide;                       // extent of a block
  int64_t first_channel, all_channels;      // of the result

  __host__ __device__ int64_t plane_size() const { return rows * columns; }
  __host__ __device__ int64_t large_size() const { return plane_size() * high * wide; }
  // The first element of a plane's image in the result.
  __device__ int64_t start(int64_t plane) const {
    const Divided at = divided(plane, channels);
    return (at.quotient * all_channels + first_channel + at.rest) * large_size();
  }
};

std::vector<Source> sources(const UpSampling& p, std::span<const Tensor> inputs, const Shape& result) {
  std::vector<Source> all;
  int64_t channel = 0;
  for (const Tensor& input : inputs) {
    const Shape& shape = input.shape;
    const int64_t high = shape[2] > 0 ? result[2] / shape[2] : 1, wide = shape[3] > 0 ? result[3] / shape[3] : 1;
    all.push_back({shape[0] * shape[1], shape[1], shape[2], shape[3], high, wide, channel, result[1]});
    if (p.multi_input_mode == "concat") channel += shape[1];
  }
  return all;
}

template <class C>
__global__ void enlarge(WideArray<C> x, WideArray<C> y, Source source, bool adds) {
  const int64_t width = source.columns * source.wide;
  for (int64_t i = first_element(); i < source.planes * source.large_size(); i += element_step()) {
    const Divided plane = divided(i, source.large_size()), at = divided(plane.rest, width);
    const int64_t from = plane.quotient * source.plane_size() +
                         divided(at.quotient, source.high).quotient * source.columns +
                         divided(at.rest, source.wide).quotient;
    const int64_t to = source.start(plane.quotient) + plane.rest;
    y.set(to, adds ? functions::add(y[to], x[from]) : x[from]);
  }
}

template <class C>
__global__ void sum_blocks(WideArray<C> dy, WideArray<C> dx, Source source) {
  const int64_t width = source.columns * source.wide;
  for (int64_t i = first_element(); i < source.planes * source.plane_size(); i += element_step()) {
    const Divided plane = divided(i, source.plane_size()), at = divided(plane.rest, source.columns);
    const int64_t first = source.start(plane.quotient) + at.quotient * source.high * width + at.rest * source.wide;
    C sum = 0;
    for (int64_t row = 0; row < source.high; ++row)
      for (int64_t column = 0; column < source.wide; ++column)
        sum = functions::add(sum, dy[first + row * width + column]);
    dx.set(i, sum);
  }
}

std::unique_ptr<Kernel> build_bilinear(const NodeView& node) {
  if (node.outputs[0].shape.size() == 0) return make_step(node, [](const Args&) {});
  const Deconvolution made = bilinear_deconvolution(node.as<UpSampling>());
  const auto params = op_of<Deconvolution>().checked_params(&made, node.name);
  const NodeView view{op_of<Deconvolution>(), params.get(),  node.name, node.inputs,
                      node.outputs,           node.is_train, -1,        node.context};
  return build_deconvolution(view, nullptr);
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& p = node.as<UpSampling>();
  if (p.sample_type == "bilinear") return build_bilinear(node);
  const DType dtype = node.outputs[0].dtype;
  return functions::visit_wide(dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(node, [all = sources(p, node.inputs, node.outputs[0].shape), sums = p.multi_input_mode == "sum",
                            dtype](const Args& args) {
      for (size_t k = 0; k < all.size(); ++k)
        if (const int64_t count = all[k].planes * all[k].large_size(); count > 0)
          enlarge<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
              WideArray<C>(args.inputs[k], dtype), WideArray<C>(args.outputs[0], dtype), all[k], sums && k > 0);
    });
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  return functions::visit_wide(dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(
        node, [all = sources(node.as<UpSamplingGrad>(), node.outputs, node.inputs[0].shape), dtype](const Args& args) {
          for (size_t k = 0; k < all.size(); ++k)
            if (const int64_t count = all[k].planes * all[k].plane_size(); count > 0 && args.outputs[k])
              sum_blocks<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
                  WideArray<C>(args.inputs[0], dtype), WideArray<C>(args.outputs[k], dtype), all[k]);
        });
  });
}

}  // namespace

void add_upsample(ImplementationTable& table) {
  table.add<UpSampling>({"cuda", refuse_layouts, build_forward, {}, true});
  table.add<UpSamplingGrad>({"cuda", refuse_layouts, build_backward});
}

}  // namespace symbind::cuda_backend
