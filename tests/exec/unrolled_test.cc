// Unrolled recurrent networks: products of many steps are merged and cells are one kernel each, and the numbers are
// those of the plainest plan.
#include "tests/support/unrolled.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"

#include "tests/support/arrays.h"
#include "tests/support/compile_options.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

constexpr uint64_t networks = 60;

// Outputs and gradients of two training steps, the second with the gradients of the first in its arrays, and the
// outputs of inference.
std::vector<NDArray> results(Executor& executor) {
  std::vector<NDArray> all;
  seed(11);
  for (int step = 0; step < 2; ++step) {
    for (const NDArray& output : executor.forward(true)) all.push_back(output.copy());
    executor.backward(testing::out_grads_for(executor));
    for (const NDArray& gradient : executor.grad_arrays()) all.push_back(gradient.copy());
  }
  for (const NDArray& output : executor.forward(false)) all.push_back(output.copy());
  return all;
}

void expect_same(const testing::Network& network, const std::vector<NDArray>& actual,
                 const std::vector<NDArray>& expected) {
  ASSERT_EQ(actual.size(), expected.size()) << network.name;
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(testing::all_close(actual[i], expected[i], {1e-4, 1e-4, 1e-4})) << network.name << ", array " << i;
}

TEST(Unrolled, GivesTheNumbersOfThePlainestPlan) {
  for (const Context context : testing::all_devices())
    for (uint64_t seed = 0; seed < networks; ++seed) {
      const testing::Network network = testing::unrolled(testing::random_unrolled(seed));
      const std::string grad_req = seed % 2 ? "add" : "write";
      auto merged = testing::bind_with_values(network, context, {.grad_req = grad_req});
      auto plain = testing::bind_with_values(network, context, {.grad_req = grad_req, .options = testing::plainest()});
      expect_same(network, results(*merged), results(*plain));
    }
}

TEST(Unrolled, HasPiecesInMemoryOnlyWhereTheyAreComputed) {
  for (uint64_t seed = 0; seed < networks; seed += 2) {
    const testing::Network network = testing::unrolled(testing::random_unrolled(seed));
    auto shared = testing::bind_with_values(network),
         poisoned = testing::bind_with_values(network, cpu(), {.options = {.poison = true}});
    expect_same(network, results(*poisoned), results(*shared));
  }
}

TEST(Unrolled, GivesAMonitorTheNamesOfThePlainestPlan) {
  const testing::Network network = testing::unrolled({.steps = 4});
  std::vector<std::string> seen[2];
  for (const bool plain : {false, true}) {
    auto executor =
        testing::bind_with_values(network, cpu(), {.options = plain ? testing::plainest() : CompileOptions{}});
    executor->set_monitor_callback([&](const std::string& name, const NDArray&) { seen[plain].push_back(name); });
    executor->forward(true);
    executor->backward(testing::out_grads_for(*executor));
  }
  EXPECT_EQ(seen[0].size(), seen[1].size());
  EXPECT_FALSE(seen[0].empty());
}

// A budget a little below what merged products need is met without them.
TEST(Unrolled, MeetsAMemoryBudget) {
  const testing::Network network = testing::unrolled({.steps = 20, .batch = 32, .inputs = 64, .hidden = 64});
  auto usual = testing::bind_with_values(network);
  const std::vector<NDArray> expected = results(*usual);
  const auto budget = static_cast<size_t>(0.95 * static_cast<double>(usual->memory().arena));
  auto frugal = testing::bind_with_values(network, cpu(), {.options = {.memory_budget = budget}});
  expect_same(network, results(*frugal), expected);
  EXPECT_LE(frugal->memory().arena, budget);
}

}  // namespace
}  // namespace symbind
