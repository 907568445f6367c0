// Cursors and conditions of loops and branches on a CPU: plain memory accesses.
#pragma once

#include "symbind/backend/branch.h"

namespace symbind::cpu_backend {

void write_cursors(const Args& args, const StepCursors& cursors, RandomCursor* to);
BranchHooks branch_hooks();

}  // namespace symbind::cpu_backend
