// Connectionist temporal classification (Graves et al., 2006): the negative logarithm of the probability that a network
// which emits a class or a blank in every step emits a given sequence of labels, over all ways to align the two.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/composition.h"

namespace SYMBIND_API symbind {

// data (steps, batch, classes) are scores before the softmax, label (batch, longest). The blank is the first class, and
// labels end at their first 0; or it is the last class, and labels end at their first negative number.
struct CTCLoss {
  bool use_data_lengths = false;
  bool use_label_lengths = false;
  std::string blank_label = "first";  // or last
};
inline constexpr Builder<CTCLoss> ctc_loss;

// MXNet's plugin of this name: a loss head whose output is the softmax of data (input_length · batch, classes), step by
// step. label has batch · label_length numbers, the blank is class 0, and labels end at their first 0.
struct WarpCTC {
  Required<int64_t> label_length = {};
  Required<int64_t> input_length = {};
};
inline constexpr Builder<WarpCTC> warp_ctc;
Symbol network_of(const WarpCTC& p, const ComposedInputs& in);

}  // namespace symbind
