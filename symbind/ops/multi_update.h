// Shared by the operators that update many weights in one call. Inputs are grouped by weight, followed by arrays for
// all weights; output i is the new weight i.
#pragma once

#include <string>

#include "symbind/ops/floating.h"
#include "symbind/ops/update.h"

namespace symbind {

// weight_0, grad_0, weight_1, grad_1, …
inline auto repeated(Names stems) {
  return [stems = std::move(stems)](const auto& /*params*/, size_t index) {
    return stems[index % stems.size()] + "_" + std::to_string(index / stems.size());
  };
}

// The inputs of one weight (weight, grad and states), and the arrays after those of all weights.
struct MultiInputs {
  Names each, after = {};
  bool float32_states = false;  // else of the weight's type

  // The inputs of a weight that have its type.
  size_t of_one_type() const { return float32_states ? 2 : each.size(); }
};

inline void infer_multi_shapes(const MultiInputs& inputs, Shapes& s) {
  const size_t per_weight = inputs.each.size();
  for (size_t i = 0; i < s.outputs(); ++i) {
    const size_t first = i * per_weight;
    for (size_t k = 0; k < per_weight; ++k) s.output(i).meet(s.input(first + k));
    for (size_t k = 0; k < per_weight; ++k) s.input(first + k).meet(s.output(i));
  }
}

inline void infer_multi_types(const MultiInputs& inputs, Types& t) {
  const size_t per_weight = inputs.each.size(), same = inputs.of_one_type();
  for (size_t i = 0; i < t.outputs(); ++i) {
    const size_t first = i * per_weight;
    DType common = t.output(i);
    for (size_t k = 0; k < same; ++k)
      if (t.input(first + k).known()) common = t.input(first + k);
    require_floating(t, "weight", common);
    for (size_t k = same; k < per_weight; ++k) t.input(first + k).meet(DType::float32);
    if (common == DType::none) continue;
    for (size_t k = 0; k < same; ++k) t.input(first + k).meet(common);
    t.output(i).meet(common);
  }
}

// Inputs, outputs, updated states, shapes and types of an operator that updates `count` weights. The arrays after those
// of all weights are float32 and have `shape_after(params)`.
template <class P, class ShapeAfter>
Op<P>& add_multi_inputs(Op<P>& op, int64_t P::*count, const MultiInputs& inputs, ShapeAfter shape_after) {
  const size_t per_weight = inputs.each.size();
  const auto all_states = [count, per_weight](const P& p) { return count_of(p.*count) * per_weight; };
  return op
      .inputs([=, after = inputs.after.size()](const P& p) { return all_states(p) + after; },
              [=](const P& p, size_t index) {
                return index < all_states(p) ? repeated(inputs.each)(p, index) : inputs.after[index - all_states(p)];
              })
      .outputs(count, repeated({"output"}))
      .also_updates([=](const P& p, size_t input) { return input < all_states(p) && input % per_weight >= 2; })
      .infer_shape([=](const P& p, Shapes& s) {
        infer_multi_shapes(inputs, s);
        for (size_t i = all_states(p); i < s.inputs(); ++i) s.input(i).meet(shape_after(p));
      })
      .infer_type([=](const P& p, Types& t) {
        infer_multi_types(inputs, t);
        for (size_t i = all_states(p); i < t.inputs(); ++i) t.input(i).meet(DType::float32);
      });
}
template <class P>
Op<P>& add_multi_inputs(Op<P>& op, int64_t P::*count, const MultiInputs& inputs) {
  return add_multi_inputs(op, count, inputs, [](const P&) { return Shape{}; });
}

// A list must have one number per weight.
inline void require_one_each(const char* name, size_t given, int64_t weights) {
  require(given == static_cast<size_t>(weights), name, " must have as many numbers as there are weights: ", given,
          " for ", weights);
}

template <class P>
Op<P>& add_num_weights(Op<P>& op) {
  return op.param(&P::num_weights, "num_weights", "number of weights that are updated", at_least(1));
}

}  // namespace symbind
