// A network of many sizes that share their parameters: the bucket key of a batch selects the size.
//   BucketingModule module([](const BucketKey& key) { return BucketNetwork{unrolled(key.number())}; },
//                          {.default_bucket_key = 60});
//   module.fit(batches, {.num_epoch = 10});
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <vector>

#include "symbind/data/bucket_key.h"
#include "symbind/train/base_module.h"
#include "symbind/train/module.h"

namespace SYMBIND_API symbind {

struct BucketNetwork {
  Symbol symbol;
  std::vector<std::string> data_names = {"data"};
  std::vector<std::string> label_names = {"softmax_label"};
};
// Makes the network of a bucket; called once for each. Automatic names of symbols are numbered from 0 in every call.
using SymGen = std::function<BucketNetwork(const BucketKey& key)>;

struct BucketingOptions {
  BucketKey default_bucket_key = {};  // of batches without a key; its network has all parameters
  std::vector<Context> context = {cpu()};
  std::vector<double> work_load_list = {};  // empty: all the same
  std::vector<std::string> fixed_param_names = {};
  std::vector<std::string> state_names = {};
  std::vector<std::map<std::string, Context>> group2ctxs = {};
  std::map<std::string, std::string> compression_params = {};
  CompileOptions compile_options = {};
  DType compute_dtype = DType::none;  // ModuleOptions::compute_dtype
};

// A bucket is bound when it is first visited. All buckets share parameters, gradients, the optimizer, inputs, outputs
// and working memory, which is that of the largest bucket, whichever is visited first: outputs are valid until another
// bucket runs. Outputs, shapes and states of the module are those of the current bucket.
class BucketingModule : public BaseModule {
 public:
  // The names of the default bucket are checked as Module does.
  BucketingModule(SymGen sym_gen, const BucketingOptions& options);
  ~BucketingModule() override;

  // Writes prefix-KEY-symbol.json for every bucket that was visited, prefix-EPOCH.params, where the keys are numbers
  // prefix.buckets, which lists them, and, if requested, prefix-EPOCH.states.
  void save_checkpoint(const std::string& prefix, int epoch, bool save_optimizer_states = false);
  // The networks of the buckets that were saved are those of the files, all others are sym_gen's.
  static std::unique_ptr<BucketingModule> load(const std::string& prefix, int epoch, SymGen sym_gen,
                                               const BucketingOptions& options, bool load_optimizer_states = false);
  // The same from networks and parameters that are loaded already.
  using Symbols = std::unordered_map<BucketKey, Symbol>;
  static std::unique_ptr<BucketingModule> load_dict(const Symbols& sym_dict, SymGen sym_gen,
                                                    const BucketingOptions& options, NamedArrays arg_params,
                                                    NamedArrays aux_params);
  void save_optimizer_states(const std::string& path) const;
  void load_optimizer_states(const std::string& path);
  // The steps of load(), before bind().
  void preload(Symbols symbols, NamedArrays arg_params, NamedArrays aux_params, std::string optimizer_states = "");
  static Symbols load_symbols(const std::string& prefix);
  Symbols networks() const;  // of the default bucket, and of those that were loaded or visited

  const Symbol& symbol() const override;
  std::vector<std::string> data_names() const override;
  std::vector<std::string> label_names() const override;
  std::vector<std::string> output_names() const override;
  std::vector<DataDesc> data_shapes() const override;
  std::vector<DataDesc> label_shapes() const override;
  std::vector<std::pair<std::string, Shape>> output_shapes() const override;

  // The shapes are those of the default bucket. Binding again preserves the parameters and the optimizer; buckets are
  // rebound when they are visited.
  void bind(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes = {},
            const BindArgs& args = {}) override;
  void reset_bind();  // releases the devices and the visited buckets; the parameters and the optimizer remain
  // Makes a bucket the current one; the shapes are read if it was not visited before.
  void switch_bucket(const BucketKey& key, const std::vector<DataDesc>& data_shapes,
                     const std::vector<DataDesc>& label_shapes = {});

  void init_params(const InitParamsArgs& args = {}) override;
  void set_params(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_missing = false,
                  bool force_init = true, bool allow_extra = false) override;
  Params get_params() override;
  void init_optimizer(const InitOptimizerArgs& args = {}) override;
  void borrow_optimizer(const Module& other);

  // Binds the batch's bucket and prepares its module; the current one does not change.
  void prepare(const DataBatch& batch) override;
  void forward(const DataBatch& batch, std::optional<bool> is_train = std::nullopt) override;
  void backward(const std::vector<NDArray>& out_grads = {}) override;
  void forward_backward(const DataBatch& batch) override;
  void update() override;
  void finish_update() override;
  std::vector<NDArray> get_outputs() override;
  int output_batch_axis(size_t output) const override;
  std::vector<NDArray> get_input_grads() override;
  std::vector<NDArray> get_states() const override;
  void set_states(const std::vector<NDArray>& states) override;
  void set_states(double value) override;
  void update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool pre_sliced = false) override;
  void install_monitor(Monitor& monitor) override;  // in all buckets, including future ones
  void set_compute_dtype(DType dtype, bool force_rebind = false) override;
  int begin_epoch(int epoch) override;

  const BucketingOptions& options() const { return options_; }
  const BucketKey& current_key() const { return current_key_; }
  // Buckets as modules; the current one has states and results by device.
  Module& current() const;
  Module& default_bucket() const;
  using Buckets = std::vector<std::pair<BucketKey, std::shared_ptr<Module>>>;
  const Buckets& buckets() const { return order_; }  // in the order of the first visits

 protected:
  InUse in_use(std::string_view call) const {  // as that of Module
    if (current_ && current_->has_unfinished_update()) {
      const InUse use = BaseModule::in_use(call);
      current_->finish_update();
    }
    return BaseModule::in_use(call);
  }
  bool has_own_passes() const override { return typeid(*this) == typeid(BucketingModule); }

 private:
  void enter(const DataBatch& batch);
  BucketNetwork generate(const BucketKey& key) const;
  std::shared_ptr<Module> make(const BucketKey& key) const;
  // The bucket of a key; `shapes` is called if it was not visited before.
  struct Shapes {
    std::vector<DataDesc> data, label;
  };
  const std::shared_ptr<Module>& visit(const BucketKey& key, const std::function<Shapes(const Module&)>& shapes);
  const std::shared_ptr<Module>& visit(const DataBatch& batch);
  const BucketKey& key_of(const DataBatch& batch) const {
    return batch.bucket_key.empty() ? options_.default_bucket_key : batch.bucket_key;
  }
  void require_known_params(const BucketKey& key, const Module& bucket) const;

  SymGen sym_gen_;
  BucketingOptions options_;
  BindArgs bind_args_;
  std::shared_ptr<Module> default_;  // exists from the start, bound or not
  std::unordered_map<BucketKey, std::shared_ptr<Module>> buckets_;
  Buckets order_;
  std::shared_ptr<Module> current_;
  BucketKey current_key_;
  Symbols symbols_;  // networks that were loaded
  std::vector<std::function<void(Executor&)>> monitors_;
};

}  // namespace symbind
