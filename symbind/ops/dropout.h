// Dropout: elements are set to zero at random, the others are scaled to preserve the expectation.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

// Outputs: output, and hidden mask: the factors 0 or 1/(1-p) of the elements, with extent 1 along `axes`; ones when
// nothing is dropped.
struct Dropout {
  double p = 0.5;
  std::string mode = "training";  // or always
  Tuple axes = {};                // along these a whole line is kept or dropped
  std::optional<bool> cudnn_off = false;
};
inline constexpr Builder<Dropout> dropout;

// Element i of the mask is kept when unit_float of its random word is below 1 - p.
inline bool drops(const Dropout& params, bool is_train) {
  return params.p > 0 && (is_train || params.mode == "always");
}

}  // namespace symbind
