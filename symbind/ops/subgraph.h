// Networks that are parameters of operators: bodies of loops, and branches.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "symbind/core/error.h"
#include "symbind/graph/symbol.h"

namespace SYMBIND_API symbind {

// The body of a loop, or a branch: a network and its variables in the order that files number them. Files hold it as
// JSON; a node has it as the attribute "subgraph:0" (and so on).
class Subgraph {
 public:
  explicit Subgraph(const Symbol& network);

  const Symbol& network() const { return network_; }
  const std::vector<Symbol>& variables() const { return variables_; }
  size_t outputs() const { return network_.size(); }
  bool is_random(bool is_train) const;  // does a node of it draw random numbers?

 private:
  Symbol network_;
  std::vector<Symbol> variables_;
};

// The network with this number among the attributes of a node.
std::shared_ptr<const Subgraph> parsed_subgraph(const Attributes& texts, int index);

// ---- Supplied by passes/ when linking -------------------------------------------------------------------------------

// Completes what is known of the variables and outputs of a network, as far as possible.
void infer_subgraph(const Subgraph& graph, std::span<Shape> variables, std::span<Shape> outputs);
void infer_subgraph(const Subgraph& graph, std::span<DType> variables, std::span<DType> outputs);

// The same; an error names the operator that the network belongs to.
template <class Value>
void infer_body(const Subgraph& body, std::vector<Value>& variables, std::vector<Value>& outputs,
                const std::string& where) {
  try {
    infer_subgraph(body, std::span<Value>(variables), std::span<Value>(outputs));
  } catch (const Error& error) {
    fail(where, " in its body: ", error.what());
  }
}

// ---- Cutting a body out of the network ------------------------------------------------------------------------------

// While a function builds a body, the nodes it creates are marked with this attribute, with a name for each body.
extern const char* const subgraph_name;
std::string unique_scope(const std::string& name);

// A network whose nodes were created in the scope `name`, with variables in place of values from outside.
struct Cut {
  Symbol network;
  std::vector<std::pair<NodePtr, Entry>> outside;  // the variable of the body, and the value outside
};
Cut cut_out(const std::vector<Symbol>& outputs, const std::string& name);

// Variables for a body, named after the symbols they represent.
std::vector<Symbol> body_variables(const std::vector<Symbol>& of, const std::string& who);
// The results of a body, as outputs of its own nodes. Call it in the body's scope.
void add_returned(const std::vector<Symbol>& from, std::vector<Symbol>& to, const std::string& who);

}  // namespace symbind
