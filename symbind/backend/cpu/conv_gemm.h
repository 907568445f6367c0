#pragma once

#include "symbind/ops/conv.h"

namespace symbind {
class ImplementationTable;
}

namespace symbind::cpu_backend {

// If the kernel is large compared with the outputs, nearly all products of the data's gradient are with padding outside
// them: one product and a sum over its patches is faster.
inline bool has_most_products_outside(const ConvolutionSize& size) {
  constexpr int64_t most_data_per_output = 4;
  return size.in_size() > most_data_per_output * size.out_size() * size.stride[0] * size.stride[1] * size.stride[2];
}

// Convolutions as matrix products over patches.
void add_conv_gemm(ImplementationTable& table);

}  // namespace symbind::cpu_backend
