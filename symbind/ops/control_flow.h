// Loops and branches inside a network: operators whose parameters are networks.
#pragma once

#include <functional>
#include <memory>

#include "symbind/graph/builder.h"
#include "symbind/ops/subgraph.h"

namespace SYMBIND_API symbind {

// ---- foreach --------------------------------------------------------------------------------------------------------

// Runs a body once for every slice of the data along the first axis. Inputs: the data, the initial states, and other
// values the body reads; each is a variable of the body. Outputs: the body's outputs stacked along a
// new first axis, then the final states. Hidden outputs: the states before the final ones, and the cursors of the
// random numbers.
struct Foreach {
  Required<int64_t> num_args = {};      // inputs and one more, for the body
  Required<int64_t> num_outputs = {};   // of the body, its states included
  Required<int64_t> num_out_data = {};  // without its states
  Required<Tuple> in_state_locs = {};
  Required<Tuple> in_data_locs = {};
  Required<Tuple> remain_locs = {};
  Attributes subgraphs = {};
  std::shared_ptr<const Subgraph> body = nullptr;  // made from the above

  size_t data() const { return in_data_locs.get().size(); }
  size_t states() const { return in_state_locs.get().size(); }
  size_t inputs() const { return data() + states() + remain_locs.get().size(); }
  size_t results() const { return body ? body->outputs() : 0; }  // of the body, states included
  size_t out_data() const { return static_cast<size_t>(num_out_data.get()); }
  size_t location(size_t input) const;  // index of an input among the body's variables
};

// (the gradients of the outputs, the inputs, the hidden outputs) → the gradients of the inputs
struct ForeachGrad : Foreach {
  std::vector<bool> wants = {};
};

// The result of a loop's body, and of a loop.
struct LoopResult {
  std::vector<Symbol> outputs, states;
};
using LoopBody = std::function<LoopResult(const std::vector<Symbol>& data, const std::vector<Symbol>& states)>;

// The body is called once, with variables for a slice of each of the data and for the states. It may use symbols from
// outside: they become inputs of the loop.
//
//   auto [outputs, states] = foreach([&](auto& x, auto& s) -> LoopResult { … }, {sequence}, {first});
LoopResult foreach(const LoopBody& body, const std::vector<Symbol>& data, const std::vector<Symbol>& init_states,
                   const std::string& name = "foreach");

}  // namespace symbind
