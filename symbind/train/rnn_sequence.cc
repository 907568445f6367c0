#include "symbind/train/rnn_sequence.h"

#include "symbind/core/error.h"
#include "symbind/graph/builder.h"

namespace symbind {
namespace {

std::vector<Symbol> split(int64_t length, const Symbol& merged, int axis) {
  require(merged.size() == 1, "[unroll] inputs is a group of ", merged.size(),
          " symbols; give them as a list, one for each step");
  require(length > 0, "[unroll] length must be above 0: ", length);
  const Symbol parts =
      apply("split", merged,
            {{"axis", std::to_string(axis)}, {"num_outputs", std::to_string(length)}, {"squeeze_axis", "1"}});
  std::vector<Symbol> steps;
  for (size_t i = 0; i < parts.size(); ++i) steps.push_back(parts[i]);
  return steps;
}

Symbol merge_steps(const std::vector<Symbol>& steps, int axis) {
  const std::string text = std::to_string(axis);
  std::vector<Symbol> expanded;
  for (const Symbol& step : steps) expanded.push_back(apply("expand_dims", step, {{"axis", text}}));
  return apply("Concat", Inputs(expanded), {{"dim", text}});
}

}  // namespace

const Symbol& RNNSequence::merged() const {
  require(is_merged_, "[unroll] the sequence is a list of ", symbols_.size(),
          " symbols; with merge_outputs = true it is one");
  return symbols_.front();
}

const std::vector<Symbol>& RNNSequence::steps() const {
  require(!is_merged_, "[unroll] the sequence is one symbol; with merge_outputs = false it is a list");
  return symbols_;
}

int time_axis(const std::string& layout) {
  const auto found = layout.find('T');
  require(found != std::string::npos, "[unroll] layout must name an axis of time, as NTC and TNC do: ", layout);
  return static_cast<int>(found);
}

RNNSequence as_sequence(std::optional<int64_t> length, const RNNSequence& sequence, const std::string& layout,
                        std::optional<bool> merge) {
  const int axis = time_axis(layout);
  if (sequence.is_merged()) {
    if (merge != false) return sequence;
    require(length.has_value(), "[unroll] the number of steps of a merged sequence is not known");
    return split(*length, sequence.merged(), axis);
  }
  require(!length || static_cast<int64_t>(sequence.steps().size()) == *length, "[unroll] length is ",
          length.value_or(0), " and there are ", sequence.steps().size(), " inputs");
  if (merge != true) return sequence;
  return merge_steps(sequence.steps(), axis);
}

}  // namespace symbind
