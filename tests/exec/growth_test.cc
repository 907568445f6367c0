// Work grows with the number of nodes, not with its square. What is bounded is the ratio of the work for two sizes.
#include <algorithm>
#include <string_view>

#include <gtest/gtest.h>

#include "symbind/core/error.h"
#include "symbind/exec/queues.h"
#include "symbind/symbind.h"

#include "tests/support/arrays.h"
#include "tests/support/large_graphs.h"
#include "tests/support/training.h"
#include "tests/support/work.h"

namespace symbind {
namespace {

constexpr int small = 1000, times = 16;
// Sixteen times as many nodes are sixteen times the work, or a few times that where they no longer fit into a cache;
// with a square in it, 256 times.
constexpr double most_growth = 4 * times;

// Everything between the network and its plan for training.
void go_through(const testing::LargeGraph& graph, int nodes) {
  const NameManager fresh;
  const Symbol net = graph.make(nodes);
  (void)net.list_arguments();
  (void)net.list_outputs();
  (void)net.list_auxiliary_states();
  (void)net.get_internals().list_outputs();
  (void)net.attr_dict();
  (void)Symbol::load_json(net.tojson());
  (void)net({{"x", Symbol::variable("y")}});
  const NamedShapes shapes{{"x", testing::large_graph_input()}};
  (void)simple_bind(net, cpu(), shapes, {.grad_req = "null"})->memory();
  (void)simple_bind(net, cpu(), shapes)->memory();
}

// How many times the work is for `times` as many. Processor time depends on what else uses the caches: what seems to
// grow too much is measured again.
double growth_of(void (*work)(int count), int least = small) {
  work(least);  // whatever is set up once
  double growth = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const double little = testing::work_of([&] { work(least); });
    const double now = testing::work_of([&] { work(least * times); }) / little;
    growth = attempt == 0 ? now : std::min(growth, now);
    if (growth < most_growth) break;
  }
  return growth;
}

class Growth : public ::testing::TestWithParam<testing::LargeGraph> {};

TEST_P(Growth, IsThatOfTheNumberOfNodes) {
  EXPECT_LT(growth_of([](int nodes) { go_through(GetParam(), nodes); }), most_growth);
}

INSTANTIATE_TEST_SUITE_P(Networks, Growth, ::testing::ValuesIn(testing::large_graphs()), [](const auto& graph) {
  std::string name = graph.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

TEST(Growth, OfGradientsGivenToBackwardIsThatOfTheirNumber) {
  const double growth = growth_of([](int outputs) {
    const NameManager fresh;
    const Symbol x = Symbol::variable("x");
    std::vector<Symbol> all;
    std::vector<NDArray> gradients;
    for (int i = 0; i < outputs; ++i) {
      all.push_back(sin(x));
      gradients.push_back(ones({2}));
    }
    const auto executor = simple_bind(Symbol::group(all), cpu(), {{"x", {2}}});
    executor->forward(true);
    for (int i = 0; i < 3; ++i) executor->backward(gradients);
  });
  EXPECT_LT(growth, most_growth);
}

TEST(Growth, OfCheckingParametersIsThatOfTheirLength) {
  const double growth = growth_of([](int count) {
    const Symbol x = Symbol::variable("x");
    const std::vector<double> ones(static_cast<size_t>(count), 1.0);
    (void)apply("_contrib_MultiBoxPrior", {x}, {{"sizes", print(ones)}, {"ratios", print(ones)}});
    (void)apply("_image_normalize", {x}, {{"mean", "0"}, {"std", print(ones)}});
    (void)apply("_split_v2", {x}, {{"indices", print(Tuple(count, 0))}});
    (void)apply("_unravel_index", {x}, {{"shape", print(Tuple(count, 1))}});
  });
  EXPECT_LT(growth, most_growth);
}

TEST(Growth, OfRecomputingIsThatOfTheNumberOfNodes) {
  const double growth = growth_of([](int nodes) {
    const NameManager fresh;
    const testing::LargeGraph chain = testing::large_graphs().front();
    const testing::Quiet quiet;  // the budget cannot be met
    (void)simple_bind(chain.make(nodes), cpu(), {{"x", {2, 4}}}, {.options = {.memory_budget = 1}})->memory();
  });
  EXPECT_LT(growth, most_growth);
}

TEST(Growth, OfPoisoningIsThatOfTheNumberOfNodes) {
  const double growth = growth_of([](int nodes) {
    const NameManager fresh;
    for (const testing::LargeGraph& graph : testing::large_graphs())
      if (std::string_view(graph.name) == "parts")
        (void)simple_bind(graph.make(nodes), cpu(), {{"x", {2, 4}}}, {.options = {.poison = true}})->memory();
  });
  EXPECT_LT(growth, most_growth);
}

TEST(Growth, OfShapesLearntToAndFroIsThatOfTheNumberOfNodes) {
  // Sum i says that arrays i and i + 1 are alike. The even ones come first, the odd ones last and in reverse: going
  // through all sums in order, forwards or backwards, brings what is known one array further.
  const double growth = growth_of([](int nodes) {
    const NameManager fresh;
    std::vector<Symbol> arrays, sums;
    for (int i = 0; i <= nodes; ++i) arrays.push_back(Symbol::variable("x" + std::to_string(i)));
    const auto add_sum = [&](int i) {
      sums.push_back(elemwise_add(arrays[static_cast<size_t>(i)], arrays[static_cast<size_t>(i) + 1]));
    };
    for (int i = 0; i < nodes; i += 2) add_sum(i);
    for (int i = nodes - 1 - nodes % 2; i > 0; i -= 2) add_sum(i);
    const InferredShapes shapes = infer_shape(Symbol::group(sums), {{"x0", {2, 4}}});
    EXPECT_EQ(shapes.args.back(), (std::vector<int64_t>{2, 4}));
  });
  EXPECT_LT(growth, most_growth);
}

TEST(Growth, OfSumsOfOneArrayIsThatOfTheNumberOfTerms) {
  const double growth = growth_of([](int terms) {
    const NameManager fresh;
    const Symbol x = Symbol::variable("x"), y = tanh(x);
    std::vector<Symbol> inputs(static_cast<size_t>(terms), y);
    for (int i = 0; i < terms; ++i) inputs.push_back(reshape(y, {.shape = {2, 4}}));  // views of it
    (void)simple_bind(add_n(inputs), cpu(), {{"x", {2, 4}}})->memory();
  });
  EXPECT_LT(growth, most_growth);
}

TEST(Growth, OfQueuesIsThatOfTheNumberOfSteps) {
  const double growth = growth_of([](int count) {
    std::vector<StepAccess> steps;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const int queue = i % 3 == 0 ? 0 : 1;
      steps.push_back({cpu(queue), {{0, i * 64, i * 64 + 64}}, {{0, i * 64 + 64, i * 64 + 128}}});
    }
    const Queues queues(steps);
    EXPECT_EQ(queues.waits_of(1), std::vector<size_t>{0});
  });
  EXPECT_LT(growth, most_growth);
}

TEST(Growth, OfBindingByNameIsThatOfTheNumberOfArguments) {
  const double growth = growth_of([](int count) {
    const NameManager fresh;
    std::vector<Symbol> inputs;
    NamedArrays args, grads;
    std::map<std::string, std::string> requests;
    const NDArray array = zeros({1});
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      names.push_back("v" + std::to_string(i));
      inputs.push_back(Symbol::variable(names.back()));
      args[names.back()] = grads[names.back()] = array;
      requests[names.back()] = "write";
    }
    const Symbol net = add_n(inputs);
    const ExecutorPtr executor = bind(net, cpu(), args, {.args_grad = grads, .grad_req = requests});
    std::map<std::string, Symbol> others;
    for (const std::string& name : names) others.emplace(name, Symbol::variable(name + "_other"));
    (void)net(others);
    NamedShapes shapes;
    for (const std::string& name : names) shapes[name] = {1};
    (void)simple_bind(net, cpu(), shapes, {.grad_req = requests, .shared_arg_names = names, .shared_exec = executor});
  });
  EXPECT_LT(growth, most_growth);
}

// ---- Numbers that count ---------------------------------------------------------------------------------------------

TEST(Counts, AreRefusedBeforeMemoryIsTakenForThem) {
  const NDArray array = zeros({2, 2});
  for (const char* count : {"10000000000", "9223372036854775807"}) {
    EXPECT_TRUE(testing::fails_with([&] { invoke("multi_sum_sq", {array}, {{"num_arrays", count}}); }, "multi_sum_sq"));
    EXPECT_TRUE(testing::fails_with(
        [&] {
          apply("multi_sum_sq", Symbol::variable("a"), {{"num_arrays", count}});
        },
        "multi_sum_sq", "num_arrays", count));
    EXPECT_TRUE(testing::fails_with(
        [&] {
          apply("SliceChannel", Symbol::variable("a"), {{"num_outputs", count}});
        },
        "SliceChannel", "at most", count));
    EXPECT_TRUE(testing::fails_with(
        [&] {
          apply("_backward_Concat", Symbol::variable("a"), {{"num_args", count}});
        },
        "_backward_Concat"));
  }
}

TEST(Counts, OfOutputsCostNothingPerReference) {
  const auto read = [](int outputs) {
    std::string heads;
    for (int i = 0; i < 500; ++i) heads += (i > 0 ? ", [1, " : "[1, ") + std::to_string(i) + ", 0]";
    const Symbol net = Symbol::load_json(
        R"({"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "SliceChannel", "name": "s", "attrs": )"
        R"({"num_outputs": ")" +
        std::to_string(outputs) + R"("}, "inputs": [[0, 0, 0]]}], "arg_nodes": [0], "heads": [)" + heads + "]}");
    EXPECT_EQ(net.list_outputs().back(), "s_output499");
  };
  read(1000);
  const double few = testing::work_of([&] { read(1000); }), many = testing::work_of([&] { read(64'000); });
  EXPECT_LT(many / few, 8) << few << " for 1,000 outputs, " << many << " for 64,000";
}

TEST(Counts, OfTheDefinitionAgreeWithItsNames) {
  for (const OpDef* op : OpRegistry::get().all()) {
    SCOPED_TRACE(op->name);
    for (const char* count : {"", "1", "3"}) {
      auto params = op->make_params();
      bool counted = false;
      for (const ParamField& field : op->fields)
        if (*count && field.name.starts_with("num_")) field.parse(params.get(), count), counted = true;
      if (*count && !counted) continue;
      EXPECT_EQ(op->input_count(params.get()), op->inputs(params.get()).size());
      EXPECT_EQ(op->aux_count(params.get()), op->aux(params.get()).size());
      const Names outputs = op->outputs(params.get());
      ASSERT_EQ(op->output_count(params.get()), outputs.size());
      for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(op->output_name(params.get(), i), outputs[i]);
    }
  }
}

}  // namespace
}  // namespace symbind
