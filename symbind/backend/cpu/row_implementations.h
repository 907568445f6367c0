// Softmax and norms by the row kernels; to be called before the plain implementations, and before those that convert
// whole arrays of half types. They refuse everything where the processor has no kernels.
#pragma once

#include <memory>

namespace symbind {
class ImplementationTable;
class Kernel;
struct NodeView;
}  // namespace symbind

namespace symbind::cpu_backend {

void add_l2_rows(ImplementationTable& table);
void add_softmax_rows(ImplementationTable& table);
void add_norm_rows(ImplementationTable& table);
void add_batch_norm_rows(ImplementationTable& table);  // for half types

// BatchNorm, alone or with ReLU, or its gradient (P), of an array whose channels are apart; null: there is no kernel.
template <class P>
std::unique_ptr<Kernel> build_batch_norm_rows(const NodeView& node);

}  // namespace symbind::cpu_backend
