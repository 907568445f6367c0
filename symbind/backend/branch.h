// The device functions that value-dependent loops and branches need.
#pragma once

#include <functional>
#include <memory>

#include "symbind/backend/control_flow.h"

namespace symbind {

// Is the number at this address of the device's memory, of this type, not 0? Synchronizes the device's queue.
using ReadTruth = std::function<bool(const Args& args, const void* number, DType dtype)>;
struct BranchHooks {
  WriteCursors write_cursors;
  ReadTruth read_truth;
  bool capturable = true;  // not if the host has to wait for the device
};

std::unique_ptr<Kernel> build_cond(const NodeView& node, const BranchHooks& hooks);
std::unique_ptr<Kernel> build_cond_grad(const NodeView& node, const BranchHooks& hooks);
std::unique_ptr<Kernel> build_while_loop(const NodeView& node, const BranchHooks& hooks);
std::unique_ptr<Kernel> build_while_loop_grad(const NodeView& node, const BranchHooks& hooks);

}  // namespace symbind
