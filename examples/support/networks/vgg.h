// VGG: stages of 3×3 convolutions with pooling between them, and three fully connected layers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/networks/parts.h"

namespace networks {

using namespace symbind;

struct VGG {
  int depth = 16;  // 11, 13, 16 or 19
  bool batch_norm = false;
  int64_t classes = 1000;
};

// For images of 32 pixels a side or more.
inline Symbol vgg(const VGG& options = {}) {
  using namespace parts;
  static const std::map<int, std::vector<int>> layers_of_depth{
      {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
  const auto layers = layers_of_depth.find(options.depth);
  require(layers != layers_of_depth.end(), "VGG has a depth of 11, 13, 16 or 19, not ", options.depth);
  const int64_t filters[] = {64, 128, 256, 512, 512};

  Symbol net = Symbol::variable("data");
  for (size_t stage = 0; stage < layers->second.size(); ++stage) {
    for (int layer = 1; layer <= layers->second[stage]; ++layer) {
      const std::string number = join(stage + 1, "_", layer);
      net = convolution(net, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = filters[stage]}, "conv" + number);
      if (options.batch_norm) net = batch_norm(net, {}, "bn" + number);
      net = relu(net, "relu" + number);
    }
    net = pool(net, "max", {.kernel = 2, .stride = 2}, join("pool", stage + 1));
  }
  net = flatten(net, {}, "flatten");
  for (const int number : {6, 7}) {
    net = relu(fully_connected(net, {.num_hidden = 4096}, join("fc", number)), join("relu", number));
    net = dropout(net, {.p = 0.5}, join("drop", number));
  }
  return softmax_output(fully_connected(net, {.num_hidden = options.classes}, "fc8"), {}, "softmax");
}

}  // namespace networks
