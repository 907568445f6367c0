#pragma once

#include <cstdint>
#include <string_view>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

// What happens to a gradient: it is not computed, overwrites its array, or is added to it.
enum class GradReq : uint8_t { null, write, add };

GradReq grad_req_from_name(std::string_view name);

}  // namespace symbind
