// What loops and branches that depend on values ask of a device.
#pragma once

#include <functional>
#include <memory>

#include "symbind/backend/control_flow.h"

namespace symbind {

// Is the number at this address of the device's memory, of this type, not 0? The device's queue is waited for.
using ReadTruth = std::function<bool(const Args& args, const void* number, DType dtype)>;
struct BranchHooks {
  WriteCursors write_cursors;
  ReadTruth read_truth;
  bool capturable = true;  // where the host has to wait for the device, it is not
};

std::unique_ptr<Kernel> build_cond(const NodeView& node, const BranchHooks& hooks);
std::unique_ptr<Kernel> build_cond_grad(const NodeView& node, const BranchHooks& hooks);
std::unique_ptr<Kernel> build_while_loop(const NodeView& node, const BranchHooks& hooks);
std::unique_ptr<Kernel> build_while_loop_grad(const NodeView& node, const BranchHooks& hooks);

}  // namespace symbind
