// The memory of plans for a GPU. Kernels are not built, so no GPU is needed.
#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "symbind/passes/infer_graph.h"
#include "symbind/passes/lower.h"
#include "symbind/passes/target.h"

#include "tests/support/device_case.h"
#include "tests/support/networks.h"

namespace symbind::testing {
namespace {

// A step that only says how much memory it needs: none.
void build_nothing(Graph& graph) {
  for (GraphNode& node : graph.nodes)
    if (!node.is_variable()) node.kernel = make_kernel([](const Args&) {});
}

// A training plan of fully connected layers on a GPU.
Lowered lowered_mlp(int64_t batch, const CompileOptions& options = {}) {
  const Network network = mlp();
  Graph graph = Graph::from(network.symbol);
  NamedShapes shapes = network.inputs;
  for (auto& [name, shape] : shapes) shape = shape.with(0, batch);
  set_shapes(graph, shapes);
  infer(graph);
  LowerRequest request{.kind = PlanKind::training,
                       .options = options,
                       .context = gpu(0),
                       .output_contexts = {gpu(0)},
                       .objects = std::make_shared<NodeObjects>(),
                       .build_kernels = build_nothing};
  for (const GraphNode& node : graph.nodes) {
    if (!node.is_variable() || shapes.contains(node.source->name)) continue;
    request.gradients.push_back({node.id, GradReq::write});
    request.output_contexts.push_back(gpu(0));
  }
  return lower(graph, request);
}

bool shares_memory(const Lowered& plan) { return plan.memory.total_bytes() < plan.memory.unshared_bytes; }

class CudaMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  }
};

// Otherwise steps that could run concurrently would wait for memory.
TEST_F(CudaMemory, IsNotSharedInSmallTrainingPlans) {
  EXPECT_FALSE(shares_memory(lowered_mlp(64)));
  EXPECT_TRUE(shares_memory(lowered_mlp(1 << 22))) << "large";
}

TEST_F(CudaMemory, IsSharedWhereStepsRunOneAfterTheOther) {
  EXPECT_TRUE(shares_memory(lowered_mlp(64, {.capture = false})));
  EXPECT_TRUE(shares_memory(lowered_mlp(64, {.memory_budget = 1 << 20})));
  setenv("SYMBIND_CONCURRENT_STEPS", "0", 1);
  EXPECT_TRUE(shares_memory(lowered_mlp(64)));
  unsetenv("SYMBIND_CONCURRENT_STEPS");
}

}  // namespace
}  // namespace symbind::testing
