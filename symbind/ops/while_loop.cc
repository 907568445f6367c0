#include "symbind/ops/while_loop.h"

#include <algorithm>

#include "symbind/graph/attributes.h"
#include "symbind/graph/define.h"

namespace symbind {
namespace {

template <class P>
Op<P>& loop_fields(Op<P>& op) {
  return op
      .param(&WhileLoop::num_args, "num_args", "number of inputs and two more, for the networks", between(2, 1 << 20))
      .param(&WhileLoop::num_outputs, "num_outputs", "number of the body's outputs, variables included",
             between(1, 1 << 20))
      .param(&WhileLoop::num_out_data, "num_out_data", "number of the body's outputs without the variables",
             between(0, 1 << 20))
      .param(&WhileLoop::max_iterations, "max_iterations", "the most steps that are made", between(1, 1 << 24))
      .param(&WhileLoop::cond_input_locs, "cond_input_locs", "which inputs the variables of the condition are",
             each_at_least(0))
      .param(&WhileLoop::func_input_locs, "func_input_locs", "which inputs the variables of the body are",
             each_at_least(0))
      .param(&WhileLoop::func_var_locs, "func_var_locs", "which variables of the body are those of the loop",
             each_at_least(0))
      .keywords(&WhileLoop::subgraphs);
}

void check(WhileLoop& p) {
  if (!p.condition) {
    p.condition = parsed_subgraph(p.subgraphs, 0);
    p.body = parsed_subgraph(p.subgraphs, 1);
  }
  const auto check_part = [&](const Subgraph& graph, const Tuple& locations) {
    require(locations.size() == graph.variables().size(), "a network has ", graph.variables().size(),
            " variables, and there are ", locations.size(), " locations: ", print(locations));
    for (const int64_t input : locations)
      require(static_cast<size_t>(input) < p.inputs(), "there is no input ", input, ": there are ", p.inputs());
  };
  check_part(*p.condition, p.cond_input_locs);
  check_part(*p.body, p.func_input_locs);
  for (const int64_t variable : p.func_var_locs.get())
    require(static_cast<size_t>(variable) < p.func_input_locs.get().size(), "the body has no variable ", variable);
  require(p.condition->outputs() == 1, "the condition has ", p.condition->outputs(), " outputs");
  require(!p.condition->is_random(true), "the condition cannot draw random numbers");
  require(p.body->outputs() == p.results() && p.out_data() + p.variables() == p.results(), "the body has ",
          p.body->outputs(), " outputs; num_outputs is ", p.results(), ", num_out_data ", p.out_data(),
          ", and the loop has ", p.variables(), " variables");
}

Shape stacked(int64_t length, const Shape& slice, const std::string& where) {
  if (!slice.rank_known()) return {};
  require(slice.rank() < Shape::max_rank, where, " the body's output has too many axes: ", slice);
  Shape whole{length};
  for (const int64_t extent : slice) whole.push_back(extent);
  return whole;
}

// What is known of one network's variables.
template <class Value>
std::vector<Value> known_of(const Tuple& locations, Inference<Value>& inference) {
  std::vector<Value> known;
  for (const int64_t input : locations) known.push_back(inference.input(static_cast<size_t>(input)).get());
  return known;
}

void infer_shapes(const WhileLoop& p, Shapes& s) {
  std::vector<Shape> condition(1);
  for (int round = 0; round < 2; ++round) {
    auto variables = known_of<Shape>(p.func_input_locs, s);
    std::vector<Shape> outputs;
    for (size_t i = 0; i < p.results(); ++i) {
      const Shape& known = s.output(i);
      outputs.push_back(i >= p.out_data() || !known.rank_known() ? known : known.slice(1, known.rank()));
    }
    infer_body(*p.body, variables, outputs, s.where());
    for (size_t i = 0; i < variables.size(); ++i)
      s.input(static_cast<size_t>(p.func_input_locs.get()[i])).meet(variables[i]);
    for (size_t i = 0; i < p.results(); ++i)
      s.output(i).meet(i < p.out_data() ? stacked(p.max_iterations, outputs[i], s.where()) : outputs[i]);
    for (size_t i = 0; i < p.variables(); ++i) {  // a variable has one shape before and after a step
      auto last = s.output(p.out_data() + i), first = s.input(p.input_of(i));
      last.meet(first);
      s.output(p.results() + i).meet(stacked(p.max_iterations, first, s.where()));
    }
    auto of_condition = known_of<Shape>(p.cond_input_locs, s);
    infer_body(*p.condition, of_condition, condition, s.where());
    for (size_t i = 0; i < of_condition.size(); ++i)
      s.input(static_cast<size_t>(p.cond_input_locs.get()[i])).meet(of_condition[i]);
  }
  require(!condition[0].known() || condition[0].size() == 1, s.where(), " the condition must be one number, not ",
          condition[0]);
  s.output(p.results() + p.variables()).meet({p.body->is_random(true) ? int64_t(p.max_iterations) : 0, 2});
}

void infer_types(const WhileLoop& p, Types& t) {
  std::vector<DType> condition(1, DType::none);
  for (int round = 0; round < 2; ++round) {
    auto variables = known_of<DType>(p.func_input_locs, t);
    std::vector<DType> outputs;
    for (size_t i = 0; i < p.results(); ++i) outputs.push_back(t.output(i));
    infer_body(*p.body, variables, outputs, t.where());
    for (size_t i = 0; i < variables.size(); ++i)
      t.input(static_cast<size_t>(p.func_input_locs.get()[i])).meet(variables[i]);
    for (size_t i = 0; i < p.results(); ++i) t.output(i).meet(outputs[i]);
    for (size_t i = 0; i < p.variables(); ++i) {
      auto last = t.output(p.out_data() + i), first = t.input(p.input_of(i));
      last.meet(first.get());
      first.meet(last.get());
      t.output(p.results() + i).meet(first.get());
    }
    auto of_condition = known_of<DType>(p.cond_input_locs, t);
    infer_body(*p.condition, of_condition, condition, t.where());
    for (size_t i = 0; i < of_condition.size(); ++i)
      t.input(static_cast<size_t>(p.cond_input_locs.get()[i])).meet(of_condition[i]);
  }
  t.output(p.results() + p.variables()).meet(DType::int64);
}

Names output_names(const WhileLoop& p) {
  Names names;
  for (size_t i = 0; i < p.results(); ++i) names.push_back(p.results() == 1 ? "output" : "output" + std::to_string(i));
  for (size_t i = 0; i < p.variables(); ++i) names.push_back("values" + std::to_string(i));
  names.emplace_back("cursors");
  return names;
}

OpDef define(Op<WhileLoop> op) {
  return loop_fields(op)
      .doc(
          "Runs a network while a condition on its variables holds, at most max_iterations times. The outputs are "
          "those of the body, stacked along a new first axis of max_iterations with zeros after the last step, and the "
          "last values of the variables. mx.sym.contrib.while_loop builds it from functions.")
      .precision(Precision::full)  // variables keep one type from step to step
      .own_gradient_terms()        // its networks may have losses
      .check([](WhileLoop& p) { check(p); })
      .inputs([](const WhileLoop& p) { return p.inputs(); },
              [](const WhileLoop&, size_t index) { return "data" + std::to_string(index); })
      .outputs(output_names)
      .visible_outputs([](const WhileLoop& p) { return static_cast<int>(p.results()); })
      .outputs_in_files([](const WhileLoop& p) { return static_cast<int>(p.results()); })
      .random([](const WhileLoop& p, bool is_train) { return p.body && p.body->is_random(is_train); })
      .infer_shape(infer_shapes)
      .infer_type(infer_types)
      .gradient([](const WhileLoop& p, Grad& g) {
        WhileLoopGrad params{p};
        std::vector<Symbol> inputs;
        for (size_t i = 0; i < p.results(); ++i) inputs.push_back(g.out_grad(i));
        for (size_t i = 0; i < p.inputs(); ++i) {
          inputs.push_back(g.input(i));
          params.wants.push_back(g.wants(i));
        }
        for (size_t i = 0; i <= p.variables(); ++i) inputs.push_back(g.output(p.results() + i));
        const Symbol grads = Builder<WhileLoopGrad>{}(inputs, params);
        for (size_t i = 0; i < p.inputs(); ++i)
          if (g.wants(i)) g.set(i, grads[i]);
      });
}

OpDef define(Op<WhileLoopGrad> op) {
  return loop_fields(op)
      .inputs([](const WhileLoopGrad& p) { return p.results() + p.inputs() + p.variables() + 1; },
              [](const WhileLoopGrad& p, size_t index) {
                return (index < p.results() ? "out_grad" : "data") + std::to_string(index);
              })
      .outputs([](const WhileLoopGrad& p) { return p.inputs(); },
               [](const WhileLoopGrad&, size_t index) { return "data_grad" + std::to_string(index); })
      .infer_shape([](const WhileLoopGrad& p, Shapes& s) {
        for (size_t i = 0; i < p.inputs(); ++i) s.output(i).meet(s.input(p.results() + i).get());
      })
      .infer_type([](const WhileLoopGrad& p, Types& t) {
        for (size_t i = 0; i < p.inputs(); ++i) t.output(i).meet(t.input(p.results() + i));
      });
}

// The inputs that the variables of a body map to: those of the loop come first, new ones are appended.
Tuple locations_of(const Subgraph& graph, const Cut& cut, const std::vector<Symbol>& own, std::vector<Entry>& inputs) {
  Tuple locations;
  for (const Symbol& variable : graph.variables()) {
    const Node* const node = variable.entries()[0].node.get();
    const auto mine =
        std::ranges::find_if(own, [&](const Symbol& each) { return each.entries()[0].node.get() == node; });
    if (mine != own.end()) {
      locations.push_back(mine - own.begin());
      continue;
    }
    const auto outside = std::ranges::find_if(cut.outside, [&](const auto& each) { return each.first.get() == node; });
    const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(own.size());
    auto at = std::find(first, inputs.end(), outside->second);
    if (at == inputs.end()) at = inputs.insert(at, outside->second);
    locations.push_back(at - inputs.begin());
  }
  return locations;
}

}  // namespace

LoopResult while_loop(const LoopCondition& condition, const WhileBody& body, const std::vector<Symbol>& loop_vars,
                      int64_t max_iterations, const std::string& name) {
  require(!loop_vars.empty(), "[while_loop] a loop needs variables");
  const std::string in_condition = unique_scope(name + "_cond"), in_body = unique_scope(name + "_func");
  std::vector<Symbol> truth, returned, condition_vars, body_vars;
  size_t outputs = 0;
  {
    const AttrScope scope({{subgraph_name, in_condition}});
    condition_vars = body_variables(loop_vars, "while_loop");
    add_returned({condition(condition_vars)}, truth, "while_loop");
  }
  {
    const AttrScope scope({{subgraph_name, in_body}});
    body_vars = body_variables(loop_vars, "while_loop");
    const LoopResult result = body(body_vars);
    require(result.states.size() == loop_vars.size(), "[while_loop] the body takes ", loop_vars.size(),
            " variables and returns ", result.states.size());
    add_returned(result.outputs, returned, "while_loop");
    outputs = returned.size();
    add_returned(result.states, returned, "while_loop");
  }
  const Cut of_condition = cut_out(truth, in_condition), of_body = cut_out(returned, in_body);
  WhileLoop params;
  params.condition = std::make_shared<const Subgraph>(of_condition.network);
  params.body = std::make_shared<const Subgraph>(of_body.network);
  params.subgraphs = {{"subgraph:0", of_condition.network.tojson()}, {"subgraph:1", of_body.network.tojson()}};
  std::vector<Entry> inputs;
  for (const Symbol& variable : loop_vars) inputs.push_back(variable.entries()[0]);
  params.cond_input_locs = locations_of(*params.condition, of_condition, condition_vars, inputs);
  const Tuple of_func = locations_of(*params.body, of_body, body_vars, inputs);
  Tuple var_locations;
  for (size_t i = 0; i < loop_vars.size(); ++i) {
    const auto at = std::find(of_func.begin(), of_func.end(), static_cast<int64_t>(i));
    require(at != of_func.end(), "[while_loop] the body does not use '", loop_vars[i].name(), "'");
    var_locations.push_back(at - of_func.begin());
  }
  params.func_input_locs = of_func;
  params.func_var_locs = var_locations;
  params.max_iterations = max_iterations;
  params.num_args = static_cast<int64_t>(inputs.size()) + 2;
  params.num_outputs = static_cast<int64_t>(returned.size());
  params.num_out_data = static_cast<int64_t>(outputs);
  std::vector<Symbol> symbols;
  for (const Entry& input : inputs) symbols.push_back(Symbol({input}));
  const Symbol loop = Builder<WhileLoop>{}(symbols, params);
  LoopResult result;
  for (size_t i = 0; i < returned.size(); ++i) (i < outputs ? result.outputs : result.states).push_back(loop[i]);
  return result;
}

void register_while_loop(OpRegistry& registry) {
  add<WhileLoop>(registry, "_while_loop", define);
  add_internal<WhileLoopGrad>(registry, "_backward_while_loop", define);
}

}  // namespace symbind
