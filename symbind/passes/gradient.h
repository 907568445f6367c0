// Adds the backward part to a graph, for exactly the arguments whose gradient is requested.
#pragma once

#include <string>
#include <vector>

#include "symbind/graph/grad_req.h"
#include "symbind/passes/graph.h"

namespace symbind {

struct GradientRequest {
  NodeId node = NodeId::none;  // the variable
  GradReq req = GradReq::write;
};

// The variables the pass added: out_grads, one per network output that needs one, and the old values of gradients that
// are added to.
struct GradientPorts {
  std::vector<NodeId> out_grads;  // of the out_grad of each network output, none where it is not needed
  std::vector<NodeId> old_grads;  // of the old value for each request, none unless it is `add`
};

// The attribute of a backward node that holds the monitor's name of an output that is the gradient of a forward node's
// input.
inline std::string gradient_name_attribute(int output) { return "__gradient" + std::to_string(output) + "__"; }

// Appends the backward nodes, and to graph.outputs one gradient per request. Shapes must be inferred again afterwards.
GradientPorts add_gradient(Graph& graph, const std::vector<GradientRequest>& requests);

}  // namespace symbind
