// One network on several devices: each gets a slice of every batch and its own executor. All run concurrently, and
// their arrays are accessible here, by reference.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbind/core/busy.h"
#include "symbind/data/iterator.h"
#include "symbind/exec/executor.h"
#include "symbind/train/batch_split.h"
#include "symbind/train/metric.h"

namespace SYMBIND_API symbind {

class LoadedInput;
class Monitor;
struct ThreadPolicy;
class DataParallelExecutorGroup;

struct ExecutorGroupOptions {
  std::vector<Context> contexts;
  std::vector<double> workload = {};  // per context; empty: all the same
  std::vector<DataDesc> data_shapes;
  std::vector<DataDesc> label_shapes = {};
  std::vector<std::string> param_names = {};
  bool for_training = true;
  bool inputs_need_grad = false;
  std::shared_ptr<DataParallelExecutorGroup> shared_group = nullptr;  // shares its parameters and memory
  std::vector<std::string> fixed_param_names = {};
  // A single request applies to the parameters (not the fixed ones) and, with inputs_need_grad, to the data; a list
  // follows the arguments; a map changes those defaults by name.
  GradReqs grad_req = "write";
  std::vector<std::string> state_names = {};
  std::vector<std::string> output_names = {};                   // empty: those of the symbol
  std::vector<std::map<std::string, Context>> group2ctxs = {};  // per context
  CompileOptions options = {};
};

// A group serves one thread at a time, and runs its own threads for that one.
class DataParallelExecutorGroup {
 public:
  DataParallelExecutorGroup(const Symbol& symbol, const ExecutorGroupOptions& options);
  ~DataParallelExecutorGroup();

  // Changes the shapes of the data; the parameters remain. The executors of the last 16 shapes are cached and share
  // their memory. A buffer that must grow is reallocated, and the arrays of all executors here and in groups that share
  // it move with it. Shapes that do not fit the network fail, and the group is unchanged.
  void reshape(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes);

  // Copies into every device; names that are missing here fail unless extra ones are allowed.
  void set_params(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_extra = false);
  // The mean over the devices, in the type of the arrays that are there already (new arrays for names that are not).
  void get_params(NamedArrays& arg_params, NamedArrays& aux_params) const;

  // Starts to copy the batch of the next forward() to the devices, while they still work on the current one; nothing is
  // done for CPUs. forward() uses the copies of the arrays that it finds unchanged, and copies the others itself: those
  // that were written or replaced in between, and those whose memory may be written unnoticed (Storage::exported). A
  // batch that does not fit is ignored.
  void prepare(const DataBatch& batch);
  // Splits the batch. is_train defaults to the group's for_training.
  void forward(const DataBatch& batch, std::optional<bool> is_train = std::nullopt);
  // A batch per device, already split.
  void forward(const std::vector<DataBatch>& batches, std::optional<bool> is_train = std::nullopt);
  // out_grads are split as the outputs are.
  void backward(const std::vector<NDArray>& out_grads = {});
  // forward(batch, true), then backward(): as one unit on one context (Executor::forward_backward).
  void forward_backward(const DataBatch& batch);

  // Per output: one array per device, or with merge one for all, on the first device.
  using PerDevice = std::vector<std::vector<NDArray>>;
  PerDevice get_outputs() const;
  std::vector<NDArray> get_merged_outputs() const;
  PerDevice get_input_grads() const;
  std::vector<NDArray> get_merged_input_grads() const;
  PerDevice get_states() const;
  std::vector<NDArray> get_merged_states() const;
  void set_states(const PerDevice& states);
  void set_states(double value);
  // Names and shapes over the whole batch.
  std::vector<std::pair<std::string, Shape>> get_output_shapes() const;

  // Splits the labels by device; the last `padding` samples of the batch are not counted. A built-in metric does not
  // wait for a GPU (EvalMetric::update_dict_later): labels that are those of the last forward(), unchanged, are read on
  // the device they were copied to.
  void update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool pre_sliced = false,
                     int64_t padding = 0) const;
  void update_metric(EvalMetric& metric, const std::vector<std::vector<NDArray>>& labels_per_device) const;
  // The labels and outputs of the last batch as update_metric() passes them, if there is one context, all labels are on
  // it, and none need be copied; none otherwise. May be called before the outputs are computed.
  struct MetricArrays {
    NamedList labels, outputs;
  };
  std::optional<MetricArrays> metric_arrays_on_device(const std::vector<NDArray>& labels, int64_t padding) const;
  void install_monitor(Monitor& monitor);
  // The same by a function that installs a monitor in an executor (Monitor::installer()), in present and future
  // executors.
  void install(const std::function<void(Executor&)>& installer);

  // ---- accessors, by reference into the executors ----
  struct Sliced {
    BatchSlice slice;
    NDArray array;
  };
  const Symbol& symbol() const { return symbol_; }
  const std::vector<Context>& contexts() const { return contexts_; }
  int64_t batch_size() const { return split_.batch_size; }
  const std::vector<BatchSlice>& slices() const { return split_.slices; }
  const std::vector<ExecutorPtr>& execs() const { return execs_; }
  const std::vector<DataDesc>& data_shapes() const { return split_.data_shapes; }
  const std::vector<DataDesc>& label_shapes() const { return split_.label_shapes; }
  const std::vector<int>& data_layouts() const { return split_.data_layouts; }  // batch axes
  const std::vector<int>& label_layouts() const { return split_.label_layouts; }
  const std::vector<int>& output_layouts() const { return output_layouts_; }
  const std::vector<std::string>& param_names() const { return param_names_; }
  const std::vector<std::string>& aux_names() const { return aux_names_; }
  const std::vector<std::string>& arg_names() const { return arg_names_; }
  const std::vector<std::string>& fixed_param_names() const { return fixed_param_names_; }
  const std::vector<std::string>& state_names() const { return state_names_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  const std::vector<double>& workload() const { return workload_; }
  const std::vector<GradReq>& grad_req() const { return grad_req_; }  // of each argument
  const std::vector<std::vector<Sliced>>& data_arrays() const { return data_arrays_; }
  const std::vector<std::vector<Sliced>>& label_arrays() const { return label_arrays_; }
  // Per device, the shared buffers of the inputs by name, as large as the largest so far; groups that share memory
  // share them.
  const std::vector<std::shared_ptr<NamedArrays>>& shared_data_arrays() const;
  const PerDevice& param_arrays() const { return param_arrays_; }
  const PerDevice& grad_arrays() const { return grad_arrays_; }  // empty arrays where there is no gradient
  const PerDevice& aux_arrays() const { return aux_arrays_; }
  const PerDevice& state_arrays() const { return state_arrays_; }
  const PerDevice& input_grad_arrays() const { return input_grad_arrays_; }
  // For loops over arrays of all contexts: where several CPU contexts share the cores, such loops run on the threads of
  // the contexts. OpenMP's threads would keep spinning for a while on cores that the contexts need next.
  ThreadPolicy thread_policy() const;
  bool for_training() const { return for_training_; }
  bool inputs_need_grad() const { return inputs_need_grad_; }
  size_t total_exec_bytes() const;  // working memory of all devices
  void release_derived();           // Executor::release_derived() for all shapes

 private:
  InUse in_use(std::string_view call) const {
    return InUse(busy_, call, "this executor group", "call it from one thread");
  }
  std::vector<GradReq> requests(const GradReqs& given) const;
  // Parameters that `shared` has are used from there; inputs and results are in the memory of the family.
  ExecutorPtr bind_ith_exec(size_t device, const BatchSplit& split, const ExecutorPtr& shared);
  std::vector<ExecutorPtr> bind_execs(const BatchSplit& split, const std::vector<ExecutorPtr>& shared);
  void collect_arrays();
  void follow();  // adopts the current buffers of the family
  // An array of a batch, and the array of an executor that its samples go to.
  struct Input {
    const DataDesc* description;
    int axis;  // of the samples
    const NDArray* given;
    const Sliced* target;
  };
  std::vector<Input> inputs_of(size_t device, const DataBatch& batch) const;
  void load(size_t device, const DataBatch& batch, bool sliced);
  void stage(size_t device, const DataBatch& batch);
  // On the threads of the contexts, whose operators may sum over all of them.
  void run_all(const std::function<void(size_t device)>& pass);
  void run_forward(bool is_train, const std::function<void(size_t device)>& load);
  std::string label_name(size_t index) const;
  // Of a device, without the padding at the end of the batch.
  int64_t counted_samples(size_t device, int64_t padding) const;
  NamedList counted_labels(size_t device, const std::vector<NDArray>& labels, bool pre_sliced, int64_t counted) const;
  NamedList counted_outputs(size_t device, int64_t counted) const;
  bool is_by_sample(size_t device, size_t output) const;  // has the output a row per sample?
  // The array of the device with the samples of this label; none: it may have others.
  NDArray label_on_device(size_t device, size_t index, const NDArray& given) const;
  std::vector<NDArray> merge(const PerDevice& arrays, const std::vector<int>& axes) const;

  Symbol symbol_;
  std::vector<Context> contexts_;
  std::vector<double> workload_;
  std::vector<std::string> arg_names_, param_names_, aux_names_, fixed_param_names_, state_names_, output_names_;
  std::vector<GradReq> grad_req_;
  bool for_training_, inputs_need_grad_;

  BatchSplit split_;
  std::vector<int> output_layouts_;

  std::vector<std::map<std::string, Context>> group2ctxs_;
  CompileOptions compile_options_;

  std::vector<ExecutorPtr> execs_;
  struct BoundShapes {
    std::vector<DataDesc> data_shapes, label_shapes;
    std::vector<ExecutorPtr> execs;
  };
  std::deque<BoundShapes> bound_;  // the newest first
  struct Family;                   // the groups that share memory, and that memory
  std::shared_ptr<Family> family_;
  struct Threads;  // one per context
  std::unique_ptr<Threads> threads_;
  std::vector<std::function<void(Executor&)>> monitors_;  // each installs its monitor in an executor

  std::vector<std::vector<Sliced>> data_arrays_, label_arrays_;
  std::vector<std::vector<LoadedInput>> loaded_labels_;  // as label_arrays_, what is in these
  PerDevice param_arrays_, grad_arrays_, aux_arrays_, state_arrays_, input_grad_arrays_;
  mutable BusyFlag busy_;
};

}  // namespace symbind
