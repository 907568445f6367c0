#include "tests/support/unrolled.h"

#include <map>
#include <random>

#include "symbind/core/error.h"
#include "symbind/graph/builder.h"

namespace symbind::testing {
namespace {

Symbol gate(const Symbol& data, const std::string& type) { return apply("Activation", data, {{"act_type", type}}); }
Symbol split(const Symbol& data, int64_t parts) { return apply("SliceChannel", data, {{"num_outputs", join(parts)}}); }

class Layer {
 public:
  Layer(const Unrolled& what, const std::string& name) : what_(what) {
    for (const std::string map : {"i2h", "h2h"})
      for (const std::string kind : {"_weight", "_bias"}) parameters_.emplace(map + kind, var(name + map + kind));
  }

  std::vector<Symbol> operator()(const std::vector<Symbol>& sequence) const {
    const auto zeros = [&] {
      return apply("_zeros", std::vector<Symbol>{}, {{"shape", join("(0, ", what_.hidden, ")")}});
    };
    Symbol h = zeros(), c = zeros();
    std::vector<Symbol> outputs;
    for (const Symbol& x : sequence) {
      if (what_.cell == "lstm") {
        const Symbol gates = split(affine(x, "i2h", 4) + affine(h, "h2h", 4), 4);
        c = gate(gates[1], "sigmoid") * c + gate(gates[0], "sigmoid") * gate(gates[2], "tanh");
        h = gate(gates[3], "sigmoid") * gate(c, "tanh");
      } else if (what_.cell == "gru") {
        const Symbol from_x = split(affine(x, "i2h", 3), 3), from_h = split(affine(h, "h2h", 3), 3);
        const Symbol reset = gate(from_x[0] + from_h[0], "sigmoid"), update = gate(from_x[1] + from_h[1], "sigmoid");
        const Symbol next = gate(from_x[2] + reset * from_h[2], "tanh");
        h = (1.0 - update) * next + update * h;
      } else {
        h = gate(affine(x, "i2h", 1) + affine(h, "h2h", 1), "tanh");
      }
      outputs.push_back(h);
    }
    return outputs;
  }

 private:
  Symbol affine(const Symbol& x, const std::string& map, int64_t gates) const {
    return apply("FullyConnected", {x, parameters_.at(map + "_weight"), parameters_.at(map + "_bias")},
                 {{"num_hidden", join(gates * what_.hidden)}});
  }

  const Unrolled& what_;
  std::map<std::string, Symbol> parameters_;
};

}  // namespace

Unrolled random_unrolled(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  const std::string cells[] = {"lstm", "lstm", "gru", "rnn"}, sequences[] = {"NTC", "TNC", "list"};
  const int64_t widths[] = {1, 3, 8, 16, 33, 64}, batches[] = {1, 3, 16, 130, 300};
  return {.cell = cells[below(4)],
          .sequence = sequences[below(3)],
          .layers = static_cast<int>(1 + below(3)),
          .steps = static_cast<int>(1 + below(9)),
          .batch = batches[below(5)],
          .inputs = widths[below(6)],
          .hidden = widths[below(6)],
          .dropout = below(4) == 0,
          .tied = below(4) == 0};
}

Network unrolled(const Unrolled& what) {
  NamedShapes shapes;
  std::vector<Symbol> sequence;
  const Shape step{what.batch, what.inputs};
  if (what.sequence == "list") {
    for (int t = 0; t < what.steps; ++t) {
      sequence.push_back(var(join("data", t)));
      shapes[join("data", t)] = step;
    }
  } else {
    const bool steps_first = what.sequence == "TNC";
    shapes["data"] =
        steps_first ? Shape{what.steps, what.batch, what.inputs} : Shape{what.batch, what.steps, what.inputs};
    const Symbol all =
        apply("SliceChannel", var("data") * 0.5,
              {{"num_outputs", join(what.steps)}, {"axis", steps_first ? "0" : "1"}, {"squeeze_axis", "1"}});
    for (int t = 0; t < what.steps; ++t) sequence.push_back(all[static_cast<size_t>(t)]);
  }
  for (int i = 0; i < what.layers; ++i) {
    sequence = Layer(what, what.tied && i > 0 ? "tied_" : join("layer", i, "_"))(sequence);
    if (what.dropout)
      for (Symbol& x : sequence) x = apply("Dropout", x, {{"p", "0.3"}});
  }
  const std::string name =
      join(what.cell, " ", what.sequence, ", layers ", what.layers, ", steps ", what.steps, ", batch ", what.batch,
           ", ", what.inputs, " to ", what.hidden, what.dropout ? ", dropout" : "", what.tied ? ", tied" : "");
  return {name, apply("Concat", sequence, {{"dim", "1"}}, "out"), shapes, 0};
}

}  // namespace symbind::testing
