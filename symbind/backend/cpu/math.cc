#include "symbind/ops/math.h"

#include "symbind/backend/cpu/map.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

void add_math(ImplementationTable& table) {
  add_maps(table, functions::MathTable{});
  add_maps(table, functions::MathGradTable{});
}

}  // namespace symbind::cpu_backend
