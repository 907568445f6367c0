// Recurrent layers by cuDNN. Layers with dropout between them run one by one, with our own masks, so that a seed gives
// the same results on every device. Backward needs the data that cuDNN stores in training (its "reserve"). If that fits
// into the operator's hidden output it is stored there; otherwise, and with dropout, backward recomputes the layers.
// cuDNN takes the lengths of sequences on the host: a step that has them fetches them in every run, and is not
// captured. LSTMs that cuDNN does not compute as the CPU does are in lstm.cu.
#include "symbind/ops/rnn.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "symbind/backend/convert.h"
#include "symbind/backend/cuda/capture.h"
#include "symbind/backend/cuda/lstm.h"
#include "symbind/backend/cuda/rnn_masks.cuh"
#include "symbind/backend/cuda/rnn_plan.h"
#include "symbind/backend/cuda/scratch_layout.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// ---- Lengths --------------------------------------------------------------------------------------------------------

// The number of valid steps of each sequence, where the operator takes them.
class SequenceLengths {
 public:
  SequenceLengths(const NodeView& node, const RNN& params, size_t input, const RnnSize& size)
      : device_(&CudaDevice::of(node.context)), where_(node.where()), size_(size), input_(input) {
    if (params.use_sequence_length) type_ = node.inputs[input].dtype;
  }
  bool given() const { return type_ != DType::none; }

  // On the host; empty: all steps of all are valid. Waits for the device. Fails on a length that does not fit.
  std::vector<int> fetch(const Args& args) const {
    if (!given()) return {};
    const size_t bytes = static_cast<size_t>(size_.batch) * symbind::size_of(type_);
    const PoolBlock memory(device_->pinned(), bytes);
    require(memory.data() != nullptr, where_, " no pinned host memory: ", bytes, " bytes were asked for");
    device_->check(cudaMemcpyAsync(memory.data(), args.inputs[input_], bytes, cudaMemcpyDeviceToHost, stream_of(args)),
                   where_);
    device_->check(cudaStreamSynchronize(stream_of(args)), where_);
    std::vector<int> lengths;
    visit_dtype(type_, [&]<class T>(std::type_identity<T>) {
      for (int64_t i = 0; i < size_.batch; ++i) {
        const auto length = convert<int64_t>(reinterpret_cast<const T*>(memory.data())[i]);
        require(length >= 0 && length <= size_.steps, where_, " sequence_length ", length, " of sequence ", i,
                " is not between 0 and ", size_.steps);
        lengths.push_back(static_cast<int>(length));
      }
    });
    return lengths;
  }

  // The state after no steps is the one before, and so is its gradient; cuDNN returns 0 there. Rows are (layers and
  // directions, batch, width); null means zeros.
  void pass_states(const std::vector<int>& lengths, const void* from, void* to, int64_t rows, int64_t width,
                   size_t element, cudaStream_t stream) const {
    const size_t row_bytes = static_cast<size_t>(width) * element, step = static_cast<size_t>(size_.batch) * row_bytes;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] > 0 || !to) continue;
      auto* const target = static_cast<std::byte*>(to) + i * row_bytes;
      if (from)
        cudaMemcpy2DAsync(target, step, static_cast<const std::byte*>(from) + i * row_bytes, step, row_bytes,
                          static_cast<size_t>(rows), cudaMemcpyDeviceToDevice, stream);
      else
        cudaMemset2DAsync(target, step, 0, row_bytes, static_cast<size_t>(rows), stream);
    }
  }

  // Rows (steps, batch, width) after the ends become 0.
  void clear_padding(const std::vector<int>& lengths, void* rows, size_t row_bytes, cudaStream_t stream) const {
    const size_t step_bytes = static_cast<size_t>(size_.batch) * row_bytes;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto length = static_cast<size_t>(lengths[i]), steps = static_cast<size_t>(size_.steps);
      if (length < steps)
        cudaMemset2DAsync(static_cast<std::byte*>(rows) + length * step_bytes + i * row_bytes, step_bytes, 0, row_bytes,
                          steps - length, stream);
    }
  }

 private:
  CudaDevice* device_;
  std::string where_;
  RnnSize size_;
  size_t input_;
  DType type_ = DType::none;
};

// ---- Layers ---------------------------------------------------------------------------------------------------------

// cuDNN aligns its data by address, not by the offset in its memory: a copy can be read only if it has the alignment of
// the original.
constexpr size_t alignment = 256;

std::byte* align(void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  return reinterpret_cast<std::byte*>((at + alignment - 1) / alignment * alignment);
}

// Null stays null: an array that is not there.
std::byte* at(void* base, size_t offset) { return base ? static_cast<std::byte*>(base) + offset : nullptr; }
const std::byte* at(const void* base, size_t offset) {
  return base ? static_cast<const std::byte*>(base) + offset : nullptr;
}

// Layers that run as one.
struct Segment {
  int64_t first;
  RnnSize size;
  std::shared_ptr<RnnPlan> plan;
};

// All of a node, whose parameters are `params`: one segment, or with masks one for each layer. None: `reason` says why.
struct Layers {
  RnnSize size{};
  size_t element = 0;
  bool drops = false;
  std::vector<Segment> segments;

  Layers(const NodeView& node, const RNN& params, const Tensor& data, std::string* reason)
      : size(size_of(params, data.shape)),
        element(symbind::size_of(data.dtype)),
        drops(symbind::drops(params, node.is_train)) {
    const int64_t count = drops ? 1 : size.layers;
    for (int64_t first = 0; first < size.layers; first += count) {
      Segment segment{first, size, nullptr};
      segment.size.layers = count;
      segment.size.input = size.input_of(first);
      const RnnProblem problem{params.mode, segment.size, data.dtype, params.use_sequence_length};
      segment.plan = find_rnn(CudaDevice::of(node.context), problem, reason);
      if (!segment.plan) return;
      segments.push_back(std::move(segment));
    }
  }

  bool is_whole() const { return segments.size() == 1; }
  // Is cuDNN's reserve stored in the hidden output?
  bool keeps_reserve(const NodeView& node, const Tensor& reserve) const {
    return node.is_train && is_whole() && segments[0].plan->reserve_bytes() + alignment <= reserve.bytes();
  }
  size_t sequence_bytes(int64_t width) const { return static_cast<size_t>(size.rows() * width) * element; }
  size_t output_bytes() const { return sequence_bytes(size.output_width()); }
  size_t state_at(const Segment& segment, int64_t width) const {
    return static_cast<size_t>(segment.first * size.directions * size.batch * width) * element;
  }
  size_t workspace_bytes() const {
    size_t most = 0;
    for (const Segment& segment : segments) most = std::max(most, segment.plan->workspace_bytes());
    return most;
  }
  size_t parameter_bytes(const Segment& segment) const {
    return static_cast<size_t>(segment.size.parameter_count()) * element;
  }
  size_t most_parameter_bytes() const {
    size_t most = 0;
    for (const Segment& segment : segments) most = std::max(most, parameter_bytes(segment));
    return most;
  }
  // Masks are in the hidden output at the same offsets as on the CPU.
  size_t mask_at(int64_t layer, const Tensor& reserve) const {
    return static_cast<size_t>(size.mask(layer)) * symbind::size_of(reserve.dtype);
  }

  // The parameters of a segment, which are two pieces of the whole vector: weights and biases.
  struct Pieces {
    size_t weights_at, weights, biases_at, biases;
  };
  Pieces pieces(const Segment& segment) const {
    const RnnSize::Parameters from = size.parameters(segment.first, 0);
    const auto biases = static_cast<size_t>(segment.size.layers * size.directions * 2 * size.gate_width()) * element;
    return {static_cast<size_t>(from.i2h_weight) * element, parameter_bytes(segment) - biases,
            static_cast<size_t>(from.i2h_bias) * element, biases};
  }
  const void* gather(const Segment& segment, const void* parameters, void* scratch, cudaStream_t stream) const {
    if (is_whole()) return parameters;
    const Pieces from = pieces(segment);
    cudaMemcpyAsync(scratch, at(parameters, from.weights_at), from.weights, cudaMemcpyDeviceToDevice, stream);
    cudaMemcpyAsync(at(scratch, from.weights), at(parameters, from.biases_at), from.biases, cudaMemcpyDeviceToDevice,
                    stream);
    return scratch;
  }
  void scatter(const Segment& segment, const void* scratch, void* parameters, cudaStream_t stream) const {
    const Pieces to = pieces(segment);
    cudaMemcpyAsync(at(parameters, to.weights_at), scratch, to.weights, cudaMemcpyDeviceToDevice, stream);
    cudaMemcpyAsync(at(parameters, to.biases_at), at(scratch, to.weights), to.biases, cudaMemcpyDeviceToDevice, stream);
  }
};

template <class P>
std::string refuse(const NodeView& node) {
  const P& params = node.as<P>();
  for (const auto& tensors : {node.inputs, node.outputs})
    for (const Tensor& tensor : tensors) {
      if (tensor.layout != Layout::plain) return "needs plain layouts";
      if (tensor.shape.size() == 0) return "an array is empty";
    }
  if (params.lstm_state_clip_min) return "clipped cells";
  std::string reason;
  const Layers layers(node, params, node.inputs[arguments_of(params).data], &reason);
  return reason;
}

// ---- Forward --------------------------------------------------------------------------------------------------------

template <class T>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const RNN params = node.as<RNN>();
  const RnnArguments args_at = arguments_of(params);
  std::string reason;
  const Layers layers(node, params, node.inputs[args_at.data], &reason);
  require(reason.empty(), node.where(), " ", reason);
  const Tensor reserve = node.outputs[args_at.reserve];
  ScratchLayout memory;
  const size_t workspace = memory.add_bytes(layers.workspace_bytes());
  const size_t parameters = memory.add_bytes(layers.is_whole() ? 0 : layers.most_parameter_bytes());
  const size_t between[] = {memory.add_bytes(layers.is_whole() ? 0 : layers.output_bytes()),
                            memory.add_bytes(layers.is_whole() ? 0 : layers.output_bytes())};
  const bool keeps = layers.keeps_reserve(node, reserve);
  const auto slot = static_cast<uint64_t>(std::max(node.random_slot, 0));
  const SequenceLengths lengths_of(node, params, args_at.lengths, layers.size);
  const auto run = [=](const Args& args) {
    const cudaStream_t stream = stream_of(args);
    run_alone();  // cuDNN's blocks may wait for each other
    const std::vector<int> lengths = lengths_of.fetch(args);
    void* const scratch = align(args.scratch);
    const RnnSize& size = layers.size;
    const void* data = args.inputs[args_at.data];
    for (const Segment& segment : layers.segments) {
      const bool is_last = &segment == &layers.segments.back();
      void* const output = is_last ? args.outputs[0] : at(scratch, between[segment.first % 2]);
      RnnForwardArrays arrays{};
      arrays.lengths = lengths.empty() ? nullptr : lengths.data();
      arrays.data = data;
      arrays.parameters = layers.gather(segment, args.inputs[args_at.parameters], at(scratch, parameters), stream);
      arrays.state = at(args.inputs[args_at.state], layers.state_at(segment, size.output));
      arrays.output = output;
      arrays.last_state = at(args.outputs[1], layers.state_at(segment, size.output));
      if (size.is_lstm) {
        arrays.cell = at(args.inputs[args_at.cell], layers.state_at(segment, size.hidden));
        arrays.last_cell = at(args.outputs[2], layers.state_at(segment, size.hidden));
      }
      arrays.workspace = at(scratch, workspace);
      arrays.reserve = keeps ? align(args.outputs[args_at.reserve]) : nullptr;
      segment.plan->forward(stream, arrays);
      const int64_t states = segment.size.layers * segment.size.directions;
      lengths_of.pass_states(lengths, arrays.state, arrays.last_state, states, size.output, layers.element, stream);
      lengths_of.pass_states(lengths, arrays.cell, arrays.last_cell, states, size.hidden, layers.element, stream);
      if (!is_last) {  // in place: cuDNN no longer needs it
        const int64_t layer = segment.first + 1, count = size.rows() * size.output_width();
        T* const mask = reinterpret_cast<T*>(at(args.outputs[args_at.reserve], layers.mask_at(layer, reserve)));
        queue_draw_mask(stream, args.random, slot, params.p, layer, mask, count);
        queue_apply_mask<T>(stream, static_cast<const T*>(output), mask, static_cast<T*>(output), count);
      }
      data = output;
    }
  };
  return make_step(node, run, {.scratch_bytes = memory.total() + alignment, .capturable = !params.use_sequence_length});
}

// ---- Backward -------------------------------------------------------------------------------------------------------

template <class T>
class RnnBackward {
 public:
  explicit RnnBackward(const NodeView& node)
      : params_(node.as<RNNGrad>()),
        at_(arguments_of(params_)),
        layers_(node, params_, node.inputs[at_.data], &reason_),
        lengths_(node, params_, at_.lengths, layers_.size) {
    require(reason_.empty(), node.where(), " ", reason_);
    reserve_ = node.inputs[at_.reserve];
    recomputes_ = !layers_.keeps_reserve(node, reserve_);
    ScratchLayout scratch;
    workspace_ = scratch.add_bytes(layers_.workspace_bytes());
    const bool whole = layers_.is_whole();
    for (const Segment& segment : layers_.segments) {
      Memory memory;
      memory.reserve = scratch.add_bytes(segment.plan->reserve_bytes());
      memory.parameters = scratch.add_bytes(whole ? 0 : layers_.parameter_bytes(segment));
      memory.output = scratch.add_bytes(recomputes_ ? layers_.output_bytes() : 0);
      memory.dropped = scratch.add_bytes(whole ? 0 : layers_.output_bytes());
      memory_.push_back(memory);
    }
    parameters_grad_ = scratch.add_bytes(whole ? 0 : layers_.most_parameter_bytes());
    for (size_t& grad : grads_) grad = scratch.add_bytes(layers_.output_bytes());
    data_grad_ = scratch.add_bytes(layers_.sequence_bytes(layers_.size.input));
    const size_t states = static_cast<size_t>(layers_.size.layers * layers_.size.directions * layers_.size.batch);
    state_grad_ = scratch.add_bytes(states * static_cast<size_t>(layers_.size.output) * layers_.element);
    cell_grad_ = scratch.add_bytes(states * static_cast<size_t>(layers_.size.hidden) * layers_.element);
    scratch_bytes_ = scratch.total() + alignment;
  }
  size_t scratch_bytes() const { return scratch_bytes_; }
  bool capturable() const { return !lengths_.given(); }

  void operator()(const Args& args) const {
    const cudaStream_t stream = stream_of(args);
    run_alone();
    const std::vector<int> lengths = lengths_.fetch(args);
    if (recomputes_)
      run_forward(args, lengths, stream);
    else
      cudaMemcpyAsync(at(scratch(args), memory_[0].reserve), align(args.inputs[at_.reserve]),
                      layers_.segments[0].plan->reserve_bytes(), cudaMemcpyDeviceToDevice, stream);
    const void* output_grad = params_.has_output_grad ? args.inputs[0] : nullptr;
    if (!output_grad) {
      cudaMemsetAsync(at(scratch(args), grads_[0]), 0, layers_.output_bytes(), stream);
      output_grad = at(scratch(args), grads_[0]);
    }
    for (size_t i = layers_.segments.size(); i-- > 0;) output_grad = run_segment(args, i, lengths, output_grad, stream);
  }

 private:
  struct Memory {  // of a segment, in scratch
    size_t reserve = 0, parameters = 0, output = 0, dropped = 0;
  };
  static void* scratch(const Args& args) { return align(args.scratch); }
  int64_t count() const { return layers_.size.rows() * layers_.size.output_width(); }
  const T* mask(const Args& args, const Segment& segment) const {  // between it and the one below
    return reinterpret_cast<const T*>(at(args.inputs[at_.reserve], layers_.mask_at(segment.first, reserve_)));
  }
  const void* data_of(const Args& args, size_t segment) const {
    return segment == 0 ? args.inputs[at_.data] : at(scratch(args), memory_[segment - 1].dropped);
  }
  const void* parameters_of(const Args& args, size_t segment) const {
    return layers_.is_whole() ? args.inputs[at_.parameters] : at(scratch(args), memory_[segment].parameters);
  }
  const void* state_of(const Args& args, const Segment& segment) const {
    return at(args.inputs[at_.state], layers_.state_at(segment, layers_.size.output));
  }
  const void* cell_of(const Args& args, const Segment& segment) const {
    return layers_.size.is_lstm ? at(args.inputs[at_.cell], layers_.state_at(segment, layers_.size.hidden)) : nullptr;
  }

  void run_forward(const Args& args, const std::vector<int>& lengths, cudaStream_t stream) const {
    for (size_t i = 0; i < layers_.segments.size(); ++i) {
      const Segment& segment = layers_.segments[i];
      layers_.gather(segment, args.inputs[at_.parameters], at(scratch(args), memory_[i].parameters), stream);
      RnnForwardArrays arrays{};
      arrays.lengths = lengths.empty() ? nullptr : lengths.data();
      arrays.data = data_of(args, i);
      arrays.parameters = parameters_of(args, i);
      arrays.state = state_of(args, segment);
      arrays.cell = cell_of(args, segment);
      arrays.output = at(scratch(args), memory_[i].output);
      arrays.workspace = at(scratch(args), workspace_);
      arrays.reserve = at(scratch(args), memory_[i].reserve);
      segment.plan->forward(stream, arrays);
      if (i + 1 < layers_.segments.size())
        queue_apply_mask<T>(stream, static_cast<const T*>(arrays.output), mask(args, layers_.segments[i + 1]),
                            reinterpret_cast<T*>(at(scratch(args), memory_[i].dropped)), count());
    }
  }

  // The address of a requested result, or of scratch.
  void* result(const Args& args, size_t output, size_t offset, size_t otherwise) const {
    return args.outputs[output] ? at(args.outputs[output], offset) : at(scratch(args), otherwise + offset);
  }

  // Returns the gradient of the output of the segment below.
  const void* run_segment(const Args& args, size_t i, const std::vector<int>& lengths, const void* output_grad,
                          cudaStream_t stream) const {
    const Segment& segment = layers_.segments[i];
    const RnnSize& size = layers_.size;
    const size_t state_at = layers_.state_at(segment, size.output), cell_at = layers_.state_at(segment, size.hidden);
    const size_t state_input = params_.has_output_grad ? 1 : 0, cell_input = state_input + params_.has_state_grad;
    RnnBackwardArrays arrays{};
    arrays.lengths = lengths.empty() ? nullptr : lengths.data();
    arrays.data = data_of(args, i);
    arrays.parameters = parameters_of(args, i);
    arrays.state = state_of(args, segment);
    arrays.cell = cell_of(args, segment);
    arrays.output = recomputes_ ? at(scratch(args), memory_[i].output) : args.inputs[at_.output];
    arrays.output_grad = output_grad;
    if (params_.has_state_grad) arrays.last_state_grad = at(args.inputs[state_input], state_at);
    if (params_.has_cell_grad) arrays.last_cell_grad = at(args.inputs[cell_input], cell_at);
    arrays.data_grad = i == 0 ? result(args, 0, 0, data_grad_) : at(scratch(args), grads_[(i + 1) % 2]);
    arrays.state_grad = result(args, 2, state_at, state_grad_);
    if (size.is_lstm) arrays.cell_grad = result(args, 3, cell_at, cell_grad_);
    if (args.outputs[1])
      arrays.parameters_grad = layers_.is_whole() ? args.outputs[1] : at(scratch(args), parameters_grad_);
    if (arrays.parameters_grad) cudaMemsetAsync(arrays.parameters_grad, 0, layers_.parameter_bytes(segment), stream);
    arrays.workspace = at(scratch(args), workspace_);
    arrays.reserve = at(scratch(args), memory_[i].reserve);
    segment.plan->backward(stream, arrays);
    const int64_t states = segment.size.layers * segment.size.directions;
    lengths_.pass_states(lengths, arrays.last_state_grad, arrays.state_grad, states, size.output, layers_.element,
                         stream);
    lengths_.pass_states(lengths, arrays.last_cell_grad, arrays.cell_grad, states, size.hidden, layers_.element,
                         stream);
    lengths_.clear_padding(lengths, arrays.data_grad, static_cast<size_t>(segment.size.input) * layers_.element,
                           stream);
    if (arrays.parameters_grad && !layers_.is_whole())
      layers_.scatter(segment, arrays.parameters_grad, args.outputs[1], stream);
    if (i > 0)
      queue_apply_mask<T>(stream, static_cast<const T*>(arrays.data_grad), mask(args, segment),
                          static_cast<T*>(arrays.data_grad), count());
    return arrays.data_grad;
  }

  RNNGrad params_;
  RnnArguments at_;
  std::string reason_;
  Layers layers_;
  SequenceLengths lengths_;
  Tensor reserve_;
  bool recomputes_ = false;
  std::vector<Memory> memory_;
  size_t workspace_ = 0, parameters_grad_ = 0, grads_[2] = {}, data_grad_ = 0, state_grad_ = 0, cell_grad_ = 0;
  size_t scratch_bytes_ = 0;
};

template <class T>
std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  RnnBackward<T> backward(node);
  const KernelTraits traits{.scratch_bytes = backward.scratch_bytes(), .capturable = backward.capturable()};
  return make_step(node, std::move(backward), traits);
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<P, RNN>)
      return build_forward<T>(node);
    else
      return build_backward<T>(node);
  });
}

// ---- No steps -------------------------------------------------------------------------------------------------------
// The last states are the first ones, and so are their gradients; those of the parameters are 0.

template <class P>
std::string refuse_steps(const NodeView& node) {
  const Shape& data = node.inputs[arguments_of(node.as<P>()).data].shape;  // (steps, batch, inputs)
  return data[0] * data[1] > 0 ? "there are steps" : "";
}

// An output is an input, or 0.
struct PassedArray {
  size_t output;
  std::optional<size_t> input;
};

std::unique_ptr<Kernel> build_passing(const NodeView& node, const std::vector<PassedArray>& arrays) {
  std::vector<size_t> bytes;
  for (const PassedArray& array : arrays) bytes.push_back(node.outputs[array.output].bytes());
  return make_step(node, [arrays, bytes](const Args& args) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      void* const to = args.outputs[arrays[i].output];
      if (!to || bytes[i] == 0) continue;
      if (const auto input = arrays[i].input)
        cudaMemcpyAsync(to, args.inputs[*input], bytes[i], cudaMemcpyDeviceToDevice, stream_of(args));
      else
        cudaMemsetAsync(to, 0, bytes[i], stream_of(args));
    }
  });
}

std::unique_ptr<Kernel> build_no_steps(const NodeView& node) {
  const auto& params = node.as<RNN>();
  const RnnArguments at = arguments_of(params);
  std::vector<PassedArray> passed{{1, at.state}};
  if (params.mode == rnn_mode::lstm) passed.push_back({2, at.cell});
  return build_passing(node, passed);
}

std::unique_ptr<Kernel> build_grad_of_no_steps(const NodeView& node) {
  const auto& params = node.as<RNNGrad>();
  const size_t state = params.has_output_grad ? 1 : 0, cell = state + (params.has_state_grad ? 1 : 0);
  std::vector<PassedArray> passed{{1, std::nullopt}, {2, std::nullopt}};
  if (params.has_state_grad) passed[1].input = state;
  if (params.mode == rnn_mode::lstm) passed.push_back({3, params.has_cell_grad ? std::optional(cell) : std::nullopt});
  return build_passing(node, passed);
}

}  // namespace

void add_rnn(ImplementationTable& table) {
  table.add<RNN>({"no steps", refuse_steps<RNN>, build_no_steps});
  table.add<RNNGrad>({"no steps", refuse_steps<RNNGrad>, build_grad_of_no_steps});
  table.add<RNN>({"cudnn", refuse<RNN>, build<RNN>, {}, true, Tier::library});
  table.add<RNNGrad>({"cudnn", refuse<RNNGrad>, build<RNNGrad>, {}, true, Tier::library});
  add_lstm(table);
}

}  // namespace symbind::cuda_backend
