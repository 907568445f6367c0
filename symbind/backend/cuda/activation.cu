#include "symbind/ops/activation.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/elementwise.cuh"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

void add_activation(ImplementationTable& table) {
  add_maps<true>(table, functions::ActivationTable{});
  add_maps<true>(table, functions::ActivationGradTable{});
}

}  // namespace symbind::cuda_backend
