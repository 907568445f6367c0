#include "symbind/ops/while_loop.h"

#include <algorithm>

#include "symbind/backend/branch.h"
#include "symbind/backend/loop_memory.h"
#include "symbind/graph/attributes.h"

namespace symbind {
namespace {

// The arrays of a loop from input `first` of its node on, mapped to the variables of the condition and the body.
struct LoopArrays {
  LoopArrays(const WhileLoop& p, std::span<const Tensor> inputs)
      : variables(p.variables()), outputs(p.out_data()), most(p.max_iterations), variable_at(p.inputs(), -1) {
    for (size_t i = 0; i < variables; ++i) {
      const size_t input = p.input_of(i);
      variable_at[input] = static_cast<int>(i);
      input_of.push_back(input);
      bytes.push_back(inputs[input].bytes());
      first_values.push_back(inputs[input]);
    }
    for (const int64_t input : p.func_input_locs.get()) body.push_back(inputs[static_cast<size_t>(input)]);
    for (const int64_t input : p.cond_input_locs.get()) condition.push_back(inputs[static_cast<size_t>(input)]);
  }

  size_t variables, outputs;  // outputs without variables
  int64_t most;
  std::vector<int> variable_at;  // the variable whose initial value an input is, -1: none
  std::vector<size_t> input_of, bytes;
  std::vector<Tensor> first_values, body, condition;
};

// A network of the loop, with the current values of the variables instead of the initial ones.
class Part {
 public:
  Part(const Subgraph& graph, const Tuple& locations, const std::vector<Tensor>& tensors, const LoopArrays& arrays,
       const SubPlanOptions& options)
      : plan(graph.network(), graph.variables(), tensors, options),
        locations_(locations),
        arrays_(arrays),
        inputs_(locations.size()) {}

  std::span<void* const> inputs(void* const* of_node, const std::vector<void*>& values) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const auto input = static_cast<size_t>(locations_[i]);
      const int variable = arrays_.variable_at[input];
      inputs_[i] = variable < 0 ? of_node[input] : values[static_cast<size_t>(variable)];
    }
    return inputs_;
  }

  SubPlan plan;

 private:
  const Tuple locations_;
  const LoopArrays& arrays_;
  std::vector<void*> inputs_;
};

class Condition {
 public:
  Condition(const WhileLoop& p, const LoopArrays& arrays, Context context, ReadTruth read_truth)
      : part_(*p.condition, p.cond_input_locs, arrays.condition, arrays, {.context = context}),
        dtype_(part_.plan.output(0).dtype),
        read_truth_(std::move(read_truth)) {}

  size_t scratch_bytes() const { return part_.plan.scratch_bytes(); }
  bool holds(const Args& args, const Args& inner, void* const* inputs, const std::vector<void*>& values, void* result) {
    part_.plan.forward(inner, {.inputs = part_.inputs(inputs, values), .outputs = {&result, 1}});
    return read_truth_(args, result, dtype_);
  }

 private:
  Part part_;
  DType dtype_;
  ReadTruth read_truth_;
};

// ---- Forward --------------------------------------------------------------------------------------------------------

class WhileKernel final : public Kernel {
 public:
  WhileKernel(const NodeView& node, const BranchHooks& hooks)
      : params_(node.as<WhileLoop>()),
        arrays_(params_, node.inputs),
        condition_(params_, arrays_, node.context, hooks.read_truth),
        body_(*params_.body, params_.func_input_locs, arrays_.body, arrays_,
              {.context = node.context, .is_train = node.is_train}),
        write_cursors_(hooks.write_cursors),
        cursors_{arrays_.most, static_cast<uint64_t>(body_.plan.random_slots()),
                 static_cast<uint64_t>(std::max(node.random_slot, 0))},
        copies_(make_copy_plan(arrays_.first_values, node.context)),
        zeros_(make_zero_plan(node.outputs.first(arrays_.outputs), node.context)) {
    for (size_t i = 0; i < arrays_.outputs; ++i) output_bytes_.push_back(slice_of(node.outputs[i]).bytes());
    ScratchLayout scratch;
    at_number_ = scratch.take(sizeof(double));
    at_plan_ = scratch.take(
        std::max({condition_.scratch_bytes(), body_.plan.scratch_bytes(), scratch_of(copies_), scratch_of(zeros_)}));
    for (const size_t bytes : arrays_.bytes) at_values_.push_back(scratch.take(2 * aligned_bytes(bytes)));
    at_cursors_ = scratch.take(is_random() ? static_cast<size_t>(arrays_.most) * sizeof(RandomCursor) : 0);
    scratch_bytes = scratch.total();
    capturable = hooks.capturable;
    outputs_.resize(params_.results());
    values_.resize(arrays_.variables);
  }

  void run(const Args& args) override {
    Args inner = args;
    inner.scratch = offset(args.scratch, at_plan_);
    run_zero_plan(zeros_, inner, {args.outputs, arrays_.outputs});
    RandomCursor* const cursors = cursors_of(args);
    if (is_random()) write_cursors_(args, cursors_, cursors);
    for (size_t i = 0; i < arrays_.variables; ++i) values_[i] = args.inputs[arrays_.input_of[i]];
    for (int64_t step = 0; step < arrays_.most; ++step) {
      inner.random = nullptr;
      if (!condition_.holds(args, inner, args.inputs, values_, offset(args.scratch, at_number_))) break;
      inner.random = is_random() ? cursors + step : nullptr;
      run_step(args, inner, step);
    }
    copies_->forward(inner, {.inputs = values_, .outputs = {args.outputs + arrays_.outputs, arrays_.variables}});
  }

 private:
  bool is_random() const { return cursors_.draws > 0; }

  RandomCursor* cursors_of(const Args& args) const {
    void* const saved = args.outputs[params_.results() + arrays_.variables];
    return reinterpret_cast<RandomCursor*>(saved ? static_cast<std::byte*>(saved) : offset(args.scratch, at_cursors_));
  }

  // Values are stored for the gradient if there is one.
  void* value_after(const Args& args, size_t variable, int64_t step) const {
    const size_t bytes = arrays_.bytes[variable];
    if (void* const saved = args.outputs[params_.results() + variable])
      return offset(saved, static_cast<size_t>(step) * bytes);
    return offset(args.scratch, at_values_[variable] + (step % 2 == 0 ? 0 : aligned_bytes(bytes)));
  }

  void run_step(const Args& args, const Args& inner, int64_t step) {
    for (size_t i = 0; i < arrays_.outputs; ++i)
      outputs_[i] = offset(args.outputs[i], static_cast<size_t>(step) * output_bytes_[i]);
    for (size_t i = 0; i < arrays_.variables; ++i) outputs_[arrays_.outputs + i] = value_after(args, i, step);
    body_.plan.forward(inner, {.inputs = body_.inputs(args.inputs, values_), .outputs = outputs_});
    for (size_t i = 0; i < arrays_.variables; ++i) values_[i] = outputs_[arrays_.outputs + i];
  }

  const WhileLoop params_;
  const LoopArrays arrays_;
  Condition condition_;
  Part body_;
  const WriteCursors write_cursors_;
  const StepCursors cursors_;
  std::unique_ptr<SubPlan> copies_, zeros_;
  std::vector<size_t> output_bytes_, at_values_;
  size_t at_number_ = 0, at_plan_ = 0, at_cursors_ = 0;
  std::vector<void*> outputs_, values_;
};

// ---- Backward -------------------------------------------------------------------------------------------------------

// The number of steps is found by evaluating the condition again; then steps run as in foreach, from the last to the
// first, each recomputed from the values before it.
class WhileGradKernel final : public Kernel {
 public:
  WhileGradKernel(const NodeView& node, const BranchHooks& hooks)
      : params_(node.as<WhileLoopGrad>()),
        arrays_(params_, node.inputs.subspan(params_.results(), params_.inputs())),
        condition_(params_, arrays_, node.context, hooks.read_truth),
        body_(*params_.body, params_.func_input_locs, arrays_.body, arrays_, options_of(node)),
        copies_(make_copy_plan(arrays_.first_values, node.context)) {
    for (size_t i = 0; i < arrays_.outputs; ++i) output_bytes_.push_back(slice_of(node.inputs[i]).bytes());
    std::vector<Tensor> sums;
    for (size_t i = 0; i < params_.inputs(); ++i)
      if (params_.wants[i] && arrays_.variable_at[i] < 0) {
        summed_.push_back(i);
        sums.push_back(node.outputs[i]);
      }
    zeros_ = make_zero_plan(sums, node.context);
    ScratchLayout scratch;
    at_number_ = scratch.take(sizeof(double));
    at_plan_ = scratch.take(
        std::max({condition_.scratch_bytes(), body_.plan.scratch_bytes(), scratch_of(copies_), scratch_of(zeros_)}));
    for (const size_t bytes : arrays_.bytes) at_grads_.push_back(scratch.take(2 * aligned_bytes(bytes)));
    scratch_bytes = scratch.total();
    capturable = hooks.capturable;
    values_.resize(arrays_.variables);
    out_grads_.resize(params_.results());
    gradients_.resize(requested_.size());
    nothing_.resize(params_.results(), nullptr);
  }

  void run(const Args& args) override {
    Args inner = args;
    inner.scratch = offset(args.scratch, at_plan_);
    inner.random = nullptr;
    std::vector<void*> sums;
    for (const size_t input : summed_) sums.push_back(args.outputs[input]);
    run_zero_plan(zeros_, inner, sums);
    const int64_t steps = count_steps(args, inner);
    if (steps == 0) return pass_on(args, inner);
    const auto* const cursors =
        static_cast<const RandomCursor*>(args.inputs[params_.results() + params_.inputs() + arrays_.variables]);
    for (int64_t step = steps - 1; step >= 0; --step) {
      inner.random = body_.plan.random_slots() > 0 ? cursors + step : nullptr;
      run_step(args, inner, step, steps);
    }
  }

 private:
  // The gradients of the variables are passed from step to step, whether or not they are requested.
  SubPlanOptions options_of(const NodeView& node) {
    SubPlanOptions options{.context = node.context, .is_train = node.is_train};
    const Tuple& locations = params_.func_input_locs;
    for (size_t i = 0; i < locations.size(); ++i) {
      const auto input = static_cast<size_t>(locations[i]);
      const bool is_variable = arrays_.variable_at[input] >= 0;
      if (!is_variable && !params_.wants[input]) continue;
      requested_.push_back(input);
      options.gradients.push_back(i);
      options.adds.push_back(!is_variable);
    }
    return options;
  }

  void* const* inputs_of(const Args& args) const { return args.inputs + params_.results(); }

  // The values before a step, in values_.
  void find_values(const Args& args, int64_t step) {
    for (size_t i = 0; i < arrays_.variables; ++i) {
      void* const saved = args.inputs[params_.results() + params_.inputs() + i];
      values_[i] = step == 0 ? inputs_of(args)[arrays_.input_of[i]]
                             : offset(saved, static_cast<size_t>(step - 1) * arrays_.bytes[i]);
    }
  }

  int64_t count_steps(const Args& args, const Args& inner) {
    int64_t steps = 0;
    for (; steps < arrays_.most; ++steps) {
      find_values(args, steps);
      if (!condition_.holds(args, inner, inputs_of(args), values_, offset(args.scratch, at_number_))) break;
    }
    return steps;
  }

  // The gradient of the value before a step.
  void* value_grad(const Args& args, size_t variable, int64_t step) const {
    if (step == 0) return args.outputs[arrays_.input_of[variable]];
    return offset(args.scratch, at_grads_[variable] + (step % 2 == 0 ? 0 : aligned_bytes(arrays_.bytes[variable])));
  }

  void run_step(const Args& args, const Args& inner, int64_t step, int64_t steps) {
    find_values(args, step);
    for (size_t i = 0; i < arrays_.outputs; ++i)
      out_grads_[i] = offset(args.inputs[i], static_cast<size_t>(step) * output_bytes_[i]);
    for (size_t i = 0; i < arrays_.variables; ++i)
      out_grads_[arrays_.outputs + i] =
          step == steps - 1 ? args.inputs[arrays_.outputs + i] : value_grad(args, i, step + 1);
    for (size_t k = 0; k < requested_.size(); ++k) {
      const int variable = arrays_.variable_at[requested_[k]];
      gradients_[k] =
          variable < 0 ? args.outputs[requested_[k]] : value_grad(args, static_cast<size_t>(variable), step);
    }
    SubPlanArrays arrays{.inputs = body_.inputs(inputs_of(args), values_), .outputs = nothing_};
    body_.plan.forward(inner, arrays);
    arrays.out_grads = out_grads_;
    arrays.gradients = gradients_;
    body_.plan.backward(inner, arrays);
  }

  // Without steps the final values are the initial ones.
  void pass_on(const Args& args, const Args& inner) {
    std::vector<void*> to;
    for (const size_t input : arrays_.input_of) to.push_back(args.outputs[input]);
    copies_->forward(inner, {.inputs = {args.inputs + arrays_.outputs, arrays_.variables}, .outputs = to});
  }

  const WhileLoopGrad params_;
  const LoopArrays arrays_;
  std::vector<size_t> requested_, summed_;  // inputs whose gradients the body computes; those that are sums over steps
  Condition condition_;
  Part body_;
  std::unique_ptr<SubPlan> copies_, zeros_;
  std::vector<size_t> output_bytes_, at_grads_;
  size_t at_number_ = 0, at_plan_ = 0;
  std::vector<void*> values_, out_grads_, gradients_, nothing_;
};

}  // namespace

std::unique_ptr<Kernel> build_while_loop(const NodeView& node, const BranchHooks& hooks) {
  const NameManager names;
  return std::make_unique<WhileKernel>(node, hooks);
}
std::unique_ptr<Kernel> build_while_loop_grad(const NodeView& node, const BranchHooks& hooks) {
  const NameManager names;
  return std::make_unique<WhileGradKernel>(node, hooks);
}

}  // namespace symbind
