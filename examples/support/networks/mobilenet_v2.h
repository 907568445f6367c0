// MobileNet v2: inverted residual blocks, which widen, convolve each channel by itself, and narrow again.
#pragma once

#include <algorithm>
#include <string>

#include "symbind/symbind.h"

#include "examples/support/networks/parts.h"

namespace networks {

using namespace symbind;

struct MobileNetV2 {
  int64_t classes = 1000;
  double multiplier = 1;  // of all widths but the last, which becomes no narrower
};

namespace mobilenet_v2_parts {

using namespace parts;

struct Layer {
  int64_t filters, kernel = 1, stride = 1, groups = 1;
  bool linear = false;  // no activation
};

inline Symbol unit(const Symbol& data, const Layer& layer, const std::string& name) {
  Symbol net = conv(data, layer.filters, layer.kernel, layer.stride, name + "-conv2d", layer.groups);
  net = batch_norm(net, {.eps = 1e-5, .fix_gamma = false}, name + "-batchnorm");
  return layer.linear ? net : clip(net, {.a_min = 0, .a_max = 6}, name + "-relu6");
}

struct Block {
  int64_t in, out, expansion, stride;
};

// An expansion by 1 has no convolution.
inline Symbol inverted_residual(const Symbol& data, const Block& block, const std::string& name) {
  const int64_t inner = block.in * block.expansion;
  Symbol net = block.expansion == 1 ? data : unit(data, {.filters = inner}, name + "-exp");
  net = unit(net, {.filters = inner, .kernel = 3, .stride = block.stride, .groups = inner}, name + "-depthwise");
  net = unit(net, {.filters = block.out, .linear = true}, name + "-linear");
  return block.stride == 1 && block.in == block.out ? elemwise_add(data, net, {}, name + "-shortcut") : net;
}

}  // namespace mobilenet_v2_parts

// For images of 32 pixels a side or more.
inline Symbol mobilenet_v2(const MobileNetV2& options = {}) {
  using namespace mobilenet_v2_parts;
  const struct {
    int64_t expansion, filters, blocks, stride;  // of the first block; that of the others is 1
  } sequences[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                   {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  int64_t channels = scaled(32, options.multiplier);
  Symbol net = unit(Symbol::variable("data"), {.filters = channels, .kernel = 3, .stride = 2}, "first-3x3-conv");
  int number = 0;
  for (const auto& sequence : sequences) {
    const int64_t filters = scaled(sequence.filters, options.multiplier);
    for (int64_t block = 0; block < sequence.blocks; ++block) {
      const int64_t stride = block == 0 ? sequence.stride : 1;
      net = inverted_residual(net, {channels, filters, sequence.expansion, stride},
                              join("seq-", number, "-block", block));
      channels = filters;
    }
    ++number;
  }
  net = unit(net, {.filters = scaled(1280, std::max(1.0, options.multiplier))}, "last-1x1-conv");
  return classify(global_pool(net, "global_pool"), options.classes, "fc");
}

}  // namespace networks
