// LSTM layers by kernels of our own, for what cuDNN refuses: clipped cells above all.
#pragma once

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

void add_lstm(ImplementationTable& table);

}  // namespace symbind::cuda_backend
