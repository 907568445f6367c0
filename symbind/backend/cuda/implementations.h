#pragma once

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

// The implementations that run on a GPU itself, of all families of operators.
ImplementationTable all_implementations();

}  // namespace symbind::cuda_backend
