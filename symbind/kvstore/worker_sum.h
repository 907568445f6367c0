// Sums over the workers of a job for operators that need the whole batch (core/sum_group.h). They are exchanged as by
// horovod's pushpull, before pending gradients.
#pragma once

#include <memory>

#include "symbind/core/sum_group.h"
#include "symbind/kvstore/peers.h"

namespace symbind {

// Creates an internal store at the first sum, and in an elastic job immediately, since there all workers must create
// their stores in the same order.
WorkerSum make_worker_sum(std::shared_ptr<Peers> peers);

// For all networks of this process, once it is one of several workers.
void sum_over_workers_of_process();

}  // namespace symbind
