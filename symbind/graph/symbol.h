// A network, or a part of one: a list of outputs of nodes. Symbols are values; they share their nodes.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "symbind/core/dtype.h"
#include "symbind/core/shape.h"
#include "symbind/graph/attributes.h"
#include "symbind/graph/node.h"

namespace SYMBIND_API symbind {

struct VariableOptions {
  Attributes attr = {};
  Shape shape = {};  // 0: unknown
  std::optional<double> lr_mult = std::nullopt;
  std::optional<double> wd_mult = std::nullopt;
  DType dtype = DType::none;
  std::string init = "";  // an initializer as text, for __init__
};

// Shapes and types are inferred by passes/infer.h, binding is in exec/executor.h.
class Symbol {
 public:
  static Symbol variable(const std::string& name, const VariableOptions& options = {});
  static Symbol group(const std::vector<Symbol>& symbols);
  explicit Symbol(std::vector<Entry> outputs);
  // Not inline: expressions over symbols copy and destroy many.
  ~Symbol();
  Symbol(const Symbol&);
  Symbol(Symbol&&) noexcept;
  Symbol& operator=(const Symbol&);
  Symbol& operator=(Symbol&&) noexcept;

  // The network with variables replaced: by name, or in the order of list_arguments().
  Symbol operator()(const std::map<std::string, Symbol>& replacements, const std::string& name = "") const;
  Symbol operator()(const std::vector<Symbol>& replacements, const std::string& name = "") const;

  Symbol operator[](size_t index) const;
  Symbol operator[](const std::string& output_name) const;
  size_t size() const { return outputs_.size(); }  // number of outputs
  const std::vector<Entry>& entries() const { return outputs_; }

  std::string name() const;                                       // empty for a group
  std::optional<std::string> attr(const std::string& key) const;  // finds lr_mult and __lr_mult__ alike
  Attributes list_attr() const;
  std::map<std::string, Attributes> attr_dict() const;
  void set_attr(const Attributes& attributes);

  std::vector<std::string> list_arguments() const;  // depth first, in order of use
  std::vector<std::string> list_outputs() const;    // "fc1_output"
  std::vector<std::string> list_auxiliary_states() const;
  std::vector<std::string> list_inputs() const;  // arguments and auxiliary states
  Symbol get_internals() const;                  // every output of every node
  std::optional<Symbol> get_children() const;    // the inputs of the output's node; none for a variable

  std::string tojson() const;
  void save(const std::string& file) const;
  static Symbol load(const std::string& file);
  static Symbol load_json(std::string_view text);
  std::string debug_str() const;

 private:
  std::vector<Entry> outputs_;
};

Symbol operator-(const Symbol& a);
Symbol operator+(const Symbol& a, const Symbol& b);
Symbol operator-(const Symbol& a, const Symbol& b);
Symbol operator*(const Symbol& a, const Symbol& b);
Symbol operator/(const Symbol& a, const Symbol& b);
Symbol operator+(const Symbol& a, double b);
Symbol operator-(const Symbol& a, double b);
Symbol operator*(const Symbol& a, double b);
Symbol operator/(const Symbol& a, double b);
Symbol operator+(double a, const Symbol& b);
Symbol operator-(double a, const Symbol& b);
Symbol operator*(double a, const Symbol& b);
Symbol operator/(double a, const Symbol& b);
Symbol pow(const Symbol& base, const Symbol& exponent);
Symbol pow(const Symbol& base, double exponent);
Symbol pow(double base, const Symbol& exponent);
Symbol operator==(const Symbol& a, const Symbol& b);
Symbol operator!=(const Symbol& a, const Symbol& b);
Symbol operator<(const Symbol& a, const Symbol& b);
Symbol operator<=(const Symbol& a, const Symbol& b);
Symbol operator>(const Symbol& a, const Symbol& b);
Symbol operator>=(const Symbol& a, const Symbol& b);
Symbol operator==(const Symbol& a, double b);
Symbol operator!=(const Symbol& a, double b);
Symbol operator<(const Symbol& a, double b);
Symbol operator<=(const Symbol& a, double b);
Symbol operator>(const Symbol& a, double b);
Symbol operator>=(const Symbol& a, double b);

}  // namespace symbind
