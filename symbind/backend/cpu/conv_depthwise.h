#pragma once

namespace symbind {
class ImplementationTable;
}

namespace symbind::cpu_backend {

// Depthwise convolutions. For arrays in blocked layouts oneDNN's kernels are used.
void add_conv_depthwise(ImplementationTable& table);

}  // namespace symbind::cpu_backend
