#include "symbind/backend/control_flow.h"

#include <algorithm>
#include <utility>

#include "symbind/backend/loop_memory.h"
#include "symbind/backend/sub_plan.h"
#include "symbind/graph/attributes.h"
#include "symbind/ops/control_flow.h"

namespace symbind {
namespace {

// The arrays of a loop from input `first` of its node on, mapped to the variables of the body.
struct LoopArrays {
  size_t data, states, outputs;  // how many; outputs without states
  int64_t steps;
  std::vector<Tensor> variables;   // of the body
  std::vector<size_t> locations;   // of each input among them
  std::vector<size_t> data_bytes;  // of a slice
  std::vector<size_t> state_bytes;

  LoopArrays(const Foreach& p, std::span<const Tensor> inputs)
      : data(p.data()), states(p.states()), outputs(p.out_data()), steps(inputs[0].shape[0]), variables(p.inputs()) {
    for (size_t i = 0; i < p.inputs(); ++i) {
      const Tensor tensor = i < data ? slice_of(inputs[i]) : inputs[i];
      locations.push_back(p.location(i));
      variables[locations[i]] = {tensor.shape, tensor.dtype, Layout::plain};
      if (i < data) data_bytes.push_back(tensor.bytes());
      if (i >= data && i < data + states) state_bytes.push_back(tensor.bytes());
    }
  }
};

// ---- Forward --------------------------------------------------------------------------------------------------------

class ForeachKernel final : public Kernel {
 public:
  ForeachKernel(const NodeView& node, WriteCursors write_cursors)
      : arrays_(node.as<Foreach>(), node.inputs),
        plan_(node.as<Foreach>().body->network(), node.as<Foreach>().body->variables(), arrays_.variables,
              {.context = node.context, .is_train = node.is_train}),
        write_cursors_(std::move(write_cursors)),
        cursors_{arrays_.steps, static_cast<uint64_t>(plan_.random_slots()),
                 static_cast<uint64_t>(std::max(node.random_slot, 0))} {
    for (size_t i = 0; i < arrays_.outputs; ++i) output_bytes_.push_back(slice_of(node.outputs[i]).bytes());
    if (arrays_.steps == 0) copies_ = make_copy_plan(node.inputs.subspan(arrays_.data, arrays_.states), node.context);
    ScratchLayout scratch;
    at_body_ = scratch.take(std::max(plan_.scratch_bytes(), scratch_of(copies_)));
    for (const size_t bytes : arrays_.state_bytes) at_states_.push_back(scratch.take(2 * aligned_bytes(bytes)));
    at_cursors_ = scratch.take(is_random() ? static_cast<size_t>(arrays_.steps) * sizeof(RandomCursor) : 0);
    scratch_bytes = scratch.total();
    capturable = plan_.capturable();
    inputs_.resize(arrays_.variables.size());
    outputs_.resize(arrays_.outputs + arrays_.states);
    states_.resize(arrays_.states);
  }

  void run(const Args& args) override {
    Args inner = args;
    inner.scratch = offset(args.scratch, at_body_);
    if (arrays_.steps == 0) return copy_states(args, inner);
    auto* const cursors = cursors_of(args);
    if (is_random()) write_cursors_(args, cursors_, cursors);
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[arrays_.locations[i]] = args.inputs[i];
    for (size_t i = 0; i < arrays_.states; ++i) states_[i] = args.inputs[arrays_.data + i];
    for (int64_t step = 0; step < arrays_.steps; ++step) {
      inner.random = is_random() ? cursors + step : nullptr;
      run_step(args, inner, step);
    }
  }

 private:
  bool is_random() const { return cursors_.draws > 0; }

  // The cursors that the gradient reads, or scratch if there is no gradient.
  RandomCursor* cursors_of(const Args& args) const {
    void* const saved = args.outputs[arrays_.outputs + 2 * arrays_.states];
    return reinterpret_cast<RandomCursor*>(saved ? static_cast<std::byte*>(saved) : offset(args.scratch, at_cursors_));
  }

  // The state after a step: the last one is an output, earlier ones are stored for the gradient if there is one.
  void* state_after(const Args& args, size_t state, int64_t step) const {
    if (step == arrays_.steps - 1) return args.outputs[arrays_.outputs + state];
    const size_t bytes = arrays_.state_bytes[state];
    if (void* const saved = args.outputs[arrays_.outputs + arrays_.states + state])
      return offset(saved, static_cast<size_t>(step) * bytes);
    return offset(args.scratch, at_states_[state] + (step % 2 == 0 ? 0 : aligned_bytes(bytes)));
  }

  void run_step(const Args& args, const Args& inner, int64_t step) {
    const auto number = static_cast<size_t>(step);
    for (size_t i = 0; i < arrays_.data; ++i)
      inputs_[arrays_.locations[i]] = offset(args.inputs[i], number * arrays_.data_bytes[i]);
    for (size_t i = 0; i < arrays_.states; ++i) inputs_[arrays_.locations[arrays_.data + i]] = states_[i];
    for (size_t i = 0; i < arrays_.outputs; ++i) outputs_[i] = offset(args.outputs[i], number * output_bytes_[i]);
    for (size_t i = 0; i < arrays_.states; ++i) outputs_[arrays_.outputs + i] = state_after(args, i, step);
    plan_.forward(inner, {.inputs = inputs_, .outputs = outputs_});
    for (size_t i = 0; i < arrays_.states; ++i) states_[i] = outputs_[arrays_.outputs + i];
  }

  void copy_states(const Args& args, const Args& inner) {
    if (copies_)
      copies_->forward(inner, {.inputs = {args.inputs + arrays_.data, arrays_.states},
                               .outputs = {args.outputs + arrays_.outputs, arrays_.states}});
  }

  const LoopArrays arrays_;
  SubPlan plan_;
  std::unique_ptr<SubPlan> copies_;  // for loops without steps
  const WriteCursors write_cursors_;
  const StepCursors cursors_;
  std::vector<size_t> output_bytes_, at_states_;
  size_t at_body_ = 0, at_cursors_ = 0;
  std::vector<void*> inputs_, outputs_, states_;  // of the body in one step
};

// ---- Backward -------------------------------------------------------------------------------------------------------

// From the last step to the first: the body is recomputed from the stored state, then runs backward. So only one step's
// activations are in memory at a time. Gradients of inputs that every step reads are accumulated in place.
class ForeachGradKernel final : public Kernel {
 public:
  explicit ForeachGradKernel(const NodeView& node)
      : params_(node.as<ForeachGrad>()),
        results_(params_.body->outputs()),
        arrays_(params_, node.inputs.subspan(results_, params_.inputs())),
        plan_(params_.body->network(), params_.body->variables(), arrays_.variables, options_of(node)) {
    for (size_t i = 0; i < arrays_.outputs; ++i) output_bytes_.push_back(slice_of(node.inputs[i]).bytes());
    std::vector<Tensor> sums;
    for (const size_t input : requested_)
      if (input >= arrays_.data + arrays_.states) sums.push_back(node.outputs[input]);
    zeros_ = make_zero_plan(sums, node.context);
    if (arrays_.steps == 0) copies_ = make_copy_plan(node.outputs.subspan(arrays_.data, arrays_.states), node.context);
    ScratchLayout scratch;
    at_body_ = scratch.take(std::max({plan_.scratch_bytes(), scratch_of(zeros_), scratch_of(copies_)}));
    for (const size_t bytes : arrays_.state_bytes) at_states_.push_back(scratch.take(2 * aligned_bytes(bytes)));
    scratch_bytes = scratch.total();
    capturable = plan_.capturable();
    inputs_.resize(arrays_.variables.size());
    out_grads_.resize(results_);
    gradients_.resize(requested_.size());
    nothing_.resize(results_, nullptr);
  }

  void run(const Args& args) override {
    Args inner = args;
    inner.scratch = offset(args.scratch, at_body_);
    clear_sums(args, inner);
    if (arrays_.steps == 0) return copy_states(args, inner);
    const size_t saved = results_ + params_.inputs();
    const auto* const cursors = static_cast<const RandomCursor*>(args.inputs[saved + arrays_.states]);
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[arrays_.locations[i]] = args.inputs[results_ + i];
    for (int64_t step = arrays_.steps - 1; step >= 0; --step) {
      inner.random = plan_.random_slots() > 0 ? cursors + step : nullptr;
      run_step(args, inner, step);
    }
  }

 private:
  // The gradients of the states are passed from step to step, whether or not they are requested.
  SubPlanOptions options_of(const NodeView& node) {
    SubPlanOptions options{.context = node.context, .is_train = node.is_train};
    for (size_t i = 0; i < params_.inputs(); ++i) {
      const bool is_state = i >= arrays_.data && i < arrays_.data + arrays_.states;
      if (!params_.wants[i] && !is_state) continue;
      requested_.push_back(i);
      options.gradients.push_back(arrays_.locations[i]);
      options.adds.push_back(i >= arrays_.data + arrays_.states);
    }
    return options;
  }

  void clear_sums(const Args& args, const Args& inner) {
    if (!zeros_) return;
    std::vector<void*> sums;
    for (const size_t input : requested_)
      if (input >= arrays_.data + arrays_.states) sums.push_back(args.outputs[input]);
    run_zero_plan(zeros_, inner, sums);
  }

  // The gradient of the state before a step.
  void* state_grad(const Args& args, size_t state, int64_t step) const {
    if (step == 0) return args.outputs[arrays_.data + state];
    return offset(args.scratch, at_states_[state] + (step % 2 == 0 ? 0 : aligned_bytes(arrays_.state_bytes[state])));
  }

  void run_step(const Args& args, const Args& inner, int64_t step) {
    const auto number = static_cast<size_t>(step);
    for (size_t i = 0; i < arrays_.data; ++i)
      inputs_[arrays_.locations[i]] = offset(args.inputs[results_ + i], number * arrays_.data_bytes[i]);
    for (size_t i = 0; i < arrays_.states; ++i) {
      void* const history = args.inputs[results_ + params_.inputs() + i];
      inputs_[arrays_.locations[arrays_.data + i]] =
          step == 0 ? args.inputs[results_ + arrays_.data + i] : offset(history, (number - 1) * arrays_.state_bytes[i]);
    }
    for (size_t i = 0; i < arrays_.outputs; ++i) out_grads_[i] = offset(args.inputs[i], number * output_bytes_[i]);
    for (size_t i = 0; i < arrays_.states; ++i)
      out_grads_[arrays_.outputs + i] =
          step == arrays_.steps - 1 ? args.inputs[arrays_.outputs + i] : state_grad(args, i, step + 1);
    for (size_t k = 0; k < requested_.size(); ++k) gradients_[k] = gradient_of(args, requested_[k], step);
    plan_.forward(inner, {.inputs = inputs_, .outputs = nothing_});
    plan_.backward(inner, {.inputs = inputs_, .outputs = nothing_, .out_grads = out_grads_, .gradients = gradients_});
  }

  void* gradient_of(const Args& args, size_t input, int64_t step) const {
    if (input < arrays_.data) return offset(args.outputs[input], static_cast<size_t>(step) * arrays_.data_bytes[input]);
    if (input < arrays_.data + arrays_.states) return state_grad(args, input - arrays_.data, step);
    return args.outputs[input];
  }

  void copy_states(const Args& args, const Args& inner) {
    if (copies_)
      copies_->forward(inner, {.inputs = {args.inputs + arrays_.outputs, arrays_.states},
                               .outputs = {args.outputs + arrays_.data, arrays_.states}});
  }

  const ForeachGrad params_;
  const size_t results_;  // of the body, states included
  const LoopArrays arrays_;
  std::vector<size_t> requested_;  // inputs whose gradients the body computes
  SubPlan plan_;
  std::unique_ptr<SubPlan> zeros_, copies_;
  std::vector<size_t> output_bytes_, at_states_;
  size_t at_body_ = 0;
  std::vector<void*> inputs_, out_grads_, gradients_, nothing_;
};

}  // namespace

std::unique_ptr<Kernel> build_foreach(const NodeView& node, WriteCursors write_cursors) {
  const NameManager names;
  return std::make_unique<ForeachKernel>(node, std::move(write_cursors));
}

std::unique_ptr<Kernel> build_foreach_grad(const NodeView& node) {
  const NameManager names;
  return std::make_unique<ForeachGradKernel>(node);
}

}  // namespace symbind
