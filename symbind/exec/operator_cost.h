// What the steps of one operator cost.
#pragma once

#include <cstddef>
#include <string>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

// In one run of a plan.
struct OperatorCost {
  std::string op;            // its name
  size_t steps = 0;          // steps of this operator
  double seconds = 0;        // mean over the runs that were timed
  size_t bytes = 0;          // read and written, by the shapes of the inputs and outputs; scratch memory does not count
  double multiply_adds = 0;  // of matrix products, convolutions and recurrent layers: each is two operations
};

}  // namespace symbind
