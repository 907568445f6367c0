// Nearest neighbours: an element of the result copies one of an input, and a gradient sums the block of its copies.
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

// One input and the position of its planes in the result.
struct Source {
  int64_t planes;                       // of the input
  Divisor channels, columns, high;      // high × wide: the block that shows an element
  Divisor wide, width;                  // width: of the result
  Divisor plane_size, large_size;       // elements of a plane of the input and of the result
  int64_t first_channel, all_channels;  // of the result

  Source(const Shape& input, const Shape& result, int64_t channel)
      : planes(input[0] * input[1]),
        channels(input[1]),
        columns(input[3]),
        high(input[2] > 0 ? result[2] / input[2] : 1),
        wide(input[3] > 0 ? result[3] / input[3] : 1),
        width(result[3]),
        plane_size(input[2] * input[3]),
        large_size(result[2] * result[3]),
        first_channel(channel),
        all_channels(result[1]) {}

  int64_t count() const { return planes * plane_size; }
  int64_t large_count() const { return planes * large_size; }
  // The first element of a plane's image in the result.
  __device__ int64_t start(int64_t plane) const {
    const Divided at = channels.divide(plane);
    return (at.quotient * all_channels + first_channel + at.rest) * large_size;
  }
};

std::vector<Source> sources(const UpSampling& p, std::span<const Tensor> inputs, const Shape& result) {
  std::vector<Source> all;
  int64_t channel = 0;
  for (const Tensor& input : inputs) {
    all.emplace_back(input.shape, result, channel);
    if (p.multi_input_mode == "concat") channel += input.shape[1];
  }
  return all;
}

template <class C>
__global__ void enlarge(WideArray<C> x, WideArray<C> y, Source source, int64_t count, bool adds) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Divided plane = source.large_size.divide(i), at = source.width.divide(plane.rest);
    const int64_t from = plane.quotient * source.plane_size +
                         source.high.divide(at.quotient).quotient * source.columns +
                         source.wide.divide(at.rest).quotient;
    const int64_t to = source.start(plane.quotient) + plane.rest;
    y.set(to, adds ? functions::add(y[to], x[from]) : x[from]);
  }
}

template <class C>
__global__ void sum_blocks(WideArray<C> dy, WideArray<C> dx, Source source, int64_t count) {
  const int64_t width = source.width, high = source.high, wide = source.wide;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Divided plane = source.plane_size.divide(i), at = source.columns.divide(plane.rest);
    const int64_t first = source.start(plane.quotient) + at.quotient * high * width + at.rest * wide;
    C sum = 0;
    for (int64_t row = 0; row < high; ++row)
      for (int64_t column = 0; column < wide; ++column) sum = functions::add(sum, dy[first + row * width + column]);
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
        if (const int64_t count = all[k].large_count(); count > 0)
          enlarge<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
              WideArray<C>(args.inputs[k], dtype), WideArray<C>(args.outputs[0], dtype), all[k], count, sums && k > 0);
    });
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  return functions::visit_wide(dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(
        node, [all = sources(node.as<UpSamplingGrad>(), node.outputs, node.inputs[0].shape), dtype](const Args& args) {
          for (size_t k = 0; k < all.size(); ++k)
            if (const int64_t count = all[k].count(); count > 0 && args.outputs[k])
              sum_blocks<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
                  WideArray<C>(args.inputs[0], dtype), WideArray<C>(args.outputs[k], dtype), all[k], count);
        });
  });
}

}  // namespace

void add_upsample(ImplementationTable& table) {
  table.add<UpSampling>({"cuda", refuse_layouts, build_forward, {}, true});
  table.add<UpSamplingGrad>({"cuda", refuse_layouts, build_backward});
}

}  // namespace symbind::cuda_backend
