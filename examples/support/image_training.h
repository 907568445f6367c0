// How a network is trained, as options say: devices, optimizer, learning rate, metrics, checkpoints.
#pragma once

#include <chrono>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/contexts.h"
#include "examples/support/options.h"

namespace examples {

struct ImageTraining {
  std::string optimizer = "sgd", kv_store = "local", initializer = "default", loss = "ce", dtype = "float32";
  std::string warmup_strategy = "linear", gc_type = "none", model_prefix;
  int64_t batch_size = 8, num_epochs = 1, load_epoch = 0, save_period = 1, warmup_epochs = 0;
  int64_t contexts = 1, top_k = 0, disp_batches = 0, monitor = 0;
  double lr = 0.01, lr_factor = 0.1, mom = 0.9, wd = 1e-4, gc_threshold = 0.5;
  std::vector<int64_t> lr_step_epochs, gpus;
  bool test_io = false;

  void add_to(Options& options) {
    options.add("--batch-size", batch_size, "images a step")
        .add("--num-epochs", num_epochs, "epochs to train")
        .add("--optimizer", optimizer, "by its name: sgd, nag, adam, …", "NAME")
        .add("--lr", lr, "the learning rate")
        .add("--lr-factor", lr_factor, "what it is multiplied by at each step")
        .add("--lr-step-epochs", lr_step_epochs, "the epochs before which it is; none if left out")
        .add("--warmup-epochs", warmup_epochs, "epochs over which it grows from 0", 0)
        .add_choice("--warmup-strategy", warmup_strategy, {"linear", "constant"}, "how it grows")
        .add("--mom", mom, "momentum, of sgd and nag")
        .add("--wd", wd, "weight decay")
        .add("--initializer", initializer, "default (Xavier), xavier, msra, orthogonal, normal, …", "NAME")
        .add("--kv-store", kv_store, "how devices and workers share gradients: local, device, dist_sync, …", "NAME")
        .add_choice("--gc-type", gc_type, {"none", "2bit"}, "compress gradients")
        .add("--gc-threshold", gc_threshold, "of the compression")
        .add("--contexts", contexts, "CPU contexts that share a batch")
        .add("--gpus", gpus, "GPUs that share a batch instead, such as 0 or 0,2", 0)
        .add_choice("--dtype", dtype, {"float32", "float16", "bfloat16"}, "what layers compute in")
        .add("--loss", loss, "losses to report: ce, nll-loss")
        .add("--top-k", top_k, "also count whether the class is among the k best; 0: do not", 0)
        .add("--disp-batches", disp_batches, "a line of progress every so many batches; 0: a progress bar", 0)
        .add("--monitor", monitor, "print statistics of all layers every so many batches; 0: do not", 0)
        .add("--model-prefix", model_prefix, "save a checkpoint with this prefix after each epoch", "PREFIX")
        .add("--save-period", save_period, "after every so many epochs")
        .add("--load-epoch", load_epoch, "go on from the checkpoint of this epoch; 0 is the beginning", 0)
        .add_switch("--test-io", test_io, "1: only read the data, and say how fast");
  }

  ModuleOptions module_options() const {
    ModuleOptions options{.context = contexts_of(gpus, contexts)};
    if (dtype != "float32") options.compute_dtype = dtype == "float16" ? DType::float16 : DType::bfloat16;
    return options;
  }
  // Worker 0 saves under the prefix, each of the others under its own.
  std::string prefix(const KVStore& store) const {
    return store.rank() == 0 ? model_prefix : join(model_prefix, "-", store.rank());
  }
  KVStorePtr store() const {
    KVStorePtr made = KVStore::create(kv_store);
    if (gc_type != "none") made->set_gradient_compression({{"type", gc_type}, {"threshold", join(gc_threshold)}});
    return made;
  }
  // `batches`: those of an epoch. Updates are counted from the beginning of training, as a checkpoint counts them.
  OptimizerParams optimizer_params(int64_t batches) const {
    OptimizerParams params{{"learning_rate", lr}, {"wd", wd}};
    if (optimizer == "sgd" || optimizer == "nag") params.insert_or_assign("momentum", mom);
    std::vector<int64_t> steps;
    for (const int64_t epoch : lr_step_epochs) steps.push_back(epoch * batches);
    const WarmUp warm_up{.steps = warmup_epochs * batches, .mode = warmup_strategy};
    if (!steps.empty())
      params.insert_or_assign(
          "lr_scheduler",
          multi_factor_scheduler({.step = steps, .factor = lr_factor, .base_lr = lr, .warm_up = warm_up}));
    else if (warm_up.steps > 0)
      params.insert_or_assign(
          "lr_scheduler",
          factor_scheduler({.step = std::numeric_limits<int32_t>::max(), .base_lr = lr, .warm_up = warm_up}));
    return params;
  }
  InitializerPtr start() const {
    if (initializer == "default" || initializer == "xavier")
      return std::make_shared<init::Xavier>(
          init::XavierOptions{.rnd_type = "gaussian", .factor_type = "in", .magnitude = 2});
    return initializer == "msra" ? std::make_shared<init::MSRAPrelu>() : create_initializer(initializer);
  }
  EvalMetricPtr metrics() const {
    std::vector<EvalMetricPtr> chosen{EvalMetric::create("accuracy")};
    if (top_k) chosen.push_back(EvalMetric::create("top_k_accuracy", {{"top_k", join(top_k)}}));
    std::istringstream names(loss);
    for (std::string name; std::getline(names, name, ',');)
      chosen.push_back(EvalMetric::create(name == "nll-loss" ? "nll_loss" : name));
    return std::make_shared<metric::Composite>(chosen);
  }
};

// Reads an epoch and prints how fast that is.
inline void read_all(DataIter& data, int64_t batch_size) {
  const auto start = std::chrono::steady_clock::now();
  int64_t batches = 0;
  while (data.next()) ++batches;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  std::cout << batches << " batches read, " << static_cast<double>(batches * batch_size) / passed.count()
            << " samples/sec\n";
}

}  // namespace examples
