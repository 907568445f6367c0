// LeNet, a small convolutional network for digits.
#pragma once

#include <string>
#include <vector>

#include "symbind/symbind.h"

namespace networks {

using namespace symbind;

struct LeNet {
  int64_t classes = 10;
  std::vector<int64_t> filters = {20, 50};  // of each convolution
  int64_t hidden = 500;
  std::string activation = "tanh", pooling = "max";
};

inline Symbol lenet(const LeNet& options = {}) {
  const auto activated = [&](const Symbol& data, int number) {
    return activation(data, {.act_type = options.activation}, join(options.activation, number));
  };
  Symbol net = Symbol::variable("data");
  int number = 1;
  for (const int64_t filters : options.filters) {
    net = convolution(net, {.kernel = {5, 5}, .num_filter = filters}, join("conv", number));
    net = pooling(activated(net, number), {.kernel = {2, 2}, .pool_type = options.pooling, .stride = {2, 2}},
                  join("pool", number));
    ++number;
  }
  net = fully_connected(flatten(net, {}, "flatten"), {.num_hidden = options.hidden}, "fc1");
  net = fully_connected(activated(net, number), {.num_hidden = options.classes}, "fc2");
  return softmax_output(net, {}, "softmax");
}

}  // namespace networks
