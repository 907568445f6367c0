// Sums over the workers of a job for operators that need the whole batch (core/sum_group.h). They are exchanged as by
// horovod's pushpull, before gradients that are under way.
#pragma once

#include <memory>

#include "symbind/core/sum_group.h"
#include "symbind/kvstore/peers.h"

namespace symbind {

// Makes a store of its own at the first sum, in an elastic job immediately: all workers come to it between the same
// stores of theirs.
WorkerSum make_worker_sum(std::shared_ptr<Peers> peers);

// For all networks of this process, once it is one of several workers.
void sum_over_workers_of_process();

}  // namespace symbind
