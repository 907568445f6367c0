#include "symbind/exec/invoke.h"

#include <array>
#include <unordered_map>

#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

// Shapes and types of the outputs from those of the inputs.
std::vector<Tensor> infer_outputs(const OpDef& op, const void* params, std::vector<Tensor>& inputs) {
  const Names input_names = op.all_inputs(params), output_names = op.outputs(params);
  require(inputs.size() == input_names.size(), "[", op.name, "] takes ", input_names.size(), " arrays (",
          comma_separated(input_names), "), not ", inputs.size());
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
    require(shapes[i].known(), where, " the shape of its output cannot be told from its inputs");
    if (types[i] == DType::none) types[i] = DType::float32;
    outputs.push_back({shapes[i], types[i], Layout::plain});
  }
  return outputs;
}

const Implementation& choose(const NodeView& node) {
  for (const Implementation& implementation : Target::get(node.context).implementations(node.op))
    if (!implementation.refuse || implementation.refuse(node).empty()) return implementation;
  fail(node.where(), " cannot run on ", node.context);
}

// Kernels that take long to build are kept, per thread, by everything they depend on.
std::shared_ptr<Kernel> kernel_for(const NodeView& node) {
  const Implementation& implementation = choose(node);
  if (!implementation.worth_keeping || node.random_slot >= 0) return implementation.build(node);
  std::ostringstream key;
  key << &implementation << node.context << node.is_train;
  for (const ParamField& field : node.op.fields) key << '|' << field.print(node.params);
  for (const auto& tensors : {node.inputs, node.outputs})
    for (const Tensor& tensor : tensors) key << '|' << tensor.shape << static_cast<int>(tensor.dtype);
  constexpr size_t most_kept = 512;
  thread_local std::unordered_map<std::string, std::shared_ptr<Kernel>> kept;
  if (kept.size() >= most_kept) kept.clear();
  auto& slot = kept[key.str()];
  if (!slot) slot = implementation.build(node);
  return slot;
}

bool overlap(const NDArray& a, const NDArray& b) {
  if (a.storage_ptr() != b.storage_ptr()) return false;
  return a.byte_offset() < b.byte_offset() + b.bytes() && b.byte_offset() < a.byte_offset() + a.bytes();
}

// May the kernel write its output where `out` is, while reading the inputs where they are?
bool may_write(const Kernel& kernel, Context context, std::span<const NDArray> inputs, const NDArray& out, int index) {
  if (out.context() != context) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!overlap(inputs[i], out)) continue;
    bool allowed = false;
    for (const auto& [in, written] : kernel.in_place)
      allowed |= in == static_cast<int>(i) && written == index && inputs[i].same_memory(out);
    if (!allowed) return false;
  }
  return true;
}

}  // namespace

std::vector<NDArray> invoke(const OpDef& op, std::span<const NDArray> inputs, const void* params,
                            const InvokeOptions& options) {
  const Context context =
      inputs.empty() ? (options.out.empty() ? options.context : options.out[0].context()) : inputs[0].context();
  std::vector<Tensor> in;
  for (const NDArray& input : inputs) {
    require(bool(input), "[", op.name, "] was given an empty array");
    require(input.context() == context, "[", op.name, "] its arrays are on ", context, " and ", input.context());
    in.push_back({input.shape(), input.dtype(), Layout::plain});
  }
  const std::vector<Tensor> out = infer_outputs(op, params, in);
  const auto visible = static_cast<size_t>(op.visible_outputs(params));
  require(options.out.empty() || options.out.size() == visible, "[", op.name, "] has ", visible, " outputs, not ",
          options.out.size());
  for (size_t i = 0; i < options.out.size(); ++i)
    require(options.out[i].shape() == out[i].shape && options.out[i].dtype() == out[i].dtype, "[", op.name,
            "] its result is ", out[i].shape, " ", out[i].dtype, ", but out is ", options.out[i].shape(), " ",
            options.out[i].dtype());

  const bool random = op.is_random(params);
  const NodeView node{op, params, "", in, out, options.is_train, random ? 0 : -1, context};
  const std::shared_ptr<Kernel> kernel = kernel_for(node);
  Device& device = Device::get(context);
  Target& target = Target::get(context);

  std::vector<NDArray> results;
  std::vector<void*> addresses;
  std::vector<NDArray> arrays(inputs.begin(), inputs.end());
  const std::vector<bool> updated = op.updated_inputs(params, arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i)
    addresses.push_back(updated[i] ? arrays[i].mutable_data() : const_cast<void*>(arrays[i].data()));
  for (size_t i = 0; i < out.size(); ++i) {
    const bool given =
        i < options.out.size() && may_write(*kernel, context, inputs, options.out[i], static_cast<int>(i));
    results.push_back(given ? options.out[i] : NDArray(out[i].shape, context, out[i].dtype));
    addresses.push_back(results.back().mutable_data());
  }
  Args args{addresses.data(), addresses.data() + inputs.size()};
  std::unique_ptr<Storage> scratch, cursor;
  if (kernel->scratch_bytes > 0) {
    scratch = std::make_unique<Storage>(device, kernel->scratch_bytes);
    args.scratch = scratch->mutable_data();
  }
  if (random) {
    cursor = std::make_unique<Storage>(device, sizeof(RandomCursor));
    target.start_random(device, static_cast<RandomCursor*>(cursor->mutable_data()), 1);
    args.random = static_cast<const RandomCursor*>(cursor->data());
  }
  args.stream = target.stream(device);
  const uint32_t state = target.enter();
  try {
    kernel->run(args);
  } catch (...) {
    target.leave(state);
    throw;
  }
  target.leave(state);

  results.resize(visible);
  for (size_t i = 0; i < options.out.size(); ++i) {
    if (results[i].same_memory(options.out[i])) continue;
    NDArray wanted = options.out[i];
    results[i].copyto(wanted);
    results[i] = wanted;
  }
  return results;
}

std::vector<NDArray> invoke(const std::string& op_name, const std::vector<NDArray>& inputs,
                            const Attributes& attributes, const InvokeOptions& options) {
  const OpDef& op = OpRegistry::get().find(op_name);
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

NDArray invoke_struct(const OpDef& op, std::initializer_list<NDArray> inputs, const void* params) {
  return invoke_params(op, std::vector<NDArray>(inputs), params, {})[0];
}

}  // namespace symbind
