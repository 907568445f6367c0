// Generates networks operator by operator: each reads existing values and adds its results. Layers are in
// random_layers.cc, operators that combine and rearrange arrays in random_arrays.cc, whole networks in random_graph.cc.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "tests/support/random_graph.h"

namespace symbind::testing {

// A result that later operators may read; `magnitude` is a rough bound of its values.
struct RandomValue {
  Symbol symbol;
  std::vector<int64_t> shape;
  double magnitude;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t spatial() const { return rank() - 2; }  // axes after batch and channels
};

class RandomGraphGenerator {
 public:
  RandomGraphGenerator(uint64_t seed, bool large);
  RandomGraph make(uint64_t seed, int size);

 private:
  using Value = RandomValue;
  using Made = std::optional<RandomValue>;  // none: its shapes do not fit together

  // ---- dice ---------------------------------------------------------------------------------------------------------
  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(engine_) < probability; }
  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + between(0, static_cast<int64_t>(choices.size()) - 1));
  }
  template <class T>
  const T& any_of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(between(0, static_cast<int64_t>(choices.size()) - 1))];
  }
  Value recent();  // mostly one of the last few, so that networks are deep
  std::optional<Value> another(const std::function<bool(const Value&)>& fits);
  Value alike(const Value& x) {
    return *another([&](const Value& value) { return value.shape == x.shape; });
  }

  // ---- building -----------------------------------------------------------------------------------------------------
  std::string fresh(const std::string& kind) { return join(kind, names_++); }
  Symbol add_variable(const std::vector<int64_t>& shape, const std::string& kind = "input");
  void add_input(const std::vector<int64_t>& shape) { values_.push_back({add_variable(shape), shape, 1}); }
  // Every output of a new operator becomes a value.
  Made add(const Symbol& symbol, double magnitude);

  // Layers.
  Made convolve(const Value& x);
  Made deconvolve(const Value& x);
  Made connect(const Value& x);
  Made normalise(const Value& x);
  Made normalise_otherwise(const Value& x);
  Made activate(const Value& x);
  Made pool(const Value& x);
  Made drop(const Value& x);
  Made lose(const Value& x);

  // Arrays.
  Made combine(const Value& x);
  Made with_number(const Value& x);
  Made map(const Value& x);
  Made join_up(const Value& x);
  Made cut(const Value& x);
  Made rearrange(const Value& x);
  Made enlarge(const Value& x);
  Made multiply(const Value& x);
  Made spread(const Value& x);
  Made gather_up(const Value& x);

  Made grow(const Value& x);
  void grow_motif();
  std::vector<Symbol> outputs();

  std::mt19937_64 engine_;
  const int64_t most_elements_;  // of an array
  std::vector<Value> values_;
  struct Weight {
    Symbol symbol;
    int64_t channels, filters;
    Tuple kernel;
  };
  std::vector<Weight> weights_;
  struct Norm {
    std::vector<Symbol> variables;
    int64_t channels;
  };
  std::vector<Norm> norms_;
  NamedShapes inputs_;
  int operators_ = 0, names_ = 0;
  bool grouped_ = false;   // some operators on another device than others
  bool mirrored_ = false;  // some operators are to be recomputed
};

}  // namespace symbind::testing
