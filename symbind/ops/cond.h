// A branch inside a network: one of two networks runs, depending on a condition computed at run time.
#pragma once

#include <functional>
#include <memory>

#include "symbind/graph/builder.h"
#include "symbind/ops/subgraph.h"

namespace SYMBIND_API symbind {

// Inputs: the values that the condition and the two branches read; …_input_locs maps each of their variables to an
// input. Outputs: those of the branch taken. Hidden output: the cursor of the random numbers.
struct Cond {
  Required<int64_t> num_args = {};  // inputs and three more, for the networks
  Required<int64_t> num_outputs = {};
  Required<Tuple> cond_input_locs = {};
  Required<Tuple> then_input_locs = {};
  Required<Tuple> else_input_locs = {};
  Attributes subgraphs = {};
  std::shared_ptr<const Subgraph> condition = nullptr, then_branch = nullptr, else_branch = nullptr;  // from the above

  size_t inputs() const { return num_args.given() && num_args > 3 ? static_cast<size_t>(num_args.get()) - 3 : 0; }
  size_t outputs() const { return num_outputs.given() ? static_cast<size_t>(num_outputs.get()) : 0; }
};

// (the gradients of the outputs, the inputs, the cursor) → the gradients of the inputs
struct CondGrad : Cond {
  std::vector<bool> wants = {};
};

// Both functions return the same number of outputs, of the same shapes and types. They may use symbols from outside.
using BranchBody = std::function<std::vector<Symbol>()>;
std::vector<Symbol> cond(const Symbol& pred, const BranchBody& then_body, const BranchBody& else_body,
                         const std::string& name = "cond");

}  // namespace symbind
