// The functions of Activation and their slopes: the same as on a CPU, one at a time for device code.
#pragma once

#include <string_view>

#include "symbind/backend/activation.h"

namespace symbind::cuda_backend {

// Calls use(function) with the function of that name, or with its gradient.
template <class Use>
decltype(auto) with_activation(std::string_view type, Use&& use) {
  return pointwise::visit_activation(type, [&](auto function, auto) -> decltype(auto) { return use(function); });
}
template <class Use>
decltype(auto) with_activation_grad(std::string_view type, Use&& use) {
  return pointwise::visit_activation(type, [&](auto, auto gradient) -> decltype(auto) { return use(gradient); });
}

}  // namespace symbind::cuda_backend
