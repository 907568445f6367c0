#include "symbind/passes/concatenated_rows.h"

#include <algorithm>
#include <span>

#include "symbind/ops/concat.h"
#include "symbind/ops/reshape.h"
#include "symbind/passes/fuse.h"

namespace symbind {

void ConcatenatedRows::note(const GraphNode& node) {
  const auto* params = params_if<Concat>(node);
  if (!params || params->dim != 0 || old_.tensor(node.first_output).shape.rank() != 2) return;
  std::vector<TensorId> parts;
  for (const TensorId input : node.inputs) parts.push_back(without_views(input));
  known_[parts[0]].push_back({parts, rewriter_.now(node.first_output)});
}

TensorId ConcatenatedRows::of(std::vector<TensorId> parts, const GraphNode& like, const std::string& name) {
  int64_t rows = 0;
  for (TensorId& part : parts) {
    rows += old_.tensor(part).shape[0];
    part = without_views(part);
  }
  const Shape shape{rows, old_.tensor(parts[0]).shape[1]};
  std::vector<Known>& same_begin = known_[parts[0]];
  const auto same = std::ranges::find(same_begin, parts, &Known::parts);
  if (same != same_begin.end()) return same->concatenated;

  TensorId concatenated = TensorId::none;
  if (const TensorId whole = split_from(parts); whole != TensorId::none) {
    concatenated = append(Reshape{.shape = {rows, shape[1]}}, name, {rewriter_.now(whole)}, like, shape);
  } else {
    std::vector<TensorId> pieces;  // of the new graph: parts, or parts that are concatenated already
    for (size_t i = 0; i < parts.size();) {
      const Known* longest = nullptr;
      for (const Known& known : known_[parts[i]])
        if ((!longest || known.parts.size() > longest->parts.size()) && known.parts.size() <= parts.size() - i &&
            std::ranges::equal(known.parts, std::span(parts).subspan(i, known.parts.size())))
          longest = &known;
      pieces.push_back(longest ? longest->concatenated : rewriter_.now(parts[i]));
      i += longest ? longest->parts.size() : 1;
    }
    concatenated = append(Concat{.num_args = static_cast<int64_t>(pieces.size()), .dim = 0}, name, pieces, like, shape);
  }
  known_[parts[0]].push_back({parts, concatenated});
  return concatenated;
}

TensorId ConcatenatedRows::append(NodePtr source, std::vector<TensorId> inputs, const GraphNode& like,
                                  const Shape& shape) {
  Graph& graph = rewriter_.graph();
  GraphNode& appended = graph.append(std::move(source), std::move(inputs));
  appended.context = like.context;
  graph.tensor(appended.first_output) = {shape, old_.tensor(like.first_output).dtype, Layout::plain};
  return appended.first_output;
}

TensorId ConcatenatedRows::without_views(TensorId matrix) const {
  for (;;) {
    const GraphNode& maker = old_.producer(matrix);
    if (maker.is_variable() || !maker.op().view ||
        !(old_.tensor(maker.inputs[0]).shape == old_.tensor(maker.first_output).shape))
      return matrix;
    matrix = maker.inputs[0];
  }
}

// The array whose parts along the first axis these are, all and in order; else none.
TensorId ConcatenatedRows::split_from(const std::vector<TensorId>& parts) const {
  const GraphNode& maker = old_.producer(parts[0]);
  const auto* params = params_if<SliceChannel>(maker);
  if (!params || params->axis != 0 || static_cast<size_t>(maker.outputs) != parts.size()) return TensorId::none;
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i] != maker.first_output + static_cast<int>(i)) return TensorId::none;
  return maker.inputs[0];
}

}  // namespace symbind
