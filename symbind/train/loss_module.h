// Modules without a network: a user-defined function computes the outputs from the inputs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "symbind/train/base_module.h"

namespace SYMBIND_API symbind {

// Base class of modules without parameters. A derived class defines forward(), backward(), get_outputs(),
// get_input_grads() and output_shapes_for().
class ParameterlessModule : public BaseModule {
 public:
  ParameterlessModule(std::vector<std::string> data_names, std::vector<std::string> label_names,
                      std::vector<std::string> output_names);

  std::vector<std::string> data_names() const override { return data_names_; }
  std::vector<std::string> label_names() const override { return label_names_; }
  std::vector<std::string> output_names() const override { return output_names_; }
  std::vector<DataDesc> data_shapes() const override;
  std::vector<DataDesc> label_shapes() const override;
  std::vector<std::pair<std::string, Shape>> output_shapes() const override;

  void bind(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes = {},
            const BindArgs& args = {}) override;
  void init_params(const InitParamsArgs& args = {}) override;
  void set_params(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_missing = false,
                  bool force_init = true, bool allow_extra = false) override;
  Params get_params() override { return {}; }
  void init_optimizer(const InitOptimizerArgs& args = {}) override;
  void update() override {}
  // Does nothing if no labels are bound.
  void update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool pre_sliced = false) override;
  void install_monitor(Monitor& monitor) override;  // does nothing: there is no executor to monitor

 protected:
  // One for each output.
  virtual std::vector<Shape> output_shapes_for(const std::vector<DataDesc>& data_shapes,
                                               const std::vector<DataDesc>& label_shapes) const = 0;

 private:
  std::vector<std::string> data_names_, label_names_, output_names_;
  std::vector<DataDesc> data_shapes_, label_shapes_;
  std::vector<std::pair<std::string, Shape>> output_shapes_;
};

// The gradient of a loss with respect to the scores, in their shape.
using LossGradient = std::function<NDArray(const NDArray& scores, const NDArray& labels)>;

struct LossModuleOptions {
  std::string name = "loss";  // its output is name_output
  std::vector<std::string> data_names = {"data"};
  std::vector<std::string> label_names = {"softmax_label"};
  LossGradient grad_func = {};
};

// A loss at the end of a SequentialModule. Its output is its input, the scores; its gradient is the result of
// grad_func.
class LossModule : public ParameterlessModule {
 public:
  explicit LossModule(const LossModuleOptions& options);

  void forward(const DataBatch& batch, std::optional<bool> is_train = std::nullopt) override;
  void backward(const std::vector<NDArray>& out_grads = {}) override;
  std::vector<NDArray> get_outputs() override;
  std::vector<NDArray> get_input_grads() override;

 protected:
  std::vector<Shape> output_shapes_for(const std::vector<DataDesc>& data_shapes,
                                       const std::vector<DataDesc>& label_shapes) const override;

 private:
  LossGradient grad_func_;
  NDArray scores_, labels_, gradient_;
};

}  // namespace symbind
