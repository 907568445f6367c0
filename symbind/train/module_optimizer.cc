// The part of Module that trains: the optimizer and its states, the store, updates, and workers that join a running
// job.
#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "symbind/core/atomic_file.h"
#include "symbind/core/environment.h"
#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/core/parallel.h"
#include "symbind/core/update_condition.h"
#include "symbind/files/params.h"
#include "symbind/files/states.h"
#include "symbind/graph/op.h"
#include "symbind/kvstore/message.h"
#include "symbind/kvstore/replacement.h"
#include "symbind/ops/gather.h"
#include "symbind/optim/state_keys.h"
#include "symbind/train/early_exchange.h"
#include "symbind/train/fit_step.h"
#include "symbind/train/module.h"
#include "symbind/train/names.h"
#include "symbind/train/scaled_loss.h"

namespace symbind {

namespace {

constexpr int64_t large_array = int64_t{16} << 20;  // elements; above it `local` leaves the update to the devices

// The attributes that optimizers read. An input that its operator ignores (the gamma of a BatchNorm with fix_gamma) has
// no gradient, so weight decay would drive it to 0, which would show in a network loaded with fix_gamma off.
std::map<std::string, Attributes> attributes_for_optimizer(const Symbol& symbol) {
  std::map<std::string, Attributes> attributes = symbol.attr_dict();
  const std::vector<std::string> arguments = symbol.list_arguments();
  std::erase_if(attributes, [&](const auto& named) { return !contains(arguments, named.first); });
  for (const NodePtr& node : topological_order(symbol.entries()))
    if (node->op && node->op->ignored_inputs) {
      const Names names = node->op->inputs(node->params.get());
      for (const std::string& ignored : node->op->ignored_inputs(node->params.get())) {
        const auto index = static_cast<size_t>(std::find(names.begin(), names.end(), ignored) - names.begin());
        attributes[node->inputs.at(index).node->name].try_emplace("__wd_mult__", "0");
      }
    }
  return attributes;
}

void warn_about_sparse_gradients(const Symbol& symbol) {
  std::vector<std::string> names;
  for (const NodePtr& node : topological_order(symbol.entries()))
    if (node->op == &op_of<Embedding>() && static_cast<const Embedding*>(node->params.get())->sparse_grad)
      names.push_back(node->name);
  if (names.empty()) return;
  log_warning("[Module] the gradient of ", comma_separated(names),
              " is dense, whatever sparse_grad says: weight decay and momentum also change rows that a batch does not "
              "look up");
}

}  // namespace

OptimizerPtr Module::make_optimizer(const InitOptimizerArgs& args, double rescale_grad) const {
  if (const OptimizerPtr& given = args.optimizer.optimizer()) {
    if (given->rescale_grad != rescale_grad)
      log_warning("[init_optimizer] the optimizer's rescale_grad is ", given->rescale_grad,
                  ", not 1/batch_size/num_workers = ", rescale_grad, "; is this intended?");
    return given;
  }
  OptimizerParams params = args.optimizer.params().value_or(args.optimizer_params);
  params.try_emplace("rescale_grad", rescale_grad);
  return Optimizer::create(args.optimizer.name(), params);
}

// Passes the names of new numbers to the optimizer.
void Module::number_params() {
  const size_t devices = update_on_kvstore_ ? 1 : options_.context.size();
  std::map<int64_t, std::string> idx2name = optimizer_->idx2name();
  // An optimizer that is shared with another module has other names under the first numbers.
  const auto taken = [&](size_t number, const std::string& name) {
    const auto found = idx2name.find(static_cast<int64_t>(number * devices));
    return found != idx2name.end() && found->second != name;
  };
  const size_t known = numbered_->size();
  numbers_.clear();
  for (const std::string& name : param_names_) {
    auto found = std::find(numbered_->begin(), numbered_->end(), name);
    if (found == numbered_->end()) {
      while (taken(numbered_->size(), name)) numbered_->emplace_back();
      found = numbered_->insert(numbered_->end(), name);
    }
    numbers_.push_back(static_cast<size_t>(found - numbered_->begin()));
  }
  bool added = false;
  for (size_t i = known; i < numbered_->size(); ++i)
    for (size_t k = 0; k < devices && !(*numbered_)[i].empty(); ++k)
      added |= idx2name.try_emplace(static_cast<int64_t>(i * devices + k), (*numbered_)[i]).second;
  if (!added) return;
  std::map<std::string, Attributes> attributes = attributes_for_optimizer(symbol_);
  attributes.merge(std::map(optimizer_->attributes()));
  optimizer_->set_names(std::move(idx2name), std::move(attributes));
}

StoreChoice choose_kvstore(const KVStoreArg& kvstore, size_t devices, const NamedArrays& arg_params) {
  StoreChoice choice{kvstore.store(), environment::variable("MXNET_UPDATE_ON_KVSTORE").on()};
  const std::string& type = kvstore.type();
  // A misspelled type fails even where no store is needed.
  if (!choice.store && !type.empty() && (KVStore::is_distributed(type) || devices > 1)) {
    choice.store = KVStore::create(type);
    if (type == "local")
      for (const auto& [name, array] : arg_params)
        if (array.size() > large_array) choice.update_on_kvstore = false;
  }
  choice.update_on_kvstore = choice.update_on_kvstore && choice.store && choice.store->has_optimizer();
  return choice;
}

void Module::init_optimizer(const InitOptimizerArgs& args) {
  const InUse use = in_use("init_optimizer");
  require(binded && params_initialized, "[init_optimizer] call bind and init_params first");
  if (optimizer_initialized && !args.force_init) {
    if (args.optimizer.optimizer() == optimizer_) return;
    log_warning("[Module] the optimizer is initialized already and stays: init_optimizer() and the optimizer given to ",
                "fit() do nothing; init_optimizer() with force_init replaces it");
    return;
  }
  if (host_->dirty) sync_params_from_devices();

  auto [store, in_store] = choose_kvstore(args.kvstore, options_.context.size(), host_->arg_params);
  if (scaled_loss_ && store) ScaledLoss::check_store(*store);
  int64_t batch_size = exec_group_->batch_size();
  if (store) batch_size *= store->workers_per_update();
  if (!store && options_.context.size() > 1)
    log_warning(
        "[Module] ", options_.context.size(), " contexts without a kvstore train separately: each updates its own ",
        "copy of the parameters by its share of the batch; kvstore = \"local\" or \"device\" sums their gradients");
  // A failure up to here leaves the old optimizer; from here on there is none until everything is set up.
  OptimizerPtr made = make_optimizer(args, 1.0 / static_cast<double>(batch_size));
  warn_about_sparse_gradients(symbol_);
  optimizer_initialized = false;
  update_on_kvstore_ = in_store;
  kvstore_ = std::move(store);
  optimizer_ = std::move(made);
  followed_before_ = {};
  updater_ = update_on_kvstore_ ? nullptr : std::make_shared<Updater>(optimizer_);
  numbered_ = std::make_shared<std::vector<std::string>>();
  number_params();
  if (kvstore_) init_kvstore();
  if (scaled_loss_ && kvstore_) scaled_loss_->begin_job(*kvstore_);
  optimizer_initialized = true;
  if (!preload_opt_states_.empty()) {
    load_optimizer_states(preload_opt_states_);
    preload_opt_states_.clear();
  }
}

void Module::init_kvstore() {
  if (!options_.compression_params.empty()) kvstore_->set_gradient_compression(options_.compression_params);
  if (update_on_kvstore_) kvstore_->set_optimizer(optimizer_);
  const KVStore::Keys keys(param_names_.begin(), param_names_.end());
  std::vector<NDArray> values;
  for (const std::string& name : param_names_) values.push_back(host_->arg_params.at(name));
  kvstore_->init(keys, values);
  if (update_on_kvstore_ || kvstore_->is_distributed()) kvstore_->pull(keys, exec_group_->param_arrays());
  if (kvstore_->is_distributed()) host_->dirty = true;
}

void Module::borrow_optimizer(const Module& other) {
  const InUse use = in_use("borrow_optimizer");
  require(other.optimizer_initialized, "[borrow_optimizer] the other module has no optimizer yet");
  optimizer_ = other.optimizer_;
  followed_before_ = {};
  kvstore_ = other.kvstore_;
  update_on_kvstore_ = other.update_on_kvstore_;
  updater_ = other.updater_;
  if (scaled_loss_ && other.scaled_loss_) scaled_loss_->share(*other.scaled_loss_);
  numbered_ = other.numbered_;
  number_params();
  optimizer_initialized = true;
}

// ---- Updates --------------------------------------------------------------------------------------------------------

void Module::update() {
  const InUse use = in_use("update");
  require(binded && params_initialized && optimizer_initialized,
          "[update] call bind, init_params and init_optimizer first");
  if (std::exchange(in_step_.has_update, false)) return;
  if (scaled_loss_ && !kvstore_)
    if (const std::vector<Updater::Item> items = own_updates(); device_decides(items)) return queue_update(items);
  // What backward has begun to exchange continues while the next batch is prepared.
  const bool has_begun = scaled_loss_ || store_for_early_exchange(kvstore_.get(), options_.context.size());
  if (!has_begun || !FitStep::finish_follows(*this)) return apply_update();
  if (scaled_loss_ && !ScaledLoss::checks_sums(kvstore_.get())) scaled_loss_->start_check(*exec_group_);
  update_left_ = true;
}

void Module::finish_update() {
  const InUse use = BaseModule::in_use("update");
  if (std::exchange(update_left_, false)) apply_update();
}

// The updates that this module makes itself, in the order of the parameters and, for each, of the devices.
std::vector<Updater::Item> Module::own_updates() const {
  std::vector<Updater::Item> items;
  if (update_on_kvstore_) return items;
  const auto& weights = exec_group_->param_arrays();
  const auto& grads = exec_group_->grad_arrays();
  const size_t devices = options_.context.size();
  for (size_t i = 0; i < grads.size(); ++i)
    for (size_t k = 0; k < devices && grads[i][0]; ++k)
      items.push_back({numbers_[i] * devices + k, grads[i][k], weights[i][k]});
  return items;
}

// Do they all have their arrays on the one context of this module, a GPU?
bool Module::on_one_gpu(const std::vector<Updater::Item>& items) const {
  const Context context = options_.context[0];
  return options_.context.size() == 1 && context.is_gpu() && std::ranges::all_of(items, [&](const Updater::Item& item) {
           return item.weight.context() == context && item.grad.context() == context &&
                  item.weight.dtype() == item.grad.dtype();
         });
}

// With a scaled loss and no exchange left: is the update queued before the host knows whether the step is taken? The
// device then leaves it out by itself. Not the first update: the host must not create states in a step that is not
// taken.
bool Module::device_decides(const std::vector<Updater::Item>& items) const {
  return !items.empty() && optimizer_->is_conditional() && on_one_gpu(items) &&
         std::ranges::all_of(items, [&](const Updater::Item& item) { return updater_->states().contains(item.key); });
}

void Module::queue_update(const std::vector<Updater::Item>& items) {
  const ThreadScope threads(exec_group_->thread_policy());
  host_->dirty = true;
  ResumeState before = optimizer_->resume_state();
  const auto decision = scaled_loss_->decide(*exec_group_);
  decision->queue();
  std::function<bool()> is_taken = scaled_loss_->decided();
  {
    const UpdateCondition condition(static_cast<const float*>(decision->is_taken().data()));
    (*updater_)(items);
  }
  optimizer_->count_if(std::move(is_taken), std::move(before));
}

// ---- Updates that are a part of the step ----------------------------------------------------------------------------

// In fit() on one GPU: what forward_backward() launches with its passes. With a scaled loss only if the update does not
// depend on whether the step before was taken: the host would have to wait for that before it launches anything.
std::vector<FollowingWorkPtr> Module::update_in_step() {
  if (!FitStep::update_follows(*this) || !optimizer_initialized || kvstore_) return {};
  if (!options_.context[0].is_gpu() || !optimizer_->repeats_updates()) return {};
  const std::vector<Updater::Item> items = own_updates();
  if (items.empty() || !on_one_gpu(items)) return {};
  host_->dirty = true;  // before the launch, which may fail after a part of the work
  if (!scaled_loss_) {
    followed_before_.update = updater_->repeated(items, followed_before_.update);
    return {followed_before_.update};
  }
  if (optimizer_->update_depends_on_count() || !device_decides(items)) return {};
  const auto decision = scaled_loss_->decide(*exec_group_);
  followed_before_.update = updater_->repeated(items, followed_before_.update, decision->is_taken());
  return {decision, followed_before_.update};
}

// It was queued. With a scaled loss the updates are counted now, when the GPU is busy: the result of the last step must
// be known first. If waiting for it throws, this step is counted too before the error is thrown again.
void Module::count_update_in_step() {
  if (!scaled_loss_) return;
  std::exception_ptr fault;
  try {
    scaled_loss_->scale();
  } catch (...) {
    fault = std::current_exception();
  }
  ResumeState before = optimizer_->resume_state();
  std::function<bool()> is_taken = scaled_loss_->decided();
  if (optimizer_->counts_updates())
    for (const Updater::Item& item : own_updates()) optimizer_->update_count(item.key);
  optimizer_->count_if(std::move(is_taken), std::move(before));
  if (fault) std::rethrow_exception(fault);
}

void Module::apply_update() {
  const auto is_taken = [&] { return scaled_loss_->finish_step(*exec_group_, kvstore_.get()); };
  const bool checks_sums = scaled_loss_ && ScaledLoss::checks_sums(kvstore_.get());
  if (scaled_loss_ && !checks_sums && !is_taken()) return;
  host_->dirty = true;
  const ThreadScope threads(exec_group_->thread_policy());
  if (kvstore_) exchange_gradients();
  const std::vector<Updater::Item> items = own_updates();
  if (checks_sums && device_decides(items)) return queue_update(items);
  if (checks_sums && !is_taken()) return;
  if (update_on_kvstore_) return;
  const size_t devices = options_.context.size();
  if (devices == 1 || !optimizer_->clip_global_norm) return (*updater_)(items);
  // The norm is that of one device's gradients. With a store these are the sums, the same on every device.
  for (size_t k = 0; k < devices; ++k) {
    std::vector<Updater::Item> of_device;
    for (size_t i = k; i < items.size(); i += devices) of_device.push_back(items[i]);
    (*updater_)(of_device);
  }
}

// Pushes the gradients to the store, and pulls the new weights, or the sums where this module updates.
void Module::exchange_gradients() {
  const auto& weights = exec_group_->param_arrays();
  const auto& grads = exec_group_->grad_arrays();
  KVStore::Keys keys;
  KVStore::Values pushed, pulled;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i][0]) continue;  // fixed
    keys.emplace_back(param_names_[i]);
    pushed.push_back(grads[i]);
    pulled.push_back(update_on_kvstore_ ? weights[i] : grads[i]);
  }
  kvstore_->pushpull(keys, pushed, pulled);
}

// ---- States of the optimizer ----------------------------------------------------------------------------------------

std::string Module::optimizer_states() const {
  const InUse use = in_use("optimizer_states");
  require(optimizer_initialized, "[Module] there is no optimizer yet whose states could be saved");
  return update_on_kvstore_ ? kvstore_->get_optimizer_states() : updater_->get_states();
}

void Module::save_optimizer_states(const std::string& path) const {
  const InUse use = in_use("save_optimizer_states");
  write_file_atomically(path, optimizer_states());
}

void Module::load_optimizer_states(const std::string& path) {
  const InUse use = in_use("load_optimizer_states");
  require(binded && optimizer_initialized, "[Module] call bind and init_optimizer before loading optimizer states");
  StateKeys keys{.parameters = {}, .devices = update_on_kvstore_ ? 0 : options_.context.size()};
  const auto& grads = exec_group_->grad_arrays();
  for (const std::string& name : *numbered_) keys.parameters.push_back({name, Shape{}, false});  // of other modules
  for (size_t i = 0; i < param_names_.size(); ++i) {
    StateKeys::Parameter& parameter = keys.parameters[numbers_[i]];
    parameter.shape = exec_group_->param_arrays()[i][0].shape();
    parameter.trained = !grads.empty() && bool(grads[i][0]);
  }
  const SavedStates saved = load_states(path);
  try {
    const SavedStates states = with_keys(saved, keys);
    if (update_on_kvstore_)
      kvstore_->set_optimizer_states(states);
    else
      updater_->set_states(states);
  } catch (const Error& error) {
    fail("[", path, "] ", error.what());
  }
}

// ---- Workers that join a running job --------------------------------------------------------------------------------

int Module::begin_epoch(int epoch) {
  const InUse use = in_use("begin_epoch");
  auto* const store = dynamic_cast<Replacement*>(kvstore_.get());
  if (!store) return epoch;
  return store->begin_epoch(
      epoch, [&] { return state_for_new_worker(); }, [&](const std::string& bytes) { take_state_of_job(bytes); });
}

// What the store does not have: auxiliary states, and where the workers update, parameters and the optimizer's states.
std::string Module::state_for_new_worker() {
  const auto bytes_of = [](const NamedArrays& arrays) {
    std::vector<std::string> names;
    std::vector<NDArray> values;
    for (const auto& [name, value] : arrays) {
      names.push_back(name);
      values.push_back(value);
    }
    std::string bytes;
    write_arrays([&](const void* data, size_t count) { bytes.append(static_cast<const char*>(data), count); },
                 "the state of a job", names, values);
    return bytes;
  };
  const Params params = get_params();
  MessageWriter text;
  text << bytes_of(params.aux_params) << bytes_of(update_on_kvstore_ ? NamedArrays() : params.arg_params)
       << (update_on_kvstore_ ? std::string() : updater_->get_states(/*dump_optimizer=*/true))
       << (scaled_loss_ ? scaled_loss_->scale() : LossScale());
  const std::vector<std::byte> written = text.take();
  return std::string(reinterpret_cast<const char*>(written.data()), written.size());
}

void Module::take_state_of_job(const std::string& bytes) {
  MessageReader text(std::as_bytes(std::span(bytes)));
  const auto arrays = [&] {
    const LoadedArrays loaded = load_from_bytes(text.text(), "the state of the job");
    return loaded.arrays.empty() ? NamedArrays() : loaded.dict();
  };
  NamedArrays aux_params = arrays(), arg_params = arrays();
  const std::string states = text.text();
  const auto scale = text.number<LossScale>();
  if (scaled_loss_) scaled_loss_->set_scale(scale);
  if (update_on_kvstore_) {
    for (const std::string& name : param_names_) {
      const NDArray& now = host_->arg_params.at(name);
      arg_params[name] = NDArray(now.shape(), cpu(), now.dtype());
      kvstore_->pull({name}, {{arg_params[name]}});
    }
  } else {
    SavedStates saved = read_states(states, "the states of worker 0");
    if (saved.resume) saved.resume->random.clear();  // this worker has its own
    updater_->set_states(saved);
  }
  set_params(arg_params, aux_params);
}

}  // namespace symbind
