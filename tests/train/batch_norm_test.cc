// Batch normalisation over several devices: each normalises its own slice and keeps its own moving statistics, which
// are averaged when parameters are fetched and, at the end of an epoch, given to all. The reference is a loop over
// executors that know nothing of each other.
#include <gtest/gtest.h>

#include "tests/support/training.h"

namespace symbind::testing {
namespace {

constexpr int64_t batch_size = 12, samples = 48;  // four steps an epoch
constexpr int epochs = 5;
constexpr double lr = 0.1, momentum = 0.9, wd = 0.01;

Symbol network() {
  Symbol net = Symbol::variable("data");
  net = convolution(net, {.kernel = {3, 3}, .num_filter = 4}, "conv");
  net = batch_norm(net, {.eps = 1e-3, .momentum = 0.8, .fix_gamma = false}, "bn1");
  net = activation(net, {.act_type = "tanh"}, "tanh1");
  net = fully_connected(net, {.num_hidden = 5}, "fc1");
  net = batch_norm(net, {.eps = 1e-3, .momentum = 0.8, .fix_gamma = false}, "bn2");
  net = fully_connected(net, {.num_hidden = 3}, "fc2");
  return softmax_output(net, {}, "softmax");
}

NDArray images() { return random_array({samples, 2, 5, 5}, 3); }

NamedArrays first_arguments() {
  return {{"conv_weight", random_array({4, 2, 3, 3}, 1)}, {"conv_bias", random_array({4}, 2)},
          {"bn1_gamma", random_array({4}, 3, 0.5, 1.5)},  {"bn1_beta", random_array({4}, 4)},
          {"fc1_weight", random_array({5, 36}, 5)},       {"fc1_bias", random_array({5}, 6)},
          {"bn2_gamma", random_array({5}, 7, 0.5, 1.5)},  {"bn2_beta", random_array({5}, 8)},
          {"fc2_weight", random_array({3, 5}, 9)},        {"fc2_bias", random_array({3}, 10)}};
}
NamedArrays first_statistics() {
  return {{"bn1_moving_mean", zeros({4})},
          {"bn1_moving_var", ones({4})},
          {"bn2_moving_mean", zeros({5})},
          {"bn2_moving_var", ones({5})}};
}

// One executor per slice, and everything between them done here in double.
class Reference {
 public:
  explicit Reference(const std::vector<int64_t>& sizes) {
    int64_t begin = 0;
    for (const int64_t size : sizes) {
      slices_.push_back({begin, begin + size});
      begin += size;
      execs_.push_back(
          simple_bind(network(), cpu(), {{"data", {size, 2, 5, 5}}, {"softmax_label", {size}}}, {.grad_req = "write"}));
      execs_.back()->copy_params_from(first_arguments(), first_statistics());
    }
    for (const auto& [name, value] : first_arguments()) {
      weights_[name] = value.to_vector<double>();
      momenta_[name] = std::vector<double>(weights_[name].size(), 0);
    }
  }

  void step(const NDArray& data, const NDArray& label) {
    for (size_t i = 0; i < execs_.size(); ++i) {
      const auto [begin, end] = slices_[i];
      execs_[i]->forward(true, {{"data", data.slice(begin, end)}, {"softmax_label", label.slice(begin, end)}});
      execs_[i]->backward();
    }
    for (auto& [name, weight] : weights_) {
      const double decay = name.ends_with("_weight") || name.ends_with("_gamma") ? wd : 0;
      std::vector<double>& momentum_of = momenta_.at(name);
      std::vector<double> gradient(weight.size(), 0);
      for (const ExecutorPtr& executor : execs_) {
        const auto part = executor->grad_dict().at(name).to_vector<double>();
        for (size_t i = 0; i < part.size(); ++i) gradient[i] += part[i];
      }
      for (size_t i = 0; i < weight.size(); ++i) {
        momentum_of[i] = momentum * momentum_of[i] - lr * (gradient[i] / batch_size + decay * weight[i]);
        weight[i] += momentum_of[i];
      }
      for (const ExecutorPtr& executor : execs_) NDArray(executor->arg_dict().at(name)).copy_from(weight);
    }
  }

  NamedArrays arguments() const {
    NamedArrays arrays = first_arguments();
    for (auto& [name, array] : arrays) array.copy_from(weights_.at(name));
    return arrays;
  }
  NamedArrays mean_statistics() const {
    NamedArrays arrays = first_statistics();
    for (auto& [name, array] : arrays) {
      std::vector<double> mean(static_cast<size_t>(array.size()), 0);
      for (const ExecutorPtr& executor : execs_) {
        const auto part = executor->aux_dict().at(name).to_vector<double>();
        for (size_t i = 0; i < part.size(); ++i) mean[i] += part[i] / static_cast<double>(execs_.size());
      }
      array.copy_from(mean);
    }
    return arrays;
  }
  NDArray statistic(size_t device, const std::string& name) const { return execs_[device]->aux_dict().at(name); }
  void average_statistics() {
    const NamedArrays mean = mean_statistics();
    for (const ExecutorPtr& executor : execs_) executor->copy_params_from({}, mean);
  }

 private:
  std::vector<BatchSlice> slices_;
  std::vector<ExecutorPtr> execs_;
  std::map<std::string, std::vector<double>> weights_, momenta_;
};

struct Case {
  std::vector<Context> context;
  std::vector<double> work_load_list;
  std::vector<int64_t> sizes;  // of the slices
};
const std::vector<Case> cases{{{cpu(0), cpu(1)}, {}, {6, 6}},
                              {{cpu(0), cpu(1), cpu(2)}, {3, 1, 2}, {6, 2, 4}},
                              {{cpu(0), cpu(1), cpu(2), cpu(3)}, {}, {3, 3, 3, 3}}};

const OptimizerParams sgd{{"learning_rate", lr}, {"momentum", momentum}, {"wd", wd}};

TEST(BatchNormOnSeveralDevices, TrainsAsExecutorsThatSeeTheirSlicesAlone) {
  for (const Case& each : cases) {
    SCOPED_TRACE(each.context.size());
    NDArrayIter data(images(), labels_of(samples), {.batch_size = batch_size});
    Module module(network(), {.context = each.context, .work_load_list = each.work_load_list});
    Reference reference(each.sizes);
    {
      const Quiet quiet;
      module.fit(data, {.optimizer_params = sgd,
                        .arg_params = first_arguments(),
                        .aux_params = first_statistics(),
                        .num_epoch = epochs});
    }
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (int64_t begin = 0; begin < samples; begin += batch_size)
        reference.step(images().slice(begin, begin + batch_size), labels_of(samples).slice(begin, begin + batch_size));
      reference.average_statistics();  // what the end of an epoch does
    }
    const auto params = module.get_params();
    expect_equal(params.arg_params, reference.arguments());
    expect_equal(params.aux_params, reference.mean_statistics());
  }
}

TEST(BatchNormOnSeveralDevices, KeepsStatisticsPerDeviceAndAveragesThemWhenTheyAreFetched) {
  for (const Case& each : cases) {
    SCOPED_TRACE(each.context.size());
    NDArrayIter data(images(), labels_of(samples), {.batch_size = batch_size});
    Module module(network(), {.context = each.context, .work_load_list = each.work_load_list});
    module.bind(data.provide_data(), data.provide_label());
    module.init_params({.arg_params = first_arguments(), .aux_params = first_statistics()});
    module.init_optimizer({.optimizer_params = sgd});
    Reference reference(each.sizes);
    for (int epoch = 0; epoch < epochs; ++epoch, data.reset())
      while (const auto batch = data.next()) {
        module.forward_backward(*batch);
        module.update();
        reference.step(batch->data[0], batch->label[0]);
      }
    const DataParallelExecutorGroup& group = *module.exec_group();
    for (size_t i = 0; i < group.aux_names().size(); ++i) {
      for (size_t device = 0; device < each.sizes.size(); ++device)
        EXPECT_TRUE(all_close(group.aux_arrays()[i][device].as_in_context(cpu()),
                              reference.statistic(device, group.aux_names()[i]), {1e-5, 1e-5}))
            << group.aux_names()[i] << " of device " << device;
      EXPECT_FALSE(same_bits(group.aux_arrays()[i][0], group.aux_arrays()[i][1].as_in_context(cpu(0))));
    }
    const auto params = module.get_params();
    expect_equal(params.arg_params, reference.arguments());
    expect_equal(params.aux_params, reference.mean_statistics());
  }
}

}  // namespace
}  // namespace symbind::testing
