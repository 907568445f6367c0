// Functions of an array and a number, and their gradients.
#include "symbind/ops/scalar.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/elementwise.cuh"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

void add_scalar(ImplementationTable& table) {
  add_maps(table, functions::ScalarTable{});
  add_maps(table, functions::ScalarGradTable{});
}

}  // namespace symbind::cuda_backend
