// What the training stack costs beyond the computation: a step of Module::fit, which takes batches from arrays on the
// host and has a metric, beside a bare step on a batch that is on the device, or beside the calls of a program's own
// loop; and a batch split over two CPU contexts beside one. Prints a JSON row for each; `ratio` is the first time by
// the second.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "symbind/symbind.h"

#include "bench/support/cases.h"
#include "bench/support/steps.h"
#include "examples/support/options.h"

using namespace symbind;
using namespace bench;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t stored_batches = 8;  // of the arrays on the host, which an epoch goes through many times
// Of a round, before those that are timed: what comes at the beginning of an epoch, and the higher clock that a GPU has
// after a rest.
constexpr int64_t first_steps = 10;

struct Options {
  std::string name = "lenet-train", device = "cpu", dtype = "float32", input = "float32", beside = "step",
              optimizer = "sgd";
  int64_t batch = 0, steps = 60, rounds = 7;

  static Options parse(int argc, char** argv) {
    Options options;
    examples::Options line("fit", "Times a step of Module::fit beside a bare step. Cases: those of train_step");
    line.add("--case", options.name, "the network", "CASE")
        .add_choice("--device", options.device, {"cpu", "gpu"}, "where it runs")
        .add_choice("--dtype", options.dtype, {"float32", "float16", "bfloat16"}, "16 bits: mixed precision")
        .add_choice("--input", options.input, {"float32", "uint8"},
                    "batches on the host; uint8: pixels, which the device normalizes")
        .add_choice("--beside", options.beside, {"step", "calls"},
                    "what fit is compared with: a bare step, or calls of forward_backward, update and update_metric")
        .add_choice("--optimizer", options.optimizer, {"sgd", "adam"}, "adam: only beside calls")
        .add("--batch", options.batch, "samples in a batch; 0: the case's own number", 0)
        .add("--steps", options.steps, "steps of a round", 10)
        .add("--rounds", options.rounds, "rounds, of which the median counts");
    line.parse(argc, argv);
    require(options.optimizer == "sgd" || options.beside == "calls", "a bare step updates by SGD: --beside calls");
    return options;
  }
  OptimizerParams optimizer_params() const {
    return optimizer == "sgd" ? sgd_params() : OptimizerParams{{"learning_rate", 0.001}};
  }
  StepOptions step_options() const {
    return {.context = device == "gpu" ? gpu() : cpu(), .dtype = dtype_from_name(dtype)};
  }
};

double ms_since(Clock::time_point begin, int64_t steps) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / static_cast<double>(steps);
}

class BareSteps {
 public:
  BareSteps(const Case& network, const StepOptions& options) : training_(network, options) {}
  double ms_per_step(int64_t steps) {
    for (int64_t i = 0; i < first_steps; ++i) training_.step();
    waitall();
    const auto begin = Clock::now();
    for (int64_t i = 0; i < steps; ++i) training_.step();
    waitall();
    return ms_since(begin, steps);
  }

 private:
  Training training_;
};

// Batches of the arrays on the host. All have the samples of one batch, as the bare step has only one: the power that a
// GPU takes, and with it its clock, depends on the numbers.
class StoredBatches final : public DataIter {
 public:
  StoredBatches(const Case& network, bool as_pixels)
      : as_pixels_(as_pixels),
        batches_(stored(as_pixels ? pixels(network) : network.random_data()), stored(network.random_labels()),
                 {.batch_size = network.data[0]}) {}

  std::vector<DataDesc> provide_data() const override {
    std::vector<DataDesc> described = batches_.provide_data();
    if (as_pixels_) {
      described[0].dtype = DType::float32;
      described[0].normalization = {.mean = {mean}, .std = {deviation}};
    }
    return described;
  }
  std::vector<DataDesc> provide_label() const override { return batches_.provide_label(); }
  void reset() override { batches_.reset(); }
  std::optional<DataBatch> next() override { return batches_.next(); }

 private:
  static constexpr double mean = 128, deviation = 64;

  static NDArray stored(const NDArray& batch) { return concatenate(std::vector<NDArray>(stored_batches, batch), 0); }
  static NDArray pixels(const Case& network) {
    require(network.data.rank() == 4, "--input uint8 needs a case with images, not of data ", network.data);
    const NDArray numbers = network.random_data() * deviation + mean;
    return clip(numbers, {.a_min = 0, .a_max = 255}).astype(DType::uint8);
  }

  bool as_pixels_;
  NDArrayIter batches_;
};

class ThroughFit {
 public:
  ThroughFit(const Case& network, const std::vector<Context>& contexts, const Options& options)
      : network_(network),
        options_(options),
        data_(network, options.input == "uint8"),
        module_(network.symbol, {.context = contexts, .compute_dtype = options.step_options().dtype}) {}

  // Without what comes at the end of an epoch: epochs are usually much longer.
  double ms_per_step(int64_t steps) {
    Clock::time_point begin;
    double ms = 0;
    const auto watch = [&](const BatchEndParam& at) {
      const int64_t done = at.nbatch + 1;
      if (done == first_steps || done == first_steps + steps) waitall();
      if (done == first_steps) begin = Clock::now();
      if (done == first_steps + steps) ms = ms_since(begin, steps);
    };
    ResizeIter epoch(data_, first_steps + steps);
    module_.fit(epoch, {.eval_metric = metric_,
                        .batch_end_callback = {watch},
                        .optimizer = options_.optimizer,
                        .optimizer_params = options_.optimizer_params(),
                        .initializer = network_.initializer(),
                        .num_epoch = 1});
    return ms;
  }

 private:
  const Case& network_;
  const Options& options_;
  StoredBatches data_;
  Module module_;
  EvalMetricPtr metric_ = EvalMetric::create("acc");
};

class ThroughCalls {
 public:
  ThroughCalls(const Case& network, const Options& options)
      : data_(network, options.input == "uint8"),
        module_(network.symbol,
                {.context = {options.step_options().context}, .compute_dtype = options.step_options().dtype}) {
    module_.bind(data_.provide_data(), data_.provide_label());
    module_.init_params({.initializer = network.initializer()});
    module_.init_optimizer({.optimizer = options.optimizer, .optimizer_params = options.optimizer_params()});
  }

  double ms_per_step(int64_t steps) {
    ResizeIter epoch(data_, first_steps + steps + 1);
    std::optional<DataBatch> batch = epoch.next();
    Clock::time_point begin;
    for (int64_t i = 0; i < first_steps + steps; ++i) {
      if (i == first_steps) {
        waitall();
        begin = Clock::now();
      }
      module_.forward_backward(*batch);
      module_.update();
      module_.update_metric(*metric_, batch->label);
      batch = epoch.next();
      module_.prepare(*batch);
    }
    waitall();
    return ms_since(begin, steps);
  }

 private:
  StoredBatches data_;
  Module module_;
  EvalMetricPtr metric_ = EvalMetric::create("acc");
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Both in turn, so that whatever else the machine does falls on both.
template <class A, class B>
void compare(const std::string& what, const Options& options, A& ours, B& base) {
  std::vector<double> times, base_times;
  const auto rest = [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };  // until threads stop spinning
  for (int64_t i = -1; i < options.rounds; ++i) {                                        // the first round warms up
    rest();
    const double time = ours.ms_per_step(options.steps);
    rest();
    const double base_time = base.ms_per_step(options.steps);
    if (i < 0) continue;
    times.push_back(time);
    base_times.push_back(base_time);
  }
  std::cout << "{\"case\": \"" << what << "\", \"network\": \"" << options.name << "\", \"dtype\": \"" << options.dtype
            << "\", \"input\": \"" << options.input << "\", \"optimizer\": \"" << options.optimizer
            << "\", \"ms\": " << median(times) << ", \"base_ms\": " << median(base_times)
            << ", \"ratio\": " << median(times) / median(base_times) << "}" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("fit", [&] {
    const Options options = Options::parse(argc, argv);
    set_log_sink([](LogLevel, std::string_view) {});
    const Case network = make_case(options.name, options.batch);
    require(!is_inference(options.name) && network.vocabulary == 0,
            "fit needs a case that trains, with a label for each sample, not ", options.name);
    const StepOptions step = options.step_options();
    ThroughFit one(network, {step.context}, options);
    if (options.beside == "calls") {
      ThroughCalls calls(network, options);
      compare("fit beside calls", options, one, calls);
    } else {
      BareSteps bare(network, step);
      compare("fit", options, one, bare);
    }
    if (step.context.is_gpu() || options.beside == "calls") return;
    ThroughFit two(network, {cpu(0), cpu(1)}, options);
    compare("two-contexts", options, two, one);
  });
}
