// Steps computed from the products of their gates, shared by dense and convolutional cells.
#pragma once

#include <string>
#include <vector>

#include "symbind/train/rnn_cell.h"

namespace symbind {

// The states of a step; fails where there are fewer than it needs.
const std::vector<Symbol>& checked_states(const std::vector<Symbol>& states, size_t count);

// From the products of the four gates; names begin with `name`.
RNNStep lstm_step(const Symbol& gates, const Symbol& cell, const RNNActivation& activation, const std::string& name);
// From the products with the input and with the state, three gates each.
RNNStep gru_step(const Symbol& input, const Symbol& recurrent, const Symbol& state, const RNNActivation& activation,
                 const std::string& name);

}  // namespace symbind
