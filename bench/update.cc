// How fast SGD with momentum updates ResNet-50's 157 arrays, beside a plain copy of as many bytes as the weights have.
// An update reads weight, gradient and momentum and writes weight and momentum: five floats per element; a copy reads
// one and writes one. Prints one JSON row.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "symbind/core/parallel.h"
#include "symbind/symbind.h"

using namespace symbind;

namespace {

constexpr int rounds = 50;

// The pre-activation network with 1,000 classes.
std::vector<Shape> resnet50_shapes() {
  std::vector<Shape> shapes;
  const auto norm = [&](int64_t channels) { shapes.insert(shapes.end(), {Shape{channels}, Shape{channels}}); };
  const auto conv = [&](int64_t out, int64_t in, int64_t kernel) { shapes.push_back({out, in, kernel, kernel}); };
  norm(3);
  conv(64, 3, 7);
  norm(64);
  int64_t channels = 64;
  const int64_t units[] = {3, 4, 6, 3}, filters[] = {256, 512, 1024, 2048};
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t wide = filters[stage], narrow = wide / 4;
    for (int64_t unit = 0; unit < units[stage]; ++unit) {
      norm(channels);
      conv(narrow, channels, 1);
      norm(narrow);
      conv(narrow, narrow, 3);
      norm(narrow);
      conv(wide, narrow, 1);
      if (unit == 0) conv(wide, channels, 1);
      channels = wide;
    }
  }
  norm(2048);
  shapes.push_back({1000, 2048});
  shapes.push_back({1000});
  return shapes;
}

template <class Function>
double seconds(Function&& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main() {
  try {
    std::vector<Updater::Item> items;
    int64_t elements = 0;
    for (const Shape& shape : resnet50_shapes()) {
      items.push_back({items.size(), full(shape, 0.01), full(shape, 1)});
      elements += shape.size();
    }
    Updater updater(Optimizer::create("sgd", {{"learning_rate", 1e-3}, {"momentum", 0.9}, {"wd", 1e-4}}));
    updater(items);  // makes the momenta
    const NDArray from = ones({elements}), to = zeros({elements});
    const auto* source = static_cast<const float*>(from.data());
    auto* target = static_cast<float*>(to.mutable_data());
    const auto copy = [&] {
      parallel_for(elements, 32768, [&](int64_t begin, int64_t end) {
        std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin) * sizeof(float));
      });
    };
    // In turns, and the shortest of many runs: interruptions only ever add.
    double update_s = 1e300, copy_s = 1e300;
    for (int i = 0; i < rounds; ++i) {
      update_s = std::min(update_s, seconds([&] { updater(items); }));
      copy_s = std::min(copy_s, seconds(copy));
    }

    const double bytes = static_cast<double>(elements) * sizeof(float);
    const double update_rate = 5 * bytes / update_s / 1e9, copy_rate = 2 * bytes / copy_s / 1e9;
    std::cout << "{\"case\": \"sgd-update\", \"arrays\": " << items.size() << ", \"elements\": " << elements
              << ", \"ms\": " << update_s * 1e3 << ", \"gb_per_s\": " << update_rate
              << ", \"copy_gb_per_s\": " << copy_rate << ", \"ratio\": " << update_rate / copy_rate << "}\n";
  } catch (const std::exception& error) {
    std::cerr << "update: " << error.what() << "\n";
    return 1;
  }
}
