// Recurrent layers against their definition, step by step.
#include <algorithm>
#include <cmath>

#include "symbind/ops/rnn.h"

#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

using Row = std::vector<double>;

// y[k] = Σ_j matrix[k][j] · x[j] + bias[k]
Row affine(const double* matrix, const double* bias, int64_t rows, const Row& x) {
  Row y(static_cast<size_t>(rows));
  for (size_t k = 0; k < y.size(); ++k) {
    y[k] = bias ? bias[k] : 0;
    for (size_t j = 0; j < x.size(); ++j) y[k] += matrix[k * x.size() + j] * x[j];
  }
  return y;
}

// One step of one sequence: the new state, and the new cell of an LSTM.
void step(const RNN& p, const RnnSize& size, const double* parameters, const RnnSize::Parameters& at, const Row& x,
          Row& state, Row& cell) {
  const Row in = affine(parameters + at.i2h_weight, parameters + at.i2h_bias, size.gate_width(), x);
  const Row back = affine(parameters + at.h2h_weight, parameters + at.h2h_bias, size.gate_width(), state);
  const auto hidden = static_cast<size_t>(size.hidden);
  Row next(hidden);
  for (size_t j = 0; j < hidden; ++j) {
    const auto sum = [&](size_t gate) { return in[gate * hidden + j] + back[gate * hidden + j]; };
    if (p.mode == "lstm") {
      cell[j] = sigmoid(sum(1)) * cell[j] + sigmoid(sum(0)) * std::tanh(sum(2));
      if (p.lstm_state_clip_min) cell[j] = std::clamp(cell[j], *p.lstm_state_clip_min, *p.lstm_state_clip_max);
      next[j] = sigmoid(sum(3)) * std::tanh(cell[j]);
    } else if (p.mode == "gru") {
      const double fresh = std::tanh(in[2 * hidden + j] + sigmoid(sum(0)) * back[2 * hidden + j]);
      next[j] = (1 - sigmoid(sum(1))) * fresh + sigmoid(sum(1)) * state[j];
    } else {
      next[j] = p.mode == "rnn_relu" ? std::max(0.0, sum(0)) : std::tanh(sum(0));
    }
  }
  state = size.has_projection ? affine(parameters + at.h2r_weight, nullptr, size.output, next) : next;
}

// One layer in one direction over one sequence; writes the outputs and replaces the states by the last ones.
void run_direction(const RNN& p, const RnnSize& size, const double* parameters, int64_t layer, int64_t direction,
                   const std::vector<Row>& inputs, size_t length, std::vector<Row>& outputs, Row& state, Row& cell) {
  for (size_t number = 0; number < length; ++number) {
    const size_t at = direction == 0 ? number : length - 1 - number;
    step(p, size, parameters, size.parameters(layer, direction), inputs[at], state, cell);
    std::copy(state.begin(), state.end(), outputs[at].begin() + direction * size.output);
  }
}

Row row_of(const Values& values, int64_t row, int64_t width) {
  return {values.data.begin() + row * width, values.data.begin() + (row + 1) * width};
}

Reference reference_of(const RNN& p) {
  return [p](Inputs_ in) {
    const RnnSize size = size_of(p, in[0].shape);
    const bool is_lstm = p.mode == "lstm";
    std::vector<Values> out{{{size.steps, size.batch, size.output_width()}, {}}, in[2]};
    if (is_lstm) out.push_back(in[3]);
    out[0].data.resize(static_cast<size_t>(size.rows() * size.output_width()));
    for (int64_t sequence = 0; sequence < size.batch; ++sequence) {
      const auto length = static_cast<size_t>(
          p.use_sequence_length ? static_cast<int64_t>(in.back().data[static_cast<size_t>(sequence)]) : size.steps);
      std::vector<Row> x;
      for (int64_t t = 0; t < size.steps; ++t) x.push_back(row_of(in[0], t * size.batch + sequence, size.input));
      for (int64_t layer = 0; layer < size.layers; ++layer) {
        std::vector<Row> y(x.size(), Row(static_cast<size_t>(size.output_width())));
        for (int64_t direction = 0; direction < size.directions; ++direction) {
          const int64_t at = (layer * size.directions + direction) * size.batch + sequence;
          Row state = row_of(in[2], at, size.output), cell = is_lstm ? row_of(in[3], at, size.hidden) : Row();
          run_direction(p, size, in[1].data.data(), layer, direction, x, length, y, state, cell);
          std::copy(state.begin(), state.end(), out[1].data.begin() + at * size.output);
          if (is_lstm) std::copy(cell.begin(), cell.end(), out[2].data.begin() + at * size.hidden);
        }
        x = y;
      }
      for (int64_t t = 0; t < size.steps; ++t)
        std::copy(x[static_cast<size_t>(t)].begin(), x[static_cast<size_t>(t)].end(),
                  out[0].data.begin() + (t * size.batch + sequence) * size.output_width());
    }
    if (!p.state_outputs) out.resize(1);
    return out;
  };
}

std::vector<Shape> shapes_of(const RNN& p, const Shape& data) {
  const RnnSize size = size_of(p, data);
  const int64_t states = size.layers * size.directions;
  std::vector<Shape> shapes{data, {size.parameter_count()}, {states, size.batch, size.output}};
  if (size.is_lstm) shapes.push_back({states, size.batch, size.hidden});
  if (p.use_sequence_length) shapes.push_back({size.batch});
  return shapes;
}

OpCase case_of(const std::string& name, const RNN& p, const Shape& data, const std::vector<Shape>& more_data = {}) {
  const std::vector<Shape> shapes = shapes_of(p, data);
  OpCase found{.name = "RNN_" + name,
               .op = "RNN",
               .attributes = op_of<RNN>().print_params(&p),
               .inputs = {{"data", shapes[0]}, {"parameters", shapes[1], -0.6, 0.7}, {"state", shapes[2]}},
               .reference = reference_of(p),
               .slack = 8};
  if (p.mode == "lstm") found.inputs.push_back({"state_cell", shapes[3]});
  if (p.use_sequence_length)
    found.inputs.push_back(
        {"sequence_length", shapes.back(), 1, static_cast<double>(data[0]), DType::int32, /*gradient=*/false});
  for (const Shape& each : more_data) found.more_shapes.push_back(shapes_of(p, each));
  return found;
}

}  // namespace

void add_rnn_cases(std::vector<OpCase>& cases) {
  for (const char* mode : {"rnn_tanh", "lstm", "gru"}) {
    const std::string name = mode;
    RNN p{.state_size = 3, .num_layers = 1, .mode = name, .state_outputs = true};
    cases.push_back(case_of(name, p, {3, 2, 2}, {{1, 1, 1}, {0, 2, 2}, {2, 0, 2}, {2, 9, 5}}));
    p.bidirectional = true;
    p.num_layers = 2;
    cases.push_back(case_of(name + "_both_ways", p, {3, 2, 2}));
    p.use_sequence_length = true;
    cases.push_back(case_of(name + "_of_lengths", p, {4, 3, 2}));
    cases.push_back(case_of(name + "_wide", {.state_size = 33, .num_layers = 1, .mode = name}, {2, 3, 17}));
    cases.back().differentiable = false;  // too many numbers for differences
  }
  cases.push_back(case_of("rnn_relu", {.state_size = 4, .num_layers = 2, .mode = "rnn_relu"}, {3, 2, 3}));
  RNN projected{.state_size = 4, .num_layers = 2, .bidirectional = true, .mode = "lstm", .state_outputs = true};
  projected.projection_size = 2;
  cases.push_back(case_of("projected", projected, {3, 2, 3}));
  projected.use_sequence_length = true;
  cases.push_back(case_of("projected_of_lengths", projected, {3, 2, 3}));
  RNN clipped{.state_size = 3, .num_layers = 1, .mode = "lstm", .state_outputs = true};
  clipped.lstm_state_clip_min = -0.25;
  clipped.lstm_state_clip_max = 0.375;
  cases.push_back(case_of("clipped", clipped, {4, 2, 3}));
  clipped.num_layers = 2;
  clipped.bidirectional = true;
  clipped.projection_size = 2;
  clipped.use_sequence_length = true;
  cases.push_back(case_of("clipped_of_lengths", clipped, {4, 3, 2}));
}

}  // namespace symbind::testing
