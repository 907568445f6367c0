// What running a plan costs beyond its kernels: a chain of operators on one element, less the same kernels called in a
// bare loop. Prints one JSON row.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <vector>

#include "symbind/passes/target.h"
#include "symbind/symbind.h"

using namespace symbind;

namespace {

constexpr int operators = 10000;
constexpr int rounds = 200;

// The shortest of many runs, in microseconds: interruptions only ever add.
template <class Function>
double fastest_us(Function&& function) {
  using Clock = std::chrono::steady_clock;
  double best = 1e300;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    function();
    best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return best;
}

double plan_us() {
  Symbol net = Symbol::variable("x");
  for (int i = 0; i < operators; ++i) net = elemwise_add(net, net);
  const ExecutorPtr executor = simple_bind(net, cpu(), {{"x", {1}}}, {.grad_req = "null", .options = {.fuse = false}});
  return fastest_us([&] { executor->forward(); });
}

// As many kernels, each with its own arguments, as a plan has them.
double bare_us() {
  const OpDef& op = op_of<Binary<"elemwise_add">>();
  const Binary<"elemwise_add"> params;
  const Tensor number{.shape = {1}, .dtype = DType::float32};
  const std::vector<Tensor> inputs{number, number}, outputs{number};
  const NodeView node{
      .op = op, .params = &params, .name = "add", .inputs = inputs, .outputs = outputs, .context = cpu()};

  const auto& implementations = Target::get(cpu()).implementations(op);
  const auto accepting = std::find_if(implementations.begin(), implementations.end(), [&](const Implementation& each) {
    return !each.refuse || each.refuse(node).empty();
  });
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (int i = 0; i < operators; ++i) kernels.push_back(accepting->build(node));

  NDArray values[] = {zeros({1}), zeros({1})};
  void* addresses[] = {values[0].mutable_data(), values[0].mutable_data(), values[1].mutable_data()};
  const std::vector<Args> args(operators, Args{.inputs = addresses, .outputs = addresses + 2});
  return fastest_us([&] {
    for (size_t i = 0; i < kernels.size(); ++i) kernels[i]->run(args[i]);
  });
}

}  // namespace

int main() {
  try {
    const double plan = plan_us(), bare = bare_us();
    std::cout << "{\"case\": \"overhead\", \"ns_per_step\": " << (plan - bare) * 1e3 / operators
              << ", \"plan_us\": " << plan << ", \"bare_us\": " << bare << "}\n";
  } catch (const std::exception& error) {
    std::cerr << "plan_overhead: " << error.what() << "\n";
    return 1;
  }
}
