// Recurrent layers, backward: from the last layer and step to the first. A step turns the gradient of its state into
// that of its gates and, by a product with a packed matrix, of the state before. The gradients of the matrices and of
// the layer's input are then one product each over all steps.
#include "symbind/backend/cpu/as_float.h"
#include "symbind/backend/cpu/dropout.h"
#include "symbind/backend/cpu/packed_product.h"
#include "symbind/backend/cpu/product.h"
#include "symbind/backend/cpu/rnn.h"

namespace symbind::cpu_backend {
namespace {

// sums[i] = Σ rows[k][i]: in blocks, so that rounding does not grow with the number of rows.
template <class T>
void sum_rows(const T* rows, int64_t count, int64_t width, T* sums) {
  constexpr int64_t block = 64, most = 256;
  for_elements((width + most - 1) / most,
               [=](int64_t begin, int64_t end) {
                 for (int64_t piece = begin; piece < end; ++piece) {
                   const int64_t first = piece * most, there = std::min(most, width - first);
                   T whole[most] = {}, part[most];
                   for (int64_t k = 0; k < count; k += block) {
                     std::fill_n(part, there, T(0));
                     for (int64_t row = k; row < std::min(count, k + block); ++row)
                       for (int64_t i = 0; i < there; ++i) part[i] += rows[row * width + first + i];
                     for (int64_t i = 0; i < there; ++i) whole[i] += part[i];
                   }
                   std::copy_n(whole, there, sums + first);
                 }
               },
               std::max<int64_t>(1, element_grain / (most * (count + 1))));
}

template <class T>
class RnnBackward final : public Kernel {
 public:
  explicit RnnBackward(const NodeView& node)
      : params_(node.as<RNNGrad>()),
        at_(arguments_of(params_)),
        size_(size_of(params_, node.inputs[at_.data].shape)),
        drops_(drops(params_, node.is_train)),
        lengths_type_(params_.use_sequence_length ? node.inputs[at_.lengths].dtype : DType::none),
        where_(node.where()) {
    Blocks cached, scratch;
    packed_state_ = cached.add(packed_count<T>(size_.gate_width(), size_.output));
    if (size_.has_projection) packed_projection_ = cached.add(packed_count<T>(size_.output, size_.hidden));
    cached_of_direction_ = cached.add(0);
    cached_from = {static_cast<int>(at_.parameters)};
    cached_bytes = static_cast<size_t>(size_.layers * size_.directions) * cached.bytes<T>();

    const int64_t sequences = size_.directions * size_.batch, rows = size_.directions * size_.rows();
    gates_ = scratch.add(rows * size_.gate_width());
    recurrent_ = size_.is_gru ? scratch.add(rows * size_.gate_width()) : gates_;
    if (size_.has_projection) projections_ = scratch.add(rows * size_.output);
    for (int64_t& input : inputs_)
      if (size_.layers > 1) input = scratch.add(size_.rows() * size_.output_width());
    for (int64_t& state : states_) state = scratch.add(sequences * size_.output);
    arriving_ = scratch.add(sequences * size_.output);
    projected_ = size_.has_projection ? scratch.add(sequences * size_.hidden) : arriving_;
    if (size_.is_lstm) cells_ = scratch.add(sequences * size_.hidden);
    lengths_ = scratch.add(size_.batch * static_cast<int64_t>(sizeof(int64_t) / sizeof(T)));
    scratch_bytes = scratch.bytes<T>();
  }

  void prepare(const Args& args) override {
    const T* const parameters = args.in<T>(at_.parameters);
    for (int64_t layer = 0; layer < size_.layers; ++layer)
      for (int64_t direction = 0; direction < size_.directions; ++direction) {
        const RnnSize::Parameters from = size_.parameters(layer, direction);
        T* const to = cached(args, layer, direction);
        pack<T>(size_.gate_width(), size_.output, {parameters + from.h2h_weight, size_.output}, to + packed_state_);
        if (size_.has_projection)
          pack<T>(size_.output, size_.hidden, {parameters + from.h2r_weight, size_.hidden}, to + packed_projection_);
      }
  }

  void run(const Args& args) override {
    const Lengths lengths = lengths_of(args);
    const T* output_grad = params_.has_output_grad ? args.in<T>(0) : nullptr;
    for (int64_t layer = size_.layers; layer-- > 0;) {
      for_sequences(size_, [&](const SomeSequences& some) { run_steps(args, lengths, layer, some, output_grad); });
      if (args.outputs[1])
        for (int64_t direction = 0; direction < size_.directions; ++direction) write_parameters(args, layer, direction);
      T* const input_grad = layer == 0 ? args.out<T>(0) : scratch(args) + inputs_[layer % 2];
      if (input_grad) write_input(args, layer, input_grad);
      if (drops_ && layer > 0)
        apply_mask(input_grad, args.in<T>(at_.reserve) + size_.mask(layer), input_grad,
                   size_.rows() * size_.output_width());
      output_grad = input_grad;
    }
  }

 private:
  T* scratch(const Args& args) const { return static_cast<T*>(args.scratch); }
  T* cached(const Args& args, int64_t layer, int64_t direction) const {
    return static_cast<T*>(args.cached) + (layer * size_.directions + direction) * cached_of_direction_;
  }
  Lengths lengths_of(const Args& args) const {
    if (!params_.use_sequence_length) return {};
    return {args.inputs[at_.lengths], lengths_type_, reinterpret_cast<int64_t*>(scratch(args) + lengths_), size_,
            where_};
  }

  // Reads the gradient of a final state, or zeros; in the other direction, writes that of an initial state, if
  // requested.
  void start(const Args& args, bool has_grad, size_t input, int64_t from, int64_t count, T* state) const {
    if (has_grad)
      std::copy_n(args.in<T>(input) + from, count, state);
    else
      std::fill_n(state, count, T(0));
  }
  void finish(const Args& args, size_t output, int64_t to, int64_t count, const T* state) const {
    if (args.outputs[output]) std::copy_n(state, count, args.out<T>(output) + to);
  }

  void run_steps(const Args& args, const Lengths& lengths, int64_t layer, const SomeSequences& some,
                 const T* output_grad) const {
    const int64_t width = size_.output, hidden = size_.hidden, count = some.count();
    const int64_t mine = some.direction * size_.batch + some.first;
    const int64_t state_at = layer * size_.directions * size_.batch + mine;
    T* now = scratch(args) + states_[0] + mine * width;
    T* before = scratch(args) + states_[1] + mine * width;
    T* const cell = scratch(args) + cells_ + mine * hidden;
    const size_t state_input = params_.has_output_grad ? 1 : 0, cell_input = state_input + params_.has_state_grad;
    start(args, params_.has_state_grad, state_input, state_at * width, count * width, now);
    if (size_.is_lstm) start(args, params_.has_cell_grad, cell_input, state_at * hidden, count * hidden, cell);
    const StepOrder order{size_.steps, some.direction == 1};
    for (int64_t number = size_.steps; number-- > 0;) {
      run_step(args, lengths, layer, some, order.step(number), output_grad, now, before);
      std::swap(now, before);
    }
    finish(args, 2, state_at * width, count * width, now);
    if (size_.is_lstm) finish(args, 3, state_at * hidden, count * hidden, cell);
  }

  // From the gradient of the states after a step, `now`, that of its gates and of the states before it.
  void run_step(const Args& args, const Lengths& lengths, int64_t layer, const SomeSequences& some, int64_t step,
                const T* output_grad, const T* now, T* before) const {
    const int64_t width = size_.output, hidden = size_.hidden, gates = size_.gate_width(), count = some.count();
    const int64_t row = some.direction * size_.rows() + step * size_.batch + some.first;
    const T* const packed = cached(args, layer, some.direction);
    T* const arriving = add_output_grad(args, some, step, output_grad, now);
    const T* state_grad = arriving;
    if (size_.has_projection) {
      T* const arrived_rows = scratch(args) + projections_ + row * width;
      for (int64_t i = 0; i < count; ++i)
        if (lengths.is_valid(step, some.first + i))
          std::copy_n(arriving + i * width, width, arrived_rows + i * width);
        else
          std::fill_n(arrived_rows + i * width, width, T(0));
      T* const projected = scratch(args) + projected_ + (some.direction * size_.batch + some.first) * hidden;
      multiply_packed<T>(count, hidden, width, {arriving, width}, packed + packed_projection_, {projected, hidden},
                         false);
      state_grad = projected;
    }
    for (int64_t i = 0; i < count; ++i)
      if (lengths.is_valid(step, some.first + i))
        run_cell(args, layer, some.direction, step, some.first + i, state_grad + i * hidden, before + i * width);
      else
        for (const int64_t block : {gates_, recurrent_})
          std::fill_n(scratch(args) + block + (row + i) * gates, gates, T(0));
    multiply_packed<T>(count, width, gates, {scratch(args) + recurrent_ + row * gates, gates}, packed + packed_state_,
                       {before, width}, size_.is_gru);
    if (!lengths.given()) return;
    for (int64_t i = 0; i < count; ++i)
      if (!lengths.is_valid(step, some.first + i)) std::copy_n(now + i * width, width, before + i * width);
  }

  T* add_output_grad(const Args& args, const SomeSequences& some, int64_t step, const T* output_grad,
                     const T* now) const {
    const int64_t width = size_.output;
    T* const arriving = scratch(args) + arriving_ + (some.direction * size_.batch + some.first) * width;
    if (!output_grad) {
      std::copy_n(now, some.count() * width, arriving);
      return arriving;
    }
    for (int64_t i = 0; i < some.count(); ++i) {
      const T* const from =
          output_grad + (step * size_.batch + some.first + i) * size_.output_width() + some.direction * width;
      for_range<InstructionSet::avx2>(
          0, width, [to = arriving + i * width, from, old = now + i * width](int64_t begin, int64_t end) {
#pragma GCC ivdep
            for (int64_t j = begin; j < end; ++j) to[j] = old[j] + from[j];
          });
    }
    return arriving;
  }

  void run_cell(const Args& args, int64_t layer, int64_t direction, int64_t step, int64_t sequence, const T* state_grad,
                T* before_grad) const {
    const int64_t hidden = size_.hidden, batch = size_.batch, row = step * batch + sequence;
    const RnnSize::Reserve at = size_.reserve(layer, direction);
    const StepOrder order{size_.steps, direction == 1};
    const T* const reserve = args.in<T>(at_.reserve);
    const T* const gates = reserve + at.gates + row * size_.gate_width();
    T* const gates_grad = scratch(args) + gates_ + (direction * size_.rows() + row) * size_.gate_width();
    const int64_t before = order.before(step) * batch + sequence, after = order.after(step) * batch + sequence;
    if (size_.is_lstm)
      LstmCell<T>{limits_}.backward(hidden, gates, reserve + at.cells + before * hidden,
                                    reserve + at.cells + after * hidden, state_grad,
                                    scratch(args) + cells_ + (direction * batch + sequence) * hidden, gates_grad);
    else if (size_.is_gru)
      GruCell<T>{}.backward(
          hidden, gates, reserve + at.recurrence + row * hidden, reserve + at.states + before * hidden, state_grad,
          gates_grad, scratch(args) + recurrent_ + (direction * size_.rows() + row) * size_.gate_width(), before_grad);
    else
      PlainCell<T>{relu_}.backward(hidden, gates, state_grad, gates_grad);
  }

  const T* layer_input(const Args& args, int64_t layer) const {
    return layer == 0 ? args.in<T>(at_.data) : args.in<T>(at_.reserve) + size_.layer_input(layer);
  }

  void write_parameters(const Args& args, int64_t layer, int64_t direction) const {
    const int64_t rows = size_.rows(), gates = size_.gate_width(), width = size_.output, inputs = size_.input_of(layer);
    const RnnSize::Parameters to = size_.parameters(layer, direction);
    const RnnSize::Reserve at = size_.reserve(layer, direction);
    const T* const reserve = args.in<T>(at_.reserve);
    const T* const gates_grad = scratch(args) + gates_ + direction * rows * gates;
    const T* const recurrent_grad = scratch(args) + recurrent_ + direction * rows * gates;
    T* const grad = args.out<T>(1);
    product<T>(gates, inputs, rows, {gates_grad, gates, true}, {layer_input(args, layer), inputs},
               {grad + to.i2h_weight, inputs});
    const T* const states_before = reserve + at.states + (direction == 1 ? size_.batch * width : 0);
    product<T>(gates, width, rows, {recurrent_grad, gates, true}, {states_before, width},
               {grad + to.h2h_weight, width});
    if (size_.has_projection)
      product<T>(width, size_.hidden, rows, {scratch(args) + projections_ + direction * rows * width, width, true},
                 {reserve + at.projected, size_.hidden}, {grad + to.h2r_weight, size_.hidden});
    sum_rows(gates_grad, rows, gates, grad + to.i2h_bias);
    if (size_.is_gru)
      sum_rows(recurrent_grad, rows, gates, grad + to.h2h_bias);
    else
      std::copy_n(grad + to.i2h_bias, gates, grad + to.h2h_bias);
  }

  void write_input(const Args& args, int64_t layer, T* input_grad) const {
    const int64_t inputs = size_.input_of(layer), gates = size_.gate_width();
    for (int64_t direction = 0; direction < size_.directions; ++direction)
      product<T>(size_.rows(), inputs, gates, {scratch(args) + gates_ + direction * size_.rows() * gates, gates},
                 {args.in<T>(at_.parameters) + size_.parameters(layer, direction).i2h_weight, inputs},
                 {input_grad, inputs}, direction > 0);
  }

  const RNNGrad params_;
  const RnnArguments at_;
  const RnnSize size_;
  const bool drops_, relu_ = params_.mode == rnn_mode::rnn_relu;
  const CellLimits<T> limits_ = limits_of<T>(params_);
  const DType lengths_type_;
  const std::string where_;
  int64_t packed_state_ = 0, packed_projection_ = 0, cached_of_direction_ = 0;  // offsets in the cached data
  // In scratch: gradients of the gates and of the products with the states for all steps, of projected states, of the
  // input of a layer (of this one and of the one above), of states before and after a step, of a state plus the
  // gradient of the output, of that before its projection, of cells.
  int64_t gates_ = 0, recurrent_ = 0, projections_ = 0, inputs_[2] = {}, states_[2] = {}, arriving_ = 0, projected_ = 0,
          cells_ = 0, lengths_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> build_rnn_grad(const NodeView& node) {
  switch (node.outputs[0].dtype) {
    case DType::float32:
      return std::make_unique<RnnBackward<float>>(node);
    case DType::float64:
      return std::make_unique<RnnBackward<double>>(node);
    default:
      return build_as_float(node);
  }
}

}  // namespace symbind::cpu_backend
