#include "symbind/ops/rnn.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

bool is_lstm(const RNN& p) { return p.mode == rnn_mode::lstm; }

int64_t gates_of(const RNN& p) { return is_lstm(p) ? 4 : p.mode == rnn_mode::gru ? 3 : 1; }

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op.param(&RNN::state_size, "state_size", "number of states of each layer and direction", at_least(1))
      .param(&RNN::num_layers, "num_layers", "number of layers, each over the outputs of the one before", at_least(1))
      .param(&RNN::bidirectional, "bidirectional",
             "run each layer over the sequence in both directions and concatenate the outputs")
      .param(&RNN::mode, "mode", "'rnn_relu' and 'rnn_tanh': plain recurrence with this activation; 'lstm'; 'gru'",
             one_of(rnn_mode::all))
      .param(&RNN::p, "p",
             "in training, probability that an output of a layer is set to 0 before the next layer reads it, in [0, 1)",
             between(0, 1))
      .param(&RNN::state_outputs, "state_outputs", "return the states after the last step as further outputs")
      .param(&RNN::projection_size, "projection_size",
             "for 'lstm': multiply the state by a matrix with this many rows to get output and recurrent state; None: "
             "the output is the state")
      .param(&RNN::lstm_state_clip_min, "lstm_state_clip_min",
             "for 'lstm': lower limit of the cell states, given together with lstm_state_clip_max; None: no limit")
      .param(&RNN::lstm_state_clip_max, "lstm_state_clip_max", "for 'lstm': upper limit of the cell states")
      .param(&RNN::lstm_state_clip_nan, "lstm_state_clip_nan",
             "where there are limits: replace a cell state that is not a number by the lower one")
      .param(&RNN::use_sequence_length, "use_sequence_length",
             "take a further input, sequence_length (batch): the number of valid steps of each sequence; later steps "
             "have the output 0 and do not change the state")
      .check([](P& params) {
        const RNN& p = params;
        require(p.p < 1, "p must be below 1: ", p.p);
        require(p.projection_size.value_or(1) >= 1,
                "projection_size must be at least 1: ", p.projection_size.value_or(1));
        require(!p.projection_size || is_lstm(p), "projection_size is for mode 'lstm': mode '", p.mode.get(), "'");
        require(p.lstm_state_clip_min.has_value() == p.lstm_state_clip_max.has_value(),
                "lstm_state_clip_min and lstm_state_clip_max are given together or not at all");
        if (p.lstm_state_clip_min)
          require(*p.lstm_state_clip_min <= *p.lstm_state_clip_max, "lstm_state_clip_min ", *p.lstm_state_clip_min,
                  " is above lstm_state_clip_max ", *p.lstm_state_clip_max);
      });
}

Names input_names(const RNN& p) {
  Names names{"data", "parameters", "state"};
  if (is_lstm(p)) names.push_back("state_cell");
  if (p.use_sequence_length) names.push_back("sequence_length");
  return names;
}

int visible_outputs(const RNN& p) { return !p.state_outputs ? 1 : is_lstm(p) ? 3 : 2; }

Names output_names(const RNN& p) {
  if (is_lstm(p)) return {"output", "state_output", "statecell_output", "reserve"};
  return {"output", "state_output", "reserve"};
}

// Fails on extents, e.g. from a corrupt file, whose arrays no machine could hold, so that the sizes below do not
// overflow.
void require_possible(const RNN& p, const Shapes& s, const Shape& data) {
  const auto number = [](int64_t extent) { return static_cast<double>(std::max<int64_t>(extent, 1)); };
  const double layers = number(p.num_layers) * (p.bidirectional ? 2 : 1);
  const double hidden = number(p.state_size), output = number(p.projection_size.value_or(p.state_size));
  const double parameters = layers * 4 * (hidden + output) * (number(data[2]) + 2 * output + hidden + 2);
  const double reserve = layers * (number(data[0]) + 1) * number(data[1]) * (8 * hidden + 5 * output);
  require(parameters < 0x1p60 && reserve < 0x1p60, s.where(), " too large: ", p.num_layers.get(), " layers of ",
          p.state_size.get(), " states, data ", data);
}

// The features of data from the number of parameters.
void infer_features(const RNN& p, Shapes& s) {
  auto data = s["data"];
  const auto parameters = s["parameters"];
  if (data[2] >= 0 || !parameters.known() || parameters.rank() != 1) return;
  const RnnSize without = size_of(p, Shape{0, 0, 0});
  const int64_t each = without.directions * without.gate_width(), rest = parameters[0] - without.parameter_count();
  require(rest >= 0 && rest % each == 0, s.where(), " no number of features of data has ", parameters[0],
          " parameters: there are ", without.parameter_count(), " and ", each, " for each feature");
  data.meet_dim(2, rest / each);
}

void infer_states(const RNN& p, Shapes& s, const char* input, size_t output, int64_t width) {
  auto state = s[input], last = s.output(output);
  state.meet({p.num_layers * (p.bidirectional ? 2 : 1), s["data"][1], width});
  last.meet(state);
  s["data"].meet_dim(1, state[1]);
}

void infer_shapes(const RNN& p, Shapes& s) {
  auto data = s["data"];
  require(!data.rank_known() || data.rank() == 3, s.where(), " data must be (steps, batch, features): data ",
          data.get());
  data.meet(Shape::of_rank(3));
  require_possible(p, s, data);
  const int64_t directions = p.bidirectional ? 2 : 1, width = p.projection_size.value_or(p.state_size);
  auto output = s.output(0);
  output.meet({data[0], data[1], directions * width});
  data.meet_dim(0, output[0]);
  data.meet_dim(1, output[1]);
  infer_states(p, s, "state", 1, width);
  if (is_lstm(p)) infer_states(p, s, "state_cell", 2, p.state_size);
  if (p.use_sequence_length) {
    auto lengths = s["sequence_length"];
    lengths.meet({data[1]});
    data.meet_dim(1, lengths[0]);
  }
  infer_features(p, s);
  output.meet({data[0], data[1], directions * width});
  infer_states(p, s, "state", 1, width);
  if (data[2] >= 0) s["parameters"].meet({size_of(p, Shape{0, 0, data[2]}).parameter_count()});
  if (data.known()) s.output(is_lstm(p) ? 3 : 2).meet({size_of(p, data).reserve_count()});
}

void infer_types(const RNN& p, Types& t) {
  const Names inputs = input_names(p);
  DType type = DType::none;
  for (const std::string& name : inputs)
    if (name != "sequence_length" && t[name].known()) type = t[name];
  const size_t outputs = is_lstm(p) ? 3 : 2;
  for (size_t i = 0; i < outputs; ++i)
    if (t.output(i).known()) type = t.output(i);
  if (type == DType::none) return;
  require_floating(t, "data", type);
  for (const std::string& name : inputs)
    if (name != "sequence_length") t[name].meet(type);
  if (p.use_sequence_length) t["sequence_length"].default_to(at_least_float32(type));
  for (size_t i = 0; i < outputs; ++i) t.output(i).meet(type);
  t.output(outputs).meet(at_least_float32(type));  // the data for the gradient
}

void set_gradients(const RNN& p, Grad& g) {
  const RnnArguments at = arguments_of(p);
  RNNGrad params{p};
  params.has_output_grad = g.has_out_grad(0);
  params.has_state_grad = g.has_out_grad(1);
  params.has_cell_grad = is_lstm(p) && g.has_out_grad(2);
  if (!params.has_output_grad && !params.has_state_grad && !params.has_cell_grad) return;
  std::vector<Symbol> inputs;
  if (params.has_output_grad) inputs.push_back(g.out_grad(0));
  if (params.has_state_grad) inputs.push_back(g.out_grad(1));
  if (params.has_cell_grad) inputs.push_back(g.out_grad(2));
  for (size_t i = 0; i < g.inputs(); ++i) inputs.push_back(g.input(i));
  inputs.push_back(g.output(0));
  inputs.push_back(g.output(at.reserve));
  const Symbol grads = rnn_grad(Inputs(std::move(inputs)), params);
  for (const size_t input : {at.data, at.parameters, at.state}) g.set(input, grads[input]);
  if (is_lstm(p)) g.set(at.cell, grads[at.cell]);
}

double multiply_adds(const RNN& p, const Shape& data) {
  const RnnSize size = size_of(p, data);
  return static_cast<double>(size.rows()) * static_cast<double>(size.weight_count());
}

OpDef define(Op<RNN> op) {
  return with_fields(op)
      .doc(
          "Recurrent layers over sequences. data is (steps, batch, features), output is (steps, batch, directions · "
          "state_size).\n\n"
          "'rnn_relu', 'rnn_tanh': h' = f(W·x + b + R·h + c).\n"
          "'lstm': i, f, o = sigmoid(W·x + b + R·h + c) and g = tanh(W·x + b + R·h + c), each with matrices of its "
          "own; cell' = f·cell + i·g; h' = o·tanh(cell').\n"
          "'gru': r, z = sigmoid(W·x + b + R·h + c); n = tanh(W·x + b + r·(R·h + c)); h' = (1 - z)·n + z·h.\n\n"
          "state and state_cell are the first states (layers · directions, batch, state_size). parameters is one "
          "vector: for each layer, for each direction, the matrix for the input and the matrix for the state, gate by "
          "gate (LSTM: i, f, g, o; GRU: r, z, n), with a projection its matrix; after all of them the biases b and c "
          "in the same order.")
      .precision(Precision::low)
      .full_precision_inputs({"sequence_length"})
      .inputs([](const RNN& p) { return input_names(p); })
      .outputs([](const RNN& p) { return output_names(p); })
      .visible_outputs([](const RNN& p) { return visible_outputs(p); })
      .outputs_in_files([](const RNN& p) { return visible_outputs(p); })
      .random([](const RNN& p, bool is_train) { return drops(p, is_train); })
      .multiply_adds([](const RNN& p, auto in, auto) { return multiply_adds(p, in[arguments_of(p).data]); })
      .infer_shape(infer_shapes)
      .infer_type(infer_types)
      .gradient([](const RNN& p, Grad& g) { set_gradients(p, g); });
}

OpDef define(Op<RNNGrad> op) {
  return with_fields(op)
      .param(&RNNGrad::has_output_grad, "has_output_grad", "a gradient arrives at the output")
      .param(&RNNGrad::has_state_grad, "has_state_grad", "a gradient arrives at the last state")
      .param(&RNNGrad::has_cell_grad, "has_cell_grad", "a gradient arrives at the last state of the cells")
      .inputs([](const RNNGrad& p) {
        Names names;
        if (p.has_output_grad) names.push_back("out_grad0");
        if (p.has_state_grad) names.push_back("out_grad1");
        if (p.has_cell_grad) names.push_back("out_grad2");
        for (std::string& name : input_names(p)) names.push_back(std::move(name));
        names.push_back("output");
        names.push_back("reserve");
        return names;
      })
      .outputs([](const RNNGrad& p) {
        Names names{"data_grad", "parameters_grad", "state_grad"};
        if (is_lstm(p)) names.push_back("state_cell_grad");
        return names;
      })
      .multiply_adds([](const RNNGrad& p, auto in, auto) { return 2 * multiply_adds(p, in[arguments_of(p).data]); })
      .infer_shape([](const RNNGrad& p, Shapes& s) {
        const Names inputs = input_names(p);
        for (size_t i = 0; i < (is_lstm(p) ? 4u : 3u); ++i) s.output(i).meet(s[inputs[i]]);
      })
      .shapes_of<RNN>()
      .infer_type([](const RNNGrad& p, Types& t) {
        const Names inputs = input_names(p);
        for (size_t i = 0; i < (is_lstm(p) ? 4u : 3u); ++i) t.output(i).meet(t[inputs[i]].get());
      })
      .types_of<RNN>();
}

}  // namespace

RnnSize size_of(const RNN& p, const Shape& data) {
  RnnSize size{};
  size.steps = data[0];
  size.batch = data[1];
  size.input = data[2];
  size.hidden = p.state_size;
  size.output = p.projection_size.value_or(p.state_size);
  size.layers = p.num_layers;
  size.directions = p.bidirectional ? 2 : 1;
  size.gates = gates_of(p);
  size.is_lstm = is_lstm(p);
  size.is_gru = p.mode == rnn_mode::gru;
  size.has_projection = p.projection_size.has_value();
  size.has_masks = p.p > 0 && p.num_layers > 1;
  return size;
}

int64_t RnnSize::weights_of(int64_t layer) const {
  return gate_width() * (input_of(layer) + output) + (has_projection ? output * hidden : 0);
}

int64_t RnnSize::weights_below(int64_t layer) const {
  return layer == 0 ? 0 : directions * (weights_of(0) + (layer - 1) * weights_of(1));
}

RnnSize::Parameters RnnSize::parameters(int64_t layer, int64_t direction) const {
  const int64_t at = weights_below(layer) + direction * weights_of(layer);
  Parameters found{};
  found.i2h_weight = at;
  found.h2h_weight = at + gate_width() * input_of(layer);
  found.h2r_weight = found.h2h_weight + gate_width() * output;
  found.i2h_bias = weights_below(layers) + (layer * directions + direction) * 2 * gate_width();
  found.h2h_bias = found.i2h_bias + gate_width();
  return found;
}

int64_t RnnSize::parameter_count() const { return weights_below(layers) + layers * directions * 2 * gate_width(); }

int64_t RnnSize::reserve_of_direction() const {
  const int64_t slots = (steps + 1) * batch;
  return rows() * gate_width() + slots * output + (is_lstm ? slots * hidden : 0) +
         (has_projection || is_gru ? rows() * hidden : 0);
}

RnnSize::Reserve RnnSize::reserve(int64_t layer, int64_t direction) const {
  Reserve found{};
  found.gates = (layer * directions + direction) * reserve_of_direction();
  found.states = found.gates + rows() * gate_width();
  found.cells = found.states + (steps + 1) * batch * output;
  found.projected = found.cells + (is_lstm ? (steps + 1) * batch * hidden : 0);
  found.recurrence = found.projected;  // no layer has both
  return found;
}

int64_t RnnSize::layer_input(int64_t layer) const {
  return layers * directions * reserve_of_direction() + (layer - 1) * rows() * output_width();
}
int64_t RnnSize::mask(int64_t layer) const { return layer_input(layers) + (layer - 1) * rows() * output_width(); }
int64_t RnnSize::reserve_count() const { return has_masks ? mask(layers) : layer_input(layers); }

RnnArguments arguments_of(const RNN& p) {
  RnnArguments at{};
  at.parameters = 1;
  at.state = 2;
  at.cell = 3;
  at.lengths = is_lstm(p) ? 4 : 3;
  at.reserve = is_lstm(p) ? 3 : 2;
  return at;
}

RnnArguments arguments_of(const RNNGrad& p) {
  RnnArguments at = arguments_of(static_cast<const RNN&>(p));
  const size_t grads = size_t{p.has_output_grad} + size_t{p.has_state_grad} + size_t{p.has_cell_grad};
  for (size_t* argument : {&at.data, &at.parameters, &at.state, &at.cell, &at.lengths}) *argument += grads;
  at.output = at.lengths + (p.use_sequence_length ? 1 : 0);
  at.reserve = at.output + 1;
  return at;
}

void register_rnn(OpRegistry& registry) {
  add<RNN>(registry, "RNN", define);
  add_internal<RNNGrad>(registry, "_backward_RNN", define);
}

}  // namespace symbind
