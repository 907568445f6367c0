// The weight gradient of convolutions over the few channels of an image, by tensor cores. The library's kernels need
// several times as long as reading the arrays takes: they do not fill their tiles with so few channels.
#pragma once

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

void add_first_layer_gradient(ImplementationTable& table);

}  // namespace symbind::cuda_backend
