#pragma once

namespace symbind {
class ImplementationTable;
}

namespace symbind::cpu_backend {

// Convolutions as matrix products over patches.
void add_conv_gemm(ImplementationTable& table);

}  // namespace symbind::cpu_backend
