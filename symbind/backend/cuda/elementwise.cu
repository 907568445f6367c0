// Functions of one and two arrays and their gradients, from the tables of backend/pointwise.h.
#include "symbind/backend/cuda/elementwise.cuh"

#include "symbind/backend/cuda/device.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

void add_elementwise(ImplementationTable& table) {
  add_maps<1>(table, pointwise::UnaryTable{});
  add_maps<2>(table, pointwise::BinaryTable{});
  add_maps<2>(table, pointwise::UnaryGradTable{});
  add_maps<3>(table, pointwise::BinaryGradTable{});
}

}  // namespace symbind::cuda_backend
