// Plans of networks made up at random, against the plainest plan of the same network: every other time in float64,
// which the libraries' and vectorised kernels leave to the plain ones. SYMBIND_GRAPHS=20000 tries more of them,
// SYMBIND_GRAPH=<seed> one, and both so many from a seed on.
#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "symbind/core/error.h"

#include "tests/support/compile_options.h"
#include "tests/support/networks.h"
#include "tests/support/random_plans.h"
#include "tests/support/record.h"
#include "tests/support/training.h"

namespace symbind {
namespace {

using testing::agrees;
using testing::RandomGraph;

int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

void try_graphs(Context context, uint64_t first, uint64_t count) {
  int failures = 0;
  for (uint64_t number = first; number < first + count && failures < 3; ++number) {
    const RandomGraph graph = testing::numbered_graph(number);
    const SimpleBindOptions options = testing::options_for(graph, context);
    ::testing::AssertionResult result = ::testing::AssertionSuccess();
    try {
      result = agrees(graph, context, options);
      if (result) continue;
      ++failures;
      const RandomGraph small = testing::shrunk(graph, context, options);
      ADD_FAILURE() << "seed " << number << " on " << context << ": " << result.message() << "\nwith "
                    << testing::described(options.options) << (graph.grouped ? ", in two groups" : "")
                    << "\nfirst seen in\n"
                    << small.symbol.debug_str() << agrees(small, context, options).message();
    } catch (const std::exception& error) {
      ++failures;
      ADD_FAILURE() << "seed " << number << " on " << context << " fails: " << error.what() << "\nwith "
                    << testing::described(options.options) << "\n"
                    << graph.symbol.debug_str();
    }
  }
}

TEST(RandomGraphs, GiveTheNumbersOfThePlainestPlan) {
  const testing::Quiet quiet;  // about budgets that cannot be met
  const int64_t first = setting("SYMBIND_GRAPH", -1);
  for (const Context context : testing::all_devices()) {
    const int64_t count = setting("SYMBIND_GRAPHS", first >= 0 ? 1 : context.is_gpu() ? 300 : 3000);
    try_graphs(context, static_cast<uint64_t>(std::max<int64_t>(first, 0)), static_cast<uint64_t>(count));
  }
}

// x / (1 + x²) is flat near 1: of two elements that are equal in float32, a larger one in float64 gets the gradient
// there alone. That is no difference between plans.
TEST(RandomGraphs, MayGiveTheGradientToAnotherOfTwoEqualElements) {
  const Symbol x = Symbol::variable("x");
  const Symbol net = pooling(x / (square(x) + 1) + 8, {.kernel = {1, 2}}, "pool");
  const auto run = [&](DType dtype, testing::Noise noise) {
    const auto executor =
        simple_bind(net, cpu(), {{"x", {1, 1, 1, 2}}}, {.type_dict = {{"x", dtype}}, .options = testing::plainest()});
    executor->arg_dict().at("x").copy_from(std::vector<double>{0.9643592, (1 - 3e-6) / 0.9643592});
    if (noise.size > 0) testing::disturb(*executor, noise);
    executor->forward(true);
    executor->backward({ones({1, 1, 1, 1}, cpu(), dtype)});
    testing::Record record;
    record.add("gradient", executor->grad_dict());
    return record;
  };
  testing::Reference reference([&](testing::Noise noise) { return run(DType::float64, noise); });
  const testing::Record actual = run(DType::float32, {});
  const auto gradient = actual.arrays[0].to_vector<double>(),
             exact = reference.expected().arrays[0].to_vector<double>();
  EXPECT_NE(gradient[0] == 0, exact[0] == 0);
  EXPECT_TRUE(reference.agrees_with(actual, {1e-4, 1e-6, 1e-4}));
}

}  // namespace
}  // namespace symbind
