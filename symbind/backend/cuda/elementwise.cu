// Functions of one and two arrays and their gradients, from the tables of backend/function_tables.h.
#include "symbind/backend/cuda/elementwise.cuh"

#include "symbind/backend/cuda/device.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

void add_elementwise(ImplementationTable& table) {
  add_maps(table, functions::UnaryTable{});
  add_maps(table, functions::BinaryTable{});
  add_maps(table, functions::UnaryGradTable{});
  add_maps(table, functions::BinaryGradTable{});
}

}  // namespace symbind::cuda_backend
