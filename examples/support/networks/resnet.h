// Residual networks of 18 to 152 layers, as first published (v1, v1.5) and in the pre-activation form (v2).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/networks/parts.h"

namespace networks {

using namespace symbind;

struct ResNet {
  int depth = 50;   // 18, 34, 50, 101 or 152
  int version = 2;  // 1: normalise after each convolution; 2: normalise and activate before it
  int64_t classes = 1000;
  int64_t width = 64;  // channels after the first convolution; those of all others follow it
  // In bottlenecks of version 1: which convolution has the stride, the first, as published, or the 3×3 one (v1.5).
  bool stride_in_3x3 = false;
};

namespace resnet_parts {

using namespace parts;

struct Unit {
  int64_t filters;
  int64_t stride;
  bool bottleneck;   // three convolutions, the inner ones a quarter as wide
  bool same_shape;   // the input can be added as it is
  std::string name;  // "stage1_unit1_"
  bool stride_in_3x3 = false;
};

// Each convolution takes what has been normalised and activated; the sum of units stays untouched.
inline Symbol pre_activation(const Symbol& data, const Unit& unit) {
  const auto step = [&](const Symbol& x, int number) {
    return relu(norm(x, join(unit.name, "bn", number)), join(unit.name, "relu", number));
  };
  const Symbol start = step(data, 1);
  const int64_t inner = unit.bottleneck ? unit.filters / 4 : unit.filters;
  Symbol body = start;
  if (unit.bottleneck) {
    body = step(conv(body, inner, 1, 1, unit.name + "conv1"), 2);
    body = step(conv(body, inner, 3, unit.stride, unit.name + "conv2"), 3);
    body = conv(body, unit.filters, 1, 1, unit.name + "conv3");
  } else {
    body = step(conv(body, inner, 3, unit.stride, unit.name + "conv1"), 2);
    body = conv(body, unit.filters, 3, 1, unit.name + "conv2");
  }
  return body + (unit.same_shape ? data : conv(start, unit.filters, 1, unit.stride, unit.name + "sc"));
}

// The first form: convolution, normalisation, activation; the sum is activated.
inline Symbol post_activation(const Symbol& data, const Unit& unit) {
  const auto step = [&](const Symbol& x, int64_t filters, int64_t kernel, int64_t stride, int number) {
    return norm(conv(x, filters, kernel, stride, join(unit.name, "conv", number)), join(unit.name, "bn", number));
  };
  Symbol body = data;
  if (unit.bottleneck) {
    const int64_t first = unit.stride_in_3x3 ? 1 : unit.stride;
    body = relu(step(body, unit.filters / 4, 1, first, 1), unit.name + "relu1");
    body = relu(step(body, unit.filters / 4, 3, unit.stride / first, 2), unit.name + "relu2");
    body = step(body, unit.filters, 1, 1, 3);
  } else {
    body = relu(step(body, unit.filters, 3, unit.stride, 1), unit.name + "relu1");
    body = step(body, unit.filters, 3, 1, 2);
  }
  const Symbol shortcut =
      unit.same_shape ? data : norm(conv(data, unit.filters, 1, unit.stride, unit.name + "sc"), unit.name + "sc_bn");
  return relu(body + shortcut, unit.name + "relu");
}

}  // namespace resnet_parts

// For images of 32 pixels a side or more; 224 is what it was made for.
inline Symbol resnet(const ResNet& options = {}) {
  using namespace resnet_parts;
  static const std::map<int, std::vector<int>> units_of_depth{
      {18, {2, 2, 2, 2}}, {34, {3, 4, 6, 3}}, {50, {3, 4, 6, 3}}, {101, {3, 4, 23, 3}}, {152, {3, 8, 36, 3}}};
  const auto units = units_of_depth.find(options.depth);
  require(units != units_of_depth.end(), "a ResNet has a depth of 18, 34, 50, 101 or 152, not ", options.depth);
  require(options.version == 1 || options.version == 2, "ResNet comes as v1 and v2, not v", options.version);
  const bool bottleneck = options.depth >= 50, pre = options.version == 2;

  Symbol net = Symbol::variable("data");
  if (pre) net = norm(net, "bn_data", /*fix_gamma=*/true);
  net = relu(norm(conv(net, options.width, 7, 2, "conv0"), "bn0"), "relu0");
  net = pool(net, "max", {.kernel = 3, .stride = 2, .pad = 1}, "pool0");
  int64_t filters = bottleneck ? 4 * options.width : options.width;
  for (size_t stage = 0; stage < units->second.size(); ++stage, filters *= 2) {
    for (int number = 1; number <= units->second[stage]; ++number) {
      const bool first = number == 1;
      // The first form needs no convolution where a stage begins with what it ends with.
      const bool same_shape = !first || (!pre && !bottleneck && stage == 0);
      const Unit unit{filters,
                      first && stage > 0 ? 2 : 1,
                      bottleneck,
                      same_shape,
                      join("stage", stage + 1, "_unit", number, "_"),
                      options.stride_in_3x3};
      net = pre ? pre_activation(net, unit) : post_activation(net, unit);
    }
  }
  if (pre) net = relu(norm(net, "bn1"), "relu1");
  return classify(global_pool(net, "pool1"), options.classes, "fc1");
}

}  // namespace networks
