// Cursors and conditions of loops and branches on a GPU: written by a kernel, read by a copy that the host waits for.
#pragma once

#include <string>

#include "symbind/backend/branch.h"

namespace symbind::cuda_backend {

WriteCursors cursor_writer(Context context);
BranchHooks branch_hooks(Context context);
std::string needs_plain(const NodeView& node);

}  // namespace symbind::cuda_backend
