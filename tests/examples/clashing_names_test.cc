// A program may have types of its own with the names that compilers of networks use.
#include <gtest/gtest.h>

#include "symbind/fwd.h"
#include "symbind/symbind.h"

using namespace symbind;

struct Graph {
  int nodes = 1;
};
struct Tensor {
  int rank = 2;
};
struct Range {
  int begin = 3;
};
struct Plan {
  int steps = 4;
};
struct Kernel {
  int width = 5;
};
struct Layout {
  int order = 6;
};
struct Workers {
  int count = 7;
};

namespace {

TEST(PublicHeaders, LeaveTheseNamesToTheProgram) {
  const Graph graph;
  const Tensor tensor;
  const Range range;
  const Plan plan;
  const Kernel kernel;
  const Layout layout;
  const Workers workers;
  EXPECT_EQ(graph.nodes + tensor.rank + range.begin + plan.steps + kernel.width + layout.order + workers.count, 28);
  EXPECT_EQ(sum(ones({2, 3})).item(), 6);
}

}  // namespace
