// Networks of any number of nodes, on arrays of a few elements: the cost comes from the number of nodes. For tests that
// bound how work grows with it, and for bench/compile_time.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "symbind/symbind.h"

namespace symbind::testing {

struct LargeGraph {
  const char* name;
  Symbol (*make)(int nodes);  // about so many, variables included
};

inline const Shape& large_graph_input() {
  static const Shape shape{2, 4};
  return shape;
}

// All have one input, "x". The names of nodes are counted from 0.
inline std::vector<LargeGraph> large_graphs() {
  return {
      // One operator after the other.
      {"chain",
       [](int nodes) {
         Symbol net = Symbol::variable("x");
         for (int i = 0; i < nodes; ++i) net = i % 3 == 2 ? tanh(net) : net * 0.5;
         return net;
       }},
      // Many parallel operators, and a sum of all.
      {"branches",
       [](int nodes) {
         const Symbol x = Symbol::variable("x");
         std::vector<Symbol> branches;
         for (int i = 0; i < nodes / 2; ++i) branches.push_back(tanh(x * 0.5));
         return add_n(branches);
       }},
      // Arrays cut into many parts, an operator on each, and all concatenated.
      {"parts",
       [](int nodes) {
         Symbol row = reshape(Symbol::variable("x"), {.shape = {1, -1}});
         for (int left = nodes; left > 0;) {
           const int count = std::min(left, 20'000);
           const Symbol rows = broadcast_axis(row, {.axis = {0}, .size = {count}});
           const Symbol parts = slice_channel(rows, {.num_outputs = count, .axis = 0});
           std::vector<Symbol> results;
           for (size_t i = 0; i < parts.size(); ++i) results.push_back(tanh(parts[i]));
           row = sum(concat(results, {.dim = 0}), Sum{.axis = Tuple{0}, .keepdims = true});
           left -= count;
         }
         return row;
       }},
      // Many outputs.
      {"outputs",
       [](int nodes) {
         const Symbol x = Symbol::variable("x");
         std::vector<Symbol> outputs;
         for (int i = 0; i < nodes; ++i) outputs.push_back(x * 0.5);
         return Symbol::group(outputs);
       }},
      // One weight that every layer reads.
      {"shared weight",
       [](int nodes) {
         Symbol net = Symbol::variable("x");
         const Symbol weight = Symbol::variable("weight");
         for (int i = 0; i < nodes; ++i) net = net * weight;
         return net;
       }},
      // A recurrent network, unrolled.
      {"recurrent",
       [](int nodes) {
         const Symbol x = Symbol::variable("x"), input = Symbol::variable("i2h"), state = Symbol::variable("h2h");
         Symbol h = x;
         for (int i = 0; i < nodes / 4; ++i)
           h = tanh(fully_connected({{"data", x}, {"weight", input}}, {.num_hidden = 4, .no_bias = true}) +
                    fully_connected({{"data", h}, {"weight", state}}, {.num_hidden = 4, .no_bias = true}));
         return h;
       }},
      // Residual blocks, each with its own parameters and states.
      {"residual",
       [](int nodes) {
         Symbol net = Symbol::variable("x");
         for (int i = 0; i < nodes / 10; ++i) {
           const Symbol norm = activation(batch_norm(net), {.act_type = "relu"});
           net = net + fully_connected(norm, {.num_hidden = 4});
         }
         return net;
       }},
  };
}

}  // namespace symbind::testing
