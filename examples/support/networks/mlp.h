// A multi-layer perceptron: fully connected layers with an activation between them.
#pragma once

#include <string>
#include <vector>

#include "symbind/symbind.h"

namespace networks {

using namespace symbind;

struct MLP {
  int64_t classes = 10;
  std::vector<int64_t> hidden = {128, 64};
  std::string activation = "relu";
};

inline Symbol mlp(const MLP& options = {}) {
  Symbol net = Symbol::variable("data");
  int number = 1;
  for (const int64_t size : options.hidden) {
    net = fully_connected(net, {.num_hidden = size}, join("fc", number));
    net = activation(net, {.act_type = options.activation}, join(options.activation, number));
    ++number;
  }
  net = fully_connected(net, {.num_hidden = options.classes}, join("fc", number));
  return softmax_output(net, {}, "softmax");
}

}  // namespace networks
