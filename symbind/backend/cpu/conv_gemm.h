#pragma once

namespace symbind {
class ImplementationTable;
}

namespace symbind::cpu_backend {

// Convolutions as matrix products over patches; to be called before the plain ones.
void add_conv_gemm(ImplementationTable& table);

}  // namespace symbind::cpu_backend
