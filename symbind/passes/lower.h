// The compiler from end to end: a network with shapes becomes kernels with addresses. lower.cc lists the passes in the
// order they run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "symbind/passes/compile_options.h"
#include "symbind/passes/gradient.h"
#include "symbind/passes/graph.h"
#include "symbind/passes/plan_memory.h"

namespace symbind {

enum class PlanKind : uint8_t {
  inference,            // forward in test mode
  test_with_gradients,  // forward and backward in test mode
  training,             // forward in training mode, and backward where a gradient is requested
};

struct LowerRequest {
  PlanKind kind = PlanKind::inference;
  // Every node of the network runs separately and its outputs can be read after it: nothing is fused, reordered,
  // recomputed or overwritten.
  bool monitored = false;
  CompileOptions options = {};
  Context context = {};  // of nodes without a group
  std::map<std::string, Context> group2ctx = {};
  std::vector<GradientRequest> gradients = {};     // not read for inference
  std::vector<Context> output_contexts = {};       // of the network's outputs, then of the gradients
  std::shared_ptr<NodeObjects> objects = nullptr;  // shared by the kernels of all plans of an executor
  // Builds the kernels of a graph: the caller sets the number of threads for each.
  std::function<void(Graph& graph)> build_kernels;
};

struct Lowered {
  Graph graph;  // every node except variables has its kernel
  MemoryPlan memory;
  // The tensors in the user's arrays, in the order of the memory plan: all variables, then graph.outputs.
  std::vector<TensorId> outside;
  // The variables that were added: the gradient of each network output (none where it is not needed), and the old value
  // of each requested gradient (none unless it is added to).
  std::vector<NodePtr> out_grads, old_grads;
};

// `network` has its shapes and types (infer.h) and no backward part.
Lowered lower(const Graph& network, const LowerRequest& request);

}  // namespace symbind
