// Recurrent layers, forward. For each layer, one product computes the input part of all steps; then each step adds its
// product with the state (a packed matrix) and applies the gates' activations in place.
#include "symbind/backend/cpu/rnn.h"

#include "symbind/backend/cpu/as_float.h"
#include "symbind/backend/cpu/dropout.h"
#include "symbind/backend/cpu/packed_product.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/product.h"

namespace symbind::cpu_backend {
namespace {

template <class T>
class RnnForward final : public Kernel {
 public:
  explicit RnnForward(const NodeView& node)
      : params_(node.as<RNN>()),
        size_(size_of(params_, node.inputs[0].shape)),
        at_(arguments_of(params_)),
        drops_(drops(params_, node.is_train)),
        slot_(static_cast<uint64_t>(std::max(node.random_slot, 0))),
        lengths_type_(params_.use_sequence_length ? node.inputs[at_.lengths].dtype : DType::none),
        where_(node.where()) {
    Blocks cached, scratch;
    packed_state_ = cached.add(packed_count<T>(size_.output, size_.gate_width()));
    if (size_.has_projection) packed_projection_ = cached.add(packed_count<T>(size_.hidden, size_.output));
    bias_ = cached.add(2 * size_.gate_width());
    cached_of_direction_ = cached.add(0);
    cached_from = {static_cast<int>(at_.parameters)};
    cached_bytes = static_cast<size_t>(size_.layers * size_.directions) * cached.bytes<T>();
    if (size_.is_gru) recurrent_ = scratch.add(size_.directions * size_.batch * size_.gate_width());
    lengths_ = scratch.add(size_.batch * static_cast<int64_t>(sizeof(int64_t) / sizeof(T)));
    scratch_bytes = scratch.bytes<T>();
  }

  // Packs the matrices of all layers. LSTM and plain layers need the sum of their biases alone.
  void prepare(const Args& args) override {
    const T* const parameters = args.in<T>(at_.parameters);
    for (int64_t layer = 0; layer < size_.layers; ++layer)
      for (int64_t direction = 0; direction < size_.directions; ++direction) {
        const RnnSize::Parameters from = size_.parameters(layer, direction);
        T* const to = cached(args, layer, direction);
        pack<T>(size_.output, size_.gate_width(), {parameters + from.h2h_weight, size_.output, true},
                to + packed_state_);
        if (size_.has_projection)
          pack<T>(size_.hidden, size_.output, {parameters + from.h2r_weight, size_.hidden, true},
                  to + packed_projection_);
        const T *const i2h = parameters + from.i2h_bias, *const h2h = parameters + from.h2h_bias;
        for (int64_t i = 0; i < size_.gate_width(); ++i) {
          to[bias_ + i] = size_.is_gru ? i2h[i] : i2h[i] + h2h[i];
          to[bias_ + size_.gate_width() + i] = h2h[i];
        }
      }
  }

  void run(const Args& args) override {
    const Lengths lengths = lengths_of(args);
    T* const reserve = args.out<T>(at_.reserve);
    for (int64_t layer = 0; layer < size_.layers; ++layer) {
      const T* const input = layer == 0 ? args.in<T>(at_.data) : reserve + size_.layer_input(layer);
      T* const output = layer + 1 == size_.layers ? args.out<T>(0) : reserve + size_.layer_input(layer + 1);
      for (int64_t direction = 0; direction < size_.directions; ++direction)
        product<T>(
            size_.rows(), size_.gate_width(), size_.input_of(layer), {input, size_.input_of(layer)},
            {args.in<T>(at_.parameters) + size_.parameters(layer, direction).i2h_weight, size_.input_of(layer), true},
            {reserve + size_.reserve(layer, direction).gates, size_.gate_width()});
      for_sequences(size_, [&](const SomeSequences& some) { run_steps(args, lengths, layer, some, output); });
      if (drops_ && layer + 1 < size_.layers) drop(args, layer + 1, output);
    }
  }

 private:
  T* cached(const Args& args, int64_t layer, int64_t direction) const {
    return static_cast<T*>(args.cached) + (layer * size_.directions + direction) * cached_of_direction_;
  }
  Lengths lengths_of(const Args& args) const {
    if (!params_.use_sequence_length) return {};
    return {args.inputs[at_.lengths], lengths_type_,
            reinterpret_cast<int64_t*>(static_cast<T*>(args.scratch) + lengths_), size_, where_};
  }

  // All steps of some sequences of a layer in one direction, from the initial to the final states.
  void run_steps(const Args& args, const Lengths& lengths, int64_t layer, const SomeSequences& some, T* output) const {
    const int64_t batch = size_.batch, state_at = (layer * size_.directions + some.direction) * batch + some.first;
    const RnnSize::Reserve at = size_.reserve(layer, some.direction);
    T *const states = args.out<T>(at_.reserve) + at.states, *const cells = args.out<T>(at_.reserve) + at.cells;
    const StepOrder order{size_.steps, some.direction == 1};
    const auto row = [&](T* slots, int64_t slot, int64_t width) { return slots + (slot * batch + some.first) * width; };
    std::copy_n(args.in<T>(at_.state) + state_at * size_.output, some.count() * size_.output,
                row(states, order.first_slot(), size_.output));
    if (size_.is_lstm)
      std::copy_n(args.in<T>(at_.cell) + state_at * size_.hidden, some.count() * size_.hidden,
                  row(cells, order.first_slot(), size_.hidden));
    for (int64_t number = 0; number < size_.steps; ++number) {
      const int64_t step = order.step(number);
      run_step(args, lengths, layer, some, step);
      write_output(lengths, some, step, row(states, order.after(step), size_.output), output);
    }
    std::copy_n(row(states, order.last_slot(), size_.output), some.count() * size_.output,
                args.out<T>(1) + state_at * size_.output);
    if (size_.is_lstm)
      std::copy_n(row(cells, order.last_slot(), size_.hidden), some.count() * size_.hidden,
                  args.out<T>(2) + state_at * size_.hidden);
  }

  void run_step(const Args& args, const Lengths& lengths, int64_t layer, const SomeSequences& some,
                int64_t step) const {
    const int64_t batch = size_.batch, hidden = size_.hidden, width = size_.output, gates = size_.gate_width();
    const T* const packed = cached(args, layer, some.direction);
    const RnnSize::Reserve at = size_.reserve(layer, some.direction);
    const StepOrder order{size_.steps, some.direction == 1};
    T* const reserve = args.out<T>(at_.reserve);
    T* const gate_rows = reserve + at.gates + (step * batch + some.first) * gates;
    const T* const before = reserve + at.states + (order.before(step) * batch + some.first) * width;
    T* const after = reserve + at.states + (order.after(step) * batch + some.first) * width;
    const T* const cell_before = reserve + at.cells + (order.before(step) * batch + some.first) * hidden;
    T* const cell_after = reserve + at.cells + (order.after(step) * batch + some.first) * hidden;
    T* const more = reserve + at.projected + (step * batch + some.first) * hidden;  // or recurrence
    T* const recurrent = static_cast<T*>(args.scratch) + recurrent_ + (some.direction * batch + some.first) * gates;
    T* const products = size_.is_gru ? recurrent : gate_rows;
    multiply_packed<T>(some.count(), gates, width, {before, width}, packed + packed_state_, {products, gates},
                       !size_.is_gru);
    const T* const bias = packed + bias_;
    for (int64_t i = 0; i < some.count(); ++i) {
      if (!lengths.is_valid(step, some.first + i)) continue;
      T* const gate = gate_rows + i * gates;
      if (size_.is_lstm)
        LstmCell<T>{limits_}.forward(hidden, gate, bias, cell_before + i * hidden, cell_after + i * hidden,
                                     size_.has_projection ? more + i * hidden : after + i * width);
      else if (size_.is_gru)
        GruCell<T>{}.forward(hidden, gate, recurrent + i * gates, bias, before + i * width, more + i * hidden,
                             after + i * width);
      else
        PlainCell<T>{relu_}.forward(hidden, gate, bias, after + i * width);
    }
    if (size_.has_projection)
      multiply_packed<T>(some.count(), width, hidden, {more, hidden}, packed + packed_projection_, {after, width},
                         false);
    if (!lengths.given()) return;
    for (int64_t i = 0; i < some.count(); ++i) {
      if (lengths.is_valid(step, some.first + i)) continue;
      std::copy_n(before + i * width, width, after + i * width);
      if (size_.is_lstm) std::copy_n(cell_before + i * hidden, hidden, cell_after + i * hidden);
      if (size_.has_projection) std::fill_n(more + i * hidden, hidden, T(0));
    }
  }

  void write_output(const Lengths& lengths, const SomeSequences& some, int64_t step, const T* states, T* output) const {
    const int64_t width = size_.output;
    for (int64_t i = 0; i < some.count(); ++i) {
      const int64_t sequence = some.first + i;
      T* const to = output + (step * size_.batch + sequence) * size_.output_width() + some.direction * width;
      if (lengths.is_valid(step, sequence))
        std::copy_n(states + i * width, width, to);
      else
        std::fill_n(to, width, T(0));
    }
  }

  // Each layer has separate random numbers.
  void drop(const Args& args, int64_t layer, T* output) const {
    const int64_t count = size_.rows() * size_.output_width();
    T* const mask = args.out<T>(at_.reserve) + size_.mask(layer);
    draw_mask(*args.random, args.random->draw + slot_, params_.p, mask, count, (layer - 1) * ((count + 3) / 4));
    apply_mask(output, mask, output, count);
  }

  const RNN params_;
  const RnnSize size_;
  const RnnArguments at_;
  const bool drops_, relu_ = params_.mode == rnn_mode::rnn_relu;
  const CellLimits<T> limits_ = limits_of<T>(params_);
  const uint64_t slot_;
  const DType lengths_type_;
  const std::string where_;
  int64_t packed_state_ = 0, packed_projection_ = 0, bias_ = 0, cached_of_direction_ = 0;  // offsets in the cached data
  int64_t recurrent_ = 0, lengths_ = 0;                                                    // offsets in scratch
};

std::unique_ptr<Kernel> build_rnn(const NodeView& node) {
  switch (node.outputs[0].dtype) {
    case DType::float32:
      return std::make_unique<RnnForward<float>>(node);
    case DType::float64:
      return std::make_unique<RnnForward<double>>(node);
    default:
      return build_as_float(node);
  }
}

}  // namespace

void add_rnn(ImplementationTable& table) {
  add_plain<RNN>(table, build_rnn);
  add_plain<RNNGrad>(table, build_rnn_grad);
}

}  // namespace symbind::cpu_backend
