// The kernels registered for user-defined operators, for the backends.
#pragma once

#include <functional>
#include <memory>

#include "symbind/passes/own_operator.h"
#include "symbind/passes/target.h"

namespace symbind {

// Null where there is none. The address stays valid.
const detail::OwnKernel* own_kernel(const OpDef& op, DeviceType device);

// Runs such a kernel for one node; and the properties that the plan needs.
std::function<void(const Args& args)> work_of(const detail::OwnKernel& kernel, const NodeView& node);
KernelTraits traits_of(const detail::OwnKernel& kernel, const NodeView& node);

}  // namespace symbind
