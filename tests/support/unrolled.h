// Unrolled recurrent networks made up at random: the kind of cell, layers, sizes, and the form of the sequence.
#pragma once

#include <cstdint>

#include "tests/support/networks.h"

namespace symbind::testing {

struct Unrolled {
  std::string cell = "lstm";     // lstm, gru or rnn
  std::string sequence = "NTC";  // or TNC; or list: an input for each step
  int layers = 2, steps = 5;
  int64_t batch = 4, inputs = 6, hidden = 16;
  bool dropout = false;  // between layers
  bool tied = false;     // do layers beyond the first share their weights?
};
Unrolled random_unrolled(uint64_t seed);
Network unrolled(const Unrolled& what);

}  // namespace symbind::testing
