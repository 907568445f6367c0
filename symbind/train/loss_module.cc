#include "symbind/train/loss_module.h"

#include "symbind/core/error.h"
#include "symbind/core/log.h"

namespace symbind {

ParameterlessModule::ParameterlessModule(std::vector<std::string> data_names, std::vector<std::string> label_names,
                                         std::vector<std::string> output_names)
    : data_names_(std::move(data_names)),
      label_names_(std::move(label_names)),
      output_names_(std::move(output_names)) {}

std::vector<DataDesc> ParameterlessModule::data_shapes() const {
  require(binded, "[module] data_shapes are known once it is bound");
  return data_shapes_;
}
std::vector<DataDesc> ParameterlessModule::label_shapes() const {
  require(binded, "[module] label_shapes are known once it is bound");
  return label_shapes_;
}
std::vector<std::pair<std::string, Shape>> ParameterlessModule::output_shapes() const {
  require(binded, "[module] output_shapes are known once it is bound");
  return output_shapes_;
}

void ParameterlessModule::bind(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes,
                               const BindArgs& args) {
  const InUse use = in_use("bind");
  if (binded && !args.force_rebind) {
    log_warning("[module] already bound: bind() does nothing; pass force_rebind to bind again");
    return;
  }
  const auto check = [](const std::vector<DataDesc>& shapes, const std::vector<std::string>& names, const char* kind) {
    std::vector<std::string> given;
    for (const DataDesc& desc : shapes) given.push_back(desc.name);
    require(given == names, "[bind] ", kind, "_shapes describe ", comma_separated(given), ", but ", kind, "_names are ",
            comma_separated(names));
  };
  check(data_shapes, data_names_, "data");
  if (!label_shapes.empty()) check(label_shapes, label_names_, "label");
  const std::vector<Shape> shapes = output_shapes_for(data_shapes, label_shapes);
  require(shapes.size() == output_names_.size(), "[bind] output_shapes_for() returned ", shapes.size(), " shapes for ",
          output_names_.size(), " outputs");
  output_shapes_.clear();
  for (size_t i = 0; i < shapes.size(); ++i) output_shapes_.emplace_back(output_names_[i], shapes[i]);
  data_shapes_ = data_shapes;
  label_shapes_ = label_shapes;
  for_training = args.for_training;
  inputs_need_grad = args.inputs_need_grad;
  binded = true;
}

void ParameterlessModule::init_params(const InitParamsArgs&) { params_initialized = true; }
void ParameterlessModule::set_params(const NamedArrays&, const NamedArrays&, bool, bool, bool) {
  params_initialized = true;
}
void ParameterlessModule::init_optimizer(const InitOptimizerArgs&) { optimizer_initialized = true; }

void ParameterlessModule::update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool) {
  if (!label_shapes_.empty()) metric.update(labels, get_outputs());
}

void ParameterlessModule::install_monitor(Monitor&) {}

// ---- LossModule -----------------------------------------------------------------------------------------------------

LossModule::LossModule(const LossModuleOptions& options)
    : ParameterlessModule(options.data_names, options.label_names, {options.name + "_output"}),
      grad_func_(options.grad_func) {
  require(options.data_names.size() == 1 && options.label_names.size() == 1,
          "[LossModule] a loss has one input and one label: ", comma_separated(options.data_names), "; ",
          comma_separated(options.label_names));
}

std::vector<Shape> LossModule::output_shapes_for(const std::vector<DataDesc>& data_shapes,
                                                 const std::vector<DataDesc>&) const {
  return {data_shapes[0].shape};
}

void LossModule::forward(const DataBatch& batch, std::optional<bool> is_train) {
  const InUse use = in_use("forward");
  require(binded, "[forward] call bind first");
  require(batch.data.size() == 1 && batch.data[0], "[LossModule] one array of scores is needed; the batch has ",
          batch.data.size());
  scores_ = batch.data[0];
  gradient_ = NDArray();
  labels_ = NDArray();
  if (!is_train.value_or(for_training)) return;
  require(batch.label.size() == 1 && batch.label[0], "[LossModule] one array of labels is needed; the batch has ",
          batch.label.size());
  labels_ = batch.label[0];
}

void LossModule::backward(const std::vector<NDArray>& out_grads) {
  const InUse use = in_use("backward");
  require(out_grads.empty(), "[LossModule] a loss takes no out_grads");
  require(for_training, "[backward] the module was not bound for training");
  require(bool(labels_), "[LossModule] call forward in training mode, with labels, before backward");
  require(bool(grad_func_), "[LossModule] there is no grad_func");
  NDArray gradient = grad_func_(scores_, labels_);
  require(gradient && gradient.shape() == scores_.shape(), "[LossModule] grad_func returned ",
          gradient ? join("an array of shape ", gradient.shape()) : "no array", " for scores of shape ",
          scores_.shape());
  gradient_ = gradient.as_in_context(scores_.context());
}

std::vector<NDArray> LossModule::get_outputs() {
  const InUse use = in_use("get_outputs");
  require(bool(scores_), "[get_outputs] call forward first");
  return {scores_};
}
std::vector<NDArray> LossModule::get_input_grads() {
  const InUse use = in_use("get_input_grads");
  require(bool(gradient_), "[get_input_grads] call backward first");
  return {gradient_};
}

}  // namespace symbind
