#include "symbind/backend/cuda/implementations.h"

#include "symbind/backend/composed.h"
#include "symbind/backend/cuda/empty.h"

namespace symbind::cuda_backend {

#define SYMBIND_FAMILY(family) void add_##family(ImplementationTable& table);
#include "symbind/families/cuda.inc"
#undef SYMBIND_FAMILY

// Of every family: operators that only move elements, and views.
void add_move(ImplementationTable& table);
void add_views(ImplementationTable& table);

ImplementationTable all_implementations() {
  ImplementationTable table;
  add_move(table);
  add_composed(table);
#define SYMBIND_FAMILY(family) add_##family(table);
#include "symbind/families/cuda.inc"
#undef SYMBIND_FAMILY
  add_views(table);
  add_empty(table);
  return table;
}

}  // namespace symbind::cuda_backend
