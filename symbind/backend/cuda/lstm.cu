// LSTM layers step by step. As on the CPU (backend/cpu/rnn.cc), one product computes the input part of all steps of a
// layer; a step adds its product with the state and applies the gates. Backward turns the gradient of each state into
// that of its gates and of the state before; the gradients of the matrices and of the layer's input are one product
// each over all steps. The hidden output has the CPU's layout. Half precision is computed in float32.
#include "symbind/backend/cuda/lstm.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "symbind/backend/as_float.h"
#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/cuda/each_element.cuh"
#include "symbind/backend/cuda/matmul.h"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/rnn_masks.cuh"
#include "symbind/backend/cuda/scratch_layout.h"
#include "symbind/backend/cuda/sequence_length.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/divisor.h"
#include "symbind/backend/rnn_step.h"
#include "symbind/ops/rnn.h"

namespace symbind::cuda_backend {
namespace {

using rnn_step::CellLimits;
using rnn_step::StepOrder;

// ---- Lengths --------------------------------------------------------------------------------------------------------

// The number of valid steps of each sequence, in device memory.
struct Lengths {
  const int64_t* numbers;  // null: all steps are valid
  __device__ bool is_valid(int64_t step, int64_t sequence) const { return !numbers || step < numbers[sequence]; }
};

struct ReadLengths {
  AnyArray given;
  LengthRange range;
  FaultNotes faults;
  int64_t* numbers;
  __device__ void operator()(int64_t sequence) const {
    numbers[sequence] = length_of_sequence(given, sequence, range, faults);
  }
};

// The operator's input, if it has one.
class LengthsInput {
 public:
  LengthsInput(const NodeView& node, const RNN& params, size_t input, const RnnSize& size, ScratchLayout& scratch)
      : input_(input), size_(size) {
    if (!params.use_sequence_length) return;
    type_ = node.inputs[input].dtype;
    faults_ = fault_notes(node);
    at_ = scratch.add<int64_t>(size.batch);
  }
  Lengths read(const Args& args) const {
    if (type_ == DType::none) return {nullptr};
    auto* const numbers = scratch_at<int64_t>(args.scratch, at_);
    queue_each_element(stream_of(args), size_.batch,
                       ReadLengths{{args.inputs[input_], type_}, {0, size_.steps}, faults_, numbers});
    return {numbers};
  }

 private:
  size_t input_;
  RnnSize size_;
  DType type_ = DType::none;
  FaultNotes faults_ = {};
  size_t at_ = 0;
};

// ---- Steps ----------------------------------------------------------------------------------------------------------

// A step of all sequences in one direction. Arrays are the step's rows: (batch, …).
struct Step {
  Lengths lengths;
  int64_t number;
  __device__ bool is_valid(int64_t sequence) const { return lengths.is_valid(number, sequence); }
};

template <class T>
struct ForwardCell {
  Step step;
  Divisor hidden;
  CellLimits<T> limits;
  T* gates;  // (batch, 4 · hidden): the products, replaced by the values of the gates
  const T *i2h_bias, *h2h_bias;
  const T* cell_before;
  T *cell, *state;  // state: before its projection; 0 where the step is not valid

  __device__ void operator()(int64_t i) const {
    const Divided at = hidden.divide(i);
    if (!step.is_valid(at.quotient)) {
      cell[i] = cell_before[i];
      state[i] = T(0);
      return;
    }
    T* const row = gates + at.quotient * 4 * hidden;
    T* const in = row + at.rest;
    T *const forget = in + hidden, *const change = forget + hidden, *const out = change + hidden;
    const auto sum = [&](const T* gate) { return *gate + (i2h_bias[gate - row] + h2h_bias[gate - row]); };
    *in = vector_math::sigmoid(sum(in));
    *forget = vector_math::sigmoid(sum(forget));
    *change = vector_math::tanh(sum(change));
    *out = vector_math::sigmoid(sum(out));
    const T next = rnn_step::next_cell(*in, *forget, *change, cell_before[i]);
    cell[i] = limits.given ? limits.clip(next) : next;
    state[i] = rnn_step::next_state(*out, cell[i]);
  }
};

template <class T>
struct BackwardCell {
  Step step;
  Divisor hidden;
  CellLimits<T> limits;
  const T *gates, *cell_before, *cell;
  const T* state_grad;  // before the projection
  T* cell_grad;         // of the cell after the step; becomes that of the cell before it
  T* gates_grad;        // before activation; 0 where the step is not valid

  __device__ void operator()(int64_t i) const {
    const Divided at = hidden.divide(i);
    const int64_t in = at.quotient * 4 * hidden + at.rest, forget = in + hidden, change = forget + hidden,
                  out = change + hidden;
    if (!step.is_valid(at.quotient)) {
      gates_grad[in] = gates_grad[forget] = gates_grad[change] = gates_grad[out] = T(0);
      return;
    }
    const auto of_state = rnn_step::grads_of_state(state_grad[i], gates[out], vector_math::tanh(cell[i]));
    T grad = cell_grad[i] + of_state.cell;
    if (limits.given && !limits.inside(cell[i])) grad = T(0);
    const auto of_cell = rnn_step::grads_of_cell(grad, gates[in], gates[forget], gates[change], cell_before[i]);
    gates_grad[in] = of_cell.in;
    gates_grad[forget] = of_cell.forget;
    gates_grad[change] = of_cell.change;
    gates_grad[out] = of_state.out;
    cell_grad[i] = of_cell.cell_before;
  }
};

// The gradient of the state plus that of the output; 0 where the step is not valid.
template <class T>
struct AddOutputGrad {
  Step step;
  Divisor width;
  int64_t output_width;
  const T* state_grad;
  const T* output_grad;  // rows of output_width; null: 0
  T* sum;
  __device__ void operator()(int64_t i) const {
    const Divided at = width.divide(i);
    const T arriving = output_grad ? output_grad[at.quotient * output_width + at.rest] : T(0);
    sum[i] = step.is_valid(at.quotient) ? state_grad[i] + arriving : T(0);
  }
};

// A step that is not valid leaves the state, or its gradient, as it is.
template <class T>
struct HoldRows {
  Step step;
  Divisor width;
  const T* from;
  T* to;
  __device__ void operator()(int64_t i) const {
    if (!step.is_valid(width.divide(i).quotient)) to[i] = from[i];
  }
};

// The states after all steps (steps, batch, width) as a direction's part of the output.
template <class T>
struct WriteOutput {
  Lengths lengths;
  Divisor batch, width;
  int64_t output_width;
  const T* states;
  T* output;
  __device__ void operator()(int64_t i) const {
    const Divided at = width.divide(i), row = batch.divide(at.quotient);
    output[at.quotient * output_width + at.rest] = lengths.is_valid(row.quotient, row.rest) ? states[i] : T(0);
  }
};

// Both biases of a gate have the same gradient.
template <class T>
struct StoreBiases {
  T *i2h, *h2h;
  __device__ void operator()(int64_t gate, double sum, double) const { i2h[gate] = h2h[gate] = static_cast<T>(sum); }
};

// ---- Layers ---------------------------------------------------------------------------------------------------------

// The products of a node share scratch memory.
class Products {
 public:
  explicit Products(const NodeView& node, DType dtype)
      : device_(CudaDevice::of(node.context)), dtype_(dtype), where_(node.where()) {}

  std::shared_ptr<Matmul> add(MatmulProblem problem) {
    problem.dtype = dtype_;
    auto product = std::make_shared<Matmul>(device_, problem, where_);
    scratch_bytes_ = std::max(scratch_bytes_, product->scratch_bytes());
    return product;
  }
  size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  CudaDevice& device_;
  DType dtype_;
  std::string where_;
  size_t scratch_bytes_ = 0;
};

template <class T>
void queue_copy(cudaStream_t stream, const T* from, T* to, int64_t count) {
  if (from != to) cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(T), cudaMemcpyDeviceToDevice, stream);
}

template <class T>
class LstmForward {
 public:
  explicit LstmForward(const NodeView& node)
      : params_(node.as<RNN>()),
        at_(arguments_of(params_)),
        size_(size_of(params_, node.inputs[at_.data].shape)),
        drops_(drops(params_, node.is_train)),
        slot_(static_cast<uint64_t>(std::max(node.random_slot, 0))),
        lengths_(node, params_, at_.lengths, size_, scratch_) {
    const int64_t gates = size_.gate_width();
    Products products(node, node.inputs[at_.data].dtype);
    for (int64_t layer = 0; layer < std::min<int64_t>(size_.layers, 2); ++layer)
      input_product_[layer] =
          products.add({.rows = size_.rows(), .inner = size_.input_of(layer), .columns = gates, .transpose_b = true});
    state_product_ = products.add(
        {.rows = size_.batch, .inner = size_.output, .columns = gates, .transpose_b = true, .accumulate = true});
    if (size_.has_projection)
      projection_ =
          products.add({.rows = size_.batch, .inner = size_.hidden, .columns = size_.output, .transpose_b = true});
    workspace_ = scratch_.add_bytes(products.scratch_bytes());
  }
  size_t scratch_bytes() const { return scratch_.total(); }

  void operator()(const Args& args) const {
    const cudaStream_t stream = stream_of(args);
    const Lengths lengths = lengths_.read(args);
    T* const reserve = args.out<T>(at_.reserve);
    for (int64_t layer = 0; layer < size_.layers; ++layer) {
      const T* const input = layer == 0 ? args.in<T>(at_.data) : reserve + size_.layer_input(layer);
      const bool is_last = layer + 1 == size_.layers;
      T* const output = is_last ? args.out<T>(0) : reserve + size_.layer_input(layer + 1);
      for (int64_t direction = 0; direction < size_.directions; ++direction) {
        input_product_[layer > 0]->run(stream, input,
                                       args.in<T>(at_.parameters) + size_.parameters(layer, direction).i2h_weight,
                                       nullptr, reserve + size_.reserve(layer, direction).gates, workspace(args));
        run_steps(args, lengths, layer, direction, output);
      }
      if (drops_ && !is_last) {
        const int64_t count = size_.rows() * size_.output_width();
        T* const mask = reserve + size_.mask(layer + 1);
        queue_draw_mask(stream, args.random, slot_, params_.p, layer + 1, mask, count);
        queue_apply_mask<T>(stream, output, mask, output, count);
      }
    }
  }

 private:
  void* workspace(const Args& args) const { return scratch_at<std::byte>(args.scratch, workspace_); }

  // All steps of a layer in one direction, from the initial to the final states.
  void run_steps(const Args& args, const Lengths& lengths, int64_t layer, int64_t direction, T* output) const {
    const cudaStream_t stream = stream_of(args);
    const int64_t states_count = size_.batch * size_.output, cells_count = size_.batch * size_.hidden;
    const int64_t number = layer * size_.directions + direction;
    const RnnSize::Reserve at = size_.reserve(layer, direction);
    T *const states = args.out<T>(at_.reserve) + at.states, *const cells = args.out<T>(at_.reserve) + at.cells;
    const StepOrder order{size_.steps, direction == 1};
    queue_copy(stream, args.in<T>(at_.state) + number * states_count, states + order.first_slot() * states_count,
               states_count);
    queue_copy(stream, args.in<T>(at_.cell) + number * cells_count, cells + order.first_slot() * cells_count,
               cells_count);
    for (int64_t i = 0; i < size_.steps; ++i) run_step(args, {lengths, order.step(i)}, layer, direction);
    queue_each_element(stream, size_.rows() * size_.output,
                       WriteOutput<T>{lengths, size_.batch, size_.output, size_.output_width(),
                                      states + order.after(0) * states_count, output + direction * size_.output});
    queue_copy<T>(stream, states + order.last_slot() * states_count, args.out<T>(1) + number * states_count,
                  states_count);
    queue_copy<T>(stream, cells + order.last_slot() * cells_count, args.out<T>(2) + number * cells_count, cells_count);
  }

  void run_step(const Args& args, const Step& step, int64_t layer, int64_t direction) const {
    const cudaStream_t stream = stream_of(args);
    const int64_t states_count = size_.batch * size_.output, cells_count = size_.batch * size_.hidden;
    const T* const parameters = args.in<T>(at_.parameters);
    const RnnSize::Parameters from = size_.parameters(layer, direction);
    const RnnSize::Reserve at = size_.reserve(layer, direction);
    const StepOrder order{size_.steps, direction == 1};
    T* const reserve = args.out<T>(at_.reserve);
    T* const gates = reserve + at.gates + step.number * 4 * cells_count;
    const T* const before = reserve + at.states + order.before(step.number) * states_count;
    T* const after = reserve + at.states + order.after(step.number) * states_count;
    T* const state = size_.has_projection ? reserve + at.projected + step.number * cells_count : after;
    state_product_->run(stream, before, parameters + from.h2h_weight, nullptr, gates, workspace(args));
    queue_each_element(
        stream, cells_count,
        ForwardCell<T>{step, size_.hidden, limits_, gates, parameters + from.i2h_bias, parameters + from.h2h_bias,
                       reserve + at.cells + order.before(step.number) * cells_count,
                       reserve + at.cells + order.after(step.number) * cells_count, state});
    if (size_.has_projection)
      projection_->run(stream, state, parameters + from.h2r_weight, nullptr, after, workspace(args));
    if (step.lengths.numbers) queue_each_element(stream, states_count, HoldRows<T>{step, size_.output, before, after});
  }

  RNN params_;
  RnnArguments at_;
  RnnSize size_;
  bool drops_;
  uint64_t slot_;
  ScratchLayout scratch_;
  LengthsInput lengths_;
  CellLimits<T> limits_ = rnn_step::limits_of<T>(params_);
  std::shared_ptr<Matmul> input_product_[2], state_product_, projection_;  // input: of the first layer, of others
  size_t workspace_ = 0;
};

template <class T>
class LstmBackward {
 public:
  explicit LstmBackward(const NodeView& node)
      : params_(node.as<RNNGrad>()),
        at_(arguments_of(params_)),
        size_(size_of(params_, node.inputs[at_.data].shape)),
        drops_(drops(params_, node.is_train)),
        lengths_(node, params_, at_.lengths, size_, scratch_) {
    const int64_t rows = size_.rows(), gates = size_.gate_width(), width = size_.output, hidden = size_.hidden;
    Products products(node, node.inputs[at_.data].dtype);
    for (int64_t layer = 0; layer < std::min<int64_t>(size_.layers, 2); ++layer) {
      const int64_t inputs = size_.input_of(layer);
      for (int64_t direction = 0; direction < size_.directions; ++direction)
        input_product_[layer][direction] =
            products.add({.rows = rows, .inner = gates, .columns = inputs, .accumulate = direction > 0});
      i2h_product_[layer] = products.add({.rows = gates, .inner = rows, .columns = inputs, .transpose_a = true});
    }
    state_product_ = products.add({.rows = size_.batch, .inner = gates, .columns = width});
    h2h_product_ = products.add({.rows = gates, .inner = rows, .columns = width, .transpose_a = true});
    if (size_.has_projection) {
      projection_ = products.add({.rows = size_.batch, .inner = width, .columns = hidden});
      h2r_product_ = products.add({.rows = width, .inner = rows, .columns = hidden, .transpose_a = true});
    }
    workspace_ = scratch_.add_bytes(products.scratch_bytes());
    gates_ = scratch_.add<T>(rows * gates);
    arriving_ = scratch_.add<T>((size_.has_projection ? rows : size_.batch) * width);
    if (size_.has_projection) projected_ = scratch_.add<T>(size_.batch * hidden);
    for (size_t& state : states_) state = scratch_.add<T>(size_.batch * width);
    cells_ = scratch_.add<T>(size_.batch * hidden);
    for (size_t& input : inputs_)
      if (size_.layers > 1) input = scratch_.add<T>(rows * size_.output_width());
    sums_ = scratch_.add_bytes(piece_bytes(gates_shape(), sizeof(T)));
  }
  size_t scratch_bytes() const { return scratch_.total(); }

  void operator()(const Args& args) const {
    const cudaStream_t stream = stream_of(args);
    const Lengths lengths = lengths_.read(args);
    const T* output_grad = params_.has_output_grad ? args.in<T>(0) : nullptr;
    for (int64_t layer = size_.layers; layer-- > 0;) {
      T* const input_grad = layer == 0 ? args.out<T>(0) : scratch(args, inputs_[layer % 2]);
      for (int64_t direction = 0; direction < size_.directions; ++direction) {
        run_steps(args, lengths, layer, direction, output_grad);
        if (args.outputs[1]) write_parameters(args, layer, direction);
        if (input_grad)
          input_product_[layer > 0][direction]->run(
              stream, scratch(args, gates_), args.in<T>(at_.parameters) + size_.parameters(layer, direction).i2h_weight,
              nullptr, input_grad, workspace(args));
      }
      if (drops_ && layer > 0)
        queue_apply_mask<T>(stream, input_grad, args.in<T>(at_.reserve) + size_.mask(layer), input_grad,
                            size_.rows() * size_.output_width());
      output_grad = input_grad;
    }
  }

 private:
  T* scratch(const Args& args, size_t offset) const { return scratch_at<T>(args.scratch, offset); }
  void* workspace(const Args& args) const { return scratch_at<std::byte>(args.scratch, workspace_); }
  ChannelShape gates_shape() const { return {size_.rows(), size_.gate_width(), 1}; }

  // Reads the gradient of a final state, or zeros; writes that of an initial state, if requested.
  void start(const Args& args, bool has_grad, size_t input, int64_t from, int64_t count, T* state) const {
    if (has_grad)
      queue_copy(stream_of(args), args.in<T>(input) + from, state, count);
    else
      cudaMemsetAsync(state, 0, static_cast<size_t>(count) * sizeof(T), stream_of(args));
  }
  void finish(const Args& args, size_t output, int64_t to, int64_t count, const T* state) const {
    if (args.outputs[output]) queue_copy(stream_of(args), state, args.out<T>(output) + to, count);
  }

  void run_steps(const Args& args, const Lengths& lengths, int64_t layer, int64_t direction,
                 const T* output_grad) const {
    const int64_t states_count = size_.batch * size_.output, cells_count = size_.batch * size_.hidden;
    const int64_t number = layer * size_.directions + direction;
    const size_t state_input = params_.has_output_grad ? 1 : 0, cell_input = state_input + params_.has_state_grad;
    const StepOrder order{size_.steps, direction == 1};
    T *now = scratch(args, states_[0]), *before = scratch(args, states_[1]);
    T* const cell_grad = scratch(args, cells_);
    start(args, params_.has_state_grad, state_input, number * states_count, states_count, now);
    start(args, params_.has_cell_grad, cell_input, number * cells_count, cells_count, cell_grad);
    for (int64_t i = size_.steps; i-- > 0;) {
      run_step(args, {lengths, order.step(i)}, layer, direction, output_grad, now, before);
      std::swap(now, before);
    }
    finish(args, 2, number * states_count, states_count, now);
    finish(args, 3, number * cells_count, cells_count, cell_grad);
  }

  // From the gradient of the states after a step, `now`, that of its gates and of the states before it.
  void run_step(const Args& args, const Step& step, int64_t layer, int64_t direction, const T* output_grad,
                const T* now, T* before) const {
    const cudaStream_t stream = stream_of(args);
    const int64_t states_count = size_.batch * size_.output, cells_count = size_.batch * size_.hidden;
    const T* const parameters = args.in<T>(at_.parameters);
    const RnnSize::Parameters from = size_.parameters(layer, direction);
    const RnnSize::Reserve at = size_.reserve(layer, direction);
    const StepOrder order{size_.steps, direction == 1};
    const T* const reserve = args.in<T>(at_.reserve);
    const T* const of_output =
        output_grad ? output_grad + step.number * size_.batch * size_.output_width() + direction * size_.output
                    : nullptr;
    T* const arriving = scratch(args, arriving_) + (size_.has_projection ? step.number * states_count : 0);
    queue_each_element(stream, states_count,
                       AddOutputGrad<T>{step, size_.output, size_.output_width(), now, of_output, arriving});
    const T* state_grad = arriving;
    if (size_.has_projection) {
      projection_->run(stream, arriving, parameters + from.h2r_weight, nullptr, scratch(args, projected_),
                       workspace(args));
      state_grad = scratch(args, projected_);
    }
    T* const gates_grad = scratch(args, gates_) + step.number * 4 * cells_count;
    queue_each_element(stream, cells_count,
                       BackwardCell<T>{step, size_.hidden, limits_, reserve + at.gates + step.number * 4 * cells_count,
                                       reserve + at.cells + order.before(step.number) * cells_count,
                                       reserve + at.cells + order.after(step.number) * cells_count, state_grad,
                                       scratch(args, cells_), gates_grad});
    state_product_->run(stream, gates_grad, parameters + from.h2h_weight, nullptr, before, workspace(args));
    if (step.lengths.numbers) queue_each_element(stream, states_count, HoldRows<T>{step, size_.output, now, before});
  }

  void write_parameters(const Args& args, int64_t layer, int64_t direction) const {
    const cudaStream_t stream = stream_of(args);
    const RnnSize::Parameters to = size_.parameters(layer, direction);
    const RnnSize::Reserve at = size_.reserve(layer, direction);
    const T* const reserve = args.in<T>(at_.reserve);
    const T* const input = layer == 0 ? args.in<T>(at_.data) : reserve + size_.layer_input(layer);
    const T* const gates_grad = scratch(args, gates_);
    T* const grad = args.out<T>(1);
    i2h_product_[layer > 0]->run(stream, gates_grad, input, nullptr, grad + to.i2h_weight, workspace(args));
    const StepOrder order{size_.steps, direction == 1};
    h2h_product_->run(stream, gates_grad, reserve + at.states + order.before(0) * size_.batch * size_.output, nullptr,
                      grad + to.h2h_weight, workspace(args));
    if (size_.has_projection)
      h2r_product_->run(stream, scratch(args, arriving_), reserve + at.projected, nullptr, grad + to.h2r_weight,
                        workspace(args));
    queue_channel_sums<T>(stream, gates_shape(), aligned_for_packs(gates_grad), ElementSums<T>{{gates_grad}},
                          scratch(args, sums_), StoreBiases<T>{grad + to.i2h_bias, grad + to.h2h_bias});
  }

  RNNGrad params_;
  RnnArguments at_;
  RnnSize size_;
  bool drops_;
  ScratchLayout scratch_;
  LengthsInput lengths_;
  CellLimits<T> limits_ = rnn_step::limits_of<T>(params_);
  // With two indices: of the first layer and of others; of each direction.
  std::shared_ptr<Matmul> input_product_[2][2], i2h_product_[2], state_product_, h2h_product_, projection_,
      h2r_product_;
  // In scratch: gradients of the gates for all steps, of states and outputs together (with a projection for all steps),
  // of states before their projection, of states before and after a step, of cells, of the input of a layer (of this
  // one and of the one above).
  size_t workspace_ = 0, gates_ = 0, arriving_ = 0, projected_ = 0, states_[2] = {}, cells_ = 0, inputs_[2] = {},
         sums_ = 0;
};

// ---- The operators --------------------------------------------------------------------------------------------------

template <class P>
std::string refuse(const NodeView& node) {
  if (node.as<P>().mode != rnn_mode::lstm) return "not an LSTM";
  return refuse_layouts(node);
}

template <class Lstm>
std::unique_ptr<Kernel> build_lstm(const NodeView& node) {
  Lstm lstm(node);
  const size_t scratch_bytes = lstm.scratch_bytes();
  return make_step(node, std::move(lstm), {.scratch_bytes = scratch_bytes});
}

std::unique_ptr<Kernel> build_half(const NodeView& node) {
  const std::shared_ptr<Kernel> kernel =
      build_as_float(node, [](const Args& args, void* dst, DType to, const void* src, DType from, int64_t count) {
        queue_cast(stream_of(args), dst, to, src, from, count);
      });
  return make_step(node, [kernel](const Args& args) { kernel->run(args); },
                   {.scratch_bytes = kernel->scratch_bytes, .capturable = kernel->capturable});
}

template <template <class> class Lstm>
std::unique_ptr<Kernel> build(const NodeView& node) {
  switch (node.outputs[0].dtype) {
    case DType::float32:
      return build_lstm<Lstm<float>>(node);
    case DType::float64:
      return build_lstm<Lstm<double>>(node);
    default:
      return build_half(node);
  }
}

}  // namespace

void add_lstm(ImplementationTable& table) {
  table.add<RNN>({"cuda", refuse<RNN>, build<LstmForward>, {}, true});
  table.add<RNNGrad>({"cuda", refuse<RNNGrad>, build<LstmBackward>, {}, true});
}

}  // namespace symbind::cuda_backend
