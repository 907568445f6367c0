#include "symbind/exec/executor.h"

#include <algorithm>
#include <iostream>
#include <set>
#include <string_view>
#include <unordered_map>

#include "symbind/core/environment.h"
#include "symbind/core/error.h"
#include "symbind/core/parallel.h"
#include "symbind/exec/executor_impl.h"
#include "symbind/exec/plan_picture.h"
#include "symbind/passes/gradient.h"
#include "symbind/passes/passes.h"

namespace symbind {
namespace {

NamedArrays by_name(const std::vector<std::string>& names, const std::vector<NDArray>& arrays) {
  NamedArrays named;
  for (size_t i = 0; i < names.size(); ++i)
    if (arrays[i]) named.emplace(names[i], arrays[i]);
  return named;
}

size_t total_bytes(const std::vector<NDArray>& arrays) {
  std::set<const Storage*> seen;
  size_t sum = 0;
  for (const NDArray& array : arrays)
    if (array && seen.insert(&array.storage()).second) sum += array.bytes();
  return sum;
}

bool profiling() {
  static const bool wanted = environment::variable("SYMBIND_PROFILE").on();
  return wanted;
}

// Marks an executor and its working memory as in use by this thread while this lives.
class Use {
 public:
  Use(const Executor::Impl& executor, std::string_view call)
      : executor_(executor.busy, call, "this executor",
                  "give each thread an executor of its own, or predict with Predictor, which serves any number of "
                  "threads"),
        memory_(executor.workspace->busy(), call, "the working memory of this executor",
                "executors made by reshape() or with shared_exec share it; use Predictor, or reshape() with own_memory "
                "for an executor that shares the parameters alone") {}

 private:
  InUse executor_, memory_;
};

// Whether contexts run concurrently, and how many cores each CPU context has then.
void divide(const Graph& graph, PlanOptions& options) {
  std::set<Context> contexts, cpus;
  for (const GraphNode& node : graph.nodes)
    if (!node.is_variable()) (node.context.is_gpu() ? contexts : cpus).insert(node.context);
  if (contexts.size() + cpus.size() < 2) return;
  options.concurrent_forward = should_use_queues(graph, 0, graph.forward_nodes);
  options.concurrent_backward = should_use_queues(graph, graph.forward_nodes, graph.nodes.size());
  options.policy.threads = std::max(1, available_threads() / std::max(1, static_cast<int>(cpus.size())));
}

// Builds each kernel for the number of threads it will run with.
void build(Graph& graph, const PlanOptions& options) {
  const auto build_part = [&](size_t first, size_t end, bool concurrent) {
    const ThreadScope scope(concurrent ? options.policy : thread_policy());
    build_kernels(graph, first, end);
  };
  build_part(0, graph.forward_nodes, options.concurrent_forward);
  build_part(graph.forward_nodes, graph.nodes.size(), options.concurrent_backward);
}

NDArray same_kind(const NDArray& array) { return NDArray(array.shape(), array.context(), array.dtype()); }

}  // namespace

// ---- Compiling ------------------------------------------------------------------------------------------------------

Executor::Impl::Compiled Executor::Impl::compile(PlanKind kind, bool monitored) const {
  LowerRequest request{.kind = kind,
                       .monitored = monitored,
                       .options = options,
                       .context = context,
                       .group2ctx = group2ctx,
                       .objects = objects,
                       .build_kernels = [&](Graph& lowered) { build(lowered, plan_options(lowered, monitored)); }};
  for (const NDArray& output : outputs) request.output_contexts.push_back(output.context());
  for (const Variable& variable : variables()) {
    if (!variable.is_argument || reqs[variable.index] == GradReq::null) continue;
    request.gradients.push_back({variable.node, reqs[variable.index]});
    request.output_contexts.push_back(grad_for_plan(variable.index).context());
  }
  Lowered lowered = lower(graph, request);

  Compiled compiled;
  const PlanOptions chosen = plan_options(lowered.graph, monitored);
  compiled.out_grads.resize(outputs.size());
  for (size_t i = 0; i < lowered.out_grads.size(); ++i) {
    if (!lowered.out_grads[i]) continue;
    OutGrad& out_grad = compiled.out_grads[i].emplace();
    out_grad.replaceable = !outputs[i].context().is_gpu() && !chosen.concurrent_forward && !chosen.concurrent_backward;
    if (!out_grad.replaceable) out_grad.copy = same_kind(outputs[i]);
  }
  std::vector<NDArray> outside = outside_arrays(lowered, compiled.out_grads);
  compiled.plan = std::make_unique<Plan>(std::move(lowered.graph), std::move(lowered.memory), std::move(outside),
                                         workspace, chosen);
  if (is_poisoned()) compiled.plan->poison();
  if (explain_level() >= 1) std::clog << table({kind, monitored}, *compiled.plan) << std::endl;
  return compiled;
}

// The variables of the network, and their arrays: both lists of arrays are in the order of the nodes.
std::vector<Executor::Impl::Variable> Executor::Impl::variables() const {
  std::vector<Variable> found;
  size_t next_arg = 0, next_aux = 0;
  for (const GraphNode& node : graph.nodes) {
    if (!node.is_variable()) continue;
    const bool is_argument = next_arg < arg_names.size() && arg_names[next_arg] == node.source->name;
    found.push_back({node.id, is_argument, is_argument ? next_arg++ : next_aux++});
  }
  return found;
}

PlanOptions Executor::Impl::plan_options(const Graph& planned, bool monitored) const {
  PlanOptions chosen{.capture = options.capture, .profile = options.profile || profiling()};
  // Timed and poisoned steps run one after the other.
  if (options.concurrent_contexts && !monitored && !chosen.profile && !is_poisoned()) divide(planned, chosen);
  return chosen;
}

// The arrays of the outside tensors of a plan. Sets the outside index of each output gradient.
std::vector<NDArray> Executor::Impl::outside_arrays(const Lowered& lowered,
                                                    std::vector<std::optional<OutGrad>>& out_grads) const {
  std::unordered_map<const Node*, NDArray> array_of;
  std::unordered_map<const Node*, OutGrad*> out_grad_of;
  std::vector<NDArray> requested;
  for (const Variable& variable : variables()) {
    const Node* source = graph.node(variable.node).source.get();
    array_of[source] = variable.is_argument ? args[variable.index] : aux.at(variable.index);
    if (variable.is_argument && reqs[variable.index] != GradReq::null)
      requested.push_back(grad_for_plan(variable.index));
  }
  for (size_t i = 0; i < lowered.out_grads.size(); ++i)
    if (lowered.out_grads[i]) out_grad_of[lowered.out_grads[i].get()] = &*out_grads[i];
  for (size_t i = 0; i < lowered.old_grads.size(); ++i)
    if (lowered.old_grads[i]) array_of[lowered.old_grads[i].get()] = requested[i];

  std::vector<NDArray> outside;
  const size_t variable_count = lowered.outside.size() - lowered.graph.outputs.size();
  for (size_t i = 0; i < variable_count; ++i) {
    const Node* const source = lowered.graph.producer(lowered.outside[i]).source.get();
    const auto out_grad = out_grad_of.find(source);
    if (out_grad != out_grad_of.end()) out_grad->second->outside = i;
    outside.push_back(out_grad != out_grad_of.end() ? out_grad->second->copy : array_of.at(source));
  }
  outside.insert(outside.end(), outputs.begin(), outputs.end());
  if (lowered.graph.outputs.size() > outputs.size()) outside.insert(outside.end(), requested.begin(), requested.end());
  return outside;
}

Executor::Impl::Compiled& Executor::Impl::compiled(PlanKind kind) {
  const PlanKey key(kind, monitor != nullptr);
  const auto found = plans.find(key);
  if (found != plans.end()) return *found->second;
  auto made = std::make_unique<Compiled>(compile(kind, key.second));  // may throw: nothing is stored then
  return *(plans[key] = std::move(made));
}

// The plan that reports show for an executor that has not run yet.
Executor::Impl::Compiled& Executor::Impl::default_plan() {
  return compiled(has_gradients() ? PlanKind::training : PlanKind::inference);
}

bool Executor::Impl::has_gradients() const {
  return std::any_of(reqs.begin(), reqs.end(), [](GradReq req) { return req != GradReq::null; });
}

// ---- Running --------------------------------------------------------------------------------------------------------

Executor::Executor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) { impl_->index_by_name(); }

void Executor::Impl::index_by_name() {
  arg_dict = by_name(arg_names, args);
  grad_dict = by_name(arg_names, grads);
  aux_dict = by_name(aux_names, aux);
  output_dict = by_name(output_names, outputs);
}

Executor::~Executor() {
  if (!impl_ || explain_level() < 1) return;
  try {
    for (const auto& [key, compiled] : impl_->plans)
      if (compiled->plan->times() && compiled->plan->times()->forward_runs > 0)
        std::clog << impl_->table(key, *compiled->plan) << std::endl;
  } catch (...) {  // a destructor cannot throw
  }
}

// Copies inputs given by name into the arguments.
void Executor::Impl::take_inputs(const NamedArrays& inputs) const {
  if (!inputs.empty()) require_distinct_args();
  for (const auto& [name, array] : inputs) {
    const auto found = arg_dict.find(name);
    if (found == arg_dict.end())
      fail("[forward] the network has no argument '", name, "'; it has ", comma_separated(arg_names));
    require(array.shape() == found->second.shape(), "[forward] '", name, "' is bound with shape ",
            found->second.shape(), ", but ", array.shape(), " was given; reshape() makes an executor for other shapes");
  }
  for (const auto& [name, array] : inputs) array.copyto(arg_dict.at(name));
}

const std::vector<NDArray>& Executor::forward(bool is_train, const NamedArrays& inputs) {
  Impl& self = *impl_;
  const Use use(self, "forward");
  self.take_inputs(inputs);
  Impl::Compiled& compiled = self.compiled(is_train ? PlanKind::training : PlanKind::inference);
  self.ran = nullptr;
  const uint64_t stamp = self.workspace->new_stamp();
  self.run(compiled, true);
  self.ran = &compiled;
  self.ran_train = is_train;
  self.stamp = stamp;
  return self.outputs;
}

// Is nothing to be done between forward and backward?
bool Executor::Impl::may_run_together(const Compiled& compiled) const {
  return has_gradients() && !monitor &&
         std::ranges::none_of(compiled.out_grads, [](const auto& out_grad) { return out_grad.has_value(); }) &&
         std::ranges::none_of(typed_grads, [](const NDArray& typed) { return bool(typed); });
}

const std::vector<NDArray>& Executor::forward_backward(const NamedArrays& inputs) {
  Impl& self = *impl_;
  const Use use(self, "forward_backward");
  FollowedBy* const following = FollowedBy::claim();
  self.take_inputs(inputs);
  Impl::Compiled& compiled = self.compiled(PlanKind::training);
  if (!self.may_run_together(compiled)) {
    forward(true);
    backward();
    return self.outputs;
  }
  self.ran = nullptr;
  self.stamp = self.workspace->new_stamp();
  self.spent = self.workspace->new_stamp();
  const auto reports = self.gradient_reports(compiled);
  compiled.plan->run_forward_backward(reports ? &*reports : nullptr, following);
  self.ran = &compiled;
  self.ran_train = true;
  return self.outputs;
}

// Releases the arrays given to backward(): they belong to the user.
class Executor::Impl::OutGradScope {
 public:
  explicit OutGradScope(Compiled& compiled) : compiled_(compiled) {}
  ~OutGradScope() {
    for (const auto& out_grad : compiled_.out_grads)
      if (out_grad && out_grad->replaceable) compiled_.plan->replace_outside(out_grad->outside, {});
  }
  OutGradScope(const OutGradScope&) = delete;
  OutGradScope& operator=(const OutGradScope&) = delete;

 private:
  Compiled& compiled_;
};

void Executor::backward(const Arrays& out_grads, bool is_train) {
  Impl& self = *impl_;
  const Use use(self, "backward");
  require(self.ran != nullptr, "[backward] forward has not run: call forward(is_train = true) first");
  if (!self.has_gradients()) return;
  const bool rerun_forward = !self.ran_train || !is_train;                     // forward stored nothing for backward
  const bool used = self.spent != 0 && self.workspace->stamp() == self.spent;  // by an earlier backward
  require(rerun_forward || used || self.workspace->stamp() == self.stamp,
          "[backward] the activations of the last forward are no longer stored: another executor that shares this "
          "memory has run since; call forward(is_train = true) again");
  Impl::Compiled& compiled = rerun_forward ? self.compiled(PlanKind::test_with_gradients) : *self.ran;
  const Impl::OutGradScope scope(compiled);
  self.take_out_grads(compiled, out_grads);
  self.spent = self.workspace->new_stamp();  // even on failure, the activations are no longer valid
  for (size_t i = 0; i < self.grads.size(); ++i)
    if (self.typed_grads[i]) self.grads[i].copyto(self.typed_grads[i]);  // may be added to, so copy the old value
  if (rerun_forward)
    self.run(compiled, true);
  else if (used)
    self.restore_activations(compiled);
  self.run(compiled, false);
  for (size_t i = 0; i < self.grads.size(); ++i)
    if (self.typed_grads[i]) self.typed_grads[i].copyto(self.grads[i]);
}

// Recomputes the activations of the last forward: with the same random numbers, and without updating auxiliary states
// twice.
void Executor::Impl::restore_activations(Compiled& compiled) const {
  std::vector<NDArray> states;
  for (const NDArray& state : aux) states.push_back(state.copy());
  compiled.plan->rerun_forward();
  for (size_t i = 0; i < aux.size(); ++i) states[i].copyto(aux[i]);
}

void Executor::Impl::require_distinct_args() const {
  if (args_distinct) return;
  std::vector<std::string> names = arg_names;
  std::sort(names.begin(), names.end());
  fail("two arguments are named '", *std::adjacent_find(names.begin(), names.end()),
       "': give the variables different names, or use arg_arrays() and grad_arrays()");
}

void Executor::Impl::take_out_grads(Compiled& compiled, const Arrays& given) const {
  const std::vector<NDArray> arrays = given.resolve_out_grads(output_names);
  std::vector<std::string> missing;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (compiled.out_grads[i] && !arrays[i]) missing.push_back(output_names[i]);
    if (compiled.out_grads[i] && arrays[i])
      require(arrays[i].shape() == outputs[i].shape(), "[backward] the gradient of ", output_names[i], " has shape ",
              arrays[i].shape(), ", the output has ", outputs[i].shape());
  }
  require(missing.empty(), "[backward] out_grads are needed for ", comma_separated(missing),
          ": they are not losses, and a requested gradient depends on them");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (compiled.out_grads[i]) compiled.out_grads[i]->take(*compiled.plan, arrays[i], outputs[i]);
}

// The plan reads the array itself if possible; an array that backward may write (a gradient or an output) is copied.
void Executor::Impl::OutGrad::take(Plan& plan, const NDArray& given, const NDArray& output) {
  if (replaceable && given.context() == output.context() && given.dtype() == output.dtype() &&
      !plan.shares_outside(given))
    return plan.replace_outside(outside, given);
  if (!copy) copy = same_kind(output);
  given.copyto(copy);
  if (replaceable) plan.replace_outside(outside, copy);
}

void Executor::Impl::run(Compiled& compiled, bool forward) const {
  if (const auto reports = forward ? std::nullopt : gradient_reports(compiled))
    return compiled.plan->run_backward(*reports);
  if (!monitor) return forward ? compiled.plan->run_forward() : compiled.plan->run_backward();
  const Graph& planned = compiled.plan->graph();
  const NodeCallback callback = [&](const GraphNode& node, std::span<const NDArray> inputs,
                                    std::span<const NDArray> made) {
    const void* params = node.source->params.get();
    if (monitor_all) {
      const Names names = node.op().all_inputs(params);
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i]) continue;
        const GraphNode& producer = planned.producer(node.inputs[i]);
        if (producer.is_variable()) notify(producer.source->name, inputs[i]);  // under its own name first
        notify(node.source->name + "_" + names[i], inputs[i]);
      }
    }
    const Names names = node.op().outputs(params);
    for (size_t i = 0; i < made.size() && i < names.size(); ++i) {
      if (!made[i]) continue;
      // For backward: the gradients that MXNet's nodes have, and with monitor_all also the steps between them.
      const std::string* gradient =
          find_attribute(node.source->attributes, gradient_name_attribute(static_cast<int>(i)));
      if (gradient)
        notify(*gradient, made[i]);
      else if (forward || monitor_all)
        notify(node.source->name + "_" + names[i], made[i]);
    }
  };
  return forward ? compiled.plan->run_forward(&callback) : compiled.plan->run_backward(&callback);
}

std::optional<Plan::MilestoneCallback> Executor::Impl::gradient_reports(Compiled& compiled) const {
  const GradientWatch::Report* const watch = GradientWatch::current();
  if (!watch || monitor || !compiled.plan->has_one_context()) return std::nullopt;
  if (!compiled.completed) set_milestones(compiled);
  return [this, &compiled, watch](size_t milestone, const DeviceEventPtr& event) {
    std::vector<NDArray> gradients;
    for (const size_t argument : (*compiled.completed)[milestone]) gradients.push_back(grads[argument]);
    (*watch)(gradients, event);
  };
}

// Gradients that are complete one after the other share a milestone until they are worth one.
void Executor::Impl::set_milestones(Compiled& compiled) const {
  const std::vector<size_t> steps = compiled.plan->steps_until_final(grads);
  std::map<size_t, std::vector<size_t>> arguments_after;
  for (size_t i = 0; i < grads.size(); ++i)
    if (steps[i] > 0 && !typed_grads[i]) arguments_after[steps[i]].push_back(i);
  std::vector<size_t> milestones;
  std::vector<std::vector<size_t>> completed;
  size_t bytes = GradientWatch::bytes_each;  // the first gradient begins a new milestone
  for (const auto& [count, arguments] : arguments_after) {
    if (bytes >= GradientWatch::bytes_each) {
      milestones.push_back(0);
      completed.emplace_back();
      bytes = 0;
    }
    milestones.back() = count;
    for (const size_t argument : arguments) {
      completed.back().push_back(argument);
      bytes += grads[argument].bytes();
    }
  }
  compiled.plan->set_milestones(milestones);
  compiled.completed = std::move(completed);
}

void Executor::Impl::notify(const std::string& name, const NDArray& array) const {
  if (const auto current = monitor) (*current)(name, array);
}

// ---- Everything else ------------------------------------------------------------------------------------------------

const Symbol& Executor::symbol() const { return impl_->symbol; }
Context Executor::context() const { return impl_->context; }
const std::vector<std::string>& Executor::output_names() const { return impl_->output_names; }
const std::vector<NDArray>& Executor::outputs() const { return impl_->outputs; }
const std::vector<NDArray>& Executor::arg_arrays() const { return impl_->args; }
const std::vector<NDArray>& Executor::grad_arrays() const { return impl_->grads; }
const std::vector<NDArray>& Executor::aux_arrays() const { return impl_->aux; }
const NamedArrays& Executor::arg_dict() const {
  impl_->require_distinct_args();
  return impl_->arg_dict;
}
const NamedArrays& Executor::grad_dict() const {
  impl_->require_distinct_args();
  return impl_->grad_dict;
}
const NamedArrays& Executor::aux_dict() const { return impl_->aux_dict; }
const NamedArrays& Executor::output_dict() const {
  // As in MXNet: a map by name would silently drop one of two outputs with the same name.
  if (impl_->output_dict.size() != impl_->output_names.size()) {
    std::vector<std::string> names = impl_->output_names;
    std::sort(names.begin(), names.end());
    fail("two outputs are named '", *std::adjacent_find(names.begin(), names.end()),
         "': give their nodes different names, or use outputs()");
  }
  return impl_->output_dict;
}

void Executor::copy_params_from(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_extra_params) {
  const InUse use(impl_->busy, "copy_params_from", "this executor");
  impl_->require_distinct_args();
  std::vector<std::pair<NDArray, NDArray>> copies;  // (from, to); all are checked before any copy
  const auto collect = [&](const NamedArrays& params, const NamedArrays& bound, const char* what) {
    for (const auto& [name, array] : params) {
      const auto found = bound.find(name);
      if (found == bound.end()) {
        require(allow_extra_params, "[copy_params_from] the network has no ", what, " '", name, "'");
        continue;
      }
      require(array.shape() == found->second.shape(), "[copy_params_from] '", name, "' is bound with shape ",
              found->second.shape(), ", but ", array.shape(), " was given");
      copies.emplace_back(array, found->second);
    }
  };
  collect(arg_params, impl_->arg_dict, "argument");
  collect(aux_params, impl_->aux_dict, "auxiliary state");
  for (auto& [from, to] : copies) from.copyto(to);
}

void Executor::follow(const NamedArrays& shared_buffer, const NamedArrays& shared_results) {
  Impl& self = *impl_;
  const Use use(self, "follow");
  std::vector<std::pair<NDArray, NDArray>> moves;
  const auto follow_buffer = [&](NDArray& array, NDArray& buffer, const NamedArrays& buffers, const std::string& name) {
    const auto found = buffers.find(name);
    if (!array || found == buffers.end()) return;
    const NDArray& now = found->second;
    if (now.storage_ptr() == array.storage_ptr() || now.context() != array.context() || now.dtype() != array.dtype() ||
        now.bytes() < array.bytes())
      return;
    const NDArray view = now.prefix(array.shape(), array.dtype());
    moves.emplace_back(array, view);
    array = buffer = view;
  };
  for (size_t i = 0; i < self.in_shared_buffers.size(); ++i) {
    if (!self.in_shared_buffers[i]) continue;
    follow_buffer(self.args[i], self.arg_buffers[i], shared_buffer, self.arg_names[i]);
    follow_buffer(self.grads[i], self.grad_buffers[i], shared_results, buffer_of_gradient(self.arg_names[i]));
  }
  for (size_t i = 0; i < self.outputs.size() && !self.in_shared_buffers.empty(); ++i)
    follow_buffer(self.outputs[i], self.output_buffers[i], shared_results, buffer_of_output(i));
  if (moves.empty()) return;
  self.index_by_name();
  for (auto& [key, compiled] : self.plans) compiled->plan->move_outside(moves);
}

void Executor::release_derived() {
  const Use use(*impl_, "release_derived");
  for (auto& [key, compiled] : impl_->plans) compiled->plan->release_kept();
}

void Executor::set_monitor_callback(Monitor monitor, bool monitor_all) {
  const InUse use(impl_->busy, "set_monitor_callback", "this executor");
  impl_->monitor = monitor ? std::make_shared<const Monitor>(std::move(monitor)) : nullptr;
  impl_->monitor_all = monitor_all;
}

// The plan that needs the most working memory, among those compiled.
const Plan& Executor::Impl::largest_plan() {
  if (plans.empty()) default_plan();
  const auto largest = std::max_element(plans.begin(), plans.end(), [](const auto& a, const auto& b) {
    return a.second->plan->arena_bytes() < b.second->plan->arena_bytes();
  });
  return *largest->second->plan;
}

MemoryReport Executor::memory() const {
  Impl& self = *impl_;
  const Use use(self, "memory");
  const Plan& plan = self.largest_plan();
  MemoryReport report;
  for (const auto& [key, compiled] : self.plans) report.cached += compiled->plan->cached_bytes();
  report.arena = plan.arena_bytes();
  report.unshared = plan.memory().unshared_bytes;
  report.lower_bound = plan.memory().lower_bound;
  std::vector<NDArray> bound = self.args;
  bound.insert(bound.end(), self.aux.begin(), self.aux.end());
  report.arguments = total_bytes(bound);
  report.gradients = total_bytes(self.grads);
  report.outputs = total_bytes(self.outputs);
  return report;
}

std::string Executor::Impl::table(const PlanKey& key, const Plan& plan) {
  const auto& [kind, monitored] = key;
  const bool with_backward = plan.graph().has_backward();
  return join(kind == PlanKind::training ? "training" : "inference",
              with_backward ? ", forward and backward" : ", forward", monitored ? ", monitored" : "", "\n", plan.str());
}

std::string Executor::memory_picture(const std::string& title) const {
  const Use use(*impl_, "memory_picture");
  const Plan& plan = impl_->largest_plan();
  return plan_picture(plan.graph(), plan.memory(), title);
}

std::vector<OperatorCost> Executor::operator_costs() const {
  const Use use(*impl_, "operator_costs");
  require(impl_->ran, "[operator_costs] needs a forward before it");
  const Plan& plan = *impl_->ran->plan;
  require(plan.times(), "[operator_costs] needs CompileOptions{.profile = true} or SYMBIND_PROFILE=1");
  return symbind::operator_costs(plan.graph(), plan.memory(), *plan.times());
}

std::string Executor::debug_str() const {
  Impl& self = *impl_;
  const Use use(self, "debug_str");
  if (self.plans.empty()) self.default_plan();
  std::string text;
  for (const auto& [key, compiled] : self.plans) text += Impl::table(key, *compiled->plan) + "\n";
  // The lines that tools for MXNet parse: the third and the second from the end.
  const Plan& largest = self.largest_plan();
  const size_t bytes = largest.arena_bytes() + total_bytes(self.outputs);
  const auto& scratch = largest.memory().scratch;
  const auto with_scratch = std::count_if(
      scratch.begin(), scratch.end(), [](const Location& location) { return location.kind == Location::Kind::arena; });
  return text + join("Total ", bytes >> 20, " MB allocated\nTotal ", with_scratch, " TempSpace resource requested\n");
}

}  // namespace symbind
