// One node outside any graph, with the values of its inputs: for tests that compare implementations of an operator.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "symbind/passes/target.h"

namespace symbind::testing {

// Values are stored in plain order, whatever the layout and the type of the tensors.
template <class Value>
struct TestNode {
  const OpDef& op;
  std::shared_ptr<const void> params;
  std::vector<Tensor> inputs, outputs;
  std::vector<std::vector<Value>> values;
  bool is_train = true;

  NodeView view() const { return {op, params.get(), "node", inputs, outputs, is_train, -1, cpu()}; }
};

// Shapes and types that are not given are inferred; the values are those of float32 between -1 and 1.
template <class Value, class P>
TestNode<Value> make_test_node(const P& params, const std::vector<Shape>& shapes, DType dtype = DType::float32) {
  TestNode<Value> node{op_of<P>(), op_of<P>().checked_params(&params, "node"), {}, {}, {}};
  const Names input_names = node.op.all_inputs(node.params.get()), output_names = node.op.outputs(node.params.get());
  std::vector<Shape> in = shapes, out(output_names.size());
  in.resize(input_names.size());
  Shapes inference("[node]", input_names, in, output_names, out);
  node.op.infer_shape(node.params.get(), inference);
  std::vector<DType> in_types(in.size(), DType::none), out_types(out.size(), DType::none);
  in_types[0] = dtype;
  Types types("[node]", input_names, in_types, output_names, out_types);
  node.op.infer_type(node.params.get(), types);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (size_t i = 0; i < in.size(); ++i) {
    node.inputs.push_back({in[i], in_types[i] == DType::none ? dtype : in_types[i]});
    node.values.emplace_back(static_cast<size_t>(in[i].size()));
    for (Value& value : node.values.back()) value = static_cast<Value>(uniform(random));
  }
  for (size_t i = 0; i < out.size(); ++i)
    node.outputs.push_back({out[i], out_types[i] == DType::none ? dtype : out_types[i]});
  return node;
}

// The index of element i of a plain array in the tensor's layout.
inline size_t index_in_layout(const Tensor& tensor, size_t i) {
  if (tensor.layout == Layout::plain) return i;
  const auto channels = static_cast<size_t>(tensor.shape[1]);
  const auto space = static_cast<size_t>(tensor.shape.size(2, tensor.shape.rank()));
  const size_t block = tensor.layout == Layout::channels_last ? channels : static_cast<size_t>(block_of(tensor.layout));
  const size_t image = i / (channels * space), channel = i / space % channels, position = i % space;
  return ((image * channels + channel / block * block) * space + position * block) + channel % block;
}

}  // namespace symbind::testing
