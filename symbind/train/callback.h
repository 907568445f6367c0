// Callbacks during training: after batches and after epochs. Messages go through core/log.h.
#pragma once

#include <any>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "symbind/core/ndarray.h"
#include "symbind/graph/symbol.h"
#include "symbind/train/metric.h"

namespace SYMBIND_API symbind {

// A number as in messages: "0.912345" with six digits.
std::string with_digits(double value, int digits);

struct BatchEndParam {
  int epoch = 0;
  int64_t nbatch = 0;                           // from 0 in each epoch
  EvalMetric* eval_metric = nullptr;            // none: no metric is computed
  std::map<std::string, std::any> locals = {};  // the loop's variables: epoch, nbatch, data_batch, train_data, …
};

using BatchEndCallback = std::function<void(const BatchEndParam& param)>;
using EpochEndCallback =
    std::function<void(int epoch, const Symbol& symbol, const NamedArrays& arg_params, const NamedArrays& aux_params)>;

// The symbol passed to an epoch's callback by a module that is not a single network: always this object.
const Symbol& no_symbol();

// Thrown by a callback to end fit, with the reason for the log. The other callbacks of the event still run. Thrown
// after a batch, fit ends there, without the end of the epoch (no epoch's callbacks, no validation); thrown after an
// epoch, without validation. The parameters are those of the last update, and train_data is reset.
class StopTraining : public std::runtime_error {
 public:
  explicit StopTraining(const std::string& reason = "training was stopped by a callback") : runtime_error(reason) {}
};

// Every `frequent` batches: "Epoch[0] Batch [50-100]	Speed: 1234.56 samples/sec	accuracy=0.912345". With
// auto_reset the values are those since the previous line, else those of the epoch so far.
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

// "[=====-----] 50%  accuracy=0.912345" of `total` batches: on a terminal one line that is redrawn; in a log one line
// per 10 %.
class ProgressBar {
 public:
  explicit ProgressBar(int64_t total, int64_t length = 80);
  void operator()(const BatchEndParam& param);

 private:
  int64_t total_, length_;
  int64_t last_done_ = 0;
};

// Every `period` batches: "Iter[0] Batch[100] Train-accuracy=0.912345"; with auto_reset the values are reset then.
BatchEndCallback log_train_metric(int64_t period, bool auto_reset = false);

// At the end of a validation: "Epoch[0] Validation-accuracy=0.912345".
struct LogValidationMetricsCallback {
  void operator()(const BatchEndParam& param) const;
};

// ---- driven by validation -------------------------------------------------------------------------------------------

// Which value of the validation metric counts, and when one is better than another.
struct BestOf {
  std::string metric = "";    // its name ("accuracy"); empty: the first
  std::string mode = "auto";  // "max", "min"; auto decides by the name, and fails if the name is unknown
  double min_delta = 0;       // a change by no more than this is no improvement; nor is NaN
};

// The best value so far.
class BestValue {
 public:
  explicit BestValue(BestOf options);
  // Is the metric's value now the best so far? Then it is stored.
  bool improved(const BatchEndParam& param);
  std::optional<double> value() const { return value_; }
  int epoch() const { return epoch_; }                           // of that value; -1: there is none yet
  const std::string& metric() const { return options_.metric; }  // known after the first value if it was not given

 private:
  BestOf options_;
  std::optional<double> value_;
  int epoch_ = -1;
};

// As eval_end_callback: stops training when `patience` consecutive validations were not better than the best before
// them.
class EarlyStopping {
 public:
  explicit EarlyStopping(int patience, const BestOf& options = {});
  void operator()(const BatchEndParam& param);
  const BestValue& best() const { return best_; }
  int waited() const { return waited_; }  // validations since the best one

 private:
  int patience_;
  BestValue best_;
  int waited_ = 0;
};

// As eval_end_callback: saves the module whenever its validation is the best so far, always as epoch 0 of the prefix
// (prefix-symbol.json, prefix-0000.params), so that the files there are those of the best epoch. The module must
// outlive this object.
class SaveBest {
 public:
  template <class AnyModule>
  SaveBest(AnyModule& module, std::string prefix, const BestOf& options = {}, bool save_optimizer_states = false)
      : SaveBest([&module, prefix, save_optimizer_states] { module.save_checkpoint(prefix, 0, save_optimizer_states); },
                 prefix, options) {}
  SaveBest(std::function<void()> save, std::string prefix, const BestOf& options);
  void operator()(const BatchEndParam& param);
  const BestValue& best() const { return best_; }

 private:
  std::function<void()> save_;
  std::string prefix_;
  BestValue best_;
};

// ---- checkpoints ----------------------------------------------------------------------------------------------------

// Every `period` epochs: prefix-symbol.json and prefix-0001.params after the first, and so on.
EpochEndCallback do_checkpoint(std::string prefix, int period = 1);

// The same through module.save_checkpoint(prefix, epoch, save_optimizer_states); the module must outlive the callback.
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
