// What every kind of module does: the loops over epochs and batches, written once over a few virtual steps.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "symbind/core/busy.h"
#include "symbind/core/random.h"
#include "symbind/data/iterator.h"
#include "symbind/exec/executor.h"
#include "symbind/kvstore/kvstore.h"
#include "symbind/optim/optimizer.h"
#include "symbind/train/callback.h"
#include "symbind/train/initializer.h"
#include "symbind/train/metric.h"

namespace SYMBIND_API symbind {

class BaseModule;
class Monitor;

// Arguments that may be given by name or as an object. Null pointers fail immediately.
class MetricArg {
 public:
  MetricArg(const char* name);
  MetricArg(const std::string& name) : value_(EvalMetric::create(name)) {}
  MetricArg(const std::vector<std::string>& names) : value_(EvalMetric::create(names)) {}
  MetricArg(EvalMetricPtr metric);
  template <std::derived_from<EvalMetric> Metric>
  MetricArg(std::shared_ptr<Metric> metric) : MetricArg(EvalMetricPtr(std::move(metric))) {}
  const EvalMetricPtr& get() const { return value_; }

 private:
  EvalMetricPtr value_;
};
class KVStoreArg {
 public:
  KVStoreArg(std::nullptr_t) {}
  KVStoreArg(const char* type) : type_(type) {}
  KVStoreArg(std::string type) : type_(std::move(type)) {}
  KVStoreArg(KVStorePtr store) : store_(std::move(store)) {}
  const std::string& type() const { return type_; }  // empty: none, or an object
  const KVStorePtr& store() const { return store_; }

 private:
  std::string type_;
  KVStorePtr store_;
};
class OptimizerArg {
 public:
  OptimizerArg(const char* name);
  OptimizerArg(std::string name) : name_(std::move(name)) {}
  OptimizerArg(OptimizerPtr optimizer);
  // optim::Sgd{.learning_rate = 0.1}: a name with its arguments, instead of optimizer_params.
  template <optim::Options Given>
  OptimizerArg(const Given& options) : name_(Given::name), params_(params_of(options)) {}
  const std::string& name() const { return name_; }
  const OptimizerPtr& optimizer() const { return optimizer_; }
  const std::optional<OptimizerParams>& params() const { return params_; }

 private:
  std::string name_;
  OptimizerPtr optimizer_;
  std::optional<OptimizerParams> params_;
};

struct BindArgs {
  bool for_training = true;
  bool inputs_need_grad = false;
  bool force_rebind = false;
  BaseModule* shared_module = nullptr;
  GradReqs grad_req = "write";
};

struct InitParamsArgs {
  InitializerPtr initializer = nullptr;  // none: Uniform(0.01)
  std::optional<NamedArrays> arg_params = std::nullopt;
  std::optional<NamedArrays> aux_params = std::nullopt;
  bool allow_missing = false;
  bool force_init = false;
  // Parameters that the network does not have are ignored: with a warning, unless this is set. (A part of a network may
  // be given the parameters of the whole.)
  bool allow_extra = false;
};

struct InitOptimizerArgs {
  KVStoreArg kvstore = "local";
  OptimizerArg optimizer = "sgd";
  OptimizerParams optimizer_params = {{"learning_rate", 0.01}};
  bool force_init = false;
};

using EpochEndCallbacks = std::vector<EpochEndCallback>;
using BatchEndCallbacks = std::vector<BatchEndCallback>;

struct FitArgs {
  DataIter* eval_data = nullptr;
  MetricArg eval_metric = "acc";
  EpochEndCallbacks epoch_end_callback = {};
  BatchEndCallbacks batch_end_callback = {};
  KVStoreArg kvstore = "local";
  OptimizerArg optimizer = "sgd";
  OptimizerParams optimizer_params = {{"learning_rate", 0.01}};
  BatchEndCallbacks eval_end_callback = {};
  BatchEndCallbacks eval_batch_end_callback = {};
  InitializerPtr initializer = nullptr;
  std::optional<NamedArrays> arg_params = std::nullopt;
  std::optional<NamedArrays> aux_params = std::nullopt;
  bool allow_missing = false;
  bool force_rebind = false;
  bool force_init = false;
  int begin_epoch = 0;
  int num_epoch = -1;                                         // must be given
  std::optional<MetricArg> validation_metric = std::nullopt;  // none: eval_metric
  Monitor* monitor = nullptr;
  // float16 or bfloat16: ModuleOptions::compute_dtype; another type than that of a bound module needs force_rebind.
  DType compute_dtype = DType::none;
};

struct ScoreArgs {
  std::optional<int64_t> num_batch = std::nullopt;
  BatchEndCallbacks batch_end_callback = {};
  BatchEndCallbacks score_end_callback = {};
  bool reset = true;
  int epoch = 0;
};

struct PredictArgs {
  std::optional<int64_t> num_batch = std::nullopt;
  bool reset = true;
};

// Allows fit() three overlaps on the calling thread, as long as this object lives. Gradients may be exchanged with
// other workers before backward has ended. An update that waits for the devices (in float16 a step is taken only if its
// gradients are finite) may be finished after the next batch was prepared. And forward_backward() may launch the
// updates of the parameters and of fit()'s metric with its passes, so that the calls of these have nothing left to do.
// Module and BucketingModule themselves need no permission. A program may give it for a class derived from them that
// inherits backward(), update() and forward_backward(), and does not change gradients between backward() and update();
// its updates are then not launched with its passes. If it does not inherit update_metric() and prepare() as well, it
// may only have `update`: these are then called after the update has ended. The permission does not concern modules
// that callbacks of fit() train. With a monitor fit() overlaps nothing.
enum class Overlaps { none, update, update_and_metric };
class AllowOverlaps {
 public:
  explicit AllowOverlaps(Overlaps overlaps = Overlaps::update_and_metric);
  ~AllowOverlaps();
  AllowOverlaps(const AllowOverlaps&) = delete;
  AllowOverlaps& operator=(const AllowOverlaps&) = delete;
  static Overlaps allowed();  // on the calling thread

 private:
  Overlaps before_;
};

// A module serves one thread at a time: a call fails while another thread is inside a call, such as fit(). The
// constructor's arguments may be read from any thread.
class BaseModule {
 public:
  virtual ~BaseModule() = default;

  // ---- what a kind of module does ----
  // no_symbol() where a module is not a single network.
  virtual const Symbol& symbol() const;
  virtual std::vector<std::string> data_names() const = 0;
  virtual std::vector<std::string> label_names() const = 0;
  virtual std::vector<std::string> output_names() const = 0;
  virtual std::vector<DataDesc> data_shapes() const = 0;
  virtual std::vector<DataDesc> label_shapes() const = 0;
  virtual std::vector<std::pair<std::string, Shape>> output_shapes() const = 0;

  virtual void bind(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes = {},
                    const BindArgs& args = {}) = 0;
  virtual void init_params(const InitParamsArgs& args = {}) = 0;
  virtual void init_optimizer(const InitOptimizerArgs& args = {}) = 0;
  struct Params {
    NamedArrays arg_params, aux_params;
  };
  virtual Params get_params() = 0;
  virtual void set_params(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_missing = false,
                          bool force_init = true, bool allow_extra = false);
  // Announces the batch of the next forward(): fit() does so while the devices still work on the current one, so that
  // it can be copied meanwhile. What is computed does not change: forward() computes with the values that the batch has
  // when it is called.
  virtual void prepare(const DataBatch& /*batch*/) {}
  virtual void forward(const DataBatch& batch, std::optional<bool> is_train = std::nullopt) = 0;
  virtual void backward(const std::vector<NDArray>& out_grads = {}) = 0;
  virtual void update() = 0;
  virtual void finish_update() {}                  // what update() left to do (AllowOverlaps)
  virtual std::vector<NDArray> get_outputs() = 0;  // of the whole batch
  // The axis of an output along which its samples are; -1: none.
  virtual int output_batch_axis(size_t /*output*/) const { return 0; }
  virtual std::vector<NDArray> get_input_grads() = 0;
  // States are inputs that no iterator provides: 0 at first, then the values set here. Those of all devices are merged.
  // A module without states returns an empty list and fails to set any.
  virtual std::vector<NDArray> get_states() const;
  virtual void set_states(const std::vector<NDArray>& states);
  virtual void set_states(double value);  // of every state
  virtual void update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool pre_sliced = false) = 0;
  virtual void install_monitor(Monitor& monitor) = 0;
  // ModuleOptions::compute_dtype. A bound module changes it only with force_rebind, and is then not bound any more; its
  // parameters and its optimizer remain. Fails for a kind of module without this option.
  virtual void set_compute_dtype(DType dtype, bool force_rebind = false);
  // Called by fit() before each epoch; returns the epoch to begin. It is another one on a worker that joins a running
  // job (docs/distributed.md), which has the others' parameters from then on.
  virtual int begin_epoch(int epoch) { return epoch; }

  // ---- what all modules share ----
  // Both passes of a batch, in training mode. Module and BucketingModule run them as one unit (Executor::
  // forward_backward). Objects of derived classes call forward() and backward(), in Python only where the class defines
  // one of them.
  virtual void forward_backward(const DataBatch& batch);
  // Trains. An epoch ends with: parameters fetched and set again (auxiliary states averaged over the devices), the
  // epoch's callbacks, validation, train_data.reset(). An epoch without a batch is an error. A callback that throws
  // StopTraining (train/callback.h) ends fit after the others of its event.
  void fit(DataIter& train_data, const FitArgs& args);
  // Runs over eval_data; samples that only fill a batch up are not counted. The random streams are restored, so that
  // training continues as if it had not been interrupted.
  EvalMetric::NameValues score(DataIter& eval_data, const MetricArg& eval_metric, const ScoreArgs& args = {});
  // The outputs over all batches, one array per output; padding is cut off. Random streams move only where the network
  // samples in inference, so that each call returns new samples.
  std::vector<NDArray> predict(DataIter& eval_data, const PredictArgs& args = {});
  std::vector<NDArray> predict(const NDArray& data);
  // Per batch: its outputs, its number, and the batch. PredictLoop below is the same one batch at a time.
  using PredictVisitor =
      std::function<void(const std::vector<NDArray>& outputs, int64_t nbatch, const DataBatch& batch)>;
  void iter_predict(DataIter& eval_data, const PredictVisitor& visit, const PredictArgs& args = {});

  void save_params(const std::string& path);
  void load_params(const std::string& path);

  bool binded = false;
  bool for_training = false;
  bool inputs_need_grad = false;
  bool params_initialized = false;
  bool optimizer_initialized = false;

 protected:
  // Are forward() and backward() those of the class that forward_backward() is written for, and not of a derived one?
  virtual bool has_own_passes() const { return false; }
  // What fit() calls at the end of an epoch if it has validation data: score() with the metric.
  virtual EvalMetric::NameValues validate(const FitArgs& args, const MetricArg& metric, int epoch);
  // Where fit() binds, and where fit() and score() update the metric. Python has batches and descriptions that only
  // steps written there can read.
  virtual void bind_to(DataIter& train_data, const BindArgs& args);
  virtual void update_metric_by(EvalMetric& metric, const DataBatch& batch);
  // The number of samples in a batch, to tell the outputs that have an axis of samples: 0 if the batch has no such
  // axis; none if it is unknown: predict() then cuts the padding off every output.
  virtual std::optional<int64_t> num_samples(const DataBatch& batch) const;
  // Every call that reads or changes the binding, the parameters or the optimizer takes it.
  InUse in_use(std::string_view call) const {
    return InUse(busy_, call, "this module", "call it from one thread; to predict from several threads, use Predictor");
  }

 private:
  friend class PredictLoop;
  std::vector<NDArray> outputs_without_padding(const DataBatch& batch);
  void fit_epoch(DataIter& train_data, const FitArgs& args, int epoch, Overlaps overlaps);
  EvalMetric::NameValues score(DataIter& eval_data, const MetricArg& eval_metric, const ScoreArgs& args,
                               const BatchEndCallbacks& batch_end_callback,
                               const BatchEndCallbacks& score_end_callback);
  mutable BusyFlag busy_;
};

// Runs a module over an iterator, batch by batch; both must outlive the loop.
//
// Shuffling in the iterator does not advance the host's random stream: the loop has its own position in it, which
// starts at the stream's position when the loop is constructed. A network that samples draws from its devices' streams
// and advances them.
class PredictLoop {
 public:
  PredictLoop(BaseModule& module, DataIter& eval_data, const PredictArgs& args = {});
  struct Step {
    std::vector<NDArray> outputs;  // padding is cut off; the next step overwrites them
    int64_t nbatch;
    DataBatch batch;
  };
  std::optional<Step> next();  // none: the iterator is at its end, or num_batch is reached

 private:
  std::optional<Step> run_batch();
  BaseModule& module_;
  DataIter& eval_data_;
  PredictArgs args_;
  int64_t nbatch_ = 0;
  RandomCursor host_position_;
};

// Fails (or, if not strict, warns) when a name is not an argument of the network, and lists the candidates: those that
// look like inputs, or those given.
void check_input_names(const Symbol& symbol, const std::vector<std::string>& names, std::string_view kind, bool strict);
void check_input_names(const std::vector<std::string>& names, std::string_view kind, bool strict,
                       const std::vector<std::string>& arguments, const std::vector<std::string>& candidates);

}  // namespace symbind
