// How loops and branches write cursors and read conditions on a CPU: as they are.
#pragma once

#include "symbind/backend/branch.h"

namespace symbind::cpu_backend {

void write_cursors(const Args& args, const StepCursors& cursors, RandomCursor* to);
BranchHooks branch_hooks();

}  // namespace symbind::cpu_backend
