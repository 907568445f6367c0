#include "symbind/ops/control_flow.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/json.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/concat.h"
#include "symbind/ops/cond.h"
#include "symbind/ops/dropout.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/ops/reduce.h"
#include "symbind/ops/reshape.h"
#include "symbind/ops/slice.h"
#include "symbind/ops/while_loop.h"
#include "symbind/passes/infer.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"
#include "tests/support/oracle.h"

namespace symbind::testing {
namespace {

const auto data = Symbol::variable("data"), first = Symbol::variable("first"), weight = Symbol::variable("weight");

Symbol grouped(const LoopResult& loop) {
  std::vector<Symbol> all = loop.outputs;
  all.insert(all.end(), loop.states.begin(), loop.states.end());
  return Symbol::group(all);
}

// state = tanh(slice · weightᵀ + state)
Symbol cell(const Symbol& slice, const Symbol& state) {
  return tanh(fully_connected({{"data", slice}, {"weight", weight}}, {.num_hidden = 3, .no_bias = true}) + state);
}

Symbol recurrent_loop() {
  return grouped(foreach(
      [](const auto& x, const auto& states) -> LoopResult {
        const Symbol next = cell(x[0], states[0]);
        return {{next * 2}, {next}};
      },
      {data}, {first}));
}

Symbol recurrent_unrolled(int64_t steps) {
  std::vector<Symbol> outputs;
  Symbol state = first;
  for (int64_t i = 0; i < steps; ++i) {
    const Symbol slice = slice_axis(data, {.axis = 0, .begin = i, .end = i + 1});
    state = cell(reshape(slice, {.shape = {-3, 0}}), state);
    outputs.push_back(state * 2);
  }
  return Symbol::group({stack(outputs, {.axis = 0}), state});
}

struct Results {
  std::vector<NDArray> outputs;
  NamedArrays grads;
};

Results run(const Symbol& net, const NamedArrays& args, Context context = cpu(), bool is_train = true) {
  NamedArrays placed, grads;
  for (const auto& [name, array] : args) {
    placed[name] = array.as_in_context(context);
    grads[name] = zeros(array.shape(), context, array.dtype());
  }
  auto executor = bind(net, context, placed, {.args_grad = grads});
  Results results{executor->forward(is_train), grads};
  if (!is_train) return results;
  std::vector<NDArray> out_grads;
  for (size_t i = 0; i < results.outputs.size(); ++i)
    out_grads.push_back(random_array(results.outputs[i].shape(), i + 9, -1, 1, results.outputs[i].dtype(), context));
  executor->backward(out_grads);
  return results;
}

NamedArrays recurrent_arrays(int64_t steps, DType dtype = DType::float32) {
  return {{"data", random_array({steps, 2, 4}, 1, -1, 1, dtype)},
          {"first", random_array({2, 3}, 2, -1, 1, dtype)},
          {"weight", random_array({3, 4}, 3, -1, 1, dtype)}};
}

TEST(Foreach, IsWhatTheUnrolledNetworkIs) {
  for (const Context context : all_devices())
    for (const int64_t steps : {1, 2, 5}) {
      const auto args = recurrent_arrays(steps);
      const Results loop = run(recurrent_loop(), args, context),
                    unrolled = run(recurrent_unrolled(steps), args, context);
      for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(all_close(loop.outputs[i], unrolled.outputs[i])) << steps;
      for (const auto& [name, grad] : unrolled.grads)
        EXPECT_TRUE(all_close(loop.grads.at(name), grad)) << name << steps;
      const Results predicted = run(recurrent_loop(), args, context, false);
      for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(predicted.outputs[i], loop.outputs[i]));
    }
}

TEST(Foreach, GradientsAgreeWithFiniteDifferences) {
  EXPECT_TRUE(check_gradient(recurrent_loop(), recurrent_arrays(3, DType::float64)));
}

TEST(Foreach, WithoutStepsKeepsTheStates) {
  const Results results = run(recurrent_loop(), recurrent_arrays(0));
  EXPECT_EQ(results.outputs[0].shape(), (Shape{0, 2, 3}));
  EXPECT_TRUE(same_bits(results.outputs[1], recurrent_arrays(0).at("first")));
  EXPECT_EQ(results.grads.at("weight").to_vector<int>(), std::vector<int>(12, 0));
  EXPECT_TRUE(same_bits(results.grads.at("first"), random_array({2, 3}, 10)));
}

TEST(Foreach, InfersShapesFromBothSides) {
  const auto net = recurrent_loop();
  const auto shapes = infer_shape(net, {{"data", {5, 2, 4}}});
  EXPECT_EQ(shapes.outputs[0], (Tuple{5, 2, 3}));
  EXPECT_EQ(shapes.outputs[1], (Tuple{2, 3}));
  const auto shape_of = [&](const char* name) {
    const Names names = net.list_arguments();
    return shapes.args.at(static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
  };
  EXPECT_EQ(shape_of("first"), (Tuple{2, 3}));
  EXPECT_EQ(shape_of("weight"), (Tuple{3, 4}));
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"data", {5, 2, 4}}, {"first", {7, 3}}}); }, "(7,3)"));
}

TEST(Foreach, DrawsTheSameRandomNumbersInBackward) {
  const auto net = grouped(foreach(
      [](const auto& x, const auto&) -> LoopResult {
        return {{dropout(x[0], {.p = 0.5})}, {}};
      },
      {data}, {}));
  for (const Context context : all_devices()) {
    const NDArray ones_ = ones({6, 50}, context), grad = zeros({6, 50}, context);
    auto executor = bind(net, context, {{"data", ones_}}, {.args_grad = {{"data", grad}}});
    const NDArray out = executor->forward(true)[0];
    executor->backward({ones({6, 50}, context)});
    EXPECT_TRUE(same_bits(grad, out)) << context;
    const auto values = out.to_vector<int>();
    EXPECT_FALSE(std::equal(values.begin(), values.begin() + 50, values.begin() + 50)) << "a mask per step";
    EXPECT_GT(std::count(values.begin(), values.end(), 2), 90);
  }
}

TEST(Foreach, TakesWhatIsOutsideOfTheBodyAsInputs) {
  const Symbol outside = exp(weight);
  const auto net = grouped(foreach(
      [&](const auto& x, const auto& states) -> LoopResult {
        return {{x[0] + outside}, {states[0] * outside}};
      },
      {data}, {first}));
  EXPECT_EQ(net.list_arguments(), (Names{"data", "first", "weight"}));
  const NamedArrays args{{"data", random_array({3, 2}, 1, -1, 1, DType::float64)},
                         {"first", random_array({2}, 2, -1, 1, DType::float64)},
                         {"weight", random_array({2}, 3, -1, 1, DType::float64)}};
  EXPECT_TRUE(check_gradient(net, args));
}

TEST(Foreach, MayBeInsideOfAnother) {
  const auto net = grouped(foreach(
      [&](const auto& rows, const auto& states) -> LoopResult {
        const LoopResult inner = foreach(
            [&](const auto& x, const auto& s) -> LoopResult {
              const Symbol next = s[0] + x[0] * weight;
              return {{next}, {next}};
            },
            {rows[0]}, {states[0]});
        return {inner.outputs, inner.states};
      },
      {data}, {first}));
  const NamedArrays args{{"data", random_array({2, 3, 2}, 1, -1, 1, DType::float64)},
                         {"first", random_array({2}, 2, -1, 1, DType::float64)},
                         {"weight", random_array({2}, 3, -1, 1, DType::float64)}};
  EXPECT_TRUE(check_gradient(net, args));
  const auto again = from_json(to_json(net), "loop.json");
  EXPECT_EQ(to_json(again), to_json(net));
  EXPECT_TRUE(all_close(run(again, args).outputs[0], run(net, args).outputs[0]));
}

// The network in JSON whose loop has a loop as its body, and so on.
std::string nested_loops(int depth) {
  const std::string variables = R"json({"op":"null","name":"d","inputs":[]},{"op":"null","name":"s","inputs":[]})json";
  const std::string loop =
      R"json({"nodes":[)json" + variables +
      R"json(,{"op":"_foreach","name":"loop","attrs":{"in_data_locs":"(0,)","in_state_locs":"(1,)",)json"
      R"json("num_args":"3","num_out_data":"1","num_outputs":"2","remain_locs":"()"},)json"
      R"json("inputs":[[0,0,0],[1,0,0]],"subgraphs":[)json";
  const std::string end = R"json(]}],"arg_nodes":[0,1],"node_row_ptr":[0,1,2,4],"heads":[[2,0,0],[2,1,0]]})json";
  const std::string text =
      R"json({"nodes":[)json" + variables +
      R"json(,{"op":"elemwise_add","name":"sum","inputs":[[0,0,0],[1,0,0]]}],"arg_nodes":[0,1],)json"
      R"json("node_row_ptr":[0,1,2,3],"heads":[[2,0,0],[1,0,0]]})json";
  std::string before, after;
  for (int i = 0; i < depth; ++i) before += loop, after += end;
  return before + text + after;
}

TEST(Foreach, IsRefusedWhereItIsNestedWithoutEnd) {
  const Symbol deep = Symbol::load_json(nested_loops(32));
  EXPECT_EQ(Symbol::load_json(deep.tojson()).list_outputs(), deep.list_outputs());
  for (const int depth : {33, 1000})
    EXPECT_TRUE(fails_with([&] { Symbol::load_json(nested_loops(depth)); }, "nested", "32"));
  EXPECT_NO_THROW(Symbol::load_json(nested_loops(32)));  // the error above is forgotten
}

TEST(Foreach, SaysWhatIsWrongWithABody) {
  const auto two_states = [](const auto& x, const auto& states) -> LoopResult { return {{x[0]}, {states[0], x[0]}}; };
  EXPECT_TRUE(fails_with([&] { foreach(two_states, {data}, {first}); }, "takes 1 states and returns 2"));
  const auto unused = [](const auto&, const auto& states) -> LoopResult { return {{}, {states[0] * 2}}; };
  EXPECT_TRUE(fails_with([&] { foreach(unused, {data}, {first}); }, "does not use 'data'"));
  EXPECT_TRUE(fails_with([&] { foreach(unused, {}, {first}); }, "array to loop over"));
  const auto grows = foreach(
      [](const auto& x, const auto& s) -> LoopResult {
        return {{}, {concat({s[0], x[0]}, {.dim = 0})}};
      },
      {data}, {first});
  EXPECT_TRUE(fails_with([&] { infer_shape(grouped(grows), {{"data", {3, 2}}, {"first", {2}}}); }, "_foreach"));
}

// ---- while_loop -----------------------------------------------------------------------------------------------------

// Doubles until the sum of `x` is 10 or more, and returns what it had before each step.
Symbol doubling(int64_t most) {
  return grouped(while_loop([](const auto& v) { return sum(v[0]) < 10.0; },
                            [](const auto& v) -> LoopResult {
                              return {{v[0] * weight}, {v[0] * 2}};
                            },
                            {Symbol::variable("x")}, most));
}

TEST(WhileLoop, StopsWhenTheConditionFails) {
  for (const Context context : all_devices()) {
    const NamedArrays args{{"x", array({1, 1})}, {"weight", array({1, -1})}};
    const Results results = run(doubling(5), args, context);  // 2, 4, 8: three steps
    EXPECT_EQ(results.outputs[0].to_vector<int>(), (std::vector<int>{1, -1, 2, -2, 4, -4, 0, 0, 0, 0}));
    EXPECT_EQ(results.outputs[1].to_vector<int>(), (std::vector<int>{8, 8}));
    const Results bounded = run(doubling(2), args, context);
    EXPECT_EQ(bounded.outputs[0].to_vector<int>(), (std::vector<int>{1, -1, 2, -2}));
    EXPECT_EQ(bounded.outputs[1].to_vector<int>(), (std::vector<int>{4, 4}));
    const Results none = run(doubling(2), {{"x", array({9, 9})}, {"weight", array({1, -1})}}, context);
    EXPECT_EQ(none.outputs[0].to_vector<int>(), (std::vector<int>{0, 0, 0, 0}));
    EXPECT_EQ(none.outputs[1].to_vector<int>(), (std::vector<int>{9, 9}));
    EXPECT_EQ(none.grads.at("weight").to_vector<int>(), (std::vector<int>{0, 0}));
    const Results predicted = run(doubling(5), args, context, false);
    EXPECT_TRUE(same_bits(predicted.outputs[0], results.outputs[0]));
  }
}

TEST(WhileLoop, GradientsAgreeWithFiniteDifferences) {
  const NamedArrays args{{"x", array({1.1, 0.7}, cpu(), DType::float64)},
                         {"weight", array({0.3, -0.4}, cpu(), DType::float64)}};
  EXPECT_TRUE(check_gradient(doubling(5), args));
  EXPECT_TRUE(check_gradient(doubling(2), args));
  const NamedArrays no_steps{{"x", array({11, 0.7}, cpu(), DType::float64)},
                             {"weight", array({0.3, -0.4}, cpu(), DType::float64)}};
  EXPECT_TRUE(check_gradient(doubling(2), no_steps));
}

TEST(WhileLoop, SaysWhatIsWrong) {
  const auto variable = Symbol::variable("x");
  const auto forever = [](const auto& v) { return sum(v[0]) < 10.0; };
  const auto loses = [](const auto&) -> LoopResult { return {{}, {}}; };
  EXPECT_TRUE(fails_with([&] { while_loop(forever, loses, {variable}, 3); }, "takes 1 variables and returns 0"));
  const auto same = [](const auto& v) -> LoopResult { return {{}, {v[0] * 2}}; };
  EXPECT_TRUE(fails_with([&] { while_loop(forever, same, {variable}, 0); }, "max_iterations"));
  const auto many = while_loop([](const auto& v) { return v[0] < 10.0; }, same, {variable}, 3);
  EXPECT_TRUE(fails_with([&] { infer_shape(grouped(many), {{"x", {2}}}); }, "must be one number, not (2,)"));
}

// ---- cond -----------------------------------------------------------------------------------------------------------

Symbol branching() {
  const auto x = Symbol::variable("x");
  return cond(
      sum(x) > 0.0, [&] { return std::vector{x * weight}; }, [&] { return std::vector{exp(x)}; })[0];
}

TEST(Cond, RunsTheBranchThatTheConditionChooses) {
  for (const Context context : all_devices()) {
    const Results taken = run(branching(), {{"x", array({1, 2})}, {"weight", array({3, 4})}}, context);
    EXPECT_EQ(taken.outputs[0].to_vector<int>(), (std::vector<int>{3, 8}));
    const Results other = run(branching(), {{"x", array({0, -2})}, {"weight", array({3, 4})}}, context);
    EXPECT_NEAR(other.outputs[0].to_vector<double>()[1], std::exp(-2.0), 1e-6);
    EXPECT_EQ(other.grads.at("weight").to_vector<int>(), (std::vector<int>{0, 0}));
  }
}

TEST(Cond, GradientsAgreeWithFiniteDifferences) {
  for (const double x : {0.5, -0.5})
    EXPECT_TRUE(check_gradient(branching(), {{"x", array({x, 0.1}, cpu(), DType::float64)},
                                             {"weight", array({0.3, -0.4}, cpu(), DType::float64)}}));
}

TEST(Cond, DrawsTheSameRandomNumbersInBackward) {
  const auto x = Symbol::variable("data");
  const auto net = cond(
      sum(x) > 0.0, [&] { return std::vector{dropout(x, {.p = 0.5})}; }, [&] { return std::vector{x}; })[0];
  for (const Context context : all_devices()) {
    const NDArray grad = zeros({100}, context);
    auto executor = bind(net, context, {{"data", ones({100}, context)}}, {.args_grad = {{"data", grad}}});
    const NDArray out = executor->forward(true)[0];
    executor->backward({ones({100}, context)});
    EXPECT_TRUE(same_bits(grad, out)) << context;
  }
}

TEST(Cond, SaysWhatIsWrong) {
  const auto x = Symbol::variable("x");
  const auto one = [&] { return std::vector{x}; };
  const auto two = [&] { return std::vector{x, x}; };
  EXPECT_TRUE(fails_with([&] { cond(x, one, two); }, "return 1 and 2 outputs"));
  EXPECT_TRUE(fails_with([&] { infer_shape(cond(x, one, one)[0], {{"x", {2}}}); }, "must be one number, not (2,)"));
}

// ---- All ------------------------------------------------------------------------------------------------------------

TEST(ControlFlow, RunsTheNetworksThatMXNetWrote) {
  const auto recorded = read_recorded("control_flow.json.gz");
  for (const auto& each : recorded.at("cases")) {
    const std::string id = each.at("id"), text = each.at("tojson");
    const Symbol net = from_json(text, id);
    EXPECT_EQ(to_json(net), text) << id;
    EXPECT_EQ(net.list_arguments(), each.at("list_arguments").get<Names>()) << id;
    EXPECT_EQ(net.list_outputs(), each.at("list_outputs").get<Names>()) << id;
    for (const Context context : all_devices()) {
      NamedArrays args, grads;
      for (const auto& [name, array] : each.at("args").items()) {
        args[name] = decode_array(array).as_in_context(context);
        grads[name] = zeros(args[name].shape(), context);
      }
      auto executor = bind(net, context, args, {.args_grad = grads});
      const auto outputs = executor->forward(true);
      std::vector<NDArray> out_grads;
      for (const auto& array : each.at("out_grads")) out_grads.push_back(decode_array(array).as_in_context(context));
      executor->backward(out_grads);
      for (size_t i = 0; i < outputs.size(); ++i)
        EXPECT_TRUE(all_close(outputs[i], decode_array(each.at("outputs")[i]), {1e-5, 1e-5})) << id << " output " << i;
      if (each.contains("quirk")) {  // MXNet's gradients are wrong
        NamedArrays exact;
        for (const auto& [name, array] : args) exact[name] = array.as_in_context(cpu()).astype(DType::float64);
        EXPECT_TRUE(check_gradient(net, exact)) << id;
        continue;
      }
      for (const auto& [name, array] : each.at("grads").items())
        EXPECT_TRUE(all_close(grads.at(name), decode_array(array), {1e-5, 1e-5})) << id << " gradient of " << name;
    }
  }
}

}  // namespace
}  // namespace symbind::testing
