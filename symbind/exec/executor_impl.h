// The members of an executor; shared by executor.cc (compiling and running) and bind.cc (making executors).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "symbind/core/busy.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/gradient_watch.h"
#include "symbind/exec/plan.h"
#include "symbind/passes/lower.h"

namespace symbind {

// The names of shared buffers in SimpleBindOptions::shared_results.
inline std::string buffer_of_output(size_t index) { return "output" + std::to_string(index); }
inline std::string buffer_of_gradient(const std::string& argument) { return "grad:" + argument; }

struct Executor::Impl {
  Symbol symbol;
  Context context;
  std::map<std::string, Context> group2ctx;
  CompileOptions options;
  Graph graph;  // the network with its shapes and types, from which every plan is compiled

  std::vector<std::string> arg_names, aux_names, output_names;
  std::vector<NDArray> args, grads, aux, outputs;
  std::vector<GradReq> reqs;  // null where there is no gradient array
  // The arrays that plans write for gradient arrays whose type differs from their argument's; empty elsewhere.
  std::vector<NDArray> typed_grads;
  bool args_distinct = true;  // are all argument names distinct?
  NamedArrays arg_dict, grad_dict, aux_dict, output_dict;
  // The original allocations of args, grads and outputs: reshape() uses views of these while they are large enough.
  std::vector<NDArray> arg_buffers, grad_buffers, output_buffers;
  // Of each argument: did simple_bind() take it, and its gradient, from shared buffers?
  std::vector<bool> in_shared_buffers;

  std::shared_ptr<Workspace> workspace;
  std::shared_ptr<NodeObjects> objects = std::make_shared<NodeObjects>();
  std::shared_ptr<const Monitor> monitor;  // shared, since it may replace itself while it is called
  bool monitor_all = false;
  mutable BusyFlag busy;

  // Where a plan reads the gradient of an output: in the array passed to backward() if possible, else in a copy.
  struct OutGrad {
    size_t outside = 0;  // the plan's number for it
    bool replaceable = false;
    NDArray copy;  // allocated on first use, if replaceable

    void take(Plan& plan, const NDArray& given, const NDArray& output);
  };
  class OutGradScope;
  struct Compiled {
    std::unique_ptr<Plan> plan;
    std::vector<std::optional<OutGrad>> out_grads;  // by output; none where the plan needs no gradient of it
    // By milestone of backward: the arguments whose gradients are complete there. Known from the first watched run on.
    std::optional<std::vector<std::vector<size_t>>> completed;
  };
  using PlanKey = std::pair<PlanKind, bool>;  // and whether it is monitored
  std::map<PlanKey, std::unique_ptr<Compiled>> plans;

  // The last forward: its plan, its mode, and the stamp it set on the workspace.
  Compiled* ran = nullptr;
  bool ran_train = false;
  uint64_t stamp = 0;
  uint64_t spent = 0;  // the stamp that the last backward set

  explicit Impl(Symbol net) : symbol(std::move(net)) {}
  bool has_gradients() const;
  bool is_poisoned() const { return options.poison || poison_everything(); }
  struct Variable {
    NodeId node;
    bool is_argument;
    size_t index;  // in args, or in aux
  };
  std::vector<Variable> variables() const;
  Compiled& compiled(PlanKind kind);
  Compiled& default_plan();
  const Plan& largest_plan();
  Compiled compile(PlanKind kind, bool monitored) const;
  PlanOptions plan_options(const Graph& planned, bool monitored) const;
  std::vector<NDArray> outside_arrays(const Lowered& lowered, std::vector<std::optional<OutGrad>>& out_grads) const;
  void take_inputs(const NamedArrays& inputs) const;
  void take_out_grads(Compiled& compiled, const Arrays& given) const;
  const NDArray& grad_for_plan(size_t argument) const {
    return typed_grads[argument] ? typed_grads[argument] : grads[argument];
  }
  void restore_activations(Compiled& compiled) const;
  void require_distinct_args() const;
  void run(Compiled& compiled, bool forward) const;
  void set_milestones(Compiled& compiled) const;
  // What reports the gradients of backward to the watch of this thread; none: there is no watch, or it is not served.
  std::optional<Plan::MilestoneCallback> gradient_reports(Compiled& compiled) const;
  bool may_run_together(const Compiled& compiled) const;
  // Calls the current monitor, if any.
  void notify(const std::string& name, const NDArray& array) const;
  void index_by_name();  // fills the maps
  static std::string table(const PlanKey& key, const Plan& plan);
};

}  // namespace symbind
