#include "symbind/ops/pool_indices.h"

#include "symbind/backend/cuda/max_pool.h"
#include "symbind/backend/cuda/pool_windows.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/ops/conv.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

template <class P>
constexpr bool is_gradient = std::is_same_v<P, PoolingIndicesGrad>;

template <class P>
PoolingSize size_of(const NodeView& node) {
  const Shape& data = node.inputs[is_gradient<P> ? 2 : 0].shape;
  return symbind::size_of(node.as<P>(), data, is_gradient<P> ? node.inputs[0].shape : node.outputs[0].shape);
}

template <class P>
std::string refuse(const NodeView& node) {
  if (!is_floating(node.outputs[0].dtype)) return "wants floating numbers";
  const PoolingSize size = size_of<P>(node);
  return has_pooling_indices(size) ? refuse_windows(size) : "windows with too many elements for an index";
}

// The data's layout decides in forward; in backward that of the indices, which are the same.
template <class P>
constexpr size_t leading_input = is_gradient<P> ? 1 : 0;

template <class P>
std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  if (node.inputs[leading_input<P>].layout != Layout::channels_last) return std::nullopt;
  if (is_channels_last(node.as<P>().layout)) return std::nullopt;
  return PreferredLayouts{std::vector(node.inputs.size(), Layout::channels_last),
                          std::vector(node.outputs.size(), Layout::channels_last)};
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  const PoolingSize size = size_of<P>(node);
  const bool last = size.channels_last || node.inputs[leading_input<P>].layout == Layout::channels_last;
  const PoolWindows windows(size, last, node.as<P>());
  return make_step(node, [windows, dtype = node.outputs[0].dtype](const Args& args) {
    if (is_gradient<P>)
      queue_max_gradient(stream_of(args), dtype, windows, args.inputs[0], args.inputs[1], args.outputs[0]);
    else
      queue_maxima(stream_of(args), dtype, windows, args.inputs[0], args.outputs[0], args.outputs[1]);
  });
}

template <class P>
void add(ImplementationTable& table) {
  table.add<P>({"cuda", refuse<P>, build<P>, preferred_layouts<P>, false, Tier::specialised});
}

}  // namespace

void add_pool_indices(ImplementationTable& table) {
  add<PoolingIndices>(table);
  add<PoolingIndicesGrad>(table);
}

}  // namespace symbind::cuda_backend
