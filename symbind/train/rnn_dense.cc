// Plain cells, LSTM and GRU.
#include <utility>

#include "symbind/core/error.h"
#include "symbind/graph/builder.h"
#include "symbind/train/initializer.h"
#include "symbind/train/rnn_steps.h"

namespace symbind {
namespace {

Symbol affine(const Symbol& data, const Symbol& weight, const Symbol& bias, int64_t num_hidden,
              const std::string& name) {
  return apply("FullyConnected", Inputs({data, weight, bias}), {{"num_hidden", std::to_string(num_hidden)}}, name);
}

Symbol sliced(const Symbol& products, int gates, const std::string& name) {
  return apply("SliceChannel", products, {{"num_outputs", std::to_string(gates)}}, name);
}

}  // namespace

DenseRNNCell::DenseRNNCell(int64_t num_hidden, int64_t gates, int states, std::string prefix, RNNParamsPtr params,
                           const VariableOptions& i2h_bias)
    : BaseRNNCell(std::move(prefix), std::move(params)),
      num_hidden_(num_hidden),
      gates_(gates),
      states_(states),
      i2h_weight_(own_params().get("i2h_weight")),
      i2h_bias_(own_params().get("i2h_bias", i2h_bias)),
      h2h_weight_(own_params().get("h2h_weight")),
      h2h_bias_(own_params().get("h2h_bias")) {
  require(num_hidden > 0, "[rnn] num_hidden must be above 0: ", num_hidden);
}

std::vector<RNNStateInfo> DenseRNNCell::state_info() const {
  return std::vector<RNNStateInfo>(static_cast<size_t>(states_), {{0, num_hidden_}, "NC"});
}

Symbol DenseRNNCell::i2h(const Symbol& input, const std::string& name) const {
  return affine(input, i2h_weight_, i2h_bias_, gates_ * num_hidden_, name);
}
Symbol DenseRNNCell::h2h(const Symbol& state, const std::string& name) const {
  return affine(state, h2h_weight_, h2h_bias_, gates_ * num_hidden_, name);
}

RNNCell::RNNCell(int64_t num_hidden, RNNActivation function, std::string prefix, RNNParamsPtr params)
    : DenseRNNCell(num_hidden, 1, 1, std::move(prefix), std::move(params)), activation_(std::move(function)) {}

RNNStep RNNCell::step(const Symbol& input, const std::vector<Symbol>& states) {
  const std::string name = next_step_name();
  const Symbol from_input = i2h(input, name + "i2h"), from_state = h2h(checked_states(states, 1)[0], name + "h2h");
  const Symbol output = activation_(from_input + from_state, name + "out");
  return {output, {output}};
}

LSTMCell::LSTMCell(int64_t num_hidden, std::string prefix, RNNParamsPtr params, double forget_bias)
    : DenseRNNCell(num_hidden, 4, 2, std::move(prefix), std::move(params),
                   {.init = init::LSTMBias(forget_bias).dumps()}) {}

RNNStep LSTMCell::step(const Symbol& input, const std::vector<Symbol>& states) {
  const std::string name = next_step_name();
  const Symbol from_input = i2h(input, name + "i2h"), from_state = h2h(checked_states(states, 2)[0], name + "h2h");
  return lstm_step(sliced(from_input + from_state, 4, name + "slice"), states[1], "tanh", name);
}

GRUCell::GRUCell(int64_t num_hidden, std::string prefix, RNNParamsPtr params)
    : DenseRNNCell(num_hidden, 3, 1, std::move(prefix), std::move(params)) {}

RNNStep GRUCell::step(const Symbol& input, const std::vector<Symbol>& states) {
  const std::string name = next_step_name();
  const Symbol from_input = i2h(input, name + "_i2h"), from_state = h2h(checked_states(states, 1)[0], name + "_h2h");
  const Symbol inputs = sliced(from_input, 3, name + "_i2h_slice");
  return gru_step(inputs, sliced(from_state, 3, name + "_h2h_slice"), states[0], "tanh", name);
}

}  // namespace symbind
