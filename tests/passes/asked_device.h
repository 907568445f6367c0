// Devices for tests of passes that fuse operators only where the device has a kernel.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/graph/op.h"
#include "symbind/passes/fuse.h"

namespace symbind::testing {

// One that has every kernel; nodes that it is asked about must have all of their arrays.
inline const KernelCheck accept_all = [](const Graph&, Context, const Node& node, std::span<const Tensor> inputs,
                                         std::span<const Tensor> outputs) {
  EXPECT_EQ(inputs.size(), node.op->all_inputs(node.params.get()).size()) << node.op->name;
  EXPECT_EQ(outputs.size(), node.op->output_count(node.params.get())) << node.op->name;
  return true;
};

// One for passes that fuse a convolution and a BatchNorm: it computes both operators, or one of them, and records the
// nodes that it was asked about.
template <class FusedConvolution>
struct AskedDevice {
  bool of_convolutions = true, of_norms = true;
  std::vector<std::string> nodes = {}, kinds = {};  // their names; "convolution" or "norm"

  KernelCheck check() {
    return [this](const Graph&, Context, const Node& node, std::span<const Tensor> inputs,
                  std::span<const Tensor> outputs) {
      const bool is_convolution = node.op == &op_of<FusedConvolution>();
      nodes.push_back(node.name);
      kinds.emplace_back(is_convolution ? "convolution" : "norm");
      EXPECT_EQ(inputs.size(), node.op->all_inputs(node.params.get()).size());
      EXPECT_EQ(outputs.size(), node.op->output_count(node.params.get()));
      return is_convolution ? of_convolutions : of_norms;
    };
  }
};

}  // namespace symbind::testing
