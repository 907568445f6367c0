// The list of networks that a program can choose from by name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/networks.h"

namespace networks {

// What can be said about a network by options; a family ignores what it does not have. What is left out is as the
// family has it.
struct NetworkOptions {
  int64_t classes = 1000;
  std::optional<int> depth = std::nullopt;            // VGG, ResNet, ResNeXt, DenseNet
  std::optional<int64_t> groups = std::nullopt;       // AlexNet, ResNeXt
  std::optional<double> multiplier = std::nullopt;    // MobileNet
  std::optional<bool> batch_norm = std::nullopt;      // VGG
  std::optional<std::string> version = std::nullopt;  // SqueezeNet
};

struct NetworkFamily {
  std::string name, about;
  int64_t channels, image_size, least_size;  // of the images it is made for, and the smallest it takes
  std::function<Symbol(const NetworkOptions&)> build;
};

// One entry per name of --network; examples/python/symbols has the same.
inline const std::vector<NetworkFamily>& network_families() {
  using Given = const NetworkOptions&;
  static const std::vector<NetworkFamily> all{
      {"alexnet", "AlexNet; groups 1 or 2", 3, 227, 67,
       [](Given given) { return alexnet({.classes = given.classes, .groups = given.groups.value_or(1)}); }},
      {"densenet", "DenseNet of 121, 169 or 201 layers", 3, 224, 32,
       [](Given given) { return densenet({.depth = given.depth.value_or(121), .classes = given.classes}); }},
      {"inception-bn", "Inception with batch normalisation", 3, 224, 32,
       [](Given given) { return inception_bn({.classes = given.classes}); }},
      {"inception-v3", "Inception-v3", 3, 299, 75,
       [](Given given) { return inception_v3({.classes = given.classes}); }},
      {"lenet", "LeNet, for digits", 1, 28, 16, [](Given given) { return lenet({.classes = given.classes}); }},
      {"mlp", "a multi-layer perceptron, for digits", 1, 28, 1,
       [](Given given) { return mlp({.classes = given.classes}); }},
      {"mobilenet", "MobileNet; a multiplier of its widths", 3, 224, 32,
       [](Given given) { return mobilenet({.classes = given.classes, .multiplier = given.multiplier.value_or(1)}); }},
      {"mobilenetv2", "MobileNet v2; a multiplier of its widths", 3, 224, 32,
       [](Given given) {
         return mobilenet_v2({.classes = given.classes, .multiplier = given.multiplier.value_or(1)});
       }},
      {"resnet", "pre-activation ResNet of 18, 34, 50, 101 or 152 layers", 3, 224, 32,
       [](Given given) { return resnet({.depth = given.depth.value_or(50), .classes = given.classes}); }},
      {"resnet-v1", "ResNet as first published, of 18, 34, 50, 101 or 152 layers", 3, 224, 32,
       [](Given given) { return resnet({.depth = given.depth.value_or(50), .version = 1, .classes = given.classes}); }},
      {"resnext", "ResNeXt of 50, 101 or 152 layers; groups, 32 usually", 3, 224, 32,
       [](Given given) {
         return resnext(
             {.depth = given.depth.value_or(50), .groups = given.groups.value_or(32), .classes = given.classes});
       }},
      {"squeezenet", "SqueezeNet; version 1.0 or 1.1", 3, 224, 32,
       [](Given given) { return squeezenet({.version = given.version.value_or("1.0"), .classes = given.classes}); }},
      {"vgg", "VGG of 11, 13, 16 or 19 layers; with batch normalisation if asked for", 3, 224, 32,
       [](Given given) {
         return vgg({.depth = given.depth.value_or(16),
                     .batch_norm = given.batch_norm.value_or(false),
                     .classes = given.classes});
       }},
  };
  return all;
}

inline const NetworkFamily& network_family(const std::string& name) {
  std::string known;
  for (const NetworkFamily& family : network_families()) {
    if (family.name == name) return family;
    known += (known.empty() ? "" : ", ") + family.name;
  }
  throw Error(join("unknown network '", name, "'; there are ", known));
}

}  // namespace networks
