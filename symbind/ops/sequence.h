// Sequences of different lengths in one batch: (time, batch, …), or (batch, time, …) with axis 1. With
// use_sequence_length a second input holds the number of valid steps of each sequence; without it all are valid.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct SequenceMask {
  bool use_sequence_length = false;
  double value = 0;
  int64_t axis = 0;
};
inline constexpr Builder<SequenceMask> sequence_mask;

struct SequenceLast {
  bool use_sequence_length = false;
  int64_t axis = 0;
};
inline constexpr Builder<SequenceLast> sequence_last;

// (out_grad, data[, sequence_length]) → data_grad; data is read for its shape alone
struct SequenceLastGrad : SequenceLast {};
inline constexpr Builder<SequenceLastGrad> sequence_last_grad;

struct SequenceReverse {
  bool use_sequence_length = false;
  int64_t axis = 0;
};
inline constexpr Builder<SequenceReverse> sequence_reverse;

}  // namespace symbind
