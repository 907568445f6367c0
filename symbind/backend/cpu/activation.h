// Applying an activation to the result of another operator.
#pragma once

#include <cstdint>
#include <string>

#include "symbind/core/dtype.h"

namespace symbind::cpu_backend {

// Replaces each element by its activation; an empty act_type leaves them.
template <class T>
void apply_activation(const std::string& act_type, T* data, int64_t count);

}  // namespace symbind::cpu_backend
