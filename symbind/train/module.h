// A network with its parameters, its optimizer and its devices: the unit that is trained, evaluated and saved.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <vector>

#include "symbind/optim/updater.h"
#include "symbind/train/base_module.h"
#include "symbind/train/executor_group.h"

namespace SYMBIND_API symbind {

class ScaledLoss;

struct ModuleOptions {
  std::vector<std::string> data_names = {"data"};
  std::vector<std::string> label_names = {"softmax_label"};
  std::vector<Context> context = {cpu()};
  std::vector<double> work_load_list = {};  // empty: all the same
  std::vector<std::string> fixed_param_names = {};
  std::vector<std::string> state_names = {};
  std::vector<std::map<std::string, Context>> group2ctxs = {};
  std::map<std::string, std::string> compression_params = {};
  CompileOptions compile_options = {};  // a memory_budget is that of one context
  // float16 or bfloat16: a network written in float32 computes in this type where that is safe
  // (train/mixed_precision.h). Parameters, checkpoints and outputs stay float32; in float16 the loss is scaled, and a
  // step whose gradients overflow is skipped.
  DType compute_dtype = DType::none;
};

// The store that aggregates gradients (none for one device, unless it is given as an object or distributed), and
// whether the parameters are updated in it.
struct StoreChoice {
  KVStorePtr store;
  bool update_on_kvstore = false;
};
StoreChoice choose_kvstore(const KVStoreArg& kvstore, size_t devices, const NamedArrays& arg_params);

class Module : public BaseModule {
 public:
  // An unknown data, state or fixed name fails, an unknown label warns; both list the candidates.
  explicit Module(const Symbol& symbol, const ModuleOptions& options = {});
  ~Module() override;

  // From prefix-symbol.json, prefix-EPOCH.params and, if requested, prefix-EPOCH.states.
  static std::unique_ptr<Module> load(const std::string& prefix, int epoch, bool load_optimizer_states = false,
                                      const ModuleOptions& options = {});
  // A failure, such as a full disk, leaves the old checkpoint unchanged.
  void save_checkpoint(const std::string& prefix, int epoch, bool save_optimizer_states = false);
  std::string optimizer_states() const;  // the bytes of a .states file
  void save_optimizer_states(const std::string& path) const;
  // Keyed by name or by number, from any number of devices.
  void load_optimizer_states(const std::string& path);

  const Symbol& symbol() const override { return symbol_; }
  std::vector<std::string> data_names() const override { return options_.data_names; }
  std::vector<std::string> label_names() const override { return options_.label_names; }
  std::vector<std::string> output_names() const override { return symbol_.list_outputs(); }
  const std::vector<std::string>& param_names() const { return param_names_; }
  const std::vector<std::string>& aux_names() const { return aux_names_; }
  std::vector<DataDesc> data_shapes() const override;  // of the last batch
  std::vector<DataDesc> label_shapes() const override;
  const std::vector<DataDesc>& described_data() const { return described_data_; }  // as bound, or reshaped by a call
  std::vector<std::pair<std::string, Shape>> output_shapes() const override;

  void bind(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes = {},
            const BindArgs& args = {}) override;
  void init_params(const InitParamsArgs& args = {}) override;
  void set_params(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_missing = false,
                  bool force_init = true, bool allow_extra = false) override;
  void sync_params_from_devices();
  void reset_bind();             // releases the devices; the parameters remain
  Params get_params() override;  // from the devices when an update made them newer
  void init_optimizer(const InitOptimizerArgs& args = {}) override;
  // Parameters of the same name share their state; those that the other module does not have get their own.
  void borrow_optimizer(const Module& other);

  void prepare(const DataBatch& batch) override;  // DataParallelExecutorGroup::prepare()
  // A batch of another shape reshapes the module automatically.
  void forward(const DataBatch& batch, std::optional<bool> is_train = std::nullopt) override;
  void forward(const std::vector<DataBatch>& sliced_batches, std::optional<bool> is_train = std::nullopt);
  void backward(const std::vector<NDArray>& out_grads = {}) override;
  void forward_backward(const DataBatch& batch) override;
  // In fit() with a scaled loss, update() starts the check of the gradients alone. The next call other than
  // update_metric() and prepare() finishes it. On one GPU, with an optimizer whose update of a parameter is one
  // operator, it does not wait for the check: the GPU decides whether the step is taken.
  void update() override;
  void finish_update() override;
  void set_compute_dtype(DType dtype, bool force_rebind = false) override;
  int begin_epoch(int epoch) override;
  double loss_scale() const;  // 1 where the loss is not scaled
  void reshape(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes = {});

  std::vector<NDArray> get_outputs() override;
  int output_batch_axis(size_t output) const override;  // by its __layout__
  std::vector<NDArray> get_input_grads() override;
  DataParallelExecutorGroup::PerDevice get_outputs_per_device() const;
  DataParallelExecutorGroup::PerDevice get_input_grads_per_device() const;
  std::vector<NDArray> get_states() const override;
  DataParallelExecutorGroup::PerDevice get_states_per_device() const;
  void set_states(const std::vector<NDArray>& states) override;
  void set_states(const DataParallelExecutorGroup::PerDevice& states);
  void set_states(double value) override;
  void update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool pre_sliced = false) override;
  void install_monitor(Monitor& monitor) override;

  const std::shared_ptr<DataParallelExecutorGroup>& exec_group() const { return exec_group_; }
  const ModuleOptions& options() const { return options_; }
  // The parameters on the CPU as they are now: those of the last get_params(), older than the devices' when dirty.
  const NamedArrays& arg_params() const { return host_->arg_params; }
  const NamedArrays& aux_params() const { return host_->aux_params; }
  bool params_dirty() const { return host_->dirty; }
  void set_params_dirty(bool dirty) { host_->dirty = dirty; }  // for callers that change the devices' arrays directly
  // The steps of load(): parameters for a module that is not bound yet, and states for init_optimizer().
  void preload_params(NamedArrays arg_params, NamedArrays aux_params);
  void preload_optimizer_states(std::string path) { preload_opt_states_ = std::move(path); }
  const std::string& preloaded_optimizer_states() const { return preload_opt_states_; }

  const OptimizerPtr& optimizer() const { return optimizer_; }
  const UpdaterPtr& updater() const { return updater_; }
  const KVStorePtr& kvstore() const { return kvstore_; }
  bool update_on_kvstore() const { return update_on_kvstore_; }

  bool has_unfinished_update() const { return update_left_; }

 protected:
  // Hides that of BaseModule: finishes a pending update first.
  InUse in_use(std::string_view call) const {
    if (update_left_) {
      const InUse use = BaseModule::in_use(call);
      const_cast<Module*>(this)->finish_update();  // update() was called, so this is not const
    }
    return BaseModule::in_use(call);
  }
  bool has_own_passes() const override { return typeid(*this) == typeid(Module); }

 private:
  void compute_in(DType dtype);
  void take_shapes(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes);
  // Checks the batch and takes its shapes; exec_group_ then runs it.
  void take_batch(const DataBatch& batch, bool is_train);
  void take_normalization(const DataBatch& batch);
  // Runs a backward of exec_group_. Its gradients are exchanged meanwhile where that is possible.
  void run_backward(const std::function<void()>& backward);
  void apply_update();
  void exchange_gradients();
  std::vector<Updater::Item> own_updates() const;
  bool on_one_gpu(const std::vector<Updater::Item>& items) const;
  struct InStep {  // what forward_backward() has launched with its passes
    bool has_update = false;
    const EvalMetric* metric = nullptr;
  };
  std::vector<FollowingWorkPtr> work_after_backward(const DataBatch& batch, InStep& launched);
  std::vector<FollowingWorkPtr> update_in_step();
  void count_update_in_step();
  bool device_decides(const std::vector<Updater::Item>& items) const;
  void queue_update(const std::vector<Updater::Item>& items);
  void keep_params(NamedArrays arg_params, NamedArrays aux_params);
  std::vector<DataDesc> checked(const std::vector<DataDesc>& shapes, const std::vector<std::string>& names,
                                std::string_view kind, bool strict) const;
  OptimizerPtr make_optimizer(const InitOptimizerArgs& args, double rescale_grad) const;
  void init_kvstore();
  std::string state_for_new_worker();
  void take_state_of_job(const std::string& bytes);
  void number_params();  // continues after the parameters already numbered

  Symbol symbol_;
  Symbol computed_;  // what the devices run: symbol_, or symbol_ in another precision
  ModuleOptions options_;
  std::vector<std::string> param_names_, aux_names_;
  // On the CPU; shared by modules that share their parameters.
  struct HostParams {
    NamedArrays arg_params, aux_params;
    bool dirty = false;  // the devices are newer
  };
  std::shared_ptr<HostParams> host_ = std::make_shared<HostParams>();

  std::shared_ptr<DataParallelExecutorGroup> exec_group_;
  std::vector<DataDesc> data_shapes_, label_shapes_;         // of the last batch
  std::vector<DataDesc> described_data_, described_labels_;  // given to bind() or reshape()
  int64_t pad_ = 0;                                          // of the last batch

  std::unique_ptr<ScaledLoss> scaled_loss_;  // none: the loss is not scaled
  bool update_left_ = false;                 // finish_update() has an update to apply
  InStep in_step_;                           // of the last forward_backward(), until its calls follow
  struct FollowedBefore {                    // the work of the last step, for the next one
    FollowingWorkPtr update;
    std::vector<FollowingWorkPtr> counts;
  };
  FollowedBefore followed_before_;

  OptimizerPtr optimizer_;
  KVStorePtr kvstore_;
  bool update_on_kvstore_ = false;
  UpdaterPtr updater_;
  // Parameters by the numbers under which the updater knows them, those of modules with the same optimizer too; and the
  // numbers of this module's.
  std::shared_ptr<std::vector<std::string>> numbered_ = std::make_shared<std::vector<std::string>>();
  std::vector<size_t> numbers_;
  std::string preload_opt_states_;
};

}  // namespace symbind
