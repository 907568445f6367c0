#include "symbind/ops/upsample.h"

#include <algorithm>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/deconv.h"
#include "symbind/backend/functions.h"
#include "symbind/backend/wide.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// One input and the position of its planes in the result.
struct Source {
  int64_t images, channels, rows, columns;  // of the input
  int64_t high, wide;                       // extent of a block
  int64_t first_channel, all_channels;      // of the result

  int64_t planes() const { return images * channels; }
  int64_t plane_size() const { return rows * columns; }
  // The offset of a plane's image in the result.
  int64_t offset(int64_t plane) const {
    return (plane / channels * all_channels + first_channel + plane % channels) * plane_size() * high * wide;
  }
  int64_t grain() const { return element_grain / std::max<int64_t>(1, plane_size() * high * wide) + 1; }
};

std::vector<Source> sources(const UpSampling& p, std::span<const Tensor> inputs, const Shape& result) {
  std::vector<Source> all;
  int64_t channel = 0;
  for (const Tensor& input : inputs) {
    const Shape& shape = input.shape;
    all.push_back(
        {shape[0], shape[1], shape[2], shape[3], result[2] / shape[2], result[3] / shape[3], channel, result[1]});
    if (p.multi_input_mode == "concat") channel += shape[1];
  }
  return all;
}

// Calls visit(element of the plane, element of the larger plane) for every element of the larger one, in order.
template <class Visit>
void for_block_elements(const Source& source, const Visit& visit) {
  int64_t out = 0;
  for (int64_t row = 0; row < source.rows; ++row)
    for (int64_t copy = 0; copy < source.high; ++copy)
      for (int64_t in = row * source.columns; in < (row + 1) * source.columns; ++in)
        for (int64_t k = 0; k < source.wide; ++k) visit(in, out++);
}

std::unique_ptr<Kernel> build_bilinear(const NodeView& node) {
  if (node.inputs[0].shape.size() == 0 || node.outputs[0].shape.size() == 0) return build_fill(node, 0);
  const Deconvolution made = bilinear_deconvolution(node.as<UpSampling>());
  const auto params = op_of<Deconvolution>().checked_params(&made, node.name);
  const NodeView view{op_of<Deconvolution>(), params.get(),  node.name, node.inputs,
                      node.outputs,           node.is_train, -1,        node.context};
  return build_deconvolution(view, nullptr);
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& p = node.as<UpSampling>();
  if (p.sample_type == "bilinear") return build_bilinear(node);
  const auto all = sources(p, node.inputs, node.outputs[0].shape);
  const bool sums = p.multi_input_mode == "sum";
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = functions::Wide<T>;
    return make_kernel([=](const Args& args) {
      for (size_t k = 0; k < all.size(); ++k) {
        const Source& source = all[k];
        const T* const x = args.in<T>(k);
        T* const y = args.out<T>();
        parallel_for(source.planes(), source.grain(), [&, adds = sums && k > 0](int64_t begin, int64_t end) {
          for (int64_t plane = begin; plane < end; ++plane) {
            const T* const from = x + plane * source.plane_size();
            T* const to = y + source.offset(plane);
            if (adds)
              for_block_elements(source, [=](int64_t in, int64_t out) {
                to[out] = convert<T>(functions::add(static_cast<C>(to[out]), static_cast<C>(from[in])));
              });
            else
              for_block_elements(source, [=](int64_t in, int64_t out) { to[out] = from[in]; });
          }
        });
      }
    });
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto all = sources(node.as<UpSamplingGrad>(), node.outputs, node.inputs[0].shape);
  return visit_dtype(node.inputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = functions::Wide<T>;
    return make_kernel([=](const Args& args) {
      const T* const dy = args.in<T>(0);
      for (size_t k = 0; k < all.size(); ++k) {
        const Source& source = all[k];
        T* const dx = args.out<T>(k);
        parallel_for(source.planes(), source.grain(), [&](int64_t begin, int64_t end) {
          std::vector<C> sums(static_cast<size_t>(source.plane_size()));
          for (int64_t plane = begin; plane < end; ++plane) {
            std::fill(sums.begin(), sums.end(), C(0));
            const T* const from = dy + source.offset(plane);
            for_block_elements(source, [&](int64_t in, int64_t out) {
              C& sum = sums[static_cast<size_t>(in)];
              sum = functions::add(sum, static_cast<C>(from[out]));
            });
            for (int64_t i = 0; i < source.plane_size(); ++i)
              dx[plane * source.plane_size() + i] = convert<T>(sums[static_cast<size_t>(i)]);
          }
        });
      }
    });
  });
}

}  // namespace

void add_upsample(ImplementationTable& table) {
  add_plain<UpSampling>(table, build_forward);
  add_plain<UpSamplingGrad>(table, build_backward);
}

}  // namespace symbind::cpu_backend
