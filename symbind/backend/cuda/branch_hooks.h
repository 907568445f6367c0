// How loops and branches write cursors and read conditions on a GPU: by a kernel, and by a copy that the host waits
// for.
#pragma once

#include <string>

#include "symbind/backend/branch.h"

namespace symbind::cuda_backend {

WriteCursors cursor_writer(Context context);
BranchHooks branch_hooks(Context context);
std::string needs_plain(const NodeView& node);

}  // namespace symbind::cuda_backend
