// Layers that several networks are built from.
#pragma once

#include <cmath>
#include <string>

#include "symbind/symbind.h"

namespace networks::parts {

using namespace symbind;

inline Symbol relu(const Symbol& data, const std::string& name) { return activation(data, {.act_type = "relu"}, name); }

// A square convolution without bias that keeps the size at stride 1.
inline Symbol conv(const Symbol& data, int64_t filters, int64_t kernel, int64_t stride, const std::string& name,
                   int64_t groups = 1) {
  return convolution(data,
                     {.kernel = {kernel, kernel},
                      .stride = {stride, stride},
                      .pad = {kernel / 2, kernel / 2},
                      .num_filter = filters,
                      .num_group = groups,
                      .no_bias = true},
                     name);
}

inline Symbol norm(const Symbol& data, const std::string& name, bool fix_gamma = false) {
  return batch_norm(data, {.eps = 2e-5, .momentum = 0.9, .fix_gamma = fix_gamma}, name);
}

struct Window {
  int64_t kernel, stride = 1, pad = 0;
};

inline Symbol pool(const Symbol& data, const std::string& type, const Window& window, const std::string& name) {
  return pooling(data,
                 {.kernel = {window.kernel, window.kernel},
                  .pool_type = type,
                  .stride = {window.stride, window.stride},
                  .pad = {window.pad, window.pad}},
                 name);
}

// The mean of each channel.
inline Symbol global_pool(const Symbol& data, const std::string& name) {
  return pooling(data, {.kernel = {7, 7}, .pool_type = "avg", .global_pool = true}, name);
}

// One probability per class.
inline Symbol classify(const Symbol& features, int64_t classes, const std::string& name) {
  return softmax_output(fully_connected(flatten(features, {}, "flatten"), {.num_hidden = classes}, name), {},
                        "softmax");
}

// A width scaled by a multiplier, to the nearest whole number of channels.
inline int64_t scaled(int64_t channels, double multiplier) {
  return std::lround(static_cast<double>(channels) * multiplier);
}

}  // namespace networks::parts
