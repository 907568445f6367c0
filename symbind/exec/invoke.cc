#include "symbind/exec/invoke.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <unordered_map>

#include <pthread.h>

#include "symbind/core/error.h"
#include "symbind/exec/overlap.h"
#include "symbind/exec/profiling.h"
#include "symbind/exec/ready_op.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

// Shapes and types of the outputs from those of the inputs.
std::vector<Tensor> infer_outputs(const OpDef& op, const void* params, std::vector<Tensor>& inputs) {
  op.check_count(params, inputs.size(), "");
  const size_t wanted = op.all_input_count(params);
  if (inputs.size() != wanted)
    fail("[", op.name, "] takes ", wanted, " arrays",
         wanted > 16 ? "" : " (" + comma_separated(op.all_inputs(params)) + ")", ", not ", inputs.size());
  const Names input_names = op.all_inputs(params), output_names = op.outputs(params);
  std::vector<Shape> shapes;
  std::vector<DType> types;
  for (const Tensor& input : inputs) {
    shapes.push_back(input.shape);
    types.push_back(input.dtype);
  }
  shapes.resize(input_names.size() + output_names.size());
  types.resize(shapes.size(), DType::none);
  const size_t count = inputs.size();
  const std::string where = join("[", op.name, "]");
  Shapes shape_inference(where, input_names, std::span(shapes).first(count), output_names,
                         std::span(shapes).subspan(count));
  op.infer_shape(params, shape_inference);
  Types type_inference(where, input_names, std::span(types).first(count), output_names,
                       std::span(types).subspan(count));
  op.infer_type(params, type_inference);
  std::vector<Tensor> outputs;
  for (size_t i = count; i < shapes.size(); ++i) {
    require(shapes[i].known(), where, " the shape of its output cannot be inferred from its inputs");
    if (types[i] == DType::none) types[i] = DType::float32;
    outputs.push_back({shapes[i], types[i], Layout::plain});
  }
  return outputs;
}

// A forked child lacks the threads that its parent's kernels were built for: it builds its own.
std::atomic<int> forks{0};
[[maybe_unused]] const int fork_watch = pthread_atfork(nullptr, nullptr, [] { ++forks; });

// Kernels that are slow to build are cached, per thread; the key is everything they depend on.
std::shared_ptr<Kernel> kernel_for(const NodeView& node) {
  const Implementation& implementation = choose(node);
  if (!implementation.cache_when_invoked || node.random_slot >= 0 || node.op.keeps_state)
    return implementation.build(node);
  TextStream key;
  key << &implementation << node.context << node.is_train << forks;
  for (const ParamField& field : node.op.fields) key << '|' << field.print(node.params);
  for (const auto& tensors : {node.inputs, node.outputs})
    for (const Tensor& tensor : tensors) key << '|' << tensor.shape << static_cast<int>(tensor.dtype);
  constexpr size_t most_cached = 512;
  thread_local std::unordered_map<std::string, std::shared_ptr<Kernel>> cache;
  if (cache.size() >= most_cached) cache.clear();
  auto& slot = cache[key.str()];
  if (!slot) slot = implementation.build(node);
  return slot;
}

// May the kernel write to `out` while it reads this input, given their addresses?
bool may_write_beside(const Kernel& kernel, const NDArray& input, size_t i, const NDArray& out, int index) {
  if (!overlap(input, out)) return true;
  bool allowed = false;
  for (const auto& [in, written] : kernel.in_place)
    allowed |= in == static_cast<int>(i) && written == index && input.same_memory(out);
  return allowed;
}

// May the kernel write to `out` while it reads the inputs?
bool may_write(const Kernel& kernel, Context context, std::span<const NDArray> inputs, const NDArray& out, int index) {
  if (out.context() != context) return false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!may_write_beside(kernel, inputs[i], i, out, index)) return false;
  return true;
}

// The same for many outputs: each is compared only with the inputs in its storage.
constexpr size_t few_outputs = 4;  // for these a comparison with every input is faster
class InputsByStorage {
 public:
  explicit InputsByStorage(std::span<const NDArray> inputs) : inputs_(inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) indices_.emplace(inputs[i].storage_ptr().get(), i);
  }
  bool may_write(const Kernel& kernel, Context context, const NDArray& out, int index) const {
    if (out.context() != context) return false;
    const auto [first, last] = indices_.equal_range(out.storage_ptr().get());
    return std::all_of(first, last, [&](const auto& input) {
      return may_write_beside(kernel, inputs_[input.second], input.second, out, index);
    });
  }

 private:
  std::span<const NDArray> inputs_;
  std::unordered_multimap<const Storage*, size_t> indices_;
};

}  // namespace

ReadyOp::ReadyOp(const OpDef& op, std::span<const NDArray> inputs, std::shared_ptr<const void> params,
                 const InvokeOptions& options)
    : op_(&op), params_(std::move(params)) {
  for (const auto& arrays : {inputs, std::span<const NDArray>(options.out)})
    for (const NDArray& array : arrays) require(bool(array), "[", op.name, "] was given an empty array");
  context_ = inputs.empty() ? (options.out.empty() ? options.context : options.out[0].context()) : inputs[0].context();
  std::vector<Tensor> in;
  for (const NDArray& input : inputs) {
    require(input.context() == context_, "[", op.name, "] its arrays are on ", context_, " and ", input.context());
    in.push_back({input.shape(), input.dtype(), Layout::plain});
  }
  outputs_ = infer_outputs(op, params_.get(), in);
  visible_ = static_cast<size_t>(op.visible_outputs(params_.get()));
  updated_ = op.updated_inputs(params_.get(), inputs.size());
  random_ = op.is_random(params_.get(), options.is_train);
  kernel_ = kernel_for({op, params_.get(), "", in, outputs_, options.is_train, random_ ? 0 : -1, context_});
  target_ = &Target::get(context_);
  simple_ = !random_ && kernel_->scratch_bytes + kernel_->cached_bytes == 0 && outputs_.size() == 1 &&
            inputs.size() <= 4 && std::find(updated_.begin(), updated_.end(), true) == updated_.end();
}

namespace {

// Runs a kernel between the target's enter and leave.
void run_inside(Target& target, Kernel& kernel, const Args& args) {
  const uint32_t state = target.enter();
  try {
    if (kernel.cached_bytes > 0) kernel.prepare(args);
    kernel.run(args);
  } catch (...) {
    target.leave(state);
    throw;
  }
  target.leave(state);
}

}  // namespace

void ReadyOp::run_kernel(const Args& args) const {
  const auto run = [&] { run_inside(*target_, *kernel_, args); };
  if (!profiler::records_operators()) [[likely]]
    return run();
  profiler::timed(context_, run, [&] { return profiler::Event{.name = op_->name, .category = "operator"}; });
}

NDArray ReadyOp::new_result(Device& device, const Tensor& tensor) const {
  try {
    return {std::make_shared<Storage>(device, tensor.bytes()), 0, tensor.shape, tensor.dtype};
  } catch (const Error& error) {
    fail("[", op_->name, "] a result of shape ", tensor.shape, ": ", error.what());
  }
}

NDArray ReadyOp::run_simple(std::span<const NDArray> inputs, const NDArray* into) const {
  const Tensor& tensor = outputs_[0];
  if (into && (into->shape() != tensor.shape || into->dtype() != tensor.dtype ||
               !may_write(*kernel_, context_, inputs, *into, 0)))
    return run(inputs, {*into})[0];
  Device& device = inputs.empty() ? Device::get(context_) : inputs[0].storage().device();
  NDArray result = into ? *into : new_result(device, tensor);
  void* addresses[5];
  for (size_t i = 0; i < inputs.size(); ++i) addresses[i] = const_cast<void*>(inputs[i].data());
  addresses[inputs.size()] = result.mutable_data();
  Args args{addresses, addresses + inputs.size()};
  args.stream = target_->stream(device);
  run_kernel(args);
  return result;
}

std::vector<NDArray> ReadyOp::run(std::span<const NDArray> inputs, const std::vector<NDArray>& out) const {
  require(out.empty() || out.size() == visible_, "[", op_->name, "] has ", visible_, " outputs, not ", out.size());
  for (size_t i = 0; i < out.size(); ++i)
    require(out[i].shape() == outputs_[i].shape && out[i].dtype() == outputs_[i].dtype, "[", op_->name,
            "] its result is ", outputs_[i].shape, " ", outputs_[i].dtype, ", but out is ", out[i].shape(), " ",
            out[i].dtype());

  Device& device = Device::get(context_);
  std::vector<NDArray> results;
  std::vector<void*> addresses;
  for (size_t i = 0; i < inputs.size(); ++i)
    addresses.push_back(updated_[i] ? inputs[i].mutable_data() : const_cast<void*>(inputs[i].data()));
  std::optional<InputsByStorage> by_storage;
  if (out.size() > few_outputs) by_storage.emplace(inputs);
  const auto is_written_to = [&](size_t i) {
    if (by_storage) return by_storage->may_write(*kernel_, context_, out[i], static_cast<int>(i));
    return may_write(*kernel_, context_, inputs, out[i], static_cast<int>(i));
  };
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const bool given = i < out.size() && is_written_to(i);
    results.push_back(given ? out[i] : new_result(device, outputs_[i]));
    addresses.push_back(results.back().mutable_data());
  }
  Args args{addresses.data(), addresses.data() + inputs.size()};
  std::unique_ptr<Storage> scratch, cached, cursor;
  if (kernel_->scratch_bytes > 0) {
    scratch = std::make_unique<Storage>(device, kernel_->scratch_bytes);
    args.scratch = scratch->mutable_data();
  }
  if (kernel_->cached_bytes > 0) {
    cached = std::make_unique<Storage>(device, kernel_->cached_bytes);
    args.cached = cached->mutable_data();
  }
  if (random_) {
    cursor = std::make_unique<Storage>(device, sizeof(RandomCursor));
    target_->start_random(device, static_cast<RandomCursor*>(cursor->mutable_data()), 1);
    args.random = static_cast<const RandomCursor*>(cursor->data());
  }
  args.stream = target_->stream(device);
  run_kernel(args);

  results.resize(visible_);
  for (size_t i = 0; i < out.size(); ++i) {
    if (results[i].same_memory(out[i])) continue;
    results[i].copyto(out[i]);
    results[i] = out[i];
  }
  return results;
}

std::vector<NDArray> invoke(const OpDef& op, std::span<const NDArray> inputs, const void* params,
                            const InvokeOptions& options) {
  // Does not own the parameters: they outlive this call.
  const std::shared_ptr<const void> borrowed(std::shared_ptr<const void>(), params);
  return ReadyOp(op, inputs, borrowed, options).run(inputs, options.out);
}

std::vector<NDArray> invoke(const std::string& op_name, const std::vector<NDArray>& inputs,
                            const Attributes& attributes, const InvokeOptions& options) {
  const OpDef& op = OpRegistry::get().find_public(op_name);
  Attributes all = attributes;
  if (!op.count_field.empty() && !all.count(op.count_field)) all[op.count_field] = std::to_string(inputs.size());
  return invoke(op, inputs, op.parse_params(all, "").get(), options);
}

std::vector<NDArray> invoke_params(const OpDef& op, const std::vector<NDArray>& inputs, const void* params,
                                   const InvokeOptions& options) {
  auto copy = op.copy_params(params);
  if (op.set_count) op.set_count(copy.get(), static_cast<int64_t>(inputs.size()));
  return invoke(op, inputs, op.checked_params(copy.get(), "").get(), options);
}

NDArray invoke_struct(const OpDef& op, const std::vector<NDArray>& inputs, const void* params) {
  return invoke_params(op, inputs, params, {})[0];
}

}  // namespace symbind
