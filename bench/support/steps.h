// A step of training by a bare executor and by a module, and a prediction: what the programs here time. On a GPU a step
// may still run when step() returns.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "bench/support/cases.h"

namespace bench {

struct StepOptions {
  Context context = cpu();
  DType dtype = DType::float32;  // float16, bfloat16: mixed precision, as ModuleOptions::compute_dtype has it
  CompileOptions compile = {};
};

inline bool is_low(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// SGD as all contestants have it.
inline OptimizerParams sgd_params() { return {{"learning_rate", 0.01}, {"momentum", 0.9}, {"wd", 1e-4}}; }

// Forward, backward and SGD with momentum, by an executor and operators. The batch is on the device. In float16 the
// loss is scaled, and a step whose gradients overflow is left out.
class Training {
 public:
  Training(const Case& network, const StepOptions& options) : is_scaled_(options.dtype == DType::float16) {
    const std::vector<std::string> parameters = network.parameters();
    std::map<std::string, std::string> grad_req;
    for (const std::string& name : parameters) grad_req[name] = "write";
    executor_ = simple_bind(computed(network, options.dtype), options.context,
                            {{"data", network.data}, {"softmax_label", network.label_shape()}},
                            {.grad_req = grad_req, .options = options.compile});
    NamedArrays arguments = executor_->arg_dict();
    network.random_data().copyto(arguments.at("data"));
    network.random_labels().copyto(arguments.at("softmax_label"));
    const auto initializer = network.initializer();
    for (const std::string& name : parameters) {
      NDArray weight = arguments.at(name);
      (*initializer)(InitDesc{name}, weight);
      weights_.push_back(weight);
      gradients_.push_back(executor_->grad_dict().at(name));
      updated_.insert(updated_.end(), {weight, gradients_.back(), zeros(weight.shape(), options.context)});
    }
    update_.num_weights = static_cast<int64_t>(weights_.size());
    update_.lrs.assign(weights_.size(), 0.01);
    update_.wds.assign(weights_.size(), 1e-4);
    update_.momentum = 0.9;
    update_.rescale_grad = 1.0 / static_cast<double>(network.data[0]);
    if (!is_scaled_) return;
    factors_ = {arguments.at(scale_name), arguments.at(inverse_name)};
    factors_[0].fill(LossScale::first);
    factors_[1].fill(1 / LossScale::first);
    scale_ = array({LossScale::first, 0}, options.context, DType::float64);
  }

  // On a GPU the host does not wait for the check of the gradients: the GPU leaves out the update itself.
  void step() {
    executor_->forward_backward();
    if (!is_scaled_) return update();
    finite_ = multi_all_finite(gradients_, {.num_arrays = update_.num_weights});
    invoke(adapt_loss_scale, {finite_, scale_}, {}, {.out = factors_});
    if (finite_.context().is_gpu()) {
      const UpdateCondition condition(static_cast<const float*>(finite_.data()));
      update();
    } else if (is_taken()) {
      update();
    }
  }
  // Was the last step taken? The first ones in float16 are not, until the scale of the loss is small enough.
  bool is_taken() const { return !is_scaled_ || finite_.item() != 0; }

  const Executor& executor() const { return *executor_; }
  // What the operators beside the network read and write in a step, by name: for the table of costs.
  std::map<std::string, size_t> bytes_outside() const {
    size_t parameters = 0;
    for (const NDArray& weight : weights_) parameters += static_cast<size_t>(weight.size()) * sizeof(float);
    return {{"multi_sgd_mom_update", 5 * parameters}, {"multi_all_finite", parameters}};
  }

 private:
  static Symbol computed(const Case& network, DType dtype) {
    if (!is_low(dtype)) return network.symbol;
    const Symbol low = computed_in(network.symbol, dtype);
    return dtype == DType::float16 ? with_scaled_loss(low, network.parameters(), scale_name, inverse_name) : low;
  }
  void update() { invoke(multi_sgd_mom_update, updated_, update_, {.out = weights_}); }

  static constexpr const char *scale_name = "_loss_scale", *inverse_name = "_inverse_loss_scale";
  ExecutorPtr executor_;
  std::vector<NDArray> weights_, gradients_, updated_;  // the last: weight, gradient and momentum of each
  MultiSgdMomUpdate update_;
  const bool is_scaled_;
  std::vector<NDArray> factors_;  // of the loss, and of the gradients
  NDArray scale_, finite_;        // the state of the first, and the check of the last step
};

// The same through Module, which also takes the batch in.
class ModuleTraining {
 public:
  ModuleTraining(const Case& network, const StepOptions& options)
      : module_(network.symbol,
                {.context = {options.context}, .compile_options = options.compile, .compute_dtype = options.dtype}),
        batch_{.data = {network.random_data()}, .label = {network.random_labels()}} {
    module_.bind({{"data", network.data}}, {{"softmax_label", network.label_shape()}});
    module_.init_params({.initializer = network.initializer()});
    module_.init_optimizer({.kvstore = nullptr, .optimizer_params = sgd_params()});
  }

  void step() {
    module_.forward_backward(batch_);
    module_.update();
  }
  static bool is_taken() { return true; }
  const Executor& executor() const { return *module_.exec_group()->execs()[0]; }
  static std::map<std::string, size_t> bytes_outside() { return {}; }

 private:
  Module module_;
  DataBatch batch_;
};

// A prediction, the result on the host. In 16 bits the parameters and the data are of that type too.
class Prediction {
 public:
  Prediction(const Case& network, const StepOptions& options) {
    const bool low = is_low(options.dtype);
    const Symbol computed =
        low ? with_low_parameters(computed_in(network.symbol, options.dtype), options.dtype) : network.symbol;
    executor_ = simple_bind(computed, options.context, {{"data", network.data}},
                            {.grad_req = "null",
                             .type_dict = {{"data", low && network.vocabulary == 0 ? options.dtype : DType::float32}},
                             .options = options.compile});
    const auto initializer = network.initializer();
    for (const std::string& name : network.parameters()) {
      NDArray parameter = executor_->arg_dict().at(name), initial(parameter.shape());
      (*initializer)(InitDesc{name}, initial);
      initial.copyto(parameter);
    }
    for (const auto& [name, array] : executor_->aux_dict()) array.fill(name.ends_with("_var") ? 1 : 0);
    network.random_data().copyto(executor_->arg_dict().at("data"));
  }

  static bool is_taken() { return true; }
  void step() { result_ = executor_->forward(/*is_train=*/false)[0].to_vector<float>(); }
  const Executor& executor() const { return *executor_; }
  static std::map<std::string, size_t> bytes_outside() { return {}; }

 private:
  ExecutorPtr executor_;
  std::vector<float> result_;
};

}  // namespace bench
