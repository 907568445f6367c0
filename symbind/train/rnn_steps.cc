#include "symbind/train/rnn_steps.h"

#include "symbind/core/error.h"
#include "symbind/graph/builder.h"

namespace symbind {
namespace {

Symbol activated(const Symbol& data, const char* act_type, const std::string& name = "") {
  return apply("Activation", data, {{"act_type", act_type}}, name);
}

}  // namespace

const std::vector<Symbol>& checked_states(const std::vector<Symbol>& states, size_t count) {
  require(states.size() >= count, "[rnn] a step needs ", count, " states, not ", states.size());
  return states;
}

RNNStep lstm_step(const Symbol& gates, const Symbol& cell, const RNNActivation& activation, const std::string& name) {
  const Symbol in = activated(gates[0], "sigmoid", name + "i");
  const Symbol forget = activated(gates[1], "sigmoid", name + "f");
  const Symbol change = activation(gates[2], name + "c");
  const Symbol out = activated(gates[3], "sigmoid", name + "o");
  const Symbol kept = forget * cell, added = in * change;
  const Symbol next_cell = apply("elemwise_add", Inputs({kept, added}), {}, name + "state");
  const Symbol next = apply("elemwise_mul", Inputs({out, activation(next_cell)}), {}, name + "out");
  return {next, {next, next_cell}};
}

RNNStep gru_step(const Symbol& input, const Symbol& recurrent, const Symbol& state, const RNNActivation& activation,
                 const std::string& name) {
  const Symbol reset = activated(input[0] + recurrent[0], "sigmoid", name + "_r_act");
  const Symbol update = activated(input[1] + recurrent[1], "sigmoid", name + "_z_act");
  const Symbol from_state = reset * recurrent[2];
  const Symbol fresh = activation(input[2] + from_state, name + "_h_act");
  const Symbol share = apply("_RMinusScalar", update, {{"scalar", "1.0"}}), added = share * fresh,
               kept = update * state;
  const Symbol next = apply("elemwise_add", Inputs({added, kept}), {}, name + "out");
  return {next, {next}};
}

}  // namespace symbind
