#include "symbind/ops/cond.h"

#include <algorithm>

#include "symbind/graph/attributes.h"
#include "symbind/graph/define.h"

namespace symbind {
namespace {

// One network of a node, and the inputs its variables map to.
struct Part {
  const Subgraph& graph;
  const Tuple& locations;
};
std::vector<Part> parts_of(const Cond& p) {
  return {{*p.condition, p.cond_input_locs}, {*p.then_branch, p.then_input_locs}, {*p.else_branch, p.else_input_locs}};
}

template <class P>
Op<P>& cond_fields(Op<P>& op) {
  return op.param(&Cond::num_args, "num_args", "number of inputs and three more, for the networks", between(3, 1 << 20))
      .param(&Cond::num_outputs, "num_outputs", "number of outputs of each branch", between(1, 1 << 20))
      .param(&Cond::cond_input_locs, "cond_input_locs", "which inputs the variables of the condition are",
             each_at_least(0))
      .param(&Cond::then_input_locs, "then_input_locs", "which inputs the variables of the first branch are",
             each_at_least(0))
      .param(&Cond::else_input_locs, "else_input_locs", "which inputs the variables of the second branch are",
             each_at_least(0))
      .keywords(&Cond::subgraphs);
}

void check(Cond& p) {
  if (!p.condition) {
    p.condition = parsed_subgraph(p.subgraphs, 0);
    p.then_branch = parsed_subgraph(p.subgraphs, 1);
    p.else_branch = parsed_subgraph(p.subgraphs, 2);
  }
  for (const Part& part : parts_of(p)) {
    require(part.locations.size() == part.graph.variables().size(), "a network has ", part.graph.variables().size(),
            " variables, and there are ", part.locations.size(), " locations: ", print(part.locations));
    for (const int64_t input : part.locations)
      require(static_cast<size_t>(input) < p.inputs(), "there is no input ", input, ": there are ", p.inputs());
  }
  require(p.condition->outputs() == 1, "the condition has ", p.condition->outputs(), " outputs");
  require(!p.condition->is_random(true), "the condition cannot draw random numbers");
  for (const auto& branch : {p.then_branch, p.else_branch})
    require(branch->outputs() == p.outputs(), "a branch has ", branch->outputs(), " outputs, and num_outputs is ",
            p.outputs());
}

// Inference runs in every network with what is known of its inputs; the branches share their outputs.
template <class Value, class Meet>
void infer_parts(const Cond& p, Inference<Value>& inference, std::vector<Value>& condition, Meet meet) {
  for (int round = 0; round < 2; ++round) {
    size_t number = 0;
    for (const Part& part : parts_of(p)) {
      std::vector<Value> variables, outputs;
      for (const int64_t input : part.locations) variables.push_back(inference.input(static_cast<size_t>(input)).get());
      if (number == 0) outputs = condition;
      for (size_t i = 0; number > 0 && i < p.outputs(); ++i) outputs.push_back(inference.output(i).get());
      infer_body(part.graph, variables, outputs, inference.where());
      for (size_t i = 0; i < variables.size(); ++i)
        meet(inference.input(static_cast<size_t>(part.locations[i])), variables[i]);
      if (number == 0) condition = outputs;
      for (size_t i = 0; number > 0 && i < p.outputs(); ++i) meet(inference.output(i), outputs[i]);
      ++number;
    }
  }
}

void infer_shapes(const Cond& p, Shapes& s) {
  std::vector<Shape> condition(1);
  infer_parts(p, s, condition, [](Inferred<Shape> to, const Shape& shape) { to.meet(shape); });
  require(!condition[0].known() || condition[0].size() == 1, s.where(), " the condition must be one number, not ",
          condition[0]);
  const bool random = p.then_branch->is_random(true) || p.else_branch->is_random(true);
  s.output(p.outputs()).meet({random ? 1 : 0, 2});
}

void infer_types(const Cond& p, Types& t) {
  std::vector<DType> condition(1, DType::none);
  infer_parts(p, t, condition, [](Inferred<DType> to, DType type) { to.meet(type); });
  t.output(p.outputs()).meet(DType::int64);
}

OpDef define(Op<Cond> op) {
  return cond_fields(op)
      .doc(
          "Runs one of two networks: the first where the condition, a number computed by a third, is not 0. "
          "mx.sym.contrib.cond builds it from functions.")
      .precision(Precision::full)  // both networks return one type
      .own_gradient_terms()        // its networks may have losses
      .check([](Cond& p) { check(p); })
      .inputs([](const Cond& p) { return p.inputs(); },
              [](const Cond&, size_t index) { return "data" + std::to_string(index); })
      .outputs([](const Cond& p) { return p.outputs() + 1; },
               [](const Cond& p, size_t index) -> std::string {
                 if (index == p.outputs()) return "cursors";
                 return p.outputs() == 1 ? "output" : "output" + std::to_string(index);
               })
      .visible_outputs([](const Cond& p) { return static_cast<int>(p.outputs()); })
      .outputs_in_files([](const Cond& p) { return static_cast<int>(p.outputs()); })
      .random([](const Cond& p, bool is_train) {
        return p.then_branch && (p.then_branch->is_random(is_train) || p.else_branch->is_random(is_train));
      })
      .infer_shape(infer_shapes)
      .infer_type(infer_types)
      .gradient([](const Cond& p, Grad& g) {
        CondGrad params{p};
        std::vector<Symbol> inputs;
        for (size_t i = 0; i < p.outputs(); ++i) inputs.push_back(g.out_grad(i));
        for (size_t i = 0; i < p.inputs(); ++i) {
          inputs.push_back(g.input(i));
          params.wants.push_back(g.wants(i));
        }
        inputs.push_back(g.output(p.outputs()));
        const Symbol grads = Builder<CondGrad>{}(inputs, params);
        for (size_t i = 0; i < p.inputs(); ++i)
          if (g.wants(i)) g.set(i, grads[i]);
      });
}

OpDef define(Op<CondGrad> op) {
  return cond_fields(op)
      .inputs([](const CondGrad& p) { return p.outputs() + p.inputs() + 1; },
              [](const CondGrad& p, size_t index) {
                return (index < p.outputs() ? "out_grad" : "data") + std::to_string(index);
              })
      .outputs([](const CondGrad& p) { return p.inputs(); },
               [](const CondGrad&, size_t index) { return "data_grad" + std::to_string(index); })
      .infer_shape([](const CondGrad& p, Shapes& s) {
        for (size_t i = 0; i < p.inputs(); ++i) s.output(i).meet(s.input(p.outputs() + i).get());
      })
      .infer_type([](const CondGrad& p, Types& t) {
        for (size_t i = 0; i < p.inputs(); ++i) t.output(i).meet(t.input(p.outputs() + i));
      });
}

// A body and the inputs its variables map to; missing inputs are added to the node.
std::shared_ptr<const Subgraph> add_part(const BranchBody& body, const std::string& name, std::vector<Entry>& inputs,
                                         Required<Tuple>& locations, std::string& text) {
  const std::string scope_name = unique_scope(name);
  std::vector<Symbol> returned;
  {
    const AttrScope scope({{subgraph_name, scope_name}});
    add_returned(body(), returned, "cond");
    require(!returned.empty(), "[cond] a branch returns nothing");
  }
  const Cut cut = cut_out(returned, scope_name);
  auto graph = std::make_shared<const Subgraph>(cut.network);
  Tuple found;
  for (const Symbol& variable : graph->variables()) {
    const auto outside =
        std::ranges::find_if(cut.outside, [&](const auto& each) { return each.first == variable.entries()[0].node; });
    auto at = std::find(inputs.begin(), inputs.end(), outside->second);
    if (at == inputs.end()) at = inputs.insert(at, outside->second);
    found.push_back(at - inputs.begin());
  }
  locations = found;
  text = cut.network.tojson();
  return graph;
}

}  // namespace

std::vector<Symbol> cond(const Symbol& pred, const BranchBody& then_body, const BranchBody& else_body,
                         const std::string& name) {
  Cond params;
  std::vector<Entry> inputs;
  params.condition = add_part([&] { return std::vector{pred}; }, name + "_pred", inputs, params.cond_input_locs,
                              params.subgraphs["subgraph:0"]);
  params.then_branch =
      add_part(then_body, name + "_then", inputs, params.then_input_locs, params.subgraphs["subgraph:1"]);
  params.else_branch =
      add_part(else_body, name + "_else", inputs, params.else_input_locs, params.subgraphs["subgraph:2"]);
  require(params.then_branch->outputs() == params.else_branch->outputs(), "[cond] the branches return ",
          params.then_branch->outputs(), " and ", params.else_branch->outputs(), " outputs");
  params.num_args = static_cast<int64_t>(inputs.size()) + 3;
  params.num_outputs = static_cast<int64_t>(params.then_branch->outputs());
  std::vector<Symbol> symbols;
  for (const Entry& input : inputs) symbols.push_back(Symbol({input}));
  const Symbol branch = Builder<Cond>{}(symbols, params);
  std::vector<Symbol> outputs;
  for (size_t i = 0; i < branch.size(); ++i) outputs.push_back(branch[i]);
  return outputs;
}

void register_cond(OpRegistry& registry) {
  add<Cond>(registry, "_cond", define);
  add_internal<CondGrad>(registry, "_backward_cond", define);
}

}  // namespace symbind
