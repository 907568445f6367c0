#pragma once

namespace symbind {
class ImplementationTable;
}

namespace symbind::cpu_backend {

// Convolutions of each channel by itself. Where arrays are in blocks of channels oneDNN's kernels run.
void add_conv_depthwise(ImplementationTable& table);

}  // namespace symbind::cpu_backend
