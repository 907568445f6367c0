// Activation: one of five functions applied to every element.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

struct Activation {
  Required<std::string> act_type = {};  // one of act_type::all
};
inline constexpr Builder<Activation> activation;

// (out_grad, output) → data_grad; softsign reads data instead of output.
struct ActivationGrad : Activation {};
inline constexpr Builder<ActivationGrad> activation_grad;

}  // namespace symbind
