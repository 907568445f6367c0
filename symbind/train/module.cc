#include "symbind/train/module.h"

#include <algorithm>
#include <map>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/exec/following_work.h"
#include "symbind/exec/gradient_watch.h"
#include "symbind/exec/invoke.h"
#include "symbind/files/checkpoint.h"
#include "symbind/files/params.h"
#include "symbind/files/states.h"
#include "symbind/graph/op.h"
#include "symbind/train/counting_work.h"
#include "symbind/train/early_exchange.h"
#include "symbind/train/fit_step.h"
#include "symbind/train/mixed_precision.h"
#include "symbind/train/monitor.h"
#include "symbind/train/names.h"
#include "symbind/train/scaled_loss.h"

namespace symbind {

Module::Module(const Symbol& symbol, const ModuleOptions& options)
    : symbol_(symbol), computed_(symbol), options_(options), aux_names_(symbol.list_auxiliary_states()) {
  require(!options_.context.empty(), "[Module] at least one context is needed");
  require(options_.work_load_list.empty() || options_.work_load_list.size() == options_.context.size(),
          "[Module] work_load_list has ", options_.work_load_list.size(), " entries for ", options_.context.size(),
          " contexts");
  check_input_names(symbol_, options_.data_names, "data", true);
  check_input_names(symbol_, options_.label_names, "label", false);
  check_input_names(symbol_, options_.state_names, "state", true);
  const std::vector<std::string> arguments = symbol_.list_arguments();
  for (const std::string& name : arguments)
    if (!contains(options_.data_names, name) && !contains(options_.label_names, name) &&
        !contains(options_.state_names, name))
      param_names_.push_back(name);
  check_input_names(options_.fixed_param_names, "fixed_param", true, arguments, param_names_);
  compute_in(options_.compute_dtype);
}

Module::~Module() = default;

// ---- Files ----------------------------------------------------------------------------------------------------------

std::unique_ptr<Module> Module::load(const std::string& prefix, int epoch, bool load_optimizer_states,
                                     const ModuleOptions& options) {
  if (load_optimizer_states) match_states(prefix, epoch);
  Checkpoint checkpoint = load_checkpoint(prefix, epoch);
  auto module = std::make_unique<Module>(checkpoint.symbol, options);
  module->preload_params(std::move(checkpoint.arg_params), std::move(checkpoint.aux_params));
  if (load_optimizer_states) module->preload_optimizer_states(states_path(prefix, epoch));
  return module;
}

void Module::preload_params(NamedArrays arg_params, NamedArrays aux_params) {
  *host_ = {std::move(arg_params), std::move(aux_params)};
  params_initialized = true;
}

void Module::save_checkpoint(const std::string& prefix, int epoch, bool save_states) {
  const InUse use = in_use("save_checkpoint");
  const Params params = get_params();
  std::optional<std::string> states;
  if (save_states) states = optimizer_states();
  symbind::save_checkpoint(prefix, epoch, symbol_, params.arg_params, params.aux_params, states);
}

// ---- Binding --------------------------------------------------------------------------------------------------------

// The descriptions in the given order, which is the order of a batch's arrays, not that of the names.
std::vector<DataDesc> Module::checked(const std::vector<DataDesc>& shapes, const std::vector<std::string>& names,
                                      std::string_view kind, bool strict) const {
  std::vector<std::string> given;
  for (const DataDesc& description : shapes) given.push_back(description.name);
  std::vector<std::string> sorted_given = given, sorted_names = names;
  std::sort(sorted_given.begin(), sorted_given.end());
  std::sort(sorted_names.begin(), sorted_names.end());
  if (sorted_given != sorted_names) {
    const std::string message = join("[bind] ", kind, "_shapes describe ", comma_separated(given), ", but ", kind,
                                     "_names are ", names.empty() ? "none" : comma_separated(names));
    if (strict) fail(message);
    // An array that matches no name, and a label without an array: training would use labels of 0.
    const std::vector<std::string> arguments = symbol_.list_arguments();
    const bool homeless = std::ranges::any_of(given, [&](const auto& name) { return !contains(arguments, name); });
    const bool unfed = std::ranges::any_of(
        names, [&](const auto& name) { return contains(arguments, name) && !contains(given, name); });
    require(!(homeless && unfed), message, "; both must name them alike");
    log_warning(message);
  }
  return shapes;
}

void Module::bind(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes,
                  const BindArgs& args) {
  const InUse use = in_use("bind");
  if (binded && !args.force_rebind) {
    log_warning("[Module] already bound: bind() does nothing; pass force_rebind to bind again");
    return;
  }
  require(args.for_training || !args.inputs_need_grad, "[bind] inputs_need_grad needs for_training");
  auto* shared = dynamic_cast<Module*>(args.shared_module);
  require(!args.shared_module || (shared && shared->binded && shared->params_initialized),
          "[bind] a shared_module must be a bound Module with parameters");

  const auto data = checked(data_shapes, options_.data_names, "data", true);
  const auto labels = label_shapes.empty() ? label_shapes : checked(label_shapes, options_.label_names, "label", false);
  if (computes_in_16_bits(options_.compute_dtype)) {
    NamedTypes types;
    for (const DataDesc& description : data) types[description.name] = description.dtype;
    require_float32(symbol_, options_.compute_dtype, types);
  }
  ExecutorGroupOptions group{
      .contexts = options_.context,
      .workload = options_.work_load_list,
      .data_shapes = data,
      .label_shapes = labels,
      .param_names = param_names_,
      .for_training = args.for_training,
      .inputs_need_grad = args.inputs_need_grad,
      .shared_group = shared ? shared->exec_group_ : nullptr,
      .fixed_param_names = options_.fixed_param_names,
      .grad_req = args.grad_req,
      .state_names = options_.state_names,
      .output_names = symbol_.list_outputs(),
      .group2ctxs = options_.group2ctxs,
      .options = options_.compile_options,
  };
  // If anything below fails, the old binding and the parameters remain.
  if (host_->dirty) sync_params_from_devices();
  auto made = std::make_shared<DataParallelExecutorGroup>(computed_, group);
  if (!shared && params_initialized) {
    for (const auto& [names, params] :
         {std::pair{&param_names_, &host_->arg_params}, std::pair{&aux_names_, &host_->aux_params}})
      for (const std::string& name : *names)
        require(params->count(name) > 0, "[bind] the loaded parameters have no '", name, "'");
    made->set_params(host_->arg_params, host_->aux_params, true);
  }
  exec_group_ = std::move(made);
  followed_before_ = {};
  if (scaled_loss_) scaled_loss_->forget_executors();
  described_data_ = data_shapes_ = data;
  described_labels_ = label_shapes_ = labels;
  for_training = args.for_training;
  inputs_need_grad = args.inputs_need_grad;
  binded = true;
  if (!shared) {
    host_ = std::make_shared<HostParams>(*host_);  // the new arrays are not shared with other modules
  } else {
    host_ = shared->host_;
    params_initialized = true;
    if (shared->optimizer_initialized) borrow_optimizer(*shared);
  }
}

void Module::reset_bind() {
  const InUse use = in_use("reset_bind");
  if (host_->dirty) sync_params_from_devices();
  binded = false;
  exec_group_ = nullptr;
  followed_before_ = {};
  in_step_ = {};
  if (scaled_loss_) scaled_loss_->forget_executors();  // and the gradients that it holds
  for (auto* const descriptions : {&data_shapes_, &label_shapes_, &described_data_, &described_labels_})
    descriptions->clear();
}

std::vector<DataDesc> Module::data_shapes() const {
  require(binded, "[Module] data_shapes are known once it is bound");
  return data_shapes_;
}
std::vector<DataDesc> Module::label_shapes() const {
  require(binded, "[Module] label_shapes are known once it is bound");
  return label_shapes_;
}
std::vector<std::pair<std::string, Shape>> Module::output_shapes() const {
  require(binded, "[Module] output_shapes are known once it is bound");
  return exec_group_->get_output_shapes();
}

void Module::reshape(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes) {
  const InUse use = in_use("reshape");
  require(binded, "[reshape] call bind first");
  take_shapes(data_shapes, label_shapes);
  described_data_ = data_shapes_;
  described_labels_ = label_shapes_;
}

void Module::take_shapes(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes) {
  const auto data = checked(data_shapes, options_.data_names, "data", true);
  const auto labels = label_shapes.empty() ? label_shapes : checked(label_shapes, options_.label_names, "label", false);
  if (scaled_loss_) scaled_loss_->forget_executors();
  exec_group_->reshape(data, labels);
  data_shapes_ = data;
  label_shapes_ = labels;
}

// ---- Parameters -----------------------------------------------------------------------------------------------------

namespace {

// The names of `given` that neither the network nor the module's parameters have (get_params() includes those of
// modules that share parameters), as a message; empty if there are none.
std::string extra_names(const char* call, const NamedArrays& given, const std::vector<std::string>& names,
                        const NamedArrays& held) {
  std::vector<std::string> extra;
  for (const auto& [name, array] : given)
    if (!contains(names, name) && !held.contains(name)) extra.push_back(name);
  if (extra.empty()) return "";
  constexpr size_t most = 8;  // the parameters of a larger network may be hundreds
  const std::string more = extra.size() > most ? join(" and ", extra.size() - most, " more") : "";
  extra.resize(std::min(extra.size(), most));
  return join("[", call, "] values were given for names that the network does not have: ", comma_separated(extra),
              more);
}

void require_no_extra(const std::string& message) {
  require(message.empty(), message, "; allow_extra = true leaves them out");
}

}  // namespace

void Module::init_params(const InitParamsArgs& args) {
  const InUse use = in_use("init_params");
  if (params_initialized && !args.force_init) {
    log_warning("[Module] parameters are initialized already: init_params() does nothing; force_init does it again");
    return;
  }
  require(binded, "[init_params] call bind first");
  const auto check_extra = [&](const std::optional<NamedArrays>& given, const std::vector<std::string>& names,
                               const NamedArrays& held) {
    if (args.allow_extra || !given) return;
    if (const std::string message = extra_names("init_params", *given, names, held); !message.empty())
      log_warning(message, "; they are ignored (init_params with allow_extra = true does so silently)");
  };
  check_extra(args.arg_params, param_names_, host_->arg_params);
  check_extra(args.aux_params, aux_names_, host_->aux_params);
  static const InitializerPtr usual = std::make_shared<init::Uniform>(0.01);
  const bool may_initialize = args.initializer || !args.arg_params || args.allow_missing;
  const InitializerPtr initializer = args.initializer ? args.initializer : usual;
  const auto attributes = symbol_.attr_dict();

  const auto fill = [&](const std::vector<std::string>& names, const DataParallelExecutorGroup::PerDevice& bound,
                        const std::optional<NamedArrays>& given) {
    NamedArrays values;
    // In the order of the names, as in MXNet: a custom initializer may draw from its own generator.
    std::map<std::string, size_t> position;
    for (size_t i = 0; i < names.size(); ++i) position[names[i]] = i;
    for (const auto& [name, i] : position) {
      NDArray value(bound[i][0].shape(), cpu(), bound[i][0].dtype());
      const auto found = given ? given->find(name) : NamedArrays::const_iterator();
      if (given && found != given->end()) {
        require(found->second.shape() == value.shape(), "[init_params] '", name, "' has shape ", value.shape(),
                " here, but ", found->second.shape(), " was given");
        found->second.copyto(value);
      } else {
        require(!given || args.allow_missing, "[init_params] no value was given for '", name,
                "'; allow_missing initializes what is missing");
        require(may_initialize, "[init_params] '", name, "' needs an initializer");
        const auto attribute = attributes.find(name);
        (*initializer)(InitDesc{name, attribute == attributes.end() ? Attributes{} : attribute->second}, value);
      }
      values[name] = value;
    }
    return values;
  };
  NamedArrays arg_params = fill(param_names_, exec_group_->param_arrays(), args.arg_params);
  NamedArrays aux_params = fill(aux_names_, exec_group_->aux_arrays(), args.aux_params);
  keep_params(std::move(arg_params), std::move(aux_params));
  params_initialized = true;
  exec_group_->set_params(host_->arg_params, host_->aux_params, true);
}

void Module::keep_params(NamedArrays arg_params, NamedArrays aux_params) {
  const size_t own = arg_params.size() + aux_params.size();
  bool others_newer = false;
  if (host_.use_count() > 1) {  // parameters of sharing modules keep their values and dirty state
    arg_params.merge(NamedArrays(host_->arg_params));
    aux_params.merge(NamedArrays(host_->aux_params));
    others_newer = host_->dirty && arg_params.size() + aux_params.size() > own;
  }
  *host_ = {std::move(arg_params), std::move(aux_params), others_newer};
}

void Module::set_params(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_missing,
                        bool force_init, bool allow_extra) {
  const InUse use = in_use("set_params");
  if (!allow_missing)
    return init_params(
        {.arg_params = arg_params, .aux_params = aux_params, .force_init = force_init, .allow_extra = allow_extra});
  if (params_initialized && !force_init) {
    log_warning("[Module] parameters are initialized already: set_params() does nothing; force_init does it again");
    return;
  }
  require(binded, "[set_params] call bind first");
  if (!allow_extra) {
    require_no_extra(extra_names("set_params", arg_params, param_names_, host_->arg_params));
    require_no_extra(extra_names("set_params", aux_params, aux_names_, host_->aux_params));
  }
  exec_group_->set_params(arg_params, aux_params, /*allow_extra=*/true);
  host_->dirty = true;
  params_initialized = true;
}

BaseModule::Params Module::get_params() {
  const InUse use = in_use("get_params");
  require(params_initialized, "[get_params] parameters come from init_params or from a checkpoint");
  if (host_->dirty) sync_params_from_devices();
  return {host_->arg_params, host_->aux_params};
}

void Module::sync_params_from_devices() {
  const InUse use = in_use("sync_params_from_devices");
  if (!exec_group_) return;  // newer values are on the devices of a sharing module
  // New arrays: the old ones, which users may hold, are not modified.
  NamedArrays arg_params, aux_params;
  exec_group_->get_params(arg_params, aux_params);
  keep_params(std::move(arg_params), std::move(aux_params));
}

// ---- Precision ------------------------------------------------------------------------------------------------------

void Module::set_compute_dtype(DType dtype, bool force_rebind) {
  const InUse use = in_use("set_compute_dtype");
  const DType wanted = effective_compute_dtype(dtype), bound = effective_compute_dtype(options_.compute_dtype);
  if (wanted == bound) return;
  require(!binded || force_rebind, "[compute_dtype] a bound module must be bound again to compute in another type, ",
          "which fit() with force_rebind does; it computes in ", bound, ", and ", wanted, " was given");
  if (wanted == DType::float16 && kvstore_) ScaledLoss::check_store(*kvstore_);
  if (binded) reset_bind();
  compute_in(dtype);
}

void Module::compute_in(DType dtype) {
  const bool in_16_bits = computes_in_16_bits(dtype);
  options_.compute_dtype = dtype;
  computed_ = symbol_;
  scaled_loss_ = nullptr;
  if (!in_16_bits) return;
  computed_ = computed_in(symbol_, dtype);
  if (dtype == DType::bfloat16) return;
  std::vector<std::string> arguments = param_names_;
  arguments.insert(arguments.end(), options_.data_names.begin(), options_.data_names.end());
  computed_ = ScaledLoss::network(computed_, arguments);
  scaled_loss_ = std::make_unique<ScaledLoss>();
}

double Module::loss_scale() const { return scaled_loss_ ? scaled_loss_->scale().value() : 1; }

// ---- Running --------------------------------------------------------------------------------------------------------

void Module::prepare(const DataBatch& batch) {
  const InUse use = BaseModule::in_use("prepare");
  if (exec_group_) exec_group_->prepare(batch);
}

void Module::take_batch(const DataBatch& batch, bool is_train) {
  require(binded && params_initialized, "[forward] call bind and init_params first");
  require(!is_train || label_shapes_.empty() || !batch.label.empty(),
          "[forward] the batch has no labels, but labels are bound and is_train is true: bind without label_shapes, or "
          "forward with is_train = false");
  require(batch.data.size() == data_shapes_.size(), "[forward] the batch has ", batch.data.size(), " data arrays, ",
          data_shapes_.size(), " are bound");
  const auto require_arrays = [](const std::vector<NDArray>& arrays, const std::vector<DataDesc>& descs,
                                 const char* kind) {
    for (size_t i = 0; i < arrays.size(); ++i)
      require(bool(arrays[i]), "[forward] ", kind, " ", i, " of the batch",
              i < descs.size() ? join(" ('", descs[i].name, "')") : "",
              " is a null array: it has neither shape nor data");
  };
  require_arrays(batch.data, data_shapes_, "data array");
  require_arrays(batch.label, label_shapes_, "label");

  // What an earlier batch provided about its data does not concern a batch that provides nothing.
  const auto shaped = [](const std::vector<DataDesc>& described, const std::optional<std::vector<DataDesc>>& provided,
                         const std::vector<NDArray>& arrays) {
    if (provided) return *provided;
    std::vector<DataDesc> now = described;
    for (size_t i = 0; i < now.size() && i < arrays.size(); ++i) now[i].shape = arrays[i].shape();
    return now;
  };
  const std::vector<DataDesc> data = shaped(described_data_, batch.provide_data, batch.data);
  require(data.size() == data_shapes_.size(), "[forward] provide_data describes ", data.size(), " arrays, ",
          data_shapes_.size(), " are bound");
  std::vector<DataDesc> labels = label_shapes_;
  const auto has_batch_axis = [](const DataDesc& desc) {
    return desc.batch_axis() >= 0 && desc.batch_axis() < desc.shape.rank();
  };
  if (!batch.label.empty() && !labels.empty()) {
    labels = shaped(described_labels_, batch.provide_label, batch.label);
  } else if (!labels.empty() && has_batch_axis(data[0])) {
    // The batch has no labels: the bound ones follow its batch size.
    for (DataDesc& label : labels)
      if (has_batch_axis(label)) label.shape[label.batch_axis()] = data[0].shape[data[0].batch_axis()];
  }
  if (has_batch_axis(data[0])) {
    const int64_t size = data[0].shape[data[0].batch_axis()];
    require(batch.pad >= 0 && batch.pad <= size, "[forward] the batch's pad must be from 0 to its ", size,
            " samples: ", batch.pad);
  }
  if (!(data == data_shapes_ && labels == label_shapes_)) take_shapes(data, labels);
  pad_ = batch.pad;
  in_step_ = {};
  if (scaled_loss_) scaled_loss_->write(*exec_group_);
}

void Module::forward(const DataBatch& batch, std::optional<bool> is_train) {
  const InUse use = in_use("forward");
  const bool train = is_train.value_or(for_training);
  take_batch(batch, train);
  exec_group_->forward(batch, train);
}

// Batches that are already sliced have the shapes of the last one, but may say how their pixels are normalized.
void Module::take_normalization(const DataBatch& batch) {
  const std::vector<DataDesc>& described = batch.provide_data ? *batch.provide_data : described_data_;
  std::vector<DataDesc> data = data_shapes_;
  for (DataDesc& each : data)
    for (const DataDesc& given : described)
      if (given.name == each.name) each.normalization = given.normalization;
  if (data != data_shapes_) take_shapes(data, label_shapes_);
}

void Module::forward(const std::vector<DataBatch>& sliced_batches, std::optional<bool> is_train) {
  const InUse use = in_use("forward");
  require(binded && params_initialized, "[forward] call bind and init_params first");
  pad_ = 0;
  in_step_ = {};
  if (!sliced_batches.empty()) take_normalization(sliced_batches[0]);
  if (scaled_loss_) scaled_loss_->write(*exec_group_);
  exec_group_->forward(sliced_batches, is_train.value_or(for_training));
}

void Module::run_backward(const std::function<void()>& backward) {
  // Where the gradients of a scaled loss are checked first, whether they are exchanged is known only after the last
  // one.
  const bool may_be_early = FitStep::update_follows(*this) && optimizer_initialized &&
                            (!scaled_loss_ || ScaledLoss::checks_sums(kvstore_.get()));
  auto* const store = may_be_early ? store_for_early_exchange(kvstore_.get(), options_.context.size()) : nullptr;
  if (!store || exec_group_->grad_arrays().empty()) return backward();
  EarlyExchange exchange(*store, param_names_, *exec_group_);
  const GradientWatch watch(
      [&](std::span<const NDArray> finished, const DeviceEventPtr& complete) { exchange.push(finished, complete); });
  backward();
}

void Module::backward(const std::vector<NDArray>& out_grads) {
  const InUse use = in_use("backward");
  require(binded && params_initialized, "[backward] call bind and init_params first");
  run_backward([&] { exec_group_->backward(out_grads); });
}

std::vector<FollowingWorkPtr> Module::work_after_backward(const DataBatch& batch, InStep& launched) {
  std::vector<FollowingWorkPtr> work = update_in_step();
  launched.has_update = !work.empty();
  EvalMetric* const metric = FitStep::metric(*this);
  if (!metric) return work;
  std::vector<FollowingWorkPtr>& counts = followed_before_.counts;
  const auto arrays = exec_group_->metric_arrays_on_device(batch.label, pad_);
  counts = arrays ? counting_work(*metric, arrays->labels, arrays->outputs, counts) : std::vector<FollowingWorkPtr>();
  if (!counts.empty()) launched.metric = metric;
  work.insert(work.end(), counts.begin(), counts.end());
  return work;
}

void Module::forward_backward(const DataBatch& batch) {
  if (!has_own_passes()) return BaseModule::forward_backward(batch);
  const InUse use = in_use("forward_backward");
  take_batch(batch, true);
  InStep launched;
  const FollowedBy following([&] { return work_after_backward(batch, launched); });
  run_backward([&] { exec_group_->forward_backward(batch); });
  in_step_ = launched;  // only now: if the launch failed, update() and update_metric() do their work themselves
  if (launched.has_update) count_update_in_step();
}

std::vector<NDArray> Module::get_outputs() {
  const InUse use = in_use("get_outputs");
  require(binded && params_initialized, "[get_outputs] call bind and init_params first");
  return exec_group_->get_merged_outputs();
}
int Module::output_batch_axis(size_t output) const {
  require(binded, "[output_batch_axis] call bind first");
  return exec_group_->output_layouts().at(output);
}
std::vector<NDArray> Module::get_input_grads() {
  const InUse use = in_use("get_input_grads");
  require(binded && params_initialized && inputs_need_grad,
          "[get_input_grads] bind with inputs_need_grad to have them");
  return exec_group_->get_merged_input_grads();
}
DataParallelExecutorGroup::PerDevice Module::get_outputs_per_device() const {
  const InUse use = in_use("get_outputs_per_device");
  require(binded, "[get_outputs] call bind first");
  return exec_group_->get_outputs();
}
DataParallelExecutorGroup::PerDevice Module::get_input_grads_per_device() const {
  const InUse use = in_use("get_input_grads_per_device");
  require(binded && inputs_need_grad, "[get_input_grads] call bind with inputs_need_grad first");
  return exec_group_->get_input_grads();
}

std::vector<NDArray> Module::get_states() const {
  const InUse use = in_use("get_states");
  require(binded && params_initialized, "[get_states] call bind and init_params first");
  return exec_group_->get_merged_states();
}
DataParallelExecutorGroup::PerDevice Module::get_states_per_device() const {
  const InUse use = in_use("get_states_per_device");
  require(binded && params_initialized, "[get_states] call bind and init_params first");
  return exec_group_->get_states();
}
void Module::set_states(const std::vector<NDArray>& states) {
  const InUse use = in_use("set_states");
  require(binded && params_initialized, "[set_states] call bind and init_params first");
  DataParallelExecutorGroup::PerDevice per_device;
  for (const NDArray& state : states) per_device.push_back({state});
  exec_group_->set_states(per_device);
}
void Module::set_states(const DataParallelExecutorGroup::PerDevice& states) {
  const InUse use = in_use("set_states");
  require(binded && params_initialized, "[set_states] call bind and init_params first");
  exec_group_->set_states(states);
}
void Module::set_states(double value) {
  const InUse use = in_use("set_states");
  require(binded && params_initialized, "[set_states] call bind and init_params first");
  exec_group_->set_states(value);
}

void Module::update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool pre_sliced) {
  const InUse use = BaseModule::in_use("update_metric");
  require(binded, "[update_metric] call bind first");
  if (std::exchange(in_step_.metric, nullptr) == &metric) return;
  exec_group_->update_metric(metric, labels, pre_sliced, pad_);
}

void Module::install_monitor(Monitor& monitor) {
  const InUse use = in_use("install_monitor");
  require(binded, "[install_monitor] call bind first");
  exec_group_->install_monitor(monitor);
}

}  // namespace symbind
