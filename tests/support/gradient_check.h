// Compares the gradients an executor computes with finite differences of its outputs. Elements at a kink (a relu at
// zero, two equal values under a maximum) have no gradient to compare with: they are detected by their two one-sided
// differences and skipped.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"

namespace symbind::testing {

struct GradientCheckOptions {
  NamedArrays aux = {};
  std::vector<std::string> skip = {};  // arguments without a gradient: labels, indices
  bool is_train = true;
  Context context = cpu();
  uint64_t seed = 7;  // of the random operators: set before every forward
  // A function of the outputs whose gradient backward() computes without out_grads, for networks that end in loss
  // heads. None: a weighted sum of all outputs, its weights given to backward as out_grads.
  std::function<double(const std::vector<NDArray>& outputs)> loss = nullptr;
  // 0: chosen by the type of the arguments.
  double step = 0;
  double tolerance = 0;
  int64_t elements = 64;  // how many elements of each argument are tried, spread over all of it
};

// Float64 arguments give the sharpest check; float32 ones are tried with larger steps. The failure names the network's
// output node, the argument, the index and both values.
::testing::AssertionResult check_gradient(const Symbol& symbol, const NamedArrays& args,
                                          const GradientCheckOptions& options = {});

}  // namespace symbind::testing
