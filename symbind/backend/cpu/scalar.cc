#include "symbind/ops/scalar.h"

#include "symbind/backend/cpu/map.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

void add_scalar(ImplementationTable& table) {
  add_maps(table, functions::ScalarTable{});
  add_maps(table, functions::ScalarGradTable{});
  add_maps(table, functions::ChoiceScalarTable{});
  add_maps(table, functions::ChoiceScalarGradTable{});
}

}  // namespace symbind::cpu_backend
