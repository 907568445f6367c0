#include "tests/support/random_plans.h"

#include <random>

#include "symbind/core/error.h"
#include "symbind/core/random.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/exec/invoke.h"

#include "tests/support/compile_options.h"
#include "tests/support/networks.h"
#include "tests/support/record.h"

namespace symbind::testing {
namespace {

// Changes every argument and auxiliary state a little, each time in a different way.
void change_parameters(Executor& executor) {
  NamedArrays copied;
  int way = 0;
  for (const auto* arrays : {&executor.arg_dict(), &executor.aux_dict()})
    for (const auto& [name, array] : *arrays) switch (way++ % 4) {
        case 0: {
          auto values = array.to_vector<double>();
          for (double& value : values) value *= 0.875;
          array.copy_from(values);
          break;
        }
        case 1:
          invoke("_mul_scalar", {array}, {{"scalar", "0.875"}}, {.out = {array}});
          break;
        case 2:
          (array.slice(0, 1) * 0.875).copyto(array.slice(0, 1));
          break;
        default:
          copied[name] = array * 0.875;
      }
  NamedArrays arguments, states;
  for (const auto& [name, array] : copied) (executor.arg_dict().contains(name) ? arguments : states)[name] = array;
  executor.copy_params_from(arguments, states);
}

// Predictions, steps of training, and gradients in test mode, in an order that differs from graph to graph.
Record record_of(const RandomGraph& graph, Context context, const SimpleBindOptions& options,
                 DType dtype = DType::float32, Noise noise = {}, bool monitored = false) {
  Record record;
  const auto executor = bind_random_graph(graph, context, options, dtype);
  if (monitored) executor->set_monitor_callback([](const std::string&, const NDArray&) {}, true);
  if (noise.size > 0) disturb(*executor, noise);
  const auto out_grads = out_grads_for(*executor, graph.seed);
  seed(graph.seed);
  if (graph.seed % 7 != 0) {
    executor->forward(false);
    record.add("prediction", executor->outputs());
  }
  if (graph.seed % 5 == 0) executor->forward(true);  // and nothing after it
  executor->forward(true);
  record.add("output", executor->outputs());
  executor->backward(out_grads);
  record.add("gradient", executor->grad_dict());
  record.add("state", executor->aux_dict());
  if (graph.seed % 3 == 1) change_parameters(*executor);
  executor->forward(false);
  record.add("second prediction", executor->outputs());
  if (graph.seed % 3 == 0) {
    executor->backward(out_grads);
    record.add("test-mode gradient", executor->grad_dict());
  }
  if (graph.seed % 3 == 2) return record;
  executor->forward(true);
  executor->backward(out_grads);
  record.add("second gradient", executor->grad_dict());
  return record;
}

}  // namespace

namespace {

// The reference for all other plans.
Reference plainest_of(const RandomGraph& graph, Context context) {
  const DType dtype = graph.seed % 2 == 0 ? DType::float32 : DType::float64;
  return Reference(
      [=, &graph](Noise noise) { return record_of(graph, context, {.options = plainest()}, dtype, noise); });
}

constexpr Tolerance tolerance{1e-4, 1e-6, 1e-4};

}  // namespace

::testing::AssertionResult agrees(const RandomGraph& graph, Context context, const SimpleBindOptions& options,
                                  double slack) {
  return plainest_of(graph, context).agrees_with(record_of(graph, context, options), tolerance, slack);
}

::testing::AssertionResult agrees_monitored(const RandomGraph& graph, Context context, const SimpleBindOptions& options,
                                            double slack) {
  return plainest_of(graph, context)
      .agrees_with(record_of(graph, context, options, DType::float32, {}, true), tolerance, slack);
}

::testing::AssertionResult agrees_between(const RandomGraph& graph, Context context, Context other) {
  return plainest_of(graph, context).agrees_with(record_of(graph, other, {}), tolerance);
}

RandomGraph numbered_graph(uint64_t number) {
  const bool large = number % 100 == 24;
  const int size = large ? 6 : number % 50 == 49 ? 40 : 3 + static_cast<int>(number % 14);
  return random_graph(number, size, large);
}

// Which switches are on differs from graph to graph; mostly all are.
SimpleBindOptions options_for(const RandomGraph& graph, Context context) {
  SimpleBindOptions options;
  std::mt19937_64 dice(graph.seed);
  options.options.poison = !graph.grouped || dice() % 2 == 0;  // poisoned contexts do not run concurrently
  if (dice() % 3 == 0)
    for (const Switch& each : switches()) each.set(options.options, dice() % 2 == 0);
  if (dice() % 3 == 0) options.options.memory_budget = 1 + dice() % 20000;
  if (graph.grouped) options.group2ctx = {{"near", context}, {"far", cpu(1)}};
  return options;
}

// The shortest prefix of the network that fails with one output; the whole network if none does.
RandomGraph shrunk(const RandomGraph& graph, Context context, const SimpleBindOptions& options) {
  const Symbol internals = graph.symbol.get_internals();
  for (size_t i = 0; i < internals.size(); ++i) {
    if (!internals.entries()[i].node->op) continue;
    RandomGraph part = graph;
    part.symbol = internals[i];
    if (!agrees(part, context, options)) return part;
  }
  return graph;
}

std::string described(const CompileOptions& options) {
  return join("share_memory ", options.share_memory, ", fuse ", options.fuse, ", layout ", options.layout, ", capture ",
              options.capture, ", recompute ", options.recompute, ", memory_budget ", options.memory_budget);
}

}  // namespace symbind::testing
