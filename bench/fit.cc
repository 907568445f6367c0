// What the training stack costs beyond the executor: an epoch of LeNet on the digits through Module::fit with a metric
// against a bare executor loop, and a batch split over two CPU contexts against one. Prints one JSON row for each.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "symbind/symbind.h"

using namespace symbind;

namespace {

constexpr int64_t batch_size = 64;
constexpr int rounds = 7;

Symbol lenet() {
  Symbol net = Symbol::variable("data");
  for (const int64_t filters : {20, 50}) {
    net = activation(convolution(net, {.kernel = {5, 5}, .num_filter = filters}), {.act_type = "tanh"});
    net = pooling(net, {.kernel = {2, 2}, .pool_type = "max", .stride = {2, 2}});
  }
  net = activation(fully_connected(flatten(net), {.num_hidden = 500}), {.act_type = "tanh"});
  return softmax_output(fully_connected(net, {.num_hidden = 10}), {}, "softmax");
}

NDArrayIter digits(const std::string& folder) {
  const IdxArray images = read_idx(folder + "/train-images-idx3-ubyte.gz");
  const IdxArray labels = read_idx(folder + "/train-labels-idx1-ubyte.gz");
  NDArray data({images.shape[0], 1, images.shape[1], images.shape[2]}), label(labels.shape);
  data.copy_from(images.values);
  label.copy_from(labels.values);
  data *= 1.0 / 255;
  return NDArrayIter(data, label, {.batch_size = batch_size, .last_batch_handle = "discard"});
}

const OptimizerParams sgd{{"learning_rate", 0.05}, {"momentum", 0.9}, {"wd", 1e-4}, {"rescale_grad", 1.0 / batch_size}};

class BareLoop {
 public:
  explicit BareLoop(NDArrayIter& data) : data_(data), updater_(Optimizer::create("sgd", sgd)) {
    const Symbol net = lenet();
    std::map<std::string, std::string> grad_req;
    for (const std::string& name : net.list_arguments())
      if (name != "data" && name != "softmax_label") grad_req[name] = "write";
    executor_ = simple_bind(net, cpu(), {{"data", data.provide_data()[0].shape}}, {.grad_req = grad_req});
    const init::Xavier xavier;
    for (const auto& [name, gradient] : executor_->grad_dict()) {
      NDArray weight = executor_->arg_dict().at(name);
      xavier(InitDesc{name}, weight);
      items_.push_back({items_.size(), gradient, weight});
    }
  }
  void epoch() {
    for (data_.reset(); const auto batch = data_.next();) {
      executor_->forward(true, {{"data", batch->data[0]}, {"softmax_label", batch->label[0]}});
      executor_->backward();
      updater_(items_);
    }
  }

 private:
  NDArrayIter& data_;
  Updater updater_;
  ExecutorPtr executor_;
  std::vector<Updater::Item> items_;
};

class ThroughFit {
 public:
  ThroughFit(NDArrayIter& data, std::vector<Context> contexts) : data_(data), module_(lenet(), {.context = contexts}) {}
  void epoch() {
    data_.reset();
    module_.fit(data_, {.eval_metric = metric_,
                        .optimizer_params = sgd,
                        .initializer = std::make_shared<init::Xavier>(),
                        .num_epoch = 1});
  }

 private:
  NDArrayIter& data_;
  Module module_;
  EvalMetricPtr metric_ = EvalMetric::create("acc");
};

template <class Run>
double seconds(Run&& run) {
  std::this_thread::sleep_for(
      std::chrono::milliseconds(30));  // until the threads of the run before have stopped spinning
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Both in turn, so that whatever else the machine does falls on both.
template <class A, class B>
void compare(const std::string& name, A& ours, B& base) {
  ours.epoch();
  base.epoch();
  std::vector<double> times, base_times;
  for (int i = 0; i < rounds; ++i) {
    times.push_back(seconds([&] { ours.epoch(); }));
    base_times.push_back(seconds([&] { base.epoch(); }));
  }
  const double time = median(times), base_time = median(base_times);
  std::cout << "{\"case\": \"" << name << "\", \"ms\": " << time * 1e3 << ", \"base_ms\": " << base_time * 1e3
            << ", \"ratio\": " << time / base_time << "}" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string folder = argc > 2 && std::string(argv[1]) == "--data" ? argv[2] : "data";
    set_log_sink([](LogLevel, std::string_view) {});
    NDArrayIter data = digits(folder);
    BareLoop bare(data);
    ThroughFit one(data, {cpu()}), two(data, {cpu(0), cpu(1)});
    compare("fit-epoch", one, bare);
    compare("two-contexts", two, one);
  } catch (const std::exception& error) {
    std::cerr << "fit: " << error.what() << "\n";
    return 1;
  }
}
