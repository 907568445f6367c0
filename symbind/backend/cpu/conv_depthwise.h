#pragma once

namespace symbind {
class ImplementationTable;
}

namespace symbind::cpu_backend {

// Convolutions of each channel by itself; to be called before oneDNN's, which serve where arrays are in blocks.
void add_conv_depthwise(ImplementationTable& table);

}  // namespace symbind::cpu_backend
