#include "symbind/graph/gradient_probe.h"

#include <algorithm>
#include <string_view>

#include "symbind/core/error.h"
#include "symbind/graph/attributes.h"
#include "symbind/graph/op.h"
#include "symbind/graph/symbol.h"

namespace symbind {
namespace {

class Probe final : public Grad {
 public:
  explicit Probe(const Node& node) : node_(node), names_(node.op->inputs(node.params.get())) {
    const NameManager names;  // what the gradient builds takes no names from the user's network
    node.op->gradient(node.params.get(), *this);
  }

  const ProbedGradient& found() const { return found_; }

  Symbol input(std::string_view name) override { return input(index(name)); }
  Symbol input(size_t index) override { return Symbol({node_.inputs[index]}); }
  size_t inputs() const override { return names_.size(); }
  Symbol output(size_t /*index*/) override { return Symbol::variable("output"); }
  Symbol out_grad(size_t /*index*/) override {
    found_.reads_out_grad = true;
    return Symbol::variable("out_grad");
  }
  bool has_out_grad(size_t /*index*/) override { return true; }
  bool wants(std::string_view /*name*/) override { return true; }
  bool wants(size_t /*index*/) override { return true; }
  void set(std::string_view name, const Symbol& /*gradient*/) override {
    found_.inputs_with_gradient.insert(index(name));
  }
  void set(size_t index, const Symbol& /*gradient*/) override { found_.inputs_with_gradient.insert(index); }

 private:
  size_t index(std::string_view name) const {
    const auto found = std::ranges::find(names_, name);
    require(found != names_.end(), node_.op->name, " has no input '", name, "'");
    return static_cast<size_t>(found - names_.begin());
  }

  const Node& node_;
  const Names names_;
  ProbedGradient found_;
};

}  // namespace

ProbedGradient probe_gradient(const Node& node) { return Probe(node).found(); }

bool is_loss(const Node& node) {
  if (node.is_variable() || !node.op->gradient) return false;
  const ProbedGradient found = probe_gradient(node);
  return !found.reads_out_grad && !found.inputs_with_gradient.empty();
}

bool passes_gradient(const Node& node) {
  return !node.is_variable() && node.op->gradient && probe_gradient(node).reads_out_grad;
}

}  // namespace symbind
