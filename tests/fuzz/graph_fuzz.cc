// Networks made up at random: the plainest plan of each against fused, recomputed, poisoned and monitored ones, and
// against the GPU's where there is one. They agree.
#include <stdexcept>

#include "symbind/core/error.h"

#include "tests/fuzz/driver.h"
#include "tests/support/networks.h"
#include "tests/support/random_plans.h"
#include "tests/support/training.h"

namespace symbind::fuzz {
namespace {

void expect(const ::testing::AssertionResult& result, const std::string& how) {
  if (!result) throw std::logic_error(join(how, ": ", result.message()));
}

// Of 50,000 networks three were above the tolerance of the tests, by up to three times: gradients of a BatchNorm over
// channels that are constant but for rounding, and of a bias before one.
constexpr double slack = 4;

Outcome run(uint64_t number, std::ostream& description) {
  const testing::Quiet quiet;  // about budgets that cannot be met
  const testing::RandomGraph graph = testing::numbered_graph(number);
  for (const Context context : testing::all_devices()) {
    const SimpleBindOptions options = testing::options_for(graph, context);
    description << "on " << context << " with " << testing::described(options.options)
                << (graph.grouped ? ", in two groups\n" : "\n") << graph.symbol.debug_str() << "\n"
                << std::flush;
    expect(testing::agrees(graph, context, options, slack), "planned");
    expect(testing::agrees_monitored(graph, context, options, slack), "monitored");
    if (context.is_gpu() && !graph.grouped) expect(testing::agrees_between(graph, cpu(), context), "CPU and GPU");
  }
  return Outcome::finished;
}

}  // namespace
}  // namespace symbind::fuzz

int main(int argc, char** argv) {
  return symbind::fuzz::main_of({.name = "graph_fuzz", .run = symbind::fuzz::run, .seconds_per_case = 300}, argc, argv);
}
