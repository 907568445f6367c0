#include "symbind/ops/control_flow.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "symbind/graph/attributes.h"
#include "symbind/graph/define.h"
#include "symbind/ops/elementwise.h"

namespace symbind {

// ---- Subgraph -------------------------------------------------------------------------------------------------------

Subgraph::Subgraph(const Symbol& network) : network_(network) {
  const Names states = network.list_auxiliary_states();
  require(states.empty(), "the body of a loop or branch cannot have auxiliary states: ", comma_separated(states));
  for (const NodePtr& node : topological_order(network.entries()))
    if (node->is_variable()) variables_.push_back(Symbol({{node, 0}}));
}

bool Subgraph::is_random(bool is_train) const {
  const auto order = topological_order(network_.entries());
  return std::any_of(order.begin(), order.end(), [&](const NodePtr& node) {
    return !node->is_variable() && node->op->is_random(node->params.get(), is_train);
  });
}

namespace {

std::shared_ptr<const Subgraph> parsed_subgraph(const Attributes& texts, int index) {
  const auto found = texts.find("subgraph:" + std::to_string(index));
  require(found != texts.end(), "subgraph ", index, " is missing");
  return std::make_shared<const Subgraph>(Symbol::load_json(found->second));
}

// ---- Cutting a body out of the network ------------------------------------------------------------------------------

const char* const subgraph_name = "__subgraph_name__";

std::string unique_name(const std::string& name) {
  static std::atomic<uint64_t> count{0};
  return name + std::to_string(count++);
}

// A network whose nodes were made in the scope `name`, with variables in the place of what they read from outside.
struct Cut {
  Symbol network;
  std::vector<std::pair<NodePtr, Entry>> outside;  // the variable of the body, and what it is outside
};

Cut cut_out(const std::vector<Symbol>& outputs, const std::string& name) {
  std::vector<Entry> entries;
  for (const Symbol& output : outputs) entries.push_back(output.entries().at(0));
  std::unordered_map<const Node*, NodePtr> copies;
  std::map<std::pair<const Node*, int>, NodePtr> variables;
  std::vector<std::pair<NodePtr, Entry>> outside;
  const auto is_inside = [&](const Node& node) {
    const std::string* of = find_attribute(node.attributes, subgraph_name);
    return of && *of == name;
  };
  const auto copied = [&](const Entry& entry) -> Entry {
    const Node& node = *entry.node;
    if (is_inside(node) && !node.is_variable()) return {copies.at(&node), entry.index};
    NodePtr& variable = variables[{&node, entry.index}];
    if (!variable) {
      if (node.is_variable()) {
        variable = entry.node;
      } else {
        variable = std::make_shared<Node>();
        variable->name = Symbol({entry}).list_outputs()[0];
      }
      outside.emplace_back(variable, entry);
    }
    return {variable, 0};
  };
  for (const NodePtr& node : topological_order(entries)) {
    if (node->is_variable() || !is_inside(*node)) continue;
    auto copy = std::make_shared<Node>(*node);
    for (Entry& input : copy->inputs) input = copied(input);
    copies[node.get()] = copy;
  }
  for (Entry& entry : entries) entry = copied(entry);
  return {Symbol(entries), std::move(outside)};
}

// ---- foreach --------------------------------------------------------------------------------------------------------

void check_locations(const Foreach& p) {
  std::vector<bool> taken(p.body->variables().size(), false);
  for (size_t i = 0; i < p.inputs(); ++i) {
    const size_t location = p.location(i);
    require(location < taken.size() && !taken[location],
            "in_data_locs, in_state_locs and remain_locs must name each of ", taken.size(),
            " variables of the body once: ", print(p.in_data_locs.get()), ", ", print(p.in_state_locs.get()), ", ",
            print(p.remain_locs.get()));
    taken[location] = true;
  }
  require(p.inputs() == taken.size(), "the body has ", taken.size(), " variables, and the loop ", p.inputs(),
          " inputs");
}

template <class P>
Op<P>& foreach_fields(Op<P>& op) {
  return op.param(&Foreach::num_args, "num_args", "number of inputs and one more, for the body", between(1, 1 << 20))
      .param(&Foreach::num_outputs, "num_outputs", "number of the body's outputs, states included", between(1, 1 << 20))
      .param(&Foreach::num_out_data, "num_out_data", "number of the body's outputs without its states",
             between(0, 1 << 20))
      .param(&Foreach::in_state_locs, "in_state_locs", "which variables of the body the states are", each_at_least(0))
      .param(&Foreach::in_data_locs, "in_data_locs", "which variables of the body the slices of data are",
             each_at_least(0))
      .param(&Foreach::remain_locs, "remain_locs", "which variables of the body the other inputs are",
             each_at_least(0));
}

Names foreach_outputs(const Foreach& p) {
  Names names;
  for (int64_t i = 0; i < p.num_outputs; ++i)
    names.push_back(p.num_outputs == 1 ? "output" : "output" + std::to_string(i));
  for (size_t i = 0; i < p.states(); ++i) names.push_back("states" + std::to_string(i));
  names.emplace_back("cursors");
  return names;
}

// The shape without its first axis, of known rank.
Shape slice_of(const Shape& whole) { return whole.rank_known() ? whole.slice(1, whole.rank()) : Shape(); }
Shape stacked(int64_t length, const Shape& slice) {
  if (!slice.rank_known()) return {};
  Shape whole{length};
  for (const int64_t extent : slice) whole.push_back(extent);
  return whole;
}
void check_stackable(const std::string& where, const Shape& slice) {
  require(!slice.rank_known() || slice.rank() < Shape::max_rank, where,
          " the body's output has too many axes: ", slice);
}

// The number of slices, as far as an array tells it.
int64_t loop_length(const Foreach& p, Shapes& s) {
  int64_t length = unknown_dim;
  const auto learn = [&](const Shape& whole, const std::string& what) {
    if (!whole.rank_known()) return;
    require(whole.rank() > 0, s.where(), " ", what, " has no axis to loop over");
    if (whole[0] == unknown_dim) return;
    require(length == unknown_dim || length == whole[0], s.where(), " the arrays to loop over have ", length, " and ",
            whole[0], " slices");
    length = whole[0];
  };
  for (size_t i = 0; i < p.data(); ++i) learn(s.input(i), s.input_name(i));
  for (size_t i = 0; i < p.out_data(); ++i) learn(s.output(i), "an output");
  return length;
}

// An error names the loop that the body belongs to.
template <class Value>
void infer_body(const Subgraph& body, std::vector<Value>& variables, std::vector<Value>& outputs,
                const std::string& where) {
  try {
    infer_subgraph(body, std::span<Value>(variables), std::span<Value>(outputs));
  } catch (const Error& error) {
    fail(where, " in its body: ", error.what());
  }
}

void infer_foreach_shapes(const Foreach& p, Shapes& s) {
  const int64_t length = loop_length(p, s);
  std::vector<Shape> variables(p.inputs()), outputs(p.body->outputs());
  for (size_t i = 0; i < p.inputs(); ++i)
    variables[p.location(i)] = i < p.data() ? slice_of(s.input(i)) : s.input(i).get();
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = i < p.out_data() ? slice_of(s.output(i)) : s.output(i).get();
  const auto meet_states = [&] {  // a state has one shape before and after a step
    for (size_t i = 0; i < p.states(); ++i) {
      Shape &before = variables[p.location(p.data() + i)], &after = outputs[p.out_data() + i];
      require(unify(before, after) && unify(after, before), s.where(), " the body makes of state ", i, " of shape ",
              before, " one of shape ", after);
    }
  };
  for (int round = 0; round < 2; ++round) {
    meet_states();
    infer_body(*p.body, variables, outputs, s.where());
  }
  meet_states();
  for (size_t i = 0; i < p.inputs(); ++i) {
    const Shape& inferred = variables[p.location(i)];
    if (i < p.data()) check_stackable(s.where(), inferred);
    s.input(i).meet(i < p.data() ? stacked(length, inferred) : inferred);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < p.out_data()) check_stackable(s.where(), outputs[i]);
    s.output(i).meet(i < p.out_data() ? stacked(length, outputs[i]) : outputs[i]);
  }
  if (length == unknown_dim) return;
  for (size_t i = 0; i < p.states(); ++i) {
    const Shape& state = outputs[p.out_data() + i];
    check_stackable(s.where(), state);
    s.output(outputs.size() + i).meet(stacked(std::max<int64_t>(0, length - 1), state));
  }
  const bool random = p.body->is_random(true) || p.body->is_random(false);
  s.output(outputs.size() + p.states()).meet({random ? length : 0, 2});
}

void infer_foreach_types(const Foreach& p, Types& t) {
  std::vector<DType> variables(p.inputs()), outputs(p.body->outputs());
  for (size_t i = 0; i < p.inputs(); ++i) variables[p.location(i)] = t.input(i);
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = t.output(i);
  const auto meet_states = [&] {
    for (size_t i = 0; i < p.states(); ++i) {
      DType &before = variables[p.location(p.data() + i)], &after = outputs[p.out_data() + i];
      if (before == DType::none) before = after;
      if (after == DType::none) after = before;
    }
  };
  for (int round = 0; round < 2; ++round) {
    meet_states();
    infer_body(*p.body, variables, outputs, t.where());
  }
  meet_states();
  for (size_t i = 0; i < p.inputs(); ++i) t.input(i).meet(variables[p.location(i)]);
  for (size_t i = 0; i < outputs.size(); ++i) t.output(i).meet(outputs[i]);
  for (size_t i = 0; i < p.states(); ++i) t.output(outputs.size() + i).meet(outputs[p.out_data() + i]);
  t.output(outputs.size() + p.states()).meet(DType::int64);
}

OpDef define(Op<Foreach> op) {
  return foreach_fields(op)
      .doc(
          "Runs a network once for every slice of the data along their first axis, with states that go from one step "
          "to "
          "the next. The outputs are those of the body, stacked along a new first axis, and the last states. "
          "mx.sym.contrib.foreach builds it from a function.")
      .keywords(&Foreach::subgraphs)
      .check([](Foreach& p) {
        if (!p.body) p.body = parsed_subgraph(p.subgraphs, 0);
        require(p.num_args == static_cast<int64_t>(p.inputs()) + 1,
                "num_args must be the number of inputs and one more: ", int64_t(p.num_args), ", with ", p.inputs(),
                " inputs");
        require(p.num_outputs == static_cast<int64_t>(p.body->outputs()), "the body has ", p.body->outputs(),
                " outputs, and num_outputs is ", int64_t(p.num_outputs));
        require(p.num_out_data + static_cast<int64_t>(p.states()) == p.num_outputs,
                "num_outputs must be num_out_data and the number of states: ", int64_t(p.num_outputs));
        require(p.data() > 0, "a loop needs an array to loop over");
        check_locations(p);
      })
      .inputs([](const Foreach& p) { return p.inputs(); },
              [](const Foreach&, size_t index) { return "data" + std::to_string(index); })
      .outputs(foreach_outputs)
      .visible_outputs([](const Foreach& p) { return static_cast<int>(p.num_outputs.get()); })
      .outputs_in_files([](const Foreach& p) { return static_cast<int>(p.num_outputs.get()); })
      .random([](const Foreach& p, bool is_train) { return p.body && p.body->is_random(is_train); })
      .infer_shape(infer_foreach_shapes)
      .infer_type(infer_foreach_types)
      .gradient([](const Foreach& p, Grad& g) {
        ForeachGrad params{p};
        std::vector<Symbol> inputs;
        const size_t outputs = p.results();
        for (size_t i = 0; i < outputs; ++i) inputs.push_back(g.out_grad(i));
        for (size_t i = 0; i < p.inputs(); ++i) {
          inputs.push_back(g.input(i));
          params.wants.push_back(g.wants(i));
        }
        for (size_t i = 0; i <= p.states(); ++i) inputs.push_back(g.output(outputs + i));
        const Symbol grads = Builder<ForeachGrad>{}(inputs, params);
        for (size_t i = 0; i < p.inputs(); ++i)
          if (g.wants(i)) g.set(i, grads[i]);
      });
}

OpDef define(Op<ForeachGrad> op) {
  return foreach_fields(op)
      .keywords(&Foreach::subgraphs)
      .inputs([](const ForeachGrad& p) { return p.results() + p.inputs() + p.states() + 1; },
              [](const ForeachGrad& p, size_t index) {
                return (index < p.results() ? "out_grad" : "data") + std::to_string(index);
              })
      .outputs([](const ForeachGrad& p) { return p.inputs(); },
               [](const ForeachGrad&, size_t index) { return "data_grad" + std::to_string(index); })
      .infer_shape([](const ForeachGrad& p, Shapes& s) {
        for (size_t i = 0; i < p.inputs(); ++i) s.output(i).meet(s.input(p.results() + i).get());
      })
      .infer_type([](const ForeachGrad& p, Types& t) {
        for (size_t i = 0; i < p.inputs(); ++i) t.output(i).meet(t.input(p.results() + i));
      });
}

// Variables for the body of a loop, named after what they are slices of.
std::vector<Symbol> body_variables(const std::vector<Symbol>& of) {
  std::vector<Symbol> variables;
  std::unordered_map<std::string, int> seen;
  for (const Symbol& each : of) {
    require(each.size() == 1, "[foreach] each of the data and states must be one output, not a group of ", each.size());
    const std::string name = each.name();
    variables.push_back(Symbol::variable(name + "-" + std::to_string(seen[name]++)));
  }
  return variables;
}

// What a body returns, as outputs of nodes: a variable as it is would have no node of its own.
void add_returned(const std::vector<Symbol>& from, std::vector<Symbol>& to) {
  for (const Symbol& each : from) {
    require(each.size() == 1, "[foreach] the body must return single outputs, not a group of ", each.size());
    const std::string* scope = find_attribute(AttrScope::current(), subgraph_name);
    const std::string* of = find_attribute(each.entries()[0].node->attributes, subgraph_name);
    const bool inside = of && scope && *of == *scope && !each.entries()[0].node->is_variable();
    to.push_back(inside ? each : apply("_copy", each));
  }
}

}  // namespace

size_t Foreach::location(size_t input) const {
  if (input < data()) return static_cast<size_t>(in_data_locs.get()[input]);
  if (input < data() + states()) return static_cast<size_t>(in_state_locs.get()[input - data()]);
  return static_cast<size_t>(remain_locs.get()[input - data() - states()]);
}

LoopResult foreach (const LoopBody& body, const std::vector<Symbol>& data, const std::vector<Symbol>& init_states,
                    const std::string& name) {
  require(!data.empty(), "[foreach] a loop needs an array to loop over");
  const std::string scope_name = unique_name(name);
  std::vector<Symbol> returned, slices, states;
  size_t outputs = 0;
  {
    const AttrScope scope({{subgraph_name, scope_name}});
    slices = body_variables(data);
    states = body_variables(init_states);
    const LoopResult result = body(slices, states);
    require(result.states.size() == init_states.size(), "[foreach] the body takes ", init_states.size(),
            " states and returns ", result.states.size());
    add_returned(result.outputs, returned);
    outputs = returned.size();
    add_returned(result.states, returned);
    require(!returned.empty(), "[foreach] the body returns nothing");
  }
  const Cut cut = cut_out(returned, scope_name);

  Foreach params;
  params.body = std::make_shared<const Subgraph>(cut.network);
  params.subgraphs["subgraph:0"] = cut.network.tojson();
  const auto& variables = params.body->variables();
  const auto location_of = [&](const Node* node) -> std::optional<int64_t> {
    for (size_t i = 0; i < variables.size(); ++i)
      if (variables[i].entries()[0].node.get() == node) return static_cast<int64_t>(i);
    return std::nullopt;
  };
  std::vector<Symbol> inputs;
  std::unordered_set<const Node*> own;
  const auto add_own = [&](const std::vector<Symbol>& inner, const std::vector<Symbol>& outer, Tuple& locations) {
    for (size_t i = 0; i < inner.size(); ++i) {
      const Node* const node = inner[i].entries()[0].node.get();
      const auto location = location_of(node);
      require(location.has_value(), "[foreach] the body does not use '", outer[i].name(), "'");
      locations.push_back(*location);
      inputs.push_back(outer[i]);
      own.insert(node);
    }
  };
  Tuple in_data, in_states, remaining;
  add_own(slices, data, in_data);
  add_own(states, init_states, in_states);
  for (const auto& [variable, outside] : cut.outside) {
    if (own.contains(variable.get())) continue;
    remaining.push_back(*location_of(variable.get()));
    inputs.push_back(Symbol({outside}));
  }
  params.in_data_locs = in_data;
  params.in_state_locs = in_states;
  params.remain_locs = remaining;
  params.num_args = static_cast<int64_t>(inputs.size()) + 1;
  params.num_outputs = static_cast<int64_t>(returned.size());
  params.num_out_data = static_cast<int64_t>(outputs);
  const Symbol loop = Builder<Foreach>{}(inputs, params);
  LoopResult result;
  for (size_t i = 0; i < returned.size(); ++i) (i < outputs ? result.outputs : result.states).push_back(loop[i]);
  return result;
}

void register_control_flow(OpRegistry& registry) {
  add<Foreach>(registry, "_foreach", define);
  add_internal<ForeachGrad>(registry, "_backward_foreach", define);
}

}  // namespace symbind
