// MobileNet: depthwise convolutions, each followed by a 1×1 convolution over the channels.
#pragma once

#include <string>

#include "symbind/symbind.h"

#include "examples/support/networks/parts.h"

namespace networks {

using namespace symbind;

struct MobileNet {
  int64_t classes = 1000;
  double multiplier = 1;  // of all widths
};

namespace mobilenet_parts {

using namespace parts;

inline Symbol unit(const Symbol& data, int64_t filters, int64_t kernel, int64_t stride, int64_t groups,
                   const std::string& name) {
  const Symbol net = conv(data, filters, kernel, stride, name + "_conv2d", groups);
  return relu(batch_norm(net, {.fix_gamma = true}, name + "_batchnorm"), name + "_relu");
}

}  // namespace mobilenet_parts

// For images of 32 pixels a side or more.
inline Symbol mobilenet(const MobileNet& options = {}) {
  using namespace mobilenet_parts;
  const struct {
    int64_t filters, stride;
  } layers[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  int64_t channels = scaled(32, options.multiplier);
  Symbol net = unit(Symbol::variable("data"), channels, 3, 2, 1, "conv_1");
  int number = 2;
  for (const auto& layer : layers) {
    net = unit(net, channels, 3, layer.stride, channels, join("conv_", number, "_dw"));
    channels = scaled(layer.filters, options.multiplier);
    net = unit(net, channels, 1, 1, 1, join("conv_", number));
    ++number;
  }
  return classify(global_pool(net, "global_pool"), options.classes, "fc");
}

}  // namespace networks
