#pragma once

namespace symbind {
class ImplementationTable;
}

namespace symbind::cpu_backend {

// BatchNorm in float32 with a vector of channels at a time.
void add_batch_norm_lanes(ImplementationTable& table);

}  // namespace symbind::cpu_backend
