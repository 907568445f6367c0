// Sequences of symbols, merged and split.
#pragma once

#include <optional>
#include <string>

#include "symbind/train/rnn_cell.h"

namespace symbind {

// The axis of time in a layout such as NTC.
int time_axis(const std::string& layout);

// Converts a sequence: to one symbol, to a symbol per step, or unchanged. A length that is given is checked.
RNNSequence as_sequence(std::optional<int64_t> length, const RNNSequence& sequence, const std::string& layout,
                        std::optional<bool> merge);

}  // namespace symbind
