// What is called while a network trains: after batches and after epochs. Messages go through core/log.h.
#pragma once

#include <any>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "symbind/core/ndarray.h"
#include "symbind/graph/symbol.h"
#include "symbind/train/metric.h"

namespace symbind {

// A number as messages have it: "0.912345" with six digits.
std::string with_digits(double value, int digits);

struct BatchEndParam {
  int epoch = 0;
  int64_t nbatch = 0;                           // from 0 in each epoch
  EvalMetric* eval_metric = nullptr;            // none when no metric is kept
  std::map<std::string, std::any> locals = {};  // what the loop has at hand: epoch, nbatch, data_batch, train_data, …
};

using BatchEndCallback = std::function<void(const BatchEndParam& param)>;
using EpochEndCallback =
    std::function<void(int epoch, const Symbol& symbol, const NamedArrays& arg_params, const NamedArrays& aux_params)>;

// Every `frequent` batches: "Epoch[0] Batch [50-100]	Speed: 1234.56 samples/sec	accuracy=0.912345". With
// auto_reset the values are those since the line before, else those of the epoch so far.
class Speedometer {
 public:
  explicit Speedometer(int64_t batch_size, int64_t frequent = 50, bool auto_reset = true);
  void operator()(const BatchEndParam& param);

 private:
  int64_t batch_size_, frequent_;
  bool auto_reset_;
  bool started_ = false;
  int64_t last_count_ = 0;
  std::chrono::steady_clock::time_point since_ = {};
};

// "[=====-----] 50%  accuracy=0.912345" of `total` batches: on a terminal one line that is drawn again and again; in a
// log a line for each tenth.
class ProgressBar {
 public:
  explicit ProgressBar(int64_t total, int64_t length = 80);
  void operator()(const BatchEndParam& param);

 private:
  int64_t total_, length_;
  int64_t last_done_ = 0;
};

// Every `period` batches: "Iter[0] Batch[100] Train-accuracy=0.912345"; with auto_reset the values start anew then.
BatchEndCallback log_train_metric(int64_t period, bool auto_reset = false);

// At the end of a validation: "Epoch[0] Validation-accuracy=0.912345".
struct LogValidationMetricsCallback {
  void operator()(const BatchEndParam& param) const;
};

// Every `period` epochs: prefix-symbol.json and prefix-0001.params after the first, and so on.
EpochEndCallback do_checkpoint(std::string prefix, int period = 1);

// The same through module.save_checkpoint(prefix, epoch, save_optimizer_states); the module must live as long.
template <class AnyModule>
EpochEndCallback module_checkpoint(AnyModule& module, std::string prefix, int period = 1,
                                   bool save_optimizer_states = false) {
  period = period < 1 ? 1 : period;
  return [&module, prefix = std::move(prefix), period, save_optimizer_states](int epoch, const Symbol&,
                                                                              const NamedArrays&, const NamedArrays&) {
    if ((epoch + 1) % period == 0) module.save_checkpoint(prefix, epoch + 1, save_optimizer_states);
  };
}

}  // namespace symbind
