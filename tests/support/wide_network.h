// A network for tests of gradients that are exchanged while backward computes others.
#pragma once

#include "symbind/exec/gradient_watch.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/ops/loss.h"

namespace symbind::testing {

// The gradient of each of its wide layers is worth a report.
inline constexpr int64_t wide = 600;
static_assert(wide * wide * sizeof(float) > GradientWatch::bytes_each);

inline Symbol wide_network() {
  Symbol net = Symbol::variable("data");
  for (const char* const name : {"fc1", "fc2", "fc3"})
    net = activation(fully_connected(net, {.num_hidden = wide}, name), {.act_type = "tanh"});
  return softmax_output(fully_connected(net, {.num_hidden = 3}, "fc4"), {}, "softmax");
}

}  // namespace symbind::testing
