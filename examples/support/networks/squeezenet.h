// SqueezeNet: blocks that narrow by a 1×1 convolution and widen by a 1×1 and a 3×3 one; it has no fully connected
// layer.
#pragma once

#include <string>

#include "symbind/symbind.h"

#include "examples/support/networks/parts.h"

namespace networks {

using namespace symbind;

struct SqueezeNet {
  std::string version = "1.0";  // 1.1 pools earlier and needs 2.4 times less computation
  int64_t classes = 1000;
};

namespace squeezenet_parts {

using namespace parts;

inline Symbol conv_relu(const Symbol& data, const Convolution& params, const std::string& prefix,
                        const std::string& name) {
  return relu(convolution(data, params, prefix + name), prefix + "relu_" + name);
}

inline Symbol fire(const Symbol& data, int64_t squeezed, int64_t expanded, const std::string& name) {
  const Symbol net = conv_relu(data, {.kernel = {1, 1}, .num_filter = squeezed}, name, "squeeze1x1");
  const Symbol one = conv_relu(net, {.kernel = {1, 1}, .num_filter = expanded}, name, "expand1x1");
  const Symbol three = conv_relu(net, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = expanded}, name, "expand3x3");
  return concat({one, three}, {}, name + "concat");
}

inline Symbol shrink(const Symbol& data, const std::string& name) {  // the last window may reach over the edge
  return pooling(data, {.kernel = {3, 3}, .pool_type = "max", .pooling_convention = "full", .stride = {2, 2}}, name);
}

}  // namespace squeezenet_parts

// For images of 32 pixels a side or more.
inline Symbol squeezenet(const SqueezeNet& options = {}) {
  using namespace squeezenet_parts;
  require(options.version == "1.0" || options.version == "1.1", "SqueezeNet comes as 1.0 and 1.1, not ",
          options.version);
  const bool first_form = options.version == "1.0";
  Symbol net = Symbol::variable("data");
  net = first_form ? conv_relu(net, {.kernel = {7, 7}, .stride = {2, 2}, .num_filter = 96}, "", "conv1")
                   : conv_relu(net, {.kernel = {3, 3}, .stride = {2, 2}, .num_filter = 64}, "", "conv1");
  net = shrink(net, "pool1");
  const int64_t squeezed[] = {16, 16, 32, 32, 48, 48, 64, 64};
  for (int number = 2; number <= 9; ++number) {
    const int64_t width = squeezed[number - 2];
    net = fire(net, width, 4 * width, join("fire", number, "_"));
    if (first_form ? number == 4 || number == 8 : number == 3 || number == 5) net = shrink(net, join("pool", number));
  }
  net = dropout(net, {.p = 0.5}, "drop9");
  net = conv_relu(net, {.kernel = {1, 1}, .num_filter = options.classes}, "", "conv10");
  return softmax_output(flatten(global_pool(net, "pool10"), {}, "flatten"), {}, "softmax");
}

}  // namespace networks
