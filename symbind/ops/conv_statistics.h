// A convolution that also returns sums per channel of its result. Only the fuse pass creates it.
#pragma once

#include "symbind/ops/composition.h"
#include "symbind/ops/conv.h"

namespace symbind {

// Inputs as Convolution's. Outputs: output; channel_sum and channel_square_sum, the sums of each channel's elements and
// of their squares over the batch, in float32 for results of 16 bits. A library may sum the elements before it rounds
// them to 16 bits.
struct ConvolutionStatistics : Convolution {};
inline constexpr Builder<ConvolutionStatistics> convolution_statistics;

// As a network of other operators.
Symbol network_of(const ConvolutionStatistics& params, const ComposedInputs& in);

}  // namespace symbind
