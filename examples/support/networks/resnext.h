// ResNeXt: residual units whose inner convolution is split into groups.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/networks/parts.h"

namespace networks {

using namespace symbind;

struct ResNeXt {
  int depth = 50;  // 50, 101 or 152
  int64_t groups = 32;
  int64_t classes = 1000;
};

namespace resnext_parts {

using namespace parts;

struct Unit {
  int64_t filters, stride, groups;
  bool same_shape;   // the input can be added as it is
  std::string name;  // "stage1_unit1_"
};

inline Symbol residual(const Symbol& data, const Unit& unit) {
  const auto step = [&](const Symbol& x, int64_t filters, int64_t kernel, int64_t stride, int number) {
    const int64_t groups = number == 2 ? unit.groups : 1;
    return norm(conv(x, filters, kernel, stride, join(unit.name, "conv", number), groups),
                join(unit.name, "bn", number));
  };
  const int64_t inner = unit.filters / 2;
  Symbol body = relu(step(data, inner, 1, 1, 1), unit.name + "relu1");
  body = relu(step(body, inner, 3, unit.stride, 2), unit.name + "relu2");
  body = step(body, unit.filters, 1, 1, 3);
  const Symbol shortcut =
      unit.same_shape ? data : norm(conv(data, unit.filters, 1, unit.stride, unit.name + "sc"), unit.name + "sc_bn");
  return relu(body + shortcut, unit.name + "relu");
}

}  // namespace resnext_parts

// For images of 32 pixels a side or more.
inline Symbol resnext(const ResNeXt& options = {}) {
  using namespace resnext_parts;
  static const std::map<int, std::vector<int>> units_of_depth{
      {50, {3, 4, 6, 3}}, {101, {3, 4, 23, 3}}, {152, {3, 8, 36, 3}}};
  const auto units = units_of_depth.find(options.depth);
  require(units != units_of_depth.end(), "a ResNeXt has a depth of 50, 101 or 152, not ", options.depth);

  Symbol net = norm(Symbol::variable("data"), "bn_data", /*fix_gamma=*/true);
  net = relu(norm(conv(net, 64, 7, 2, "conv0"), "bn0"), "relu0");
  net = pool(net, "max", {.kernel = 3, .stride = 2, .pad = 1}, "pool0");
  int64_t filters = 256;
  for (size_t stage = 0; stage < units->second.size(); ++stage, filters *= 2)
    for (int number = 1; number <= units->second[stage]; ++number) {
      const bool first = number == 1;
      net = residual(net, {filters, first && stage > 0 ? 2 : 1, options.groups, !first,
                           join("stage", stage + 1, "_unit", number, "_")});
    }
  return classify(global_pool(net, "pool1"), options.classes, "fc1");
}

}  // namespace networks
