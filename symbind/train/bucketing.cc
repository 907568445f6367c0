#include "symbind/train/bucketing.h"

#include <algorithm>
#include <filesystem>

#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/files/checkpoint.h"
#include "symbind/files/params.h"
#include "symbind/files/states.h"
#include "symbind/graph/attributes.h"
#include "symbind/train/fit_step.h"
#include "symbind/train/monitor.h"

namespace symbind {

BucketingModule::BucketingModule(SymGen sym_gen, const BucketingOptions& options)
    : sym_gen_(std::move(sym_gen)), options_(options), current_key_(options.default_bucket_key) {
  require(bool(sym_gen_), "[BucketingModule] there is no function that creates the networks: sym_gen is required");
  require(!options_.default_bucket_key.empty(), "[BucketingModule] default_bucket_key is needed");
  default_ = make(options_.default_bucket_key);
}

BucketingModule::~BucketingModule() = default;

// ---- Buckets --------------------------------------------------------------------------------------------------------

BucketNetwork BucketingModule::generate(const BucketKey& key) const {
  const NameManager names;
  BucketNetwork network = sym_gen_(key);
  if (const auto loaded = symbols_.find(key); loaded != symbols_.end()) network.symbol = loaded->second;
  return network;
}

std::shared_ptr<Module> BucketingModule::make(const BucketKey& key) const {
  BucketNetwork network = generate(key);
  return std::make_shared<Module>(network.symbol, ModuleOptions{.data_names = std::move(network.data_names),
                                                                .label_names = std::move(network.label_names),
                                                                .context = options_.context,
                                                                .work_load_list = options_.work_load_list,
                                                                .fixed_param_names = options_.fixed_param_names,
                                                                .state_names = options_.state_names,
                                                                .group2ctxs = options_.group2ctxs,
                                                                .compression_params = options_.compression_params,
                                                                .compile_options = options_.compile_options,
                                                                .compute_dtype = options_.compute_dtype});
}

void BucketingModule::set_compute_dtype(DType dtype, bool force_rebind) {
  const InUse use = in_use("set_compute_dtype");
  default_->set_compute_dtype(dtype, force_rebind);
  options_.compute_dtype = dtype;
  if (binded && !default_->binded) reset_bind();
}

// The default bucket holds what is initialized, updated and saved.
void BucketingModule::require_known_params(const BucketKey& key, const Module& bucket) const {
  const auto require_all = [&](const std::vector<std::string>& names, const std::vector<std::string>& known) {
    for (const std::string& name : names)
      require(std::find(known.begin(), known.end(), name) != known.end(), "[BucketingModule] bucket ", key,
              " has the parameter '", name, "', which the default bucket ", options_.default_bucket_key,
              " does not have; the network of the default bucket must have all parameters");
  };
  require_all(bucket.param_names(), default_->param_names());
  require_all(bucket.aux_names(), default_->aux_names());
}

const std::shared_ptr<Module>& BucketingModule::visit(const BucketKey& key,
                                                      const std::function<Shapes(const Module&)>& shapes) {
  if (const auto found = buckets_.find(key); found != buckets_.end()) return found->second;
  require(params_initialized, "[switch_bucket] call init_params before using a bucket other than the default");
  std::shared_ptr<Module> bucket = make(key);
  require_known_params(key, *bucket);
  const Shapes bound = shapes(*bucket);
  BindArgs args = bind_args_;
  args.shared_module = default_.get();
  bucket->bind(bound.data, bound.label, args);
  for (const auto& monitor : monitors_) bucket->exec_group()->install(monitor);
  order_.emplace_back(key, bucket);
  return buckets_.emplace(key, std::move(bucket)).first->second;
}

namespace {

// Descriptions of given arrays, completed from those of the inputs of the same names.
std::vector<DataDesc> described(const std::vector<NDArray>& arrays, const std::vector<std::string>& names,
                                const std::vector<DataDesc>& known, const BucketKey& key, const char* kind) {
  require(arrays.size() == names.size(), "[BucketingModule] a batch for bucket ", key, " has ", arrays.size(), " ",
          kind, " arrays, its network ", names.size(), ": ", comma_separated(names));
  std::vector<DataDesc> descs;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto alike =
        std::find_if(known.begin(), known.end(), [&](const DataDesc& desc) { return desc.name == names[i]; });
    descs.push_back(alike == known.end() ? DataDesc{.name = names[i], .shape = {}} : *alike);
    require(bool(arrays[i]), "[BucketingModule] ", kind, " '", names[i], "' of the batch is a null array");
    descs.back().shape = arrays[i].shape();
  }
  return descs;
}

}  // namespace

const std::shared_ptr<Module>& BucketingModule::visit(const DataBatch& batch) {
  const BucketKey& key = key_of(batch);
  return visit(key, [&](const Module& bucket) {
    Shapes shapes;
    shapes.data = batch.provide_data
                      ? *batch.provide_data
                      : described(batch.data, bucket.data_names(), default_->described_data(), key, "data");
    const bool labelled = !batch.label.empty() && !default_->label_shapes().empty();
    if (batch.provide_label)
      shapes.label = *batch.provide_label;
    else if (labelled && !batch.provide_data)
      shapes.label = described(batch.label, bucket.label_names(), default_->label_shapes(), key, "label");
    return shapes;
  });
}

void BucketingModule::switch_bucket(const BucketKey& key, const std::vector<DataDesc>& data_shapes,
                                    const std::vector<DataDesc>& label_shapes) {
  const InUse use = in_use("switch_bucket");
  require(binded, "[switch_bucket] call bind first");
  const BucketKey& wanted = key.empty() ? options_.default_bucket_key : key;
  current_ = visit(wanted, [&](const Module&) { return Shapes{data_shapes, label_shapes}; });
  current_key_ = wanted;
}

void BucketingModule::bind(const std::vector<DataDesc>& data_shapes, const std::vector<DataDesc>& label_shapes,
                           const BindArgs& args) {
  const InUse use = in_use("bind");
  if (binded && !args.force_rebind) {
    log_warning("[BucketingModule] already bound: bind() does nothing; pass force_rebind to bind again");
    return;
  }
  require(!args.shared_module, "[bind] a BucketingModule cannot share the memory of another module");
  BindArgs again = args;
  again.force_rebind = true;
  default_->bind(data_shapes, label_shapes, again);
  for (const auto& monitor : monitors_) default_->exec_group()->install(monitor);
  bind_args_ = args;
  bind_args_.force_rebind = false;
  buckets_ = {{options_.default_bucket_key, default_}};
  order_ = {{options_.default_bucket_key, default_}};
  current_ = default_;
  current_key_ = options_.default_bucket_key;
  binded = true;
  for_training = args.for_training;
  inputs_need_grad = args.inputs_need_grad;
  params_initialized = default_->params_initialized;
}

void BucketingModule::reset_bind() {
  const InUse use = in_use("reset_bind");
  default_->reset_bind();
  buckets_.clear();
  order_.clear();
  current_ = nullptr;
  current_key_ = options_.default_bucket_key;
  binded = false;
}

Module& BucketingModule::current() const {
  require(binded, "[BucketingModule] call bind first");
  return *current_;
}
Module& BucketingModule::default_bucket() const { return *default_; }

// ---- Files ----------------------------------------------------------------------------------------------------------

namespace {

std::string buckets_path(const std::string& prefix) { return prefix + ".buckets"; }
std::string bucket_prefix(const std::string& prefix, const BucketKey& key) { return prefix + "-" + key.str(); }

// Keys as the rows of an array: numbers, or tuples of equal length. Empty for any other keys.
NDArray array_of(const BucketingModule::Buckets& buckets) {
  std::vector<int64_t> numbers;
  size_t columns = 0;
  for (const auto& [key, module] : buckets) {
    const auto* several = std::get_if<BucketKey::Numbers>(&key.value());
    const size_t before = numbers.size();
    if (const auto* number = std::get_if<int64_t>(&key.value())) numbers.push_back(*number);
    if (several) numbers.insert(numbers.end(), several->begin(), several->end());
    const size_t width = several ? several->size() + 1 : numbers.size() - before;  // 1: a number, not a list of one
    if (width == 0 || (columns != 0 && columns != width)) return {};
    columns = width;
  }
  const auto rows = static_cast<int64_t>(buckets.size());
  const Shape shape = columns == 1 ? Shape{rows} : Shape{rows, static_cast<int64_t>(columns) - 1};
  const bool narrow =
      std::all_of(numbers.begin(), numbers.end(), [](int64_t n) { return n == static_cast<int32_t>(n); });
  return array(numbers, shape, cpu(), narrow ? DType::int32 : DType::int64);
}

std::vector<BucketKey> keys_of(const NDArray& rows) {
  std::vector<BucketKey> keys;
  const std::vector<int64_t> numbers = rows.to_vector<int64_t>();
  const auto width = static_cast<std::ptrdiff_t>(rows.rank() == 2 ? rows.shape()[1] : 1);
  for (auto row = numbers.begin(); row != numbers.end(); row += width) {
    if (rows.rank() == 2)
      keys.emplace_back(BucketKey::Numbers(row, row + width));
    else
      keys.emplace_back(*row);
  }
  return keys;
}

}  // namespace

void BucketingModule::save_checkpoint(const std::string& prefix, int epoch, bool save_states) {
  const InUse use = in_use("save_checkpoint");
  const Params params = get_params();
  for (const auto& [key, module] : order_) module->symbol().save(symbol_path(bucket_prefix(prefix, key)));
  if (const NDArray keys = array_of(order_); keys && !order_.empty())
    symbind::save(buckets_path(prefix), {keys});
  else
    std::filesystem::remove(buckets_path(prefix));
  std::optional<std::string> states;
  if (save_states) states = default_->optimizer_states();
  symbind::save_checkpoint(prefix, epoch, std::nullopt, params.arg_params, params.aux_params, states);
}

BucketingModule::Symbols BucketingModule::load_symbols(const std::string& prefix) {
  Symbols symbols;
  const std::string path = buckets_path(prefix);
  if (!std::filesystem::exists(path)) return symbols;
  const LoadedArrays loaded = symbind::load(path);
  const auto is_list = [](const NDArray& keys) { return keys.rank() == 1 || (keys.rank() == 2 && keys.size() > 0); };
  require(loaded.arrays.size() == 1 && is_list(loaded.arrays[0]), "[", path,
          "] one array with a key in each row was expected");
  for (const BucketKey& key : keys_of(loaded.arrays[0]))
    symbols.emplace(key, Symbol::load(symbol_path(bucket_prefix(prefix, key))));
  return symbols;
}

std::unique_ptr<BucketingModule> BucketingModule::load(const std::string& prefix, int epoch, SymGen sym_gen,
                                                       const BucketingOptions& options, bool load_optimizer_states) {
  if (load_optimizer_states) match_states(prefix, epoch);
  ModelParams params = symbind::load_params(prefix, epoch);
  auto module = std::make_unique<BucketingModule>(std::move(sym_gen), options);
  module->preload(load_symbols(prefix), std::move(params.arg_params), std::move(params.aux_params),
                  load_optimizer_states ? states_path(prefix, epoch) : "");
  return module;
}

std::unique_ptr<BucketingModule> BucketingModule::load_dict(const Symbols& sym_dict, SymGen sym_gen,
                                                            const BucketingOptions& options, NamedArrays arg_params,
                                                            NamedArrays aux_params) {
  auto module = std::make_unique<BucketingModule>(std::move(sym_gen), options);
  module->preload(sym_dict, std::move(arg_params), std::move(aux_params));
  return module;
}

void BucketingModule::preload(Symbols symbols, NamedArrays arg_params, NamedArrays aux_params,
                              std::string optimizer_states) {
  const InUse use = in_use("load");
  require(!binded, "[BucketingModule] load parameters before bind; after it use set_params");
  symbols_ = std::move(symbols);
  if (symbols_.contains(options_.default_bucket_key)) default_ = make(options_.default_bucket_key);
  default_->preload_params(std::move(arg_params), std::move(aux_params));
  default_->preload_optimizer_states(std::move(optimizer_states));
  params_initialized = true;
}

BucketingModule::Symbols BucketingModule::networks() const {
  Symbols networks = symbols_;
  networks.emplace(options_.default_bucket_key, default_->symbol());
  for (const auto& [key, module] : order_) networks.emplace(key, module->symbol());
  return networks;
}

void BucketingModule::save_optimizer_states(const std::string& path) const {
  const InUse use = in_use("save_optimizer_states");
  default_->save_optimizer_states(path);
}
void BucketingModule::load_optimizer_states(const std::string& path) {
  const InUse use = in_use("load_optimizer_states");
  default_->load_optimizer_states(path);
}

// ---- Parameters and optimizer ---------------------------------------------------------------------------------------

void BucketingModule::init_params(const InitParamsArgs& args) {
  const InUse use = in_use("init_params");
  if (params_initialized && !args.force_init) return;
  require(binded, "[init_params] call bind first");
  default_->init_params(args);
  params_initialized = true;
}

void BucketingModule::set_params(const NamedArrays& arg_params, const NamedArrays& aux_params, bool allow_missing,
                                 bool force_init, bool allow_extra) {
  const InUse use = in_use("set_params");
  default_->set_params(arg_params, aux_params, allow_missing, force_init, allow_extra);
  params_initialized = true;
}

BaseModule::Params BucketingModule::get_params() {
  const InUse use = in_use("get_params");
  return default_->get_params();  // its arrays are shared by all buckets
}

void BucketingModule::init_optimizer(const InitOptimizerArgs& args) {
  const InUse use = in_use("init_optimizer");
  default_->init_optimizer(args);
  for (const auto& [key, module] : order_)
    if (module != default_) module->borrow_optimizer(*default_);
  optimizer_initialized = true;
}

void BucketingModule::borrow_optimizer(const Module& other) {
  const InUse use = in_use("borrow_optimizer");
  for (const auto& [key, module] : order_) module->borrow_optimizer(other);
  optimizer_initialized = true;
}

// ---- Running --------------------------------------------------------------------------------------------------------

void BucketingModule::prepare(const DataBatch& batch) {
  const InUse use = BaseModule::in_use("prepare");
  require(binded && params_initialized, "[prepare] call bind and init_params first");
  if (!buckets_.contains(key_of(batch))) current().finish_update();  // its executors will share the gradients' memory
  visit(batch)->prepare(batch);
}

// Makes the bucket of a batch the current one.
void BucketingModule::enter(const DataBatch& batch) {
  require(binded && params_initialized, "[forward] call bind and init_params first");
  const std::shared_ptr<Module>& bucket = visit(batch);
  if (bucket != current_) current_->exec_group()->release_derived();  // each would cache its own copy of the weights
  current_ = bucket;
  current_key_ = key_of(batch);
}

void BucketingModule::forward(const DataBatch& batch, std::optional<bool> is_train) {
  const InUse use = in_use("forward");
  enter(batch);
  current_->forward(batch, is_train);
}

void BucketingModule::backward(const std::vector<NDArray>& out_grads) {
  const InUse use = in_use("backward");
  const FitStep step(*this, current());
  current().backward(out_grads);
}
void BucketingModule::forward_backward(const DataBatch& batch) {
  if (!has_own_passes()) return BaseModule::forward_backward(batch);
  const InUse use = in_use("forward_backward");
  enter(batch);
  const FitStep step(*this, *current_);
  current_->forward_backward(batch);
}
void BucketingModule::update() {
  const InUse use = in_use("update");
  require(optimizer_initialized, "[update] call bind, init_params and init_optimizer first");
  const FitStep step(*this, current());
  current().update();
}

void BucketingModule::finish_update() {
  const InUse use = BaseModule::in_use("update");
  current().finish_update();
}

int BucketingModule::begin_epoch(int epoch) {
  const InUse use = in_use("begin_epoch");
  return default_->begin_epoch(epoch);  // its parameters and store are those of every bucket
}

const Symbol& BucketingModule::symbol() const { return current().symbol(); }
std::vector<std::string> BucketingModule::data_names() const { return (current_ ? current_ : default_)->data_names(); }
std::vector<std::string> BucketingModule::label_names() const {
  return (current_ ? current_ : default_)->label_names();
}
std::vector<std::string> BucketingModule::output_names() const {
  return (current_ ? current_ : default_)->output_names();
}
std::vector<DataDesc> BucketingModule::data_shapes() const { return current().data_shapes(); }
std::vector<DataDesc> BucketingModule::label_shapes() const { return current().label_shapes(); }
std::vector<std::pair<std::string, Shape>> BucketingModule::output_shapes() const { return current().output_shapes(); }
std::vector<NDArray> BucketingModule::get_outputs() { return current().get_outputs(); }
int BucketingModule::output_batch_axis(size_t output) const { return current().output_batch_axis(output); }
std::vector<NDArray> BucketingModule::get_input_grads() { return current().get_input_grads(); }
std::vector<NDArray> BucketingModule::get_states() const { return current().get_states(); }
void BucketingModule::set_states(const std::vector<NDArray>& states) { current().set_states(states); }
void BucketingModule::set_states(double value) { current().set_states(value); }
void BucketingModule::update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool pre_sliced) {
  current().update_metric(metric, labels, pre_sliced);
}

void BucketingModule::install_monitor(Monitor& monitor) {
  const InUse use = in_use("install_monitor");
  require(binded, "[install_monitor] call bind first");
  monitors_.push_back(monitor.installer());
  for (const auto& [key, module] : order_) module->exec_group()->install(monitors_.back());
}

}  // namespace symbind
