// Recurrent layers over whole sequences as one operator: plain (relu, tanh), LSTM and GRU; several layers, one or both
// directions.
#pragma once

#include <optional>

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

namespace rnn_mode {
inline constexpr Word gru = "gru", lstm = "lstm", rnn_relu = "rnn_relu", rnn_tanh = "rnn_tanh";
inline constexpr Word all[] = {gru, lstm, rnn_relu, rnn_tanh};
}  // namespace rnn_mode

// Inputs: data (steps, batch, features); parameters, one vector (in the order of RnnSize); state (layers ·
// directions, batch, outputs); for an LSTM state_cell (layers · directions, batch, state_size); with
// use_sequence_length sequence_length (batch).
// Outputs: output (steps, batch, directions · outputs); with state_outputs the final states, in the shapes of the
// initial ones; and a hidden output that the gradient reads. `outputs` is projection_size where that is given, else
// state_size.
struct RNN {
  Required<int64_t> state_size;
  Required<int64_t> num_layers;
  bool bidirectional = false;
  Required<std::string> mode;  // rnn_relu, rnn_tanh, lstm or gru
  double p = 0;                // of the dropout between layers, in training
  bool state_outputs = false;
  std::optional<int64_t> projection_size = {};  // LSTM: outputs are the states times a further matrix
  std::optional<double> lstm_state_clip_min = {};
  std::optional<double> lstm_state_clip_max = {};
  bool lstm_state_clip_nan = false;
  bool use_sequence_length = false;
};
inline constexpr Builder<RNN> rnn;

// The output gradients that exist, then (data, parameters, state[, state_cell][, sequence_length], output, reserve) →
// (data_grad, parameters_grad, state_grad[, state_cell_grad])
struct RNNGrad : RNN {
  bool has_output_grad = true, has_state_grad = false, has_cell_grad = false;
};
inline constexpr Builder<RNNGrad> rnn_grad;

inline bool drops(const RNN& params, bool is_train) { return is_train && params.p > 0 && params.num_layers > 1; }

// The extents, and how the vector of parameters and the hidden output are laid out.
struct RnnSize {
  int64_t steps, batch, input;
  int64_t hidden, output;  // of one direction; they differ with a projection
  int64_t layers, directions, gates;
  bool is_lstm, is_gru, has_projection, has_masks;

  int64_t rows() const { return steps * batch; }
  int64_t gate_width() const { return gates * hidden; }
  int64_t output_width() const { return directions * output; }
  int64_t input_of(int64_t layer) const { return layer == 0 ? input : output_width(); }

  // The offsets of the parameters of a layer in one direction in the vector: all weights, layer by layer and direction
  // by direction, then all biases in the same order. Gates: LSTM in, forget, cell, out; GRU reset, update, new.
  struct Parameters {
    int64_t i2h_weight;  // (gates · hidden, input of the layer)
    int64_t h2h_weight;  // (gates · hidden, output)
    int64_t h2r_weight;  // (output, hidden), with a projection
    int64_t i2h_bias, h2h_bias;
  };
  Parameters parameters(int64_t layer, int64_t direction) const;
  int64_t weights_of(int64_t layer) const;  // of one direction
  int64_t weight_count() const { return weights_below(layers); }
  int64_t parameter_count() const;

  // The same for the hidden output, of the CPU's kernels. Step t of a forward direction reads slot t of states and
  // cells and writes slot t + 1; of a backward direction it reads slot t + 1 and writes slot t.
  struct Reserve {
    int64_t gates;       // (steps, batch, gates · hidden): after activation
    int64_t states;      // (steps + 1, batch, output)
    int64_t cells;       // (steps + 1, batch, hidden): LSTM
    int64_t projected;   // (steps, batch, hidden): what is projected
    int64_t recurrence;  // (steps, batch, hidden): GRU's product of the state for the new gate
  };
  Reserve reserve(int64_t layer, int64_t direction) const;
  int64_t layer_input(int64_t layer) const;  // (steps, batch, directions · output), above the first layer; dropped
  int64_t mask(int64_t layer) const;         // of that, if there are any
  int64_t reserve_count() const;

 private:
  int64_t weights_below(int64_t layer) const;
  int64_t reserve_of_direction() const;
};
RnnSize size_of(const RNN& params, const Shape& data);

// The indices of the inputs and outputs of RNN and of RNNGrad.
struct RnnArguments {
  size_t data, parameters, state, cell, lengths;  // cell and lengths: if there are any
  size_t output, reserve;                         // RNN: among the outputs
};
RnnArguments arguments_of(const RNN& params);
RnnArguments arguments_of(const RNNGrad& params);

}  // namespace symbind
