// Inception-v3: blocks of parallel convolutions, with long kernels instead of large ones.
#pragma once

#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/networks/parts.h"

namespace networks {

using namespace symbind;

struct InceptionV3 {
  int64_t classes = 1000;
};

namespace inception_v3_parts {

using namespace parts;

// A convolution of a tower.
struct Layer {
  int64_t filters;
  Tuple kernel = {1, 1}, stride = {1, 1}, pad = {0, 0};
};

inline Layer same(int64_t filters, int64_t height, int64_t width) {
  return {.filters = filters, .kernel = {height, width}, .pad = {height / 2, width / 2}};
}

inline Symbol unit(const Symbol& data, const Layer& layer, const std::string& name) {
  const Symbol conv = convolution(
      data,
      {.kernel = layer.kernel, .stride = layer.stride, .pad = layer.pad, .num_filter = layer.filters, .no_bias = true},
      name + "_conv2d");
  return relu(batch_norm(conv, {.eps = 0.001, .fix_gamma = true}, name + "_batchnorm"), name + "_relu");
}

// Convolutions one after the other: name_conv, name_conv_1, name_conv_2, …
inline Symbol tower(const Symbol& data, const std::vector<Layer>& layers, const std::string& name) {
  Symbol net = data;
  for (size_t i = 0; i < layers.size(); ++i) net = unit(net, layers[i], name + (i ? join("_conv_", i) : "_conv"));
  return net;
}

inline Symbol merged(const std::vector<Symbol>& branches, const std::string& name) {
  return concat(branches, {}, "ch_concat_" + name + "_chconcat");
}

inline Symbol pooled(const Symbol& data, const std::string& type, const std::string& name) {
  return pool(data, type, {.kernel = 3, .stride = 1, .pad = 1}, type + "_pool_" + name + "_pool");
}

inline Symbol shrunk(const Symbol& data, const std::string& name) {
  return pool(data, "max", {.kernel = 3, .stride = 2}, "max_pool_" + name + "_pool");
}

// 35×35 for images of 299 pixels a side.
inline Symbol block_a(const Symbol& data, int64_t projected, const std::string& name) {
  return merged({tower(data, {{64}}, name), tower(data, {{48}, same(64, 5, 5)}, name + "_tower"),
                 tower(data, {{64}, same(96, 3, 3), same(96, 3, 3)}, name + "_tower_1"),
                 tower(pooled(data, "avg", name), {{projected}}, name + "_tower_2")},
                name);
}

// From 35×35 to 17×17.
inline Symbol reduction_a(const Symbol& data, const std::string& name) {
  const Layer half{.filters = 384, .kernel = {3, 3}, .stride = {2, 2}};
  const Layer narrow_half{.filters = 96, .kernel = {3, 3}, .stride = {2, 2}};
  return merged({tower(data, {half}, name), tower(data, {{64}, same(96, 3, 3), narrow_half}, name + "_tower"),
                 shrunk(data, name)},
                name);
}

// 17×17.
inline Symbol block_b(const Symbol& data, int64_t inner, const std::string& name) {
  return merged(
      {tower(data, {{192}}, name), tower(data, {{inner}, same(inner, 1, 7), same(192, 7, 1)}, name + "_tower"),
       tower(data, {{inner}, same(inner, 7, 1), same(inner, 1, 7), same(inner, 7, 1), same(192, 1, 7)},
             name + "_tower_1"),
       tower(pooled(data, "avg", name), {{192}}, name + "_tower_2")},
      name);
}

// From 17×17 to 8×8.
inline Symbol reduction_b(const Symbol& data, const std::string& name) {
  const auto half = [](int64_t filters) { return Layer{.filters = filters, .kernel = {3, 3}, .stride = {2, 2}}; };
  return merged(
      {tower(data, {{192}, half(320)}, name + "_tower"),
       tower(data, {{192}, same(192, 1, 7), same(192, 7, 1), half(192)}, name + "_tower_1"), shrunk(data, name)},
      name);
}

// 8×8: the towers end in two convolutions side by side.
inline Symbol block_c(const Symbol& data, const std::string& pool_type, const std::string& name) {
  const auto forked = [](const Symbol& stem, const std::string& tower_name) {
    return std::vector{unit(stem, same(384, 1, 3), tower_name + "_mixed_conv"),
                       unit(stem, same(384, 3, 1), tower_name + "_mixed_conv_1")};
  };
  std::vector<Symbol> branches{tower(data, {{320}}, name)};
  for (const Symbol& branch : forked(tower(data, {{384}}, name + "_tower"), name + "_tower"))
    branches.push_back(branch);
  const Symbol stem = tower(data, {{448}, same(384, 3, 3)}, name + "_tower_1");
  for (const Symbol& branch : forked(stem, name + "_tower_1")) branches.push_back(branch);
  branches.push_back(tower(pooled(data, pool_type, name), {{192}}, name + "_tower_2"));
  return merged(branches, name);
}

}  // namespace inception_v3_parts

// For images of 75 pixels a side or more; 299 is what it was made for.
inline Symbol inception_v3(const InceptionV3& options = {}) {
  using namespace inception_v3_parts;
  Symbol net = unit(Symbol::variable("data"), {.filters = 32, .kernel = {3, 3}, .stride = {2, 2}}, "conv");
  net = unit(net, {.filters = 32, .kernel = {3, 3}}, "conv_1");
  net = unit(net, same(64, 3, 3), "conv_2");
  net = pool(net, "max", {.kernel = 3, .stride = 2}, "pool");
  net = unit(net, {.filters = 80}, "conv_3");
  net = unit(net, {.filters = 192, .kernel = {3, 3}}, "conv_4");
  net = pool(net, "max", {.kernel = 3, .stride = 2}, "pool1");
  net = block_a(net, 32, "mixed");
  net = block_a(net, 64, "mixed_1");
  net = block_a(net, 64, "mixed_2");
  net = reduction_a(net, "mixed_3");
  net = block_b(net, 128, "mixed_4");
  net = block_b(net, 160, "mixed_5");
  net = block_b(net, 160, "mixed_6");
  net = block_b(net, 192, "mixed_7");
  net = reduction_b(net, "mixed_8");
  net = block_c(net, "avg", "mixed_9");
  net = block_c(net, "max", "mixed_10");
  return classify(global_pool(net, "global_pool"), options.classes, "fc1");
}

}  // namespace networks
