// Operators as C++ functions. Builder<P> is a function object: called on symbols it adds a node to the network, called
// on arrays it computes immediately (with exec/invoke.h included).
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "symbind/graph/op.h"
#include "symbind/graph/symbol.h"

namespace SYMBIND_API symbind {

class NDArray;

// The inputs of an operator on symbols: one, a list in order, or by name. Missing ones become variables.
class Inputs {
 public:
  Inputs(const Symbol& only);
  Inputs(std::initializer_list<Symbol> inputs);
  Inputs(std::vector<Symbol> inputs);
  Inputs(std::initializer_list<std::pair<const char*, Symbol>> named);
  ~Inputs();
  Inputs(const Inputs&);
  Inputs(Inputs&&) noexcept;
  Inputs& operator=(const Inputs&);
  Inputs& operator=(Inputs&&) noexcept;

  const std::vector<Symbol>& positional() const { return positional_; }
  const std::vector<std::pair<std::string, Symbol>>& named() const { return named_; }
  void add(std::string name, Symbol symbol);

 private:
  std::vector<Symbol> positional_;
  std::vector<std::pair<std::string, Symbol>> named_;
};

// A new node from a checked parameter struct. `given` holds the attributes as the user wrote them.
Symbol apply(const OpDef& op, const Inputs& inputs, std::shared_ptr<const void> params, Attributes given,
             const std::string& name);
// The same from text attributes, as in Python and in files.
Symbol apply(const std::string& op, const Inputs& inputs, const Attributes& attributes = {},
             const std::string& name = "");
// From a struct filled in C++.
Symbol apply_struct(const OpDef& op, const Inputs& inputs, const void* params, const std::string& name);

template <class P>
struct Builder {
  using Params = P;

  // Without inputs: random_uniform({.shape = {2, 3}}). For other operators every input becomes a variable.
  Symbol operator()(const P& params, const std::string& name = "") const {
    return (*this)(Inputs(std::initializer_list<Symbol>{}), params, name);
  }
  Symbol operator()(const Inputs& inputs, const P& params = {}, const std::string& name = "") const {
    return apply_struct(op_of<P>(), inputs, &params, name);
  }
  Symbol operator()(const Symbol& a, const P& params = {}, const std::string& name = "") const {
    return (*this)(Inputs(a), params, name);
  }
  Symbol operator()(const Symbol& a, const Symbol& b, const P& params = {}, const std::string& name = "") const {
    return (*this)(Inputs({a, b}), params, name);
  }
  Symbol operator()(const Symbol& a, const Symbol& b, const Symbol& c, const P& params = {},
                    const std::string& name = "") const {
    return (*this)(Inputs({a, b, c}), params, name);
  }

  // On arrays: requires exec/invoke.h.
  template <std::same_as<NDArray> Array>
  Array operator()(const Array& a, const P& params = {}) const {
    return invoke_struct(op_of<P>(), std::vector<Array>{a}, &params);
  }
  template <std::same_as<NDArray> Array>
  Array operator()(const Array& a, const Array& b, const P& params = {}) const {
    return invoke_struct(op_of<P>(), std::vector<Array>{a, b}, &params);
  }
  template <std::same_as<NDArray> Array>
  Array operator()(const Array& a, const Array& b, const Array& c, const P& params = {}) const {
    return invoke_struct(op_of<P>(), std::vector<Array>{a, b, c}, &params);
  }
  template <std::same_as<NDArray> Array>  // concat({a, b, c, d})
  Array operator()(std::initializer_list<Array> inputs, const P& params = {}) const {
    return invoke_struct(op_of<P>(), std::vector<Array>(inputs), &params);
  }
  template <std::same_as<NDArray> Array>
  Array operator()(const std::vector<Array>& inputs, const P& params = {}) const {
    return invoke_struct(op_of<P>(), inputs, &params);
  }
};

}  // namespace symbind
