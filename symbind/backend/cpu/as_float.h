#pragma once

#include <memory>

namespace symbind {
class ImplementationTable;
class Kernel;
struct NodeView;
}  // namespace symbind

namespace symbind::cpu_backend {

// Runs half-precision operators by their float32 implementations.
void add_as_float(ImplementationTable& table);

// The kernel of a half-precision node by its float32 implementation, for plain implementations that have no other.
std::unique_ptr<Kernel> build_as_float(const NodeView& node);

}  // namespace symbind::cpu_backend
