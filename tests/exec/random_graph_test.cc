// Plans of networks made up at random, against the plainest plan of the same network: every other time in float64,
// which the libraries' and vectorised kernels leave to the plain ones. SYMBIND_GRAPHS=20000 tries more of them,
// SYMBIND_GRAPH=<seed> one, and both so many from a seed on.
#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "symbind/core/error.h"

#include "tests/support/networks.h"
#include "tests/support/random_plans.h"
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

}  // namespace
}  // namespace symbind
