#include "tests/support/graphs.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "symbind/core/error.h"

namespace symbind::testing {

Training training_graph(const Symbol& symbol, const NamedShapes& shapes, const std::vector<std::string>& without,
                        GradReq req) {
  Training training{Graph::from(symbol), {}, {}};
  Graph& graph = training.graph;
  graph.is_train = true;
  set_shapes(graph, shapes);
  infer(graph);
  const auto aux = symbol.list_auxiliary_states();
  std::vector<GradientRequest> requests;
  for (const GraphNode& node : graph.nodes) {
    const std::string& name = node.source->name;
    if (!node.is_variable() || std::count(aux.begin(), aux.end(), name) ||
        std::count(without.begin(), without.end(), name))
      continue;
    requests.push_back({node.id, req});
    training.requested.push_back(name);
  }
  training.ports = add_gradient(graph, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    if (training.ports.old_grads[i] == NodeId::none) continue;
    const Tensor& like = graph.tensor(graph.node(requests[i].node).first_output);
    graph.tensor(graph.node(training.ports.old_grads[i]).first_output) = like;
  }
  infer(graph);
  return training;
}

Graph inference_graph(const Symbol& symbol, const NamedShapes& shapes) {
  Graph graph = Graph::from(symbol);
  set_shapes(graph, shapes);
  infer(graph);
  return graph;
}

void prepare_to_fuse(Graph& graph, Context context) {
  place(graph, context, {});
  drop_identities(graph);
  separate_outputs(graph);
}

NodeId find_node(const Graph& graph, const std::string& name) {
  for (const GraphNode& node : graph.nodes)
    if (node.source->name == name) return node.id;
  return NodeId::none;
}

int count_op(const Graph& graph, const std::string& op) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode& node) {
    return !node.is_variable() && node.op().name == op;
  }));
}

const GraphNode& node_of(const Graph& graph, const std::string& op) {
  for (const GraphNode& node : graph.nodes)
    if (!node.is_variable() && node.op().name == op) return node;
  fail("there is no ", op);
}

PerTensor<int> outside_arrays(const Graph& graph, const GradientPorts* ports) {
  PerTensor<int> outside(graph.tensors.size(), -1);
  int next = 0;
  for (const GraphNode& node : graph.nodes)
    if (node.is_variable()) outside[node.first_output] = next++;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    int& home = outside[graph.outputs[i]];
    if (home < 0) home = next++;
    if (!ports || i < graph.net_outputs || ports->old_grads[i - graph.net_outputs] == NodeId::none) continue;
    home = outside[graph.node(ports->old_grads[i - graph.net_outputs]).first_output];
  }
  return outside;
}

void expect_consistent(const Graph& graph) {
  ASSERT_EQ(graph.producers.size(), graph.tensors.size());
  ASSERT_LE(graph.forward_nodes, graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    EXPECT_EQ(index_of(node.id), i) << node.source->name;
    for (const TensorId input : node.inputs) {
      ASSERT_NE(input, TensorId::none) << node.source->name;
      ASSERT_LT(index_of(input), graph.tensors.size()) << node.source->name;
      EXPECT_LT(graph.producer_id(input), node.id) << node.source->name << " runs before its input is made";
    }
    for (int k = 0; k < node.outputs; ++k)
      EXPECT_EQ(graph.producer_id(node.first_output + k), node.id) << node.source->name;
  }
  ASSERT_GE(graph.outputs.size(), graph.net_outputs);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    ASSERT_NE(graph.outputs[i], TensorId::none);
    ASSERT_LT(index_of(graph.outputs[i]), graph.tensors.size());
    if (i < graph.net_outputs) {
      EXPECT_FALSE(graph.is_backward(graph.producer_id(graph.outputs[i]))) << "output " << i << " is made in backward";
    }
  }
}

const std::vector<std::string>& operators_of_passes() {
  static const std::vector<std::string> names{"_CrossDeviceCopy",
                                              "_reorder",
                                              "_relabel",
                                              "_cast_like",
                                              "_scale_gradient",
                                              "_convert_arrays",
                                              "_adapt_loss_scale",
                                              "_metric_sums",
                                              "_take_metric_sums",
                                              "_sum_to_like",
                                              "_spread_like",
                                              "_Convolution_Fused",
                                              "_BatchNorm_Relu",
                                              "_BatchNorm_Add_Relu",
                                              "_BatchNorm_Given_Sums",
                                              "_Convolution_Statistics",
                                              "_BatchNorm_recompute",
                                              "_BatchNorm_Add_Relu_recompute",
                                              "_Pooling_Indices",
                                              "_Relu_Signs",
                                              "_BatchNorm_Signs",
                                              "_BatchNorm_Pair",
                                              "_FullyConnected_Activation",
                                              "_FullyConnected_Transposed",
                                              "_pointwise",
                                              "_pointwise_cell"};
  return names;
}

}  // namespace symbind::testing
