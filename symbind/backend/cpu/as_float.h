#pragma once

namespace symbind {
class ImplementationTable;
}

namespace symbind::cpu_backend {

// Half-precision operators by their float32 implementations.
void add_as_float(ImplementationTable& table);

}  // namespace symbind::cpu_backend
