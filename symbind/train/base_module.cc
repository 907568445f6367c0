#include "symbind/train/base_module.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <typeinfo>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/core/interrupt.h"
#include "symbind/core/log.h"
#include "symbind/core/random_cursors.h"
#include "symbind/exec/indexing.h"
#include "symbind/files/checkpoint.h"
#include "symbind/train/bucketing.h"
#include "symbind/train/fit_step.h"
#include "symbind/train/module.h"
#include "symbind/train/monitor.h"

namespace symbind {

MetricArg::MetricArg(const char* name) : value_(name ? EvalMetric::create(name) : nullptr) {
  require(value_ != nullptr, "[metric] a name or a metric is required: a null pointer was given");
}
MetricArg::MetricArg(EvalMetricPtr metric) : value_(std::move(metric)) {
  require(value_ != nullptr, "[metric] a name or a metric is required: a null pointer was given");
}

OptimizerArg::OptimizerArg(const char* name) : name_(name ? name : "") {
  require(name != nullptr, "[optimizer] a name or an optimizer is required: a null pointer was given");
}
OptimizerArg::OptimizerArg(OptimizerPtr optimizer) : optimizer_(std::move(optimizer)) {
  require(optimizer_ != nullptr, "[optimizer] a name or an optimizer is required: a null pointer was given");
}

void check_input_names(const Symbol& symbol, const std::vector<std::string>& names, std::string_view kind,
                       bool strict) {
  const std::vector<std::string> arguments = symbol.list_arguments();
  std::vector<std::string> candidates;  // parameters are not candidates
  for (const std::string& argument : arguments)
    if (!argument.ends_with("_weight") && !argument.ends_with("_bias") && !argument.ends_with("_gamma") &&
        !argument.ends_with("_beta"))
      candidates.push_back(argument);
  check_input_names(names, kind, strict, arguments, candidates);
}

void check_input_names(const std::vector<std::string>& names, std::string_view kind, bool strict,
                       const std::vector<std::string>& arguments, const std::vector<std::string>& candidates) {
  for (const std::string& name : names) {
    if (std::find(arguments.begin(), arguments.end(), name) != arguments.end()) continue;
    const std::string message =
        join("[Module] ", kind, "_names has '", name, "', which is not an argument of the network; candidates are ",
             candidates.empty() ? "none" : comma_separated(candidates));
    if (strict) fail(message);
    log_warning(message);
  }
}

namespace {

using Clock = std::chrono::steady_clock;

BatchEndParam end_of_batch(BaseModule& module, int epoch, int64_t nbatch, EvalMetric& metric, const DataBatch* batch,
                           DataIter* train_data, DataIter* eval_data) {
  BatchEndParam param{.epoch = epoch, .nbatch = nbatch, .eval_metric = &metric, .locals = {}};
  param.locals = {{"self", &module},          {"epoch", epoch},         {"nbatch", nbatch},      {"data_batch", batch},
                  {"train_data", train_data}, {"eval_data", eval_data}, {"eval_metric", &metric}};
  return param;
}

// Runs all of them even if one throws StopTraining, which is rethrown after the last.
template <class Callbacks, class... Args>
void call(const Callbacks& callbacks, const Args&... args) {
  std::optional<StopTraining> stop;
  for (const auto& callback : callbacks) {
    try {
      callback(args...);
    } catch (const StopTraining& asked) {
      if (!stop) stop = asked;
    }
  }
  if (stop) throw *stop;
}

template <class Callbacks>
void require_callable(const Callbacks& callbacks, const char* call_name, const char* argument) {
  for (size_t i = 0; i < callbacks.size(); ++i)
    require(bool(callbacks[i]), "[", call_name, "] ", argument, " ", i, " of ", callbacks.size(),
            " is empty: there is nothing to call");
}

}  // namespace

const Symbol& BaseModule::symbol() const { return no_symbol(); }

std::vector<NDArray> BaseModule::get_states() const {
  require(binded && params_initialized, "[get_states] call bind and init_params first");
  return {};
}
void BaseModule::set_states(const std::vector<NDArray>& states) {
  require(binded && params_initialized, "[set_states] call bind and init_params first");
  require(states.empty(), "[set_states] this module has no states, and ", states.size(), " were given");
}
void BaseModule::set_states(double) {
  require(binded && params_initialized, "[set_states] call bind and init_params first");
  fail("[set_states] this module has no states");
}

void BaseModule::set_params(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_missing,
                            bool force_init, bool allow_extra) {
  init_params({.initializer = nullptr,
               .arg_params = arg_params,
               .aux_params = aux_params,
               .allow_missing = allow_missing,
               .force_init = force_init,
               .allow_extra = allow_extra});
}

void BaseModule::bind_to(DataIter& train_data, const BindArgs& args) {
  bind(train_data.provide_data(), train_data.provide_label(), args);
}

void BaseModule::update_metric_by(EvalMetric& metric, const DataBatch& batch) { update_metric(metric, batch.label); }

std::optional<int64_t> BaseModule::num_samples(const DataBatch& batch) const {
  const std::vector<DataDesc> descs = data_shapes();
  const int axis = descs.empty() ? 0 : descs[0].batch_axis();
  return axis < 0 ? 0 : batch.data.at(0).shape()[axis];
}

// The outputs without the samples that only fill the batch up; an output that has no axis of samples stays whole.
std::vector<NDArray> BaseModule::outputs_without_padding(const DataBatch& batch) {
  std::vector<NDArray> outputs = get_outputs();
  if (batch.pad <= 0) return outputs;
  const std::optional<int64_t> samples = num_samples(batch);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int axis = output_batch_axis(i);
    if (axis < 0 || axis >= outputs[i].rank()) continue;
    const int64_t length = outputs[i].shape()[axis];
    if (samples ? length != *samples : length <= batch.pad) continue;
    std::vector<AxisRange> ranges(static_cast<size_t>(axis) + 1);
    ranges.back() = {0, length - batch.pad};
    outputs[i] = axis == 0 ? outputs[i].slice(0, length - batch.pad) : subarray(outputs[i], ranges);
  }
  return outputs;
}

void BaseModule::forward_backward(const DataBatch& batch) {
  const InUse use = in_use("forward_backward");
  forward(batch, true);
  backward();
}

void BaseModule::set_compute_dtype(DType /*dtype*/, bool /*force_rebind*/) {
  fail(
      "[compute_dtype] this kind of module computes in the types of its networks: give compute_dtype to the modules in "
      "it");
}

namespace {

thread_local Overlaps overlaps_allowed = Overlaps::none;

// Is it of a built-in class, which does nothing between backward and update?
bool has_own_steps(const BaseModule& module) {
  const std::type_info& type = typeid(module);
  return type == typeid(Module) || type == typeid(BucketingModule);
}

}  // namespace

AllowOverlaps::AllowOverlaps(Overlaps overlaps) : before_(std::exchange(overlaps_allowed, overlaps)) {}
AllowOverlaps::~AllowOverlaps() { overlaps_allowed = before_; }
Overlaps AllowOverlaps::allowed() { return overlaps_allowed; }

void BaseModule::fit(DataIter& train_data, const FitArgs& args) {
  const InUse use = in_use("fit");
  require(args.num_epoch >= 0, "[fit] num_epoch must be given");
  require_callable(args.epoch_end_callback, "fit", "epoch_end_callback");
  require_callable(args.batch_end_callback, "fit", "batch_end_callback");
  require_callable(args.eval_end_callback, "fit", "eval_end_callback");
  require_callable(args.eval_batch_end_callback, "fit", "eval_batch_end_callback");
  if (!args.eval_data && !(args.eval_end_callback.empty() && args.eval_batch_end_callback.empty()))
    log_warning("[fit] eval_end_callback and eval_batch_end_callback are never called: there is no eval_data");
  if (args.compute_dtype != DType::none) set_compute_dtype(args.compute_dtype, args.force_rebind);
  bind_to(train_data, {.for_training = true, .force_rebind = args.force_rebind});
  if (args.monitor) install_monitor(*args.monitor);
  if (!params_initialized || args.force_init)
    init_params({.initializer = args.initializer,
                 .arg_params = args.arg_params,
                 .aux_params = args.aux_params,
                 .allow_missing = args.allow_missing,
                 .force_init = args.force_init});
  // Warns if there is one already: this one then has no effect.
  init_optimizer({.kvstore = args.kvstore, .optimizer = args.optimizer, .optimizer_params = args.optimizer_params});

  const Overlaps overlaps = args.monitor           ? Overlaps::none
                            : has_own_steps(*this) ? Overlaps::update_and_metric
                                                   : AllowOverlaps::allowed();
  const AllowOverlaps of_others(Overlaps::none);  // that a callback trains: they were not meant
  for (int epoch = args.begin_epoch; epoch < args.num_epoch; ++epoch) {
    epoch = begin_epoch(epoch);
    if (epoch >= args.num_epoch) return;
    std::optional<StopTraining> stop;
    try {
      fit_epoch(train_data, args, epoch, overlaps);
    } catch (const StopTraining& asked) {
      stop = asked;
    }
    train_data.reset();
    if (!stop) continue;
    log_info("Epoch[", epoch, "] ", stop->what());
    return;
  }
}

void BaseModule::fit_epoch(DataIter& train_data, const FitArgs& args, int epoch, Overlaps overlaps) {
  EvalMetric& metric = *args.eval_metric.get();
  const auto begin = Clock::now();
  metric.reset();
  EvalMetric::NameValues trained;
  std::optional<DataBatch> batch = train_data.next();
  require(batch.has_value(), "[fit] train_data has no batch for epoch ", epoch,
          ": it is at its end (call its reset() before fit) or empty");
  for (int64_t nbatch = 0; batch; ++nbatch) {
    check_interrupt();
    if (args.monitor) args.monitor->tic();
    {
      std::optional<FitStep> step;
      if (overlaps != Overlaps::none)
        step.emplace(*this, FitStep::Call::forward_backward,
                     overlaps == Overlaps::update_and_metric ? &metric : nullptr);
      forward_backward(*batch);
    }
    {
      std::optional<FitStep> step;
      if (overlaps == Overlaps::update_and_metric) step.emplace(*this, FitStep::Call::update);
      update();
    }
    update_metric_by(metric, *batch);
    std::optional<DataBatch> following = train_data.next();
    if (following) prepare(*following);
    finish_update();
    if (args.monitor) args.monitor->toc_print();
    if (!following) trained = metric.get_global_name_value();  // before a callback resets it
    if (!args.batch_end_callback.empty())
      call(args.batch_end_callback, end_of_batch(*this, epoch, nbatch, metric, &*batch, &train_data, args.eval_data));
    batch = std::move(following);
  }
  for (const auto& [name, value] : trained) log_info("Epoch[", epoch, "] Train-", name, "=", with_digits(value, 6));
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  log_info("Epoch[", epoch, "] Time cost=", with_digits(seconds, 3));

  // Every device continues with the same auxiliary states.
  const Params params = get_params();
  set_params(params.arg_params, params.aux_params);
  if (!args.epoch_end_callback.empty())
    call(args.epoch_end_callback, epoch, symbol(), params.arg_params, params.aux_params);
  if (!args.eval_data) return;
  const MetricArg validation = args.validation_metric.value_or(args.eval_metric);
  const auto log = [&](const EvalMetric::NameValues& values) {
    for (const auto& [name, value] : values)
      log_info("Epoch[", epoch, "] Validation-", name, "=", with_digits(value, 6));
  };
  try {
    log(validate(args, validation, epoch));
  } catch (const StopTraining&) {
    log(validation.get()->get_global_name_value());
    throw;
  }
}

EvalMetric::NameValues BaseModule::validate(const FitArgs& args, const MetricArg& metric, int epoch) {
  // The callbacks themselves: copies of them would forget between the epochs what they count.
  return score(*args.eval_data, metric, {.epoch = epoch}, args.eval_batch_end_callback, args.eval_end_callback);
}

EvalMetric::NameValues BaseModule::score(DataIter& eval_data, const MetricArg& eval_metric, const ScoreArgs& args) {
  require_callable(args.batch_end_callback, "score", "batch_end_callback");
  require_callable(args.score_end_callback, "score", "score_end_callback");
  return score(eval_data, eval_metric, args, args.batch_end_callback, args.score_end_callback);
}

EvalMetric::NameValues BaseModule::score(DataIter& eval_data, const MetricArg& eval_metric, const ScoreArgs& args,
                                         const BatchEndCallbacks& batch_end_callback,
                                         const BatchEndCallbacks& score_end_callback) {
  const InUse use = in_use("score");
  require(binded && params_initialized, "[score] call bind and init_params first");
  EvalMetric& metric = *eval_metric.get();
  metric.reset();
  int64_t nbatch = 0;
  {
    // A shuffled iterator and operators that are random in inference too draw numbers. With this, a checkpoint written
    // before, or by score_end_callback, still resumes exactly.
    const KeepRandomStreams keep;
    if (args.reset) eval_data.reset();
    for (; !args.num_batch || nbatch < *args.num_batch; ++nbatch) {
      check_interrupt();
      const std::optional<DataBatch> batch = eval_data.next();
      if (!batch) break;
      prepare(*batch);
      forward(*batch, false);
      update_metric_by(metric, *batch);
      if (!batch_end_callback.empty())
        call(batch_end_callback, end_of_batch(*this, args.epoch, nbatch, metric, &*batch, nullptr, &eval_data));
    }
  }
  if (!score_end_callback.empty())
    call(score_end_callback, end_of_batch(*this, args.epoch, nbatch, metric, nullptr, nullptr, &eval_data));
  return metric.get_global_name_value();
}

PredictLoop::PredictLoop(BaseModule& module, DataIter& eval_data, const PredictArgs& args)
    : module_(module), eval_data_(eval_data), args_(args) {
  require(module.binded && module.params_initialized, "[predict] call bind and init_params first");
  const KeepRandomStreams keep(KeepRandomStreams::Which::host);
  if (args.reset) eval_data.reset();
  host_position_ = host_random().peek();
}

std::optional<PredictLoop::Step> PredictLoop::next() {
  const KeepRandomStreams keep(KeepRandomStreams::Which::host);
  host_random().restore(host_position_);
  std::optional<Step> step = run_batch();
  host_position_ = host_random().peek();
  return step;
}

std::optional<PredictLoop::Step> PredictLoop::run_batch() {
  if (args_.num_batch && nbatch_ >= *args_.num_batch) return std::nullopt;
  check_interrupt();
  std::optional<DataBatch> batch = eval_data_.next();
  if (!batch) return std::nullopt;
  module_.prepare(*batch);
  module_.forward(*batch, false);
  std::vector<NDArray> outputs = module_.outputs_without_padding(*batch);
  return Step{std::move(outputs), nbatch_++, std::move(*batch)};
}

void BaseModule::iter_predict(DataIter& eval_data, const PredictVisitor& visit, const PredictArgs& args) {
  const InUse use = in_use("iter_predict");
  require(bool(visit), "[iter_predict] there is no function to call with the outputs");
  PredictLoop loop(*this, eval_data, args);
  while (const auto step = loop.next()) visit(step->outputs, step->nbatch, step->batch);
}

std::vector<NDArray> BaseModule::predict(DataIter& eval_data, const PredictArgs& args) {
  const InUse use = in_use("predict");
  std::vector<std::vector<NDArray>> parts;  // by output
  iter_predict(
      eval_data,
      [&](const std::vector<NDArray>& outputs, int64_t, const DataBatch&) {
        parts.resize(std::max(parts.size(), outputs.size()));
        for (size_t i = 0; i < outputs.size(); ++i) parts[i].push_back(outputs[i].copy());
      },
      args);
  std::vector<NDArray> merged;
  for (const auto& part : parts) merged.push_back(concatenate(part, 0));
  return merged;
}

std::vector<NDArray> BaseModule::predict(const NDArray& data) {
  const InUse use = in_use("predict");
  require(binded && params_initialized, "[predict] call bind and init_params first");
  forward(DataBatch{.data = {data}}, false);
  std::vector<NDArray> outputs;
  for (const NDArray& output : get_outputs()) outputs.push_back(output.copy());
  return outputs;
}

void BaseModule::save_params(const std::string& path) {
  const InUse use = in_use("save_params");
  const Params params = get_params();
  save_model_params(path, params.arg_params, params.aux_params);
}

void BaseModule::load_params(const std::string& path) {
  const InUse use = in_use("load_params");
  const ModelParams params = load_model_params(path);
  set_params(params.arg_params, params.aux_params);
}

}  // namespace symbind
