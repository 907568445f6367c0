// Conversion of learning rate schedules between Python and C++.
#pragma once

#include "symbind/optim/lr_scheduler.h"

#include "casters.h"

namespace symbind::python {

// An LRScheduler, or anything that is called with the number of updates and returns a rate; None is none. A callable
// without a base_lr of its own starts from the given one. `keeper` will store it.
LRSchedulerPtr scheduler_from(nb::handle value, double base_lr = 0.01, nb::handle keeper = {});
// The Python object itself where there is one.
nb::object scheduler_to_python(const LRSchedulerPtr& scheduler);

}  // namespace symbind::python
