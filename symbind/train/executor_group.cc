#include "symbind/train/executor_group.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "symbind/core/error.h"
#include "symbind/core/parallel.h"
#include "symbind/core/sum_group.h"
#include "symbind/core/workers.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/exec/indexing.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/image.h"
#include "symbind/train/counting_work.h"
#include "symbind/train/loaded_input.h"
#include "symbind/train/monitor.h"
#include "symbind/train/names.h"
#include "symbind/train/staged_batch.h"

namespace symbind {
namespace {

constexpr size_t most_bound = 16;

bool is_whole(const NDArray& array, int axis, BatchSlice slice) {
  return axis < 0 || (slice.begin == 0 && slice.end == array.shape()[axis]);
}

// The samples of a slice; an axis of -1 means the whole array.
NDArray part_of(const NDArray& array, int axis, BatchSlice slice) {
  if (is_whole(array, axis, slice)) return array;
  if (axis == 0) return array.slice(slice.begin, slice.end);
  std::vector<AxisRange> ranges(static_cast<size_t>(axis) + 1);
  ranges.back() = {slice.begin, slice.end};
  return subarray(array, ranges);
}

void normalize(const NDArray& pixels, const PixelNormalization& by, const NDArray& to) {
  NormalizePixels params;
  params.mean = by.mean;
  params.std = by.std;
  params.scale = by.scale;
  params.dtype = to.dtype();
  invoke(normalize_pixels, {pixels}, params, {.out = {to}});
}

}  // namespace

// ---- Binding --------------------------------------------------------------------------------------------------------

struct DataParallelExecutorGroup::Family {
  // Per device, as large as the largest so far: inputs by name, and SimpleBindOptions::shared_results.
  std::vector<std::shared_ptr<NamedArrays>> inputs, results;
  std::vector<StagedBatch> staged;  // the next batch, per device
  std::mutex mutex;                 // of the list below: groups may be destroyed on any thread
  std::set<DataParallelExecutorGroup*> members;

  explicit Family(size_t devices) : staged(devices) {
    for (size_t i = 0; i < devices; ++i) {
      inputs.push_back(std::make_shared<NamedArrays>());
      results.push_back(std::make_shared<NamedArrays>());
    }
  }
};

struct DataParallelExecutorGroup::Threads {
  explicit Threads(const std::vector<Context>& contexts) : workers(contexts.size(), available_threads()) {
    if (contexts.size() < 2) return;
    std::vector<std::string> titles;
    for (size_t i = 0; i < contexts.size(); ++i) titles.push_back(join("context ", i, " (", contexts[i], ")"));
    sum_group = std::make_unique<SumGroup>(std::move(titles));
  }

  Workers workers;
  std::unique_ptr<SumGroup> sum_group;  // none: there is one context
};

DataParallelExecutorGroup::DataParallelExecutorGroup(const Symbol& symbol, const ExecutorGroupOptions& options)
    : symbol_(symbol),
      contexts_(options.contexts),
      workload_(options.workload.empty() ? std::vector<double>(options.contexts.size(), 1.0) : options.workload),
      arg_names_(symbol.list_arguments()),
      param_names_(),
      aux_names_(symbol.list_auxiliary_states()),
      fixed_param_names_(options.fixed_param_names),
      state_names_(options.state_names),
      output_names_(options.output_names.empty() ? symbol.list_outputs() : options.output_names),
      for_training_(options.for_training),
      inputs_need_grad_(options.inputs_need_grad),
      group2ctxs_(options.group2ctxs),
      compile_options_(options.options),
      threads_(std::make_unique<Threads>(options.contexts)) {
  require(!contexts_.empty(), "[executor group] at least one context is needed");
  require(workload_.size() == contexts_.size(), "[executor group] work_load_list has ", workload_.size(),
          " entries for ", contexts_.size(), " contexts");
  const DataParallelExecutorGroup* const shared = options.shared_group.get();
  require(!shared || shared->contexts_ == contexts_, "[executor group] a group on ", comma_separated(contexts_),
          " cannot share the memory of one on ", shared ? comma_separated(shared->contexts_) : "");
  for (const std::string& name : arg_names_)
    if (contains(options.param_names, name)) param_names_.push_back(name);
  for (size_t i = 0; i < symbol.size(); ++i)
    output_layouts_.push_back(DataDesc::get_batch_axis(symbol[i].attr("__layout__")));

  family_ = shared ? shared->family_ : std::make_shared<Family>(contexts_.size());
  split_ = BatchSplit(options.data_shapes, options.label_shapes, workload_);
  grad_req_ = requests(options.grad_req);
  execs_ = bind_execs(split_, shared ? shared->execs_ : std::vector<ExecutorPtr>(contexts_.size()));
  bound_.push_front({split_.data_shapes, split_.label_shapes, execs_});
  collect_arrays();
  const std::lock_guard lock(family_->mutex);
  family_->members.insert(this);
}

DataParallelExecutorGroup::~DataParallelExecutorGroup() {
  const std::lock_guard lock(family_->mutex);
  family_->members.erase(this);
}

const std::vector<std::shared_ptr<NamedArrays>>& DataParallelExecutorGroup::shared_data_arrays() const {
  return family_->inputs;
}

std::vector<GradReq> DataParallelExecutorGroup::requests(const GradReqs& given) const {
  std::vector<GradReq> defaults;
  for (const std::string& name : arg_names_) {
    const bool is_data = std::any_of(split_.data_shapes.begin(), split_.data_shapes.end(),
                                     [&](const DataDesc& description) { return description.name == name; });
    const bool wanted =
        contains(param_names_, name) ? !contains(fixed_param_names_, name) : is_data && inputs_need_grad_;
    defaults.push_back(wanted && for_training_ ? GradReq::write : GradReq::null);
  }
  return for_training_ ? given.resolve(arg_names_, defaults) : defaults;
}

ExecutorPtr DataParallelExecutorGroup::bind_ith_exec(size_t device, const BatchSplit& split,
                                                     const ExecutorPtr& shared) {
  NamedShapes shapes = split.shapes_on(device, arg_names_);
  SimpleBindOptions options;
  std::vector<std::string> by_order;
  for (const GradReq request : grad_req_)
    by_order.emplace_back(request == GradReq::null ? "null" : request == GradReq::add ? "add" : "write");
  options.grad_req = by_order;
  options.type_dict = split.types_in(symbol_);
  if (device < group2ctxs_.size()) options.group2ctx = group2ctxs_[device];
  options.output_names = output_names_;
  options.options = compile_options_;
  options.shared_buffer = family_->inputs[device].get();
  options.shared_results = family_->results[device].get();
  options.shared_exec = shared;
  // Parameters are those of the other executor or new; only inputs are in the shared buffers.
  options.shared_arg_names = param_names_;
  const bool other_shapes = !execs_.empty();  // of this group: its inputs keep their types, too
  for (const std::string& name : arg_names_) {
    if (!shared || !shared->arg_dict().contains(name)) continue;
    const bool is_param = contains(param_names_, name);
    if (is_param) shapes[name] = shared->arg_dict().at(name).shape();
    if (is_param || other_shapes) options.type_dict[name] = shared->arg_dict().at(name).dtype();
  }
  return simple_bind(symbol_, contexts_[device], shapes, options);
}

std::vector<ExecutorPtr> DataParallelExecutorGroup::bind_execs(const BatchSplit& split,
                                                               const std::vector<ExecutorPtr>& shared) {
  std::vector<ExecutorPtr> made;
  for (size_t i = 0; i < contexts_.size(); ++i) made.push_back(bind_ith_exec(i, split, shared[i]));
  const std::lock_guard lock(family_->mutex);
  for (DataParallelExecutorGroup* const member : family_->members) member->follow();
  return made;
}

void DataParallelExecutorGroup::follow() {
  const InUse use = in_use("reshape");
  for (const BoundShapes& bound : bound_)
    for (size_t i = 0; i < bound.execs.size(); ++i) bound.execs[i]->follow(*family_->inputs[i], *family_->results[i]);
  collect_arrays();
}

void DataParallelExecutorGroup::collect_arrays() {
  const auto by_name = [&](const std::vector<DataDesc>& descriptions) {
    std::vector<std::vector<Sliced>> arrays;
    for (const DataDesc& description : descriptions) {
      std::vector<Sliced>& row = arrays.emplace_back();
      for (size_t i = 0; i < execs_.size(); ++i) {
        const auto found = execs_[i]->arg_dict().find(description.name);
        if (found != execs_[i]->arg_dict().end()) row.push_back({split_.slices[i], found->second});
      }
    }
    return arrays;
  };
  const auto per_device = [&](const std::vector<std::string>& names, auto&& get) {
    PerDevice arrays;
    for (const std::string& name : names) {
      std::vector<NDArray>& row = arrays.emplace_back();
      for (const ExecutorPtr& executor : execs_) {
        const NamedArrays& all = get(*executor);
        const auto found = all.find(name);
        row.push_back(found == all.end() ? NDArray() : found->second);
      }
    }
    return arrays;
  };
  const auto args = [](const Executor& e) -> const NamedArrays& { return e.arg_dict(); };
  const auto grads = [](const Executor& e) -> const NamedArrays& { return e.grad_dict(); };
  const auto aux = [](const Executor& e) -> const NamedArrays& { return e.aux_dict(); };
  std::vector<std::string> data_names;
  for (const DataDesc& description : split_.data_shapes)
    if (contains(arg_names_, description.name)) data_names.push_back(description.name);

  data_arrays_ = by_name(split_.data_shapes);
  label_arrays_ = by_name(split_.label_shapes);
  loaded_labels_.clear();
  for (const std::vector<Sliced>& of_devices : label_arrays_) loaded_labels_.emplace_back(of_devices.size());
  param_arrays_ = per_device(param_names_, args);
  state_arrays_ = per_device(state_names_, args);
  aux_arrays_ = per_device(aux_names_, aux);
  grad_arrays_ = for_training_ ? per_device(param_names_, grads) : PerDevice{};
  input_grad_arrays_ = inputs_need_grad_ ? per_device(data_names, grads) : PerDevice{};
}

namespace {

// How pixels are normalized does not matter to executors.
bool bound_alike(std::vector<DataDesc> a, std::vector<DataDesc> b) {
  for (auto* const descriptions : {&a, &b})
    for (DataDesc& description : *descriptions) description.normalization.reset();
  return a == b;
}

}  // namespace

void DataParallelExecutorGroup::reshape(const std::vector<DataDesc>& data_shapes,
                                        const std::vector<DataDesc>& label_shapes) {
  const InUse use = in_use("reshape");
  if (data_shapes == split_.data_shapes && label_shapes == split_.label_shapes) return;
  BatchSplit split(data_shapes, label_shapes, workload_);
  const auto found = std::find_if(bound_.begin(), bound_.end(), [&](const BoundShapes& bound) {
    return bound_alike(bound.data_shapes, data_shapes) && bound_alike(bound.label_shapes, label_shapes);
  });
  BoundShapes wanted{data_shapes, label_shapes, {}};
  if (found != bound_.end()) {
    wanted.execs = std::move(found->execs);
    bound_.erase(found);
  } else {
    wanted.execs = bind_execs(split, execs_);
  }
  split_ = std::move(split);
  execs_ = wanted.execs;
  bound_.push_front(std::move(wanted));
  if (bound_.size() > most_bound) bound_.pop_back();
  collect_arrays();
  for (const auto& installer : monitors_)
    for (const ExecutorPtr& executor : execs_) installer(*executor);
}

ThreadPolicy DataParallelExecutorGroup::thread_policy() const {
  const bool on_cpus =
      std::none_of(contexts_.begin(), contexts_.end(), [](Context context) { return context.is_gpu(); });
  if (contexts_.size() < 2 || !on_cpus) return symbind::thread_policy();
  return {.threads = 1, .workers = &threads_->workers};
}

// ---- Parameters -----------------------------------------------------------------------------------------------------

void DataParallelExecutorGroup::set_params(const NamedArrays& arg_params, const NamedArrays& aux_params,
                                           bool allow_extra) {
  const InUse use = in_use("set_params");
  const ThreadScope threads(thread_policy());
  for (const ExecutorPtr& executor : execs_) executor->copy_params_from(arg_params, aux_params, allow_extra);
}

void DataParallelExecutorGroup::get_params(NamedArrays& arg_params, NamedArrays& aux_params) const {
  const InUse use = in_use("get_params");
  const ThreadScope threads(thread_policy());
  const auto mean = [](const std::vector<NDArray>& arrays) {
    if (arrays.size() == 1) return arrays[0];
    NDArray sum = arrays[0].as_copy_in(cpu());
    if (is_half(sum.dtype())) sum = sum.astype(DType::float32);
    for (size_t i = 1; i < arrays.size(); ++i) sum += arrays[i].as_in_context(cpu()).astype(sum.dtype());
    sum /= static_cast<double>(arrays.size());
    return sum;
  };
  const auto fetch = [&](const std::vector<std::string>& names, const PerDevice& arrays, NamedArrays& into) {
    for (size_t i = 0; i < names.size(); ++i) {
      const NDArray value = mean(arrays[i]);
      NDArray& target = into[names[i]];
      if (!target || !(target.shape() == value.shape())) target = NDArray(value.shape(), cpu(), arrays[i][0].dtype());
      value.copyto(target);
    }
  };
  fetch(param_names_, param_arrays_, arg_params);
  fetch(aux_names_, aux_arrays_, aux_params);
}

// ---- Running --------------------------------------------------------------------------------------------------------

std::vector<DataParallelExecutorGroup::Input> DataParallelExecutorGroup::inputs_of(size_t device,
                                                                                   const DataBatch& batch) const {
  std::vector<Input> inputs;
  const auto add = [&](const std::vector<NDArray>& given, const std::vector<std::vector<Sliced>>& targets,
                       const std::vector<DataDesc>& descriptions, const std::vector<int>& axes) {
    for (size_t i = 0; i < std::min(targets.size(), given.size()); ++i)
      if (!targets[i].empty())  // else the network does not use it
        inputs.push_back({&descriptions[i], axes[i], &given[i], &targets[i][device]});
  };
  add(batch.data, data_arrays_, split_.data_shapes, split_.data_layouts);
  add(batch.label, label_arrays_, split_.label_shapes, split_.label_layouts);
  return inputs;
}

void DataParallelExecutorGroup::load(size_t device, const DataBatch& batch, bool sliced) {
  const std::vector<Input> inputs = inputs_of(device, batch);
  const auto are_pixels = [](const Input& input) {
    return input.description->normalization && input.given->dtype() == DType::uint8;
  };
  const auto for_loaded = [&](const auto& function) {
    for (size_t i = 0; i < loaded_labels_.size() && i < batch.label.size(); ++i)
      if (!loaded_labels_[i].empty()) function(loaded_labels_[i][device], label_arrays_[i][device], batch.label[i]);
  };
  for_loaded([&](LoadedInput& loaded, const Sliced& target, const NDArray& given) {
    sliced ? loaded.forget() : loaded.start(given, target.slice);
  });

  std::vector<StagedBatch::Input> wanted;
  for (const Input& input : inputs) {
    const NDArray& target = input.target->array;
    const bool arrive_as_bytes = are_pixels(input) && input.given->context() != target.context();
    wanted.push_back({input.description->name, *input.given, input.target->slice,
                      arrive_as_bytes ? NDArray(target.shape(), target.context(), DType::uint8) : target});
  }
  std::vector<bool> is_there(inputs.size());
  if (!sliced) is_there = family_->staged[device].deliver(wanted);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    NDArray arrival = wanted[i].target;
    if (!is_there[i]) {
      const NDArray part = sliced ? *input.given : part_of(*input.given, input.axis, input.target->slice);
      require(part.shape() == arrival.shape(), "[forward] '", input.description->name, "' was given with shape ",
              input.given->shape(), ", but is bound with ", input.description->shape);
      if (are_pixels(input) && part.context() == arrival.context())
        arrival = part;
      else
        part.copyto(arrival);
    }
    if (are_pixels(input)) normalize(arrival, *input.description->normalization, input.target->array);
  }
  if (sliced) return;
  for_loaded([](LoadedInput& loaded, const Sliced& target, const NDArray&) { loaded.finish(target.array); });
}

void DataParallelExecutorGroup::stage(size_t device, const DataBatch& batch) {
  std::vector<StagedBatch::Input> inputs;
  std::vector<NDArray> parts;
  for (const Input& input : inputs_of(device, batch)) {
    if (!*input.given || input.given->shape() != input.description->shape) continue;
    inputs.push_back({input.description->name, *input.given, input.target->slice, input.target->array});
    parts.push_back(part_of(*input.given, input.axis, input.target->slice));
  }
  family_->staged[device].start(inputs, parts);
}

void DataParallelExecutorGroup::prepare(const DataBatch& batch) {
  const InUse use = in_use("prepare");
  for (size_t device = 0; device < contexts_.size(); ++device)
    if (contexts_[device].is_gpu()) stage(device, batch);
}

void DataParallelExecutorGroup::run_all(const std::function<void(size_t device)>& pass) {
  threads_->sum_group ? threads_->sum_group->run(threads_->workers, pass) : pass(0);
}

void DataParallelExecutorGroup::run_forward(bool is_train, const std::function<void(size_t device)>& load_device) {
  run_all([&](size_t device) {
    load_device(device);
    execs_[device]->forward(is_train);
  });
}

namespace {

void require_count(const DataBatch& batch, size_t data, size_t labels) {
  require(batch.data.size() == data, "[forward] the batch has ", batch.data.size(), " data arrays, ", data,
          " are bound");
  require(batch.label.empty() || labels == 0 || batch.label.size() == labels, "[forward] the batch has ",
          batch.label.size(), " labels, ", labels, " are bound");
}

}  // namespace

void DataParallelExecutorGroup::forward(const DataBatch& batch, std::optional<bool> is_train) {
  const InUse use = in_use("forward");
  require_count(batch, split_.data_shapes.size(), split_.label_shapes.size());
  run_forward(is_train.value_or(for_training_), [&](size_t device) { load(device, batch, false); });
}

void DataParallelExecutorGroup::forward(const std::vector<DataBatch>& batches, std::optional<bool> is_train) {
  const InUse use = in_use("forward");
  require(batches.size() == contexts_.size(), "[forward] ", batches.size(), " batches were given for ",
          contexts_.size(), " devices");
  for (const DataBatch& batch : batches) require_count(batch, split_.data_shapes.size(), split_.label_shapes.size());
  run_forward(is_train.value_or(for_training_), [&](size_t device) { load(device, batches[device], true); });
}

void DataParallelExecutorGroup::backward(const std::vector<NDArray>& out_grads) {
  const InUse use = in_use("backward");
  require(for_training_, "[backward] the group was not made for training");
  run_all([&](size_t device) {
    if (out_grads.empty()) return execs_[device]->backward();
    std::vector<NDArray> parts;
    for (size_t i = 0; i < std::min(out_grads.size(), output_names_.size()); ++i)
      parts.push_back(out_grads[i] ? part_of(out_grads[i], output_layouts_[i], split_.slices[device])
                                         .as_in_context(execs_[device]->outputs()[i].context())
                                   : NDArray());
    execs_[device]->backward(parts);
  });
}

void DataParallelExecutorGroup::forward_backward(const DataBatch& batch) {
  const InUse use = in_use("forward_backward");
  if (contexts_.size() > 1 || !for_training_) {
    forward(batch, true);
    return backward();
  }
  require_count(batch, split_.data_shapes.size(), split_.label_shapes.size());
  run_all([&](size_t device) {
    load(device, batch, false);
    execs_[device]->forward_backward();
  });
}

// ---- Results --------------------------------------------------------------------------------------------------------

DataParallelExecutorGroup::PerDevice DataParallelExecutorGroup::get_outputs() const {
  PerDevice outputs(output_names_.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    for (const ExecutorPtr& executor : execs_) outputs[i].push_back(executor->outputs()[i]);
  return outputs;
}

std::vector<NDArray> DataParallelExecutorGroup::merge(const PerDevice& arrays, const std::vector<int>& axes) const {
  std::vector<NDArray> merged;
  for (size_t i = 0; i < arrays.size(); ++i)
    merged.push_back(arrays[i].size() == 1 || axes[i] < 0 ? arrays[i][0] : concatenate(arrays[i], axes[i]));
  return merged;
}

std::vector<NDArray> DataParallelExecutorGroup::get_merged_outputs() const {
  return merge(get_outputs(), output_layouts_);
}

DataParallelExecutorGroup::PerDevice DataParallelExecutorGroup::get_input_grads() const {
  require(inputs_need_grad_, "[get_input_grads] bind with inputs_need_grad to have them");
  return input_grad_arrays_;
}

std::vector<NDArray> DataParallelExecutorGroup::get_merged_input_grads() const {
  return merge(get_input_grads(), split_.data_layouts);
}

DataParallelExecutorGroup::PerDevice DataParallelExecutorGroup::get_states() const { return state_arrays_; }

std::vector<NDArray> DataParallelExecutorGroup::get_merged_states() const {
  return merge(state_arrays_, std::vector<int>(state_arrays_.size(), 0));
}

void DataParallelExecutorGroup::set_states(const PerDevice& states) {
  const InUse use = in_use("set_states");
  require(states.size() == state_arrays_.size(), "[set_states] ", states.size(), " states were given, there are ",
          state_arrays_.size());
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].size() == 1 && contexts_.size() > 1) {  // merged: cut it again
      for (size_t d = 0; d < contexts_.size(); ++d)
        part_of(states[i][0], 0, split_.slices[d]).copyto(state_arrays_[i][d]);
      continue;
    }
    require(states[i].size() == contexts_.size(), "[set_states] '", state_names_[i], "' has ", states[i].size(),
            " arrays for ", contexts_.size(), " devices");
    for (size_t d = 0; d < contexts_.size(); ++d) states[i][d].copyto(state_arrays_[i][d]);
  }
}

void DataParallelExecutorGroup::set_states(double value) {
  const InUse use = in_use("set_states");
  for (const auto& row : state_arrays_)
    for (const NDArray& array : row) array.fill(value);
}

std::vector<std::pair<std::string, Shape>> DataParallelExecutorGroup::get_output_shapes() const {
  std::vector<std::pair<std::string, Shape>> shapes;
  for (size_t i = 0; i < output_names_.size(); ++i) {
    Shape shape = execs_[0]->outputs()[i].shape();
    const int axis = output_layouts_[i];
    if (axis >= 0 && axis < shape.rank() && contexts_.size() > 1) {
      shape[axis] = 0;
      for (const ExecutorPtr& executor : execs_) shape[axis] += executor->outputs()[i].shape()[axis];
    }
    shapes.emplace_back(output_names_[i], shape);
  }
  return shapes;
}

std::string DataParallelExecutorGroup::label_name(size_t index) const {
  return index < split_.label_shapes.size() ? split_.label_shapes[index].name : join("label", index);
}

int64_t DataParallelExecutorGroup::counted_samples(size_t device, int64_t padding) const {
  const BatchSlice slice = split_.slices[device];
  return std::clamp<int64_t>(split_.batch_size - padding - slice.begin, 0, slice.end - slice.begin);
}

NDArray DataParallelExecutorGroup::label_on_device(size_t device, size_t index, const NDArray& given) const {
  if (index >= label_arrays_.size() || label_arrays_[index].empty()) return {};
  const Sliced& own = label_arrays_[index][device];
  return loaded_labels_[index][device].is_in(own.array, given, own.slice) ? own.array : NDArray();
}

NamedList DataParallelExecutorGroup::counted_labels(size_t device, const std::vector<NDArray>& labels, bool pre_sliced,
                                                    int64_t counted) const {
  NamedList named;
  const int64_t begin = pre_sliced ? 0 : split_.slices[device].begin;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int axis = i < split_.label_layouts.size() ? split_.label_layouts[i] : 0;
    named.emplace_back(label_name(i), part_of(labels[i], axis, {begin, begin + counted}));
  }
  return named;
}

bool DataParallelExecutorGroup::is_by_sample(size_t device, size_t output) const {
  const NDArray& array = execs_[device]->outputs()[output];
  const BatchSlice slice = split_.slices[device];
  const int axis = output_layouts_[output];
  return axis >= 0 && axis < array.rank() && array.shape()[axis] == slice.end - slice.begin;
}

NamedList DataParallelExecutorGroup::counted_outputs(size_t device, int64_t counted) const {
  NamedList named;
  for (size_t i = 0; i < output_names_.size(); ++i) {
    const NDArray& output = execs_[device]->outputs()[i];
    named.emplace_back(output_names_[i],
                       is_by_sample(device, i) ? part_of(output, output_layouts_[i], {0, counted}) : output);
  }
  return named;
}

void DataParallelExecutorGroup::update_metric(EvalMetric& metric, const std::vector<NDArray>& labels, bool pre_sliced,
                                              int64_t padding) const {
  const InUse use = in_use("update_metric");
  require(labels.size() == split_.label_shapes.size() || split_.label_shapes.empty(), "[update_metric] ", labels.size(),
          " labels were given, ", split_.label_shapes.size(), " are bound");
  for (size_t device = 0; device < execs_.size(); ++device) {
    const int64_t counted = counted_samples(device, padding);
    if (counted == 0) continue;
    const NamedList given = counted_labels(device, labels, pre_sliced, counted);
    NamedList on_device = given;
    for (size_t i = 0; i < labels.size() && !pre_sliced; ++i)
      if (const NDArray own = label_on_device(device, i, labels[i]))
        on_device[i].second = part_of(own, split_.label_layouts[i], {0, counted});
    update_on_device(metric, given, on_device, counted_outputs(device, counted));
  }
}

std::optional<DataParallelExecutorGroup::MetricArrays> DataParallelExecutorGroup::metric_arrays_on_device(
    const std::vector<NDArray>& labels, int64_t padding) const {
  const InUse use = in_use("metric_arrays_on_device");
  const int64_t counted = counted_samples(0, padding);
  if (execs_.size() > 1 || counted == 0 || labels.size() != split_.label_shapes.size()) return std::nullopt;
  const auto is_view = [&](const NDArray& array, int axis) { return axis <= 0 || is_whole(array, axis, {0, counted}); };
  MetricArrays arrays;
  for (size_t i = 0; i < labels.size(); ++i) {
    const NDArray own = label_on_device(0, i, labels[i]);
    if (!own || !is_view(own, split_.label_layouts[i])) return std::nullopt;
    arrays.labels.emplace_back(label_name(i), part_of(own, split_.label_layouts[i], {0, counted}));
  }
  for (size_t i = 0; i < output_names_.size(); ++i)
    if (is_by_sample(0, i) && !is_view(execs_[0]->outputs()[i], output_layouts_[i])) return std::nullopt;
  arrays.outputs = counted_outputs(0, counted);
  return arrays;
}

void DataParallelExecutorGroup::update_metric(EvalMetric& metric,
                                              const std::vector<std::vector<NDArray>>& labels_per_device) const {
  const InUse use = in_use("update_metric");
  require(labels_per_device.size() == execs_.size(), "[update_metric] labels of ", labels_per_device.size(),
          " devices were given, there are ", execs_.size());
  for (size_t device = 0; device < execs_.size(); ++device) {
    NamedList named_labels, named_outputs;
    for (size_t i = 0; i < labels_per_device[device].size(); ++i)
      named_labels.emplace_back(label_name(i), labels_per_device[device][i]);
    for (size_t i = 0; i < output_names_.size(); ++i)
      named_outputs.emplace_back(output_names_[i], execs_[device]->outputs()[i]);
    metric.update_dict_later(named_labels, named_outputs);
  }
}

void DataParallelExecutorGroup::install_monitor(Monitor& monitor) { install(monitor.installer()); }

void DataParallelExecutorGroup::install(const std::function<void(Executor&)>& installer) {
  const InUse use = in_use("install_monitor");
  monitors_.push_back(installer);
  for (const ExecutorPtr& executor : execs_) installer(*executor);
}

void DataParallelExecutorGroup::release_derived() {
  const InUse use = in_use("release_derived");
  for (const BoundShapes& bound : bound_)
    for (const ExecutorPtr& executor : bound.execs) executor->release_derived();
}

size_t DataParallelExecutorGroup::total_exec_bytes() const {
  size_t sum = 0;
  for (const ExecutorPtr& executor : execs_) sum += executor->memory().arena;
  return sum;
}

}  // namespace symbind
