// A gradient sums over the repetitions, as sum does, on a view of the array with one axis for each of them.
#include "symbind/ops/tile.h"

#include "symbind/backend/cuda/step.h"
#include "symbind/ops/reduce.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// The sum as a node.
struct RepetitionSum {
  std::shared_ptr<const void> params;
  std::vector<Tensor> inputs, outputs;
  bool fits = true;  // are there few enough axes?

  NodeView view(const NodeView& node) const {
    return {op_of<Sum>(), params.get(), node.name, inputs, outputs, node.is_train, -1, node.context};
  }
};

// Axes of the same kind are merged, so that there are few.
template <class P>
RepetitionSum repetition_sum(const NodeView& node) {
  RepetitionSum sum;
  Shape shape = Shape::scalar(), left = Shape::scalar();
  Tuple summed;
  bool was_repetition = false;
  for (const RepeatedAxis& axis : repeated_axes(node.as<P>(), node.outputs[0].shape)) {
    if (axis.extent == 1) continue;
    if (shape.rank() > 0 && was_repetition == axis.repeats) {
      shape[shape.rank() - 1] *= axis.extent;
      if (!axis.repeats) left[left.rank() - 1] *= axis.extent;
      continue;
    }
    if (shape.rank() == Shape::max_rank) {
      sum.fits = false;
      return sum;
    }
    if (axis.repeats)
      summed.push_back(shape.rank());
    else
      left.push_back(axis.extent);
    shape.push_back(axis.extent);
    was_repetition = axis.repeats;
  }
  if (summed.empty()) {  // an axis of one element is summed
    sum.fits = shape.rank() < Shape::max_rank;
    summed.push_back(shape.rank());
    if (sum.fits) shape.push_back(1);
  }
  if (left.rank() == 0) left.push_back(1);
  const Sum made{.axis = summed};
  sum.params = op_of<Sum>().checked_params(&made, node.name);
  sum.inputs = {{shape, node.inputs[0].dtype, Layout::plain}};
  sum.outputs = {{left, node.outputs[0].dtype, Layout::plain}};
  return sum;
}

template <class P>
std::string refuse(const NodeView& node) {
  for (const Tensor& tensor : node.inputs)
    if (tensor.layout != Layout::plain) return "needs plain arrays";
  if (node.inputs[0].shape.size() == 0) return "";
  const RepetitionSum sum = repetition_sum<P>(node);
  if (!sum.fits) return "too many axes";
  return choose(sum.view(node)).tier == Tier::host ? "sum refuses it" : "";
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  if (node.inputs[0].shape.size() == 0)
    return make_step(node, [bytes = node.outputs[0].bytes()](const Args& args) {
      if (bytes > 0) cudaMemsetAsync(args.outputs[0], 0, bytes, stream_of(args));
    });
  const RepetitionSum sum = repetition_sum<P>(node);
  const NodeView view = sum.view(node);
  return choose(view).build(view);
}

}  // namespace

void add_tile(ImplementationTable& table) {
  table.add<TileGrad>({"cuda", refuse<TileGrad>, build<TileGrad>});
  table.add<RepeatGrad>({"cuda", refuse<RepeatGrad>, build<RepeatGrad>});
}

}  // namespace symbind::cuda_backend
