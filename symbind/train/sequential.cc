#include "symbind/train/sequential.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "symbind/core/error.h"
#include "symbind/core/log.h"

namespace symbind {

SequentialModule& SequentialModule::add(std::shared_ptr<BaseModule> module, const SequentialPart& part) {
  const InUse use = in_use("add");
  require(module != nullptr, "[SequentialModule] a module is required: a null pointer was given");
  require(module.get() != this, "[SequentialModule] a module cannot be a part of itself");
  layers_.push_back({std::move(module), part});
  binded = params_initialized = optimizer_initialized = false;
  return *this;
}

void SequentialModule::require_layers(const char* call) const {
  require(!layers_.empty(), "[", call, "] the SequentialModule has no modules yet: add() some");
}

// ---- Binding --------------------------------------------------------------------------------------------------------

std::vector<std::string> SequentialModule::data_names() const {
  return layers_.empty() ? std::vector<std::string>{} : layers_.front().module->data_names();
}
std::vector<std::string> SequentialModule::label_names() const {
  std::vector<std::string> names;
  for (const Layer& layer : layers_)
    if (layer.part.take_labels)
      for (const std::string& name : layer.module->label_names())
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}
std::vector<std::string> SequentialModule::output_names() const {
  return layers_.empty() ? std::vector<std::string>{} : layers_.back().module->output_names();
}
std::vector<DataDesc> SequentialModule::data_shapes() const {
  require(binded, "[SequentialModule] data_shapes are known once it is bound");
  return layers_.front().module->data_shapes();
}
std::vector<DataDesc> SequentialModule::label_shapes() const {
  require(binded, "[SequentialModule] label_shapes are known once it is bound");
  return label_shapes_;
}
std::vector<std::pair<std::string, Shape>> SequentialModule::output_shapes() const {
  require(binded, "[SequentialModule] output_shapes are known once it is bound");
  return layers_.back().module->output_shapes();
}

void SequentialModule::bind(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes,
                            const BindArgs& args) {
  const InUse use = in_use("bind");
  if (binded && !args.force_rebind) {
    log_warning("[SequentialModule] already bound: bind() does nothing; pass force_rebind to bind again");
    return;
  }
  require_layers("bind");
  require(args.for_training || !args.inputs_need_grad, "[bind] inputs_need_grad needs for_training");
  require(!args.shared_module, "[bind] a SequentialModule cannot share the memory of another module");
  std::vector<DataDesc> data = data_shapes;
  bool any_takes_labels = false;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& [module, part] = layers_[i];
    any_takes_labels |= part.take_labels;
    if (part.auto_wiring) {
      const std::vector<std::string> names = module->data_names();
      require(names.size() == data.size(), "[bind] module ", i, " of the SequentialModule has ", names.size(),
              " inputs, but ", data.size(), " arrays come");
      for (size_t k = 0; k < names.size(); ++k) data[k].name = names[k];
    }
    BindArgs own = args;
    own.force_rebind = true;
    own.inputs_need_grad = args.inputs_need_grad || (args.for_training && i > 0);
    module->bind(data, part.take_labels ? label_shapes : std::vector<DataDesc>{}, own);
    data.clear();
    for (const auto& [name, shape] : module->output_shapes()) data.push_back({.name = name, .shape = shape});
  }
  label_shapes_ = any_takes_labels ? label_shapes : std::vector<DataDesc>{};
  for_training = args.for_training;
  inputs_need_grad = args.inputs_need_grad;
  binded = true;
}

// ---- Parameters and optimizer ---------------------------------------------------------------------------------------

void SequentialModule::warn_of_extra(const InitParamsArgs& args, const Params& held) const {
  std::vector<std::string> extra;
  const auto collect = [&](const std::optional<NamedArrays>& given, const NamedArrays& known) {
    if (!given || args.allow_extra) return;
    for (const auto& [name, array] : *given)
      if (!known.contains(name)) extra.push_back(name);
  };
  collect(args.arg_params, held.arg_params);
  collect(args.aux_params, held.aux_params);
  if (!extra.empty())
    log_warning("[init_params] values were given for names that no module has: ", comma_separated(extra),
                "; they are ignored (with allow_extra = true silently)");
}

void SequentialModule::init_params(const InitParamsArgs& args) {
  const InUse use = in_use("init_params");
  if (params_initialized && !args.force_init) return;
  require(binded, "[init_params] call bind first");
  InitParamsArgs own = args;
  own.allow_extra = true;  // a name that one module does not have may belong to another
  std::map<std::string, size_t> layer_of;
  Params held;
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].module->init_params(own);
    const Params params = layers_[i].module->get_params();
    for (const auto* named : {&params.arg_params, &params.aux_params})
      for (const auto& [name, array] : *named) {
        const auto [found, fresh] = layer_of.emplace(name, i);
        require(fresh, "[init_params] modules ", found->second, " and ", i, " of the SequentialModule both have '",
                name, "'; parameter names must be unique");
      }
    held.arg_params.insert(params.arg_params.begin(), params.arg_params.end());
    held.aux_params.insert(params.aux_params.begin(), params.aux_params.end());
  }
  warn_of_extra(args, held);
  params_initialized = true;
}

void SequentialModule::set_params(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_missing,
                                  bool force_init, bool allow_extra) {
  const InUse use = in_use("set_params");
  if (!allow_missing) return BaseModule::set_params(arg_params, aux_params, allow_missing, force_init, allow_extra);
  require(binded, "[set_params] call bind first");
  for (const Layer& layer : layers_) layer.module->set_params(arg_params, aux_params, true, force_init, true);
  const Params held = get_params();
  warn_of_extra({.arg_params = arg_params, .aux_params = aux_params, .allow_extra = allow_extra}, held);
}

BaseModule::Params SequentialModule::get_params() {
  const InUse use = in_use("get_params");
  Params all;
  for (const Layer& layer : layers_) {
    const Params params = layer.module->get_params();
    all.arg_params.insert(params.arg_params.begin(), params.arg_params.end());
    all.aux_params.insert(params.aux_params.begin(), params.aux_params.end());
  }
  return all;
}

void SequentialModule::init_optimizer(const InitOptimizerArgs& args) {
  const InUse use = in_use("init_optimizer");
  require(binded && params_initialized, "[init_optimizer] call bind and init_params first");
  if (optimizer_initialized && !args.force_init) {
    log_warning("[SequentialModule] the optimizer is initialized already and stays; init_optimizer() with force_init ",
                "replaces it");
    return;
  }
  for (const Layer& layer : layers_) layer.module->init_optimizer(args);
  optimizer_initialized = true;
}

// ---- Running --------------------------------------------------------------------------------------------------------

void SequentialModule::forward(const DataBatch& batch, std::optional<bool> is_train) {
  const InUse use = in_use("forward");
  require(binded && params_initialized, "[forward] call bind and init_params first");
  DataBatch passed = batch;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0) {
      passed.data = layers_[i - 1].module->get_outputs();
      passed.provide_data = std::nullopt;
      passed.source = nullptr;  // it is no longer the original batch
    }
    layers_[i].module->forward(passed, is_train);
  }
}

void SequentialModule::backward(const std::vector<NDArray>& out_grads) {
  const InUse use = in_use("backward");
  require(binded && params_initialized, "[backward] call bind and init_params first");
  std::vector<NDArray> grads = out_grads;
  for (size_t i = layers_.size(); i-- > 0;) {
    layers_[i].module->backward(grads);
    if (i > 0) grads = layers_[i].module->get_input_grads();
  }
}

void SequentialModule::update() {
  const InUse use = in_use("update");
  require(binded && params_initialized && optimizer_initialized,
          "[update] call bind, init_params and init_optimizer first");
  for (const Layer& layer : layers_) layer.module->update();
}

std::vector<NDArray> SequentialModule::get_outputs() {
  const InUse use = in_use("get_outputs");
  require(binded && params_initialized, "[get_outputs] call bind and init_params first");
  return layers_.back().module->get_outputs();
}
int SequentialModule::output_batch_axis(size_t output) const {
  require_layers("output_batch_axis");
  return layers_.back().module->output_batch_axis(output);
}
std::vector<NDArray> SequentialModule::get_input_grads() {
  const InUse use = in_use("get_input_grads");
  require(binded && params_initialized && inputs_need_grad,
          "[get_input_grads] bind with inputs_need_grad to have them");
  return layers_.front().module->get_input_grads();
}

std::vector<NDArray> SequentialModule::get_states() const {
  const InUse use = in_use("get_states");
  require(binded && params_initialized, "[get_states] call bind and init_params first");
  std::vector<NDArray> states;
  for (const Layer& layer : layers_)
    for (NDArray& state : layer.module->get_states()) states.push_back(std::move(state));
  return states;
}

void SequentialModule::set_states(const std::vector<NDArray>& states) {
  const InUse use = in_use("set_states");
  require(binded && params_initialized, "[set_states] call bind and init_params first");
  std::vector<size_t> counts;
  for (const Layer& layer : layers_) counts.push_back(layer.module->get_states().size());
  const size_t all = std::accumulate(counts.begin(), counts.end(), size_t{0});
  require(states.size() == all, "[set_states] ", states.size(), " states were given, the modules have ", all);
  auto next = states.begin();
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto end = next + static_cast<std::ptrdiff_t>(counts[i]);
    if (counts[i] > 0) layers_[i].module->set_states(std::vector<NDArray>(next, end));
    next = end;
  }
}

void SequentialModule::set_states(double value) {
  const InUse use = in_use("set_states");
  require(binded && params_initialized, "[set_states] call bind and init_params first");
  bool any = false;
  for (const Layer& layer : layers_) {
    if (layer.module->get_states().empty()) continue;
    layer.module->set_states(value);
    any = true;
  }
  require(any, "[set_states] no module of the SequentialModule has states");
}

void SequentialModule::update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool pre_sliced) {
  const InUse use = in_use("update_metric");
  require(binded && params_initialized, "[update_metric] call bind and init_params first");
  for (const Layer& layer : layers_)
    if (layer.part.take_labels) layer.module->update_metric(metric, labels, pre_sliced);
}

void SequentialModule::install_monitor(Monitor& monitor) {
  const InUse use = in_use("install_monitor");
  require(binded, "[install_monitor] call bind first");
  for (const Layer& layer : layers_) layer.module->install_monitor(monitor);
}

}  // namespace symbind
