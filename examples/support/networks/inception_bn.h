// Inception-BN: blocks of parallel convolutions whose outputs are concatenated, each normalised.
#pragma once

#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/networks/parts.h"

namespace networks {

using namespace symbind;

struct InceptionBN {
  int64_t classes = 1000;
};

namespace inception_bn_parts {

using namespace parts;

inline Symbol unit(const Symbol& data, int64_t filters, const Window& window, const std::string& name) {
  const Symbol conv = convolution(data,
                                  {.kernel = {window.kernel, window.kernel},
                                   .stride = {window.stride, window.stride},
                                   .pad = {window.pad, window.pad},
                                   .num_filter = filters},
                                  "conv_" + name);
  const Symbol normed = batch_norm(conv, {.eps = 1e-5, .momentum = 0.9, .fix_gamma = false}, "bn_" + name);
  return relu(normed, "relu_" + name);
}

struct Filters {
  int64_t one, three_reduce, three, double_reduce, twice;
};

// 3×3 convolutions, one and two in a row, each after a 1×1 convolution that narrows its input.
inline std::vector<Symbol> branches(const Symbol& data, const Filters& filters, int64_t stride,
                                    const std::string& name) {
  Symbol three = unit(data, filters.three_reduce, {.kernel = 1}, name + "_3x3_reduce");
  three = unit(three, filters.three, {.kernel = 3, .stride = stride, .pad = 1}, name + "_3x3");
  Symbol twice = unit(data, filters.double_reduce, {.kernel = 1}, name + "_double_3x3_reduce");
  twice = unit(twice, filters.twice, {.kernel = 3, .stride = 1, .pad = 1}, name + "_double_3x3_0");
  twice = unit(twice, filters.twice, {.kernel = 3, .stride = stride, .pad = 1}, name + "_double_3x3_1");
  return {three, twice};
}

// Keeps the size.
inline Symbol block(const Symbol& data, const Filters& filters, const std::string& pool_type, int64_t projected,
                    const std::string& name) {
  std::vector<Symbol> all{unit(data, filters.one, {.kernel = 1}, name + "_1x1")};
  for (const Symbol& branch : branches(data, filters, 1, name)) all.push_back(branch);
  const Symbol pooled =
      pool(data, pool_type, {.kernel = 3, .stride = 1, .pad = 1}, pool_type + "_pool_" + name + "_pool");
  all.push_back(unit(pooled, projected, {.kernel = 1}, name + "_proj"));
  return concat(all, {}, "ch_concat_" + name + "_chconcat");
}

// Halves height and width.
inline Symbol reduction(const Symbol& data, const Filters& filters, const std::string& name) {
  std::vector<Symbol> all = branches(data, filters, 2, name);
  all.push_back(pool(data, "max", {.kernel = 3, .stride = 2, .pad = 1}, "max_pool_" + name + "_pool"));
  return concat(all, {}, "ch_concat_" + name + "_chconcat");
}

}  // namespace inception_bn_parts

// For images of 32 pixels a side or more; 224 is what it was made for.
inline Symbol inception_bn(const InceptionBN& options = {}) {
  using namespace inception_bn_parts;
  Symbol net = unit(Symbol::variable("data"), 64, {.kernel = 7, .stride = 2, .pad = 3}, "1");
  net = pool(net, "max", {.kernel = 3, .stride = 2}, "pool_1");
  net = unit(net, 64, {.kernel = 1}, "2_red");
  net = unit(net, 192, {.kernel = 3, .stride = 1, .pad = 1}, "2");
  net = pool(net, "max", {.kernel = 3, .stride = 2}, "pool_2");
  net = block(net, {64, 64, 64, 64, 96}, "avg", 32, "3a");
  net = block(net, {64, 64, 96, 64, 96}, "avg", 64, "3b");
  net = reduction(net, {0, 128, 160, 64, 96}, "3c");
  net = block(net, {224, 64, 96, 96, 128}, "avg", 128, "4a");
  net = block(net, {192, 96, 128, 96, 128}, "avg", 128, "4b");
  net = block(net, {160, 128, 160, 128, 160}, "avg", 128, "4c");
  net = block(net, {96, 128, 192, 160, 192}, "avg", 128, "4d");
  net = reduction(net, {0, 128, 192, 192, 256}, "4e");
  net = block(net, {352, 192, 320, 160, 224}, "avg", 128, "5a");
  net = block(net, {352, 192, 320, 192, 224}, "max", 128, "5b");
  return classify(global_pool(net, "global_pool"), options.classes, "fc1");
}

}  // namespace networks
