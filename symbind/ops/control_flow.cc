#include "symbind/ops/control_flow.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "symbind/graph/attributes.h"
#include "symbind/graph/define.h"
#include "symbind/ops/elementwise.h"

namespace symbind {

namespace {

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

// The number of slices, if any array determines it.
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
          "to the next. The outputs are those of the body, stacked along a new first axis, and the last states. "
          "mx.sym.contrib.foreach builds it from a function.")
      .precision(Precision::full)  // states keep one type from step to step
      .own_gradient_terms()        // its networks may have losses
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

}  // namespace

size_t Foreach::location(size_t input) const {
  if (input < data()) return static_cast<size_t>(in_data_locs.get()[input]);
  if (input < data() + states()) return static_cast<size_t>(in_state_locs.get()[input - data()]);
  return static_cast<size_t>(remain_locs.get()[input - data() - states()]);
}

LoopResult foreach(const LoopBody& body, const std::vector<Symbol>& data, const std::vector<Symbol>& init_states,
                   const std::string& name) {
  require(!data.empty(), "[foreach] a loop needs an array to loop over");
  const std::string scope_name = unique_scope(name);
  std::vector<Symbol> returned, slices, states;
  size_t outputs = 0;
  {
    const AttrScope scope({{subgraph_name, scope_name}});
    slices = body_variables(data, "foreach");
    states = body_variables(init_states, "foreach");
    const LoopResult result = body(slices, states);
    require(result.states.size() == init_states.size(), "[foreach] the body takes ", init_states.size(),
            " states and returns ", result.states.size());
    add_returned(result.outputs, returned, "foreach");
    outputs = returned.size();
    add_returned(result.states, returned, "foreach");
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
