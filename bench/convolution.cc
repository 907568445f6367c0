// The 3 × 3 convolutions of ResNet-50 and their gradients, node by node, by every implementation that takes them.
// Each gets its arrays in the layouts it prefers; what it derives from the weights at each step of training is
// included.
//   convolution [batch size] [threads]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "symbind/core/parallel.h"
#include "symbind/passes/target.h"
#include "symbind/symbind.h"

using namespace symbind;

namespace {

struct Layer {
  int64_t channels, filters, size;
};
constexpr Layer layers[] = {{64, 64, 56}, {128, 128, 28}, {256, 256, 14}, {512, 512, 7}};

Tensor tensor(const Shape& shape) { return {.shape = shape, .dtype = DType::float32}; }

// The shortest of some runs, in milliseconds: interruptions only ever add.
template <class Function>
double fastest_ms(Function&& function) {
  using Clock = std::chrono::steady_clock;
  double best = 1e300;
  for (int i = 0; i < 7; ++i) {
    const auto begin = Clock::now();
    function();
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return best;
}

// Negative: it refuses.
double time_of(const Implementation& implementation, NodeView node, std::vector<Tensor> inputs,
               std::vector<Tensor> outputs) {
  node.inputs = inputs;
  node.outputs = outputs;
  if (implementation.refuse && !implementation.refuse(node).empty()) return -1;
  if (implementation.preferred_layouts)
    if (const auto preferred = implementation.preferred_layouts(node)) {
      for (size_t i = 0; i < inputs.size(); ++i) inputs[i].layout = preferred->inputs[i];
      for (size_t i = 0; i < outputs.size(); ++i) outputs[i].layout = preferred->outputs[i];
    }
  const auto kernel = implementation.build(node);
  std::vector<NDArray> arrays;
  std::vector<void*> addresses;
  for (const auto* tensors : {&inputs, &outputs})
    for (const Tensor& each : *tensors) {
      arrays.push_back(full(each.shape, 0.5));
      addresses.push_back(arrays.back().mutable_data());
    }
  NDArray scratch = zeros({static_cast<int64_t>(kernel->scratch_bytes / 4 + 16)});
  NDArray cached = zeros({static_cast<int64_t>(kernel->cached_bytes / 4 + 16)});
  const Args args{.inputs = addresses.data(),
                  .outputs = addresses.data() + inputs.size(),
                  .scratch = scratch.mutable_data(),
                  .cached = cached.mutable_data()};
  if (kernel->cached_bytes > 0) kernel->prepare(args);
  return fastest_ms([&] {
    if (kernel->cached_bytes > 0 && node.is_train) kernel->prepare(args);
    kernel->run(args);
  });
}

template <class P>
void measure(const char* what, const Layer& layer, int64_t batch, bool is_train, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& outputs) {
  P params;
  params.kernel = {3, 3};
  params.stride = params.dilate = params.pad = {1, 1};
  params.num_filter = layer.filters;
  params.no_bias = true;
  const NodeView node{.op = op_of<P>(),
                      .params = &params,
                      .name = "conv",
                      .inputs = inputs,
                      .outputs = outputs,
                      .is_train = is_train,
                      .context = cpu()};
  const double flops = 2.0 * 9 * static_cast<double>(layer.channels * layer.filters * layer.size * layer.size * batch);
  std::printf("%4lld -> %4lld at %2lld²  %-16s", static_cast<long long>(layer.channels),
              static_cast<long long>(layer.filters), static_cast<long long>(layer.size), what);
  for (const Implementation& implementation : Target::get(cpu()).implementations(op_of<P>())) {
    if (implementation.name == "plain") continue;
    const double ms = time_of(implementation, node, inputs, outputs);
    if (ms > 0) std::printf("  %s %7.2f ms (%4.0f GFLOP/s)", implementation.name.c_str(), ms, flops / ms * 1e-6);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int64_t batch = argc > 1 ? std::atoi(argv[1]) : 32;
    const ThreadScope threads({.threads = argc > 2 ? std::atoi(argv[2]) : thread_policy().threads});
    for (const Layer& layer : layers) {
      const Tensor data = tensor({batch, layer.channels, layer.size, layer.size});
      const Tensor weight = tensor({layer.filters, layer.channels, 3, 3});
      const Tensor output = tensor({batch, layer.filters, layer.size, layer.size});
      measure<Convolution>("inference", layer, batch, false, {data, weight}, {output});
      measure<Convolution>("forward", layer, batch, true, {data, weight}, {output});
      measure<ConvolutionGradData>("data gradient", layer, batch, true, {output, weight, data}, {data});
      measure<ConvolutionGradWeight>("weight gradient", layer, batch, true, {output, data, weight}, {weight});
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "convolution: %s\n", error.what());
    return 1;
  }
}
