// The working memory of residual networks of growing depth, with everything kept and with as little as possible: one
// JSON row per depth. Nothing is run; `seconds` is what binding takes.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "symbind/symbind.h"

#include "examples/support/networks.h"

using namespace symbind;

namespace {

// A layer is normalisation, activation, convolution and the sum with what came in.
Symbol residual(int layers, int64_t filters) {
  namespace parts = networks::resnet_parts;
  Symbol net = parts::conv(Symbol::variable("data"), filters, 3, 1, "conv0");
  for (int i = 0; i < layers; ++i) {
    const std::string layer = join("layer", i, "_");
    net = parts::conv(parts::relu(parts::norm(net, layer + "bn"), layer + "relu"), filters, 3, 1, layer + "conv") + net;
  }
  net = pooling(net, {.kernel = {7, 7}, .pool_type = "avg", .global_pool = true}, "pool");
  return softmax_output(fully_connected(net, {.num_hidden = 10}, "fc"), {}, "softmax");
}

struct Bound {
  MemoryReport memory;
  double seconds;
};

Bound measure(const Symbol& net, size_t budget) {
  const auto begin = std::chrono::steady_clock::now();
  const ExecutorPtr executor =
      simple_bind(net, cpu(), {{"data", {32, 3, 32, 32}}}, {.options = {.memory_budget = budget}});
  const MemoryReport memory = executor->memory();
  return {memory, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int deepest = argc > 1 ? std::atoi(argv[1]) : 1000;
    require(deepest > 0 && argc <= 2, "usage: memory_curve [DEEPEST]");
    set_log_sink([](LogLevel, std::string_view) {});  // that a budget of one byte cannot be met is no news
    for (const int layers : {10, 30, 100, 300, 1000}) {
      if (layers > deepest) break;
      const Symbol net = residual(layers, 16);
      const Bound all = measure(net, 0), least = measure(net, 1);
      const auto mib = [](size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
      std::cout << "{\"layers\": " << layers << ", \"arena_mb\": " << mib(all.memory.arena)
                << ", \"least_arena_mb\": " << mib(least.memory.arena)
                << ", \"parameters_mb\": " << mib(all.memory.arguments) << ", \"seconds\": " << all.seconds
                << ", \"least_seconds\": " << least.seconds << "}" << std::endl;
    }
  } catch (const std::exception& error) {
    std::cerr << "memory_curve: " << error.what() << "\n";
    return 1;
  }
}
