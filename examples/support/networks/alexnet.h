// AlexNet: five convolutions with local response normalization, and three fully connected layers.
#pragma once

#include <string>

#include "symbind/symbind.h"

#include "examples/support/networks/parts.h"

namespace networks {

using namespace symbind;

struct AlexNet {
  int64_t classes = 1000;
  int64_t groups = 1;  // of the second, fourth and fifth convolution; the published network has 2
};

namespace alexnet_parts {

using namespace parts;

struct Layer {
  int64_t filters, kernel, stride, pad, groups;
  bool pooled;
};

inline Symbol conv_relu(const Symbol& data, const Layer& layer, int number) {
  const Symbol conv = convolution(data,
                                  {.kernel = {layer.kernel, layer.kernel},
                                   .stride = {layer.stride, layer.stride},
                                   .pad = {layer.pad, layer.pad},
                                   .num_filter = layer.filters,
                                   .num_group = layer.groups},
                                  join("conv", number));
  return relu(conv, join("relu", number));
}

inline Symbol hidden(const Symbol& data, int number) {
  const Symbol net = fully_connected(data, {.num_hidden = 4096}, join("fc", number));
  return dropout(relu(net, join("relu", number + 5)), {.p = 0.5}, join("dropout", number));
}

}  // namespace alexnet_parts

// For images of 67 pixels a side or more. With 227 it has 62.4 million parameters, 61.0 million in two groups; with
// 224, 50.8 million.
inline Symbol alexnet(const AlexNet& options = {}) {
  using namespace alexnet_parts;
  const int64_t groups = options.groups;
  const Layer layers[] = {{96, 11, 4, 0, 1, true},
                          {256, 5, 1, 2, groups, true},
                          {384, 3, 1, 1, 1, false},
                          {384, 3, 1, 1, groups, false},
                          {256, 3, 1, 1, groups, true}};
  Symbol net = Symbol::variable("data");
  int number = 1, pools = 0;
  for (const Layer& layer : layers) {
    net = conv_relu(net, layer, number);
    if (number <= 2) net = lrn(net, {.alpha = 1e-4, .beta = 0.75, .knorm = 2, .nsize = 5}, join("lrn", number));
    if (layer.pooled) net = pool(net, "max", {.kernel = 3, .stride = 2}, join("pool", ++pools));
    ++number;
  }
  net = hidden(flatten(net, {}, "flatten"), 1);
  net = fully_connected(hidden(net, 2), {.num_hidden = options.classes}, "fc3");
  return softmax_output(net, {}, "softmax");
}

}  // namespace networks
