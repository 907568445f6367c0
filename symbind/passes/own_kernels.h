// The kernels that users have registered for operators of their own, as the backends need them.
#pragma once

#include <functional>
#include <memory>

#include "symbind/passes/own_operator.h"
#include "symbind/passes/target.h"

namespace symbind {

// Null where there is none. The address stays valid.
const detail::OwnKernel* own_kernel(const OpDef& op, DeviceType device);

// The work of one node by such a kernel, and what the plan must know about it.
std::function<void(const Args& args)> work_of(const detail::OwnKernel& kernel, const NodeView& node);
KernelTraits traits_of(const detail::OwnKernel& kernel, const NodeView& node);

}  // namespace symbind
