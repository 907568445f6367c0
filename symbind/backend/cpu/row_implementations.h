// Softmax and norms by the row kernels. They refuse all nodes if there are no kernels for the processor.
#pragma once

#include <memory>

#include "symbind/backend/cpu/rows.h"
#include "symbind/ops/normalize.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

template <class P, class Refuse, class Build>
void add_rows(ImplementationTable& table, Refuse refuse, Build build) {
  table.add<P>({"rows", std::move(refuse), std::move(build), nullptr, false, Tier::specialised});
}

// The rows that L2Normalization normalizes, for the plain kernels too.
Rows rows_of(const L2Normalization& params, const Shape& shape);

void add_l2_rows(ImplementationTable& table);
void add_softmax_rows(ImplementationTable& table);
void add_norm_rows(ImplementationTable& table);
void add_batch_norm_rows(ImplementationTable& table);  // for half types

// BatchNorm, alone or with ReLU, or its gradient (P), of an array whose channels are not adjacent; null: there is no
// kernel.
template <class P>
std::unique_ptr<Kernel> build_batch_norm_rows(const NodeView& node);

}  // namespace symbind::cpu_backend
