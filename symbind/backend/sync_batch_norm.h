// SyncBatchNorm and its gradient on any device: as networks of other operators where one context has the whole batch,
// else as two such networks with a sum over the contexts between them.
#pragma once

#include "symbind/passes/target.h"

namespace symbind {

void add_sync_batch_norm(ImplementationTable& table);

}  // namespace symbind
