#include "symbind/ops/cond.h"

#include <algorithm>

#include "symbind/backend/branch.h"
#include "symbind/backend/loop_memory.h"
#include "symbind/graph/attributes.h"

namespace symbind {
namespace {

std::vector<Tensor> tensors_at(std::span<const Tensor> inputs, const Tuple& locations) {
  std::vector<Tensor> tensors;
  for (const int64_t location : locations) tensors.push_back(inputs[static_cast<size_t>(location)]);
  return tensors;
}

// A network and which inputs of the node it reads.
struct Part {
  Part(const Subgraph& graph, const Tuple& at, std::span<const Tensor> inputs, const SubPlanOptions& options)
      : plan(graph.network(), graph.variables(), tensors_at(inputs, at), options), locations(at), inputs_(at.size()) {}

  std::span<void* const> inputs(void* const* of_node) {
    for (size_t i = 0; i < locations.size(); ++i) inputs_[i] = of_node[locations[i]];
    return inputs_;
  }

  SubPlan plan;
  Tuple locations;

 private:
  std::vector<void*> inputs_;
};

// The condition: whether the first branch is taken.
class Condition {
 public:
  Condition(const Cond& p, std::span<const Tensor> inputs, Context context, ReadTruth read_truth)
      : part_(*p.condition, p.cond_input_locs, inputs, {.context = context}),
        dtype_(part_.plan.output(0).dtype),
        read_truth_(std::move(read_truth)) {}

  size_t scratch_bytes() const { return part_.plan.scratch_bytes(); }
  // The condition is written to the scratch memory `result`.
  bool holds(const Args& args, const Args& inner, void* const* inputs, void* result) {
    part_.plan.forward(inner, {.inputs = part_.inputs(inputs), .outputs = {&result, 1}});
    return read_truth_(args, result, dtype_);
  }

 private:
  Part part_;
  DType dtype_;
  ReadTruth read_truth_;
};

class CondKernel final : public Kernel {
 public:
  CondKernel(const NodeView& node, const BranchHooks& hooks)
      : params_(node.as<Cond>()),
        condition_(params_, node.inputs, node.context, hooks.read_truth),
        branches_{{*params_.then_branch, params_.then_input_locs, node.inputs, options_of(node)},
                  {*params_.else_branch, params_.else_input_locs, node.inputs, options_of(node)}},
        write_cursors_(hooks.write_cursors),
        slot_(static_cast<uint64_t>(std::max(node.random_slot, 0))) {
    ScratchLayout scratch;
    at_number_ = scratch.take(sizeof(double));
    at_cursor_ = scratch.take(sizeof(RandomCursor));
    at_plan_ = scratch.take(
        std::max({condition_.scratch_bytes(), branches_[0].plan.scratch_bytes(), branches_[1].plan.scratch_bytes()}));
    scratch_bytes = scratch.total();
    capturable = hooks.capturable;
  }

  void run(const Args& args) override {
    Args inner = args;
    inner.scratch = offset(args.scratch, at_plan_);
    const bool holds = condition_.holds(args, inner, args.inputs, offset(args.scratch, at_number_));
    Part& branch = branches_[holds ? 0 : 1];
    if (branch.plan.random_slots() > 0) {
      void* const saved = args.outputs[params_.outputs()];
      auto* const cursor = static_cast<RandomCursor*>(saved ? saved : offset(args.scratch, at_cursor_));
      write_cursors_(args, {1, static_cast<uint64_t>(branch.plan.random_slots()), slot_}, cursor);
      inner.random = cursor;
    }
    branch.plan.forward(inner, {.inputs = branch.inputs(args.inputs), .outputs = {args.outputs, params_.outputs()}});
  }

 private:
  static SubPlanOptions options_of(const NodeView& node) {
    return {.context = node.context, .is_train = node.is_train};
  }

  const Cond params_;
  Condition condition_;
  Part branches_[2];
  const WriteCursors write_cursors_;
  const uint64_t slot_;
  size_t at_number_ = 0, at_cursor_ = 0, at_plan_ = 0;
};

// The gradients of one branch; the gradients of inputs that it does not read are 0.
struct BranchGrad {
  BranchGrad(const CondGrad& p, const Subgraph& graph, const Tuple& locations, const NodeView& node) {
    const auto inputs = node.inputs.subspan(p.outputs(), p.inputs());
    SubPlanOptions options{.context = node.context, .is_train = node.is_train};
    std::vector<Tensor> unread;
    for (size_t i = 0; i < p.inputs(); ++i) {
      if (!p.wants[i]) continue;
      const auto at = std::find(locations.begin(), locations.end(), static_cast<int64_t>(i));
      if (at == locations.end()) {
        zeroed.push_back(i);
        unread.push_back(node.outputs[i]);
      } else {
        requested.push_back(i);
        options.gradients.push_back(static_cast<size_t>(at - locations.begin()));
      }
    }
    if (!requested.empty()) part = std::make_unique<Part>(graph, locations, inputs, options);
    zeros = make_zero_plan(unread, node.context);
  }
  size_t scratch_bytes() const { return std::max(part ? part->plan.scratch_bytes() : 0, scratch_of(zeros)); }

  std::unique_ptr<Part> part;  // none: it reads no input whose gradient is requested
  std::unique_ptr<SubPlan> zeros;
  std::vector<size_t> requested, zeroed;
};

class CondGradKernel final : public Kernel {
 public:
  CondGradKernel(const NodeView& node, const BranchHooks& hooks)
      : params_(node.as<CondGrad>()),
        condition_(params_, node.inputs.subspan(params_.outputs(), params_.inputs()), node.context, hooks.read_truth),
        branches_{{params_, *params_.then_branch, params_.then_input_locs, node},
                  {params_, *params_.else_branch, params_.else_input_locs, node}},
        nothing_(params_.outputs(), nullptr) {
    ScratchLayout scratch;
    at_number_ = scratch.take(sizeof(double));
    at_plan_ = scratch.take(
        std::max({condition_.scratch_bytes(), branches_[0].scratch_bytes(), branches_[1].scratch_bytes()}));
    scratch_bytes = scratch.total();
    capturable = hooks.capturable;
  }

  void run(const Args& args) override {
    Args inner = args;
    inner.scratch = offset(args.scratch, at_plan_);
    void* const* const inputs = args.inputs + params_.outputs();
    BranchGrad& branch = branches_[condition_.holds(args, inner, inputs, offset(args.scratch, at_number_)) ? 0 : 1];
    run_zero_plan(branch.zeros, inner, addresses(args, branch.zeroed));
    if (!branch.part) return;
    inner.random = static_cast<const RandomCursor*>(inputs[params_.inputs()]);
    const auto gradients = addresses(args, branch.requested);
    SubPlanArrays arrays{.inputs = branch.part->inputs(inputs), .outputs = nothing_};
    branch.part->plan.forward(inner, arrays);
    arrays.out_grads = {args.inputs, params_.outputs()};
    arrays.gradients = gradients;
    branch.part->plan.backward(inner, arrays);
  }

 private:
  static std::vector<void*> addresses(const Args& args, const std::vector<size_t>& outputs) {
    std::vector<void*> found;
    for (const size_t output : outputs) found.push_back(args.outputs[output]);
    return found;
  }

  const CondGrad params_;
  Condition condition_;
  BranchGrad branches_[2];
  std::vector<void*> nothing_;
  size_t at_number_ = 0, at_plan_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> build_cond(const NodeView& node, const BranchHooks& hooks) {
  const NameManager names;
  return std::make_unique<CondKernel>(node, hooks);
}
std::unique_ptr<Kernel> build_cond_grad(const NodeView& node, const BranchHooks& hooks) {
  const NameManager names;
  return std::make_unique<CondGradKernel>(node, hooks);
}

}  // namespace symbind
