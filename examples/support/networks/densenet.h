// DenseNet: every layer of a stage reads the outputs of all layers before it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/networks/parts.h"

namespace networks {

using namespace symbind;

struct DenseNet {
  int depth = 121;      // 121, 169 or 201
  int64_t growth = 32;  // channels a layer adds
  int64_t classes = 1000;
};

namespace densenet_parts {

using namespace parts;

inline Symbol norm_relu(const Symbol& data, const std::string& name, const std::string& number) {
  return relu(norm(data, name + "bn" + number), name + "relu" + number);
}

inline Symbol layer(const Symbol& data, int64_t growth, const std::string& name) {
  Symbol net = conv(norm_relu(data, name, "1"), 4 * growth, 1, 1, name + "conv1");
  net = conv(norm_relu(net, name, "2"), growth, 3, 1, name + "conv2");
  return concat({data, net}, {}, name + "concat");
}

inline Symbol transition(const Symbol& data, int64_t filters, const std::string& name) {
  const Symbol net = conv(norm_relu(data, name, ""), filters, 1, 1, name + "conv");
  return pool(net, "avg", {.kernel = 2, .stride = 2}, name + "pool");
}

}  // namespace densenet_parts

// For images of 32 pixels a side or more.
inline Symbol densenet(const DenseNet& options = {}) {
  using namespace densenet_parts;
  static const std::map<int, std::vector<int>> layers_of_depth{
      {121, {6, 12, 24, 16}}, {169, {6, 12, 32, 32}}, {201, {6, 12, 48, 32}}};
  const auto layers = layers_of_depth.find(options.depth);
  require(layers != layers_of_depth.end(), "a DenseNet has a depth of 121, 169 or 201, not ", options.depth);

  int64_t channels = 2 * options.growth;
  Symbol net = norm_relu(conv(Symbol::variable("data"), channels, 7, 2, "conv0"), "", "0");
  net = pool(net, "max", {.kernel = 3, .stride = 2, .pad = 1}, "pool0");
  const size_t stages = layers->second.size();
  for (size_t stage = 0; stage < stages; ++stage) {
    for (int number = 1; number <= layers->second[stage]; ++number, channels += options.growth)
      net = layer(net, options.growth, join("stage", stage + 1, "_unit", number, "_"));
    if (stage + 1 < stages) net = transition(net, channels /= 2, join("transition", stage + 1, "_"));
  }
  return classify(global_pool(norm_relu(net, "", "1"), "pool1"), options.classes, "fc1");
}

}  // namespace networks
