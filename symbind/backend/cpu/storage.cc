#include "symbind/ops/storage.h"

#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/plain.h"

namespace symbind::cpu_backend {

void add_storage(ImplementationTable& table) { add_plain<CastStorage>(table, build_copy); }

}  // namespace symbind::cpu_backend
