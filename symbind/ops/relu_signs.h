// The gradient of ReLU needs only the signs of its result. Operators that store these, two bits per element, beside the
// result of a residual unit, and gradients that read them instead of the result. Only the fuse pass creates them.
#pragma once

#include "symbind/ops/batch_norm.h"

namespace symbind {

// Signs are packed into bytes, four elements each and the first in the lowest bits, in the order of an array whose
// channels, along `axis`, are last. The two bits are defined in backend/relu_signs.h. The number of channels is a
// multiple of four.
inline constexpr int64_t signs_per_byte = 4;

// (data), a result of ReLU → signs
struct ReluSigns {
  int64_t axis = 1;
};
inline constexpr Builder<ReluSigns> relu_signs;
// (out_grad, signs) → data_grad
struct ReluSignsGrad : ReluSigns {};
inline constexpr Builder<ReluSignsGrad> relu_signs_grad;

// BatchNormAddRelu, or with given_sums BatchNormGivenSums with add and relu, that also returns the signs of the output.
struct BatchNormSigns : BatchNorm {
  bool given_sums = false;
};
inline constexpr Builder<BatchNormSigns> batch_norm_signs;
// BatchNormAddReluGrad with signs instead of output.
struct BatchNormSignsGrad : BatchNormAddReluGrad {};
inline constexpr Builder<BatchNormSignsGrad> batch_norm_signs_grad;

// As networks of other operators.
Symbol network_of(const BatchNormSigns& params, const ComposedInputs& in);
Symbol network_of(const BatchNormSignsGrad& params, const ComposedInputs& in);

// Do the channels of the array fill bytes?
bool signs_fill_bytes(const Shape& data, int64_t axis);
// The bytes that store the signs of an array; fails if its channels do not fill them.
Shape shape_of_signs(const Shape& data, int64_t axis);

}  // namespace symbind
