// Modules one after the other: the outputs of each are the data of the next, and gradients go back the same way.
//   SequentialModule module;
//   module.add(features).add(loss, {.take_labels = true, .auto_wiring = true});
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "symbind/train/base_module.h"

namespace SYMBIND_API symbind {

struct SequentialPart {
  bool take_labels = false;  // is it given the labels?
  bool auto_wiring = false;  // pass its data under its own names, not the previous outputs'?
};

class SequentialModule : public BaseModule {
 public:
  SequentialModule& add(std::shared_ptr<BaseModule> module, const SequentialPart& part = {});
  size_t size() const { return layers_.size(); }
  BaseModule& layer(size_t index) const { return *layers_.at(index).module; }

  std::vector<std::string> data_names() const override;
  std::vector<std::string> label_names() const override;  // of the modules that take labels
  std::vector<std::string> output_names() const override;
  std::vector<DataDesc> data_shapes() const override;
  std::vector<DataDesc> label_shapes() const override;
  std::vector<std::pair<std::string, Shape>> output_shapes() const override;

  void bind(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes = {},
            const BindArgs& args = {}) override;
  // Every parameter belongs to one module: a name in two of them fails.
  void init_params(const InitParamsArgs& args = {}) override;
  void set_params(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_missing = false,
                  bool force_init = true, bool allow_extra = false) override;
  Params get_params() override;
  // Each module has its own state; an optimizer that is given as an object is shared.
  void init_optimizer(const InitOptimizerArgs& args = {}) override;

  void forward(const DataBatch& batch, std::optional<bool> is_train = std::nullopt) override;
  void backward(const std::vector<NDArray>& out_grads = {}) override;
  void update() override;
  std::vector<NDArray> get_outputs() override;
  int output_batch_axis(size_t output) const override;
  std::vector<NDArray> get_input_grads() override;
  // Of all modules, in their order.
  std::vector<NDArray> get_states() const override;
  void set_states(const std::vector<NDArray>& states) override;
  void set_states(double value) override;
  void update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool pre_sliced = false) override;
  void install_monitor(Monitor& monitor) override;

 private:
  struct Layer {
    std::shared_ptr<BaseModule> module;
    SequentialPart part;
  };
  void require_layers(const char* call) const;
  void warn_of_extra(const InitParamsArgs& args, const Params& held) const;

  std::vector<Layer> layers_;
  std::vector<DataDesc> label_shapes_;
};

}  // namespace symbind
