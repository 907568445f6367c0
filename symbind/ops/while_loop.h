// A loop inside a network that runs while a condition holds.
#pragma once

#include <functional>
#include <memory>

#include "symbind/graph/builder.h"
#include "symbind/ops/control_flow.h"
#include "symbind/ops/subgraph.h"

namespace SYMBIND_API symbind {

// Inputs: the initial values of the loop's variables, and other values the condition and the body read; …_input_locs
// maps each of their variables to an input, func_var_locs which variables of the body are the loop's. Outputs: the
// body's outputs stacked along a new first axis of max_iterations, zeros after the last step, then the final values of
// the variables. Hidden outputs: the values after each step, and the cursors of the random numbers.
struct WhileLoop {
  Required<int64_t> num_args = {};      // inputs and two more, for the networks
  Required<int64_t> num_outputs = {};   // of the body, variables included
  Required<int64_t> num_out_data = {};  // without the variables
  Required<int64_t> max_iterations = {};
  Required<Tuple> cond_input_locs = {};
  Required<Tuple> func_input_locs = {};
  Required<Tuple> func_var_locs = {};
  Attributes subgraphs = {};
  std::shared_ptr<const Subgraph> condition = nullptr, body = nullptr;  // from the above

  size_t inputs() const { return num_args.given() && num_args > 2 ? static_cast<size_t>(num_args.get()) - 2 : 0; }
  size_t results() const { return num_outputs.given() ? static_cast<size_t>(num_outputs.get()) : 0; }
  size_t out_data() const { return num_out_data.given() ? static_cast<size_t>(num_out_data.get()) : 0; }
  size_t variables() const { return func_var_locs.get().size(); }
  // The input that holds the initial value of a variable of the loop.
  size_t input_of(size_t variable) const {
    return static_cast<size_t>(func_input_locs.get()[static_cast<size_t>(func_var_locs.get()[variable])]);
  }
};

// (the gradients of the outputs, the inputs, the hidden outputs) → the gradients of the inputs
struct WhileLoopGrad : WhileLoop {
  std::vector<bool> wants = {};
};

// condition(variables) is one number; body(variables) returns outputs and, as states, the next values of the variables.
// Both may use symbols from outside.
using LoopCondition = std::function<Symbol(const std::vector<Symbol>& variables)>;
using WhileBody = std::function<LoopResult(const std::vector<Symbol>& variables)>;
LoopResult while_loop(const LoopCondition& condition, const WhileBody& body, const std::vector<Symbol>& loop_vars,
                      int64_t max_iterations, const std::string& name = "while_loop");

}  // namespace symbind
