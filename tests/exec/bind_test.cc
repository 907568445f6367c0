// Binding a network to arrays, and what the arrays mean afterwards.
#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/all.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::all_close;
using testing::all_devices;
using testing::fails_with;
using testing::fc;
using testing::same_bits;
using testing::var;
using Floats = std::vector<float>;

TEST(Bind, ComputesWithTheGivenArrays) {
  for (const Context context : all_devices()) {
    const Symbol net = 2 * var("a") + var("b");
    NDArray a = array({1, 2, 3}, context), b = array({10, 20, 30}, context);
    auto executor = bind(net, context, {{"a", a}, {"b", b}}, {.grad_req = "null"});
    EXPECT_EQ(executor->forward()[0].to_vector<float>(), (Floats{12, 24, 36})) << context;
    EXPECT_TRUE(executor->arg_dict().at("a").same_memory(a)) << "bound, not copied";
  }
}

TEST(Bind, TakesArraysInTheOrderOfTheArguments) {
  const Symbol net = var("b") - var("a");
  auto executor = bind(net, cpu(), std::vector<NDArray>{array({5}), array({3})}, {.grad_req = "null"});
  EXPECT_EQ(executor->forward()[0].item(), 2);
}

TEST(Bind, SeesWhatIsWrittenIntoItsArraysBetweenCalls) {
  for (const Context context : all_devices()) {
    auto executor = testing::bind_with_values(testing::mlp(), context);
    const NDArray before = executor->forward()[0].copy();
    for (NDArray each : executor->arg_arrays()) each += 1;
    const NDArray after = executor->forward()[0].copy();
    EXPECT_FALSE(all_close(after, before)) << context;
    auto fresh = testing::bind_with_values(testing::mlp(), context);
    for (NDArray each : fresh->arg_arrays()) each += 1;
    EXPECT_TRUE(same_bits(fresh->forward()[0], after)) << context;
  }
}

TEST(Bind, SeesWritesThroughViewsAndPointers) {
  NDArray weights = zeros({2, 3});
  auto executor = bind(var("w") * 1, cpu(), {{"w", weights}}, {.grad_req = "null"});
  executor->forward();
  NDArray row = weights.at(1);
  row.fill(7);
  EXPECT_EQ(executor->forward()[0].to_vector<float>(), (Floats{0, 0, 0, 7, 7, 7}));
  static_cast<float*>(weights.mutable_data())[0] = 5;
  EXPECT_EQ(executor->forward()[0].to_vector<float>(), (Floats{5, 0, 0, 7, 7, 7}));
}

TEST(Bind, SeesNewWeightsInEveryKindOfLayer) {
  // Implementations may keep reordered weights; they must notice every change.
  for (const auto& network : {testing::lenet(), testing::batch_norm_net()}) {
    auto executor = testing::bind_with_values(network);
    for (int round = 1; round < 4; ++round) {
      testing::set_values(*executor, network.classes, static_cast<uint64_t>(round));
      auto fresh = simple_bind(network.symbol, cpu(), network.inputs);
      testing::set_values(*fresh, network.classes, static_cast<uint64_t>(round));
      EXPECT_TRUE(same_bits(executor->forward()[0], fresh->forward()[0])) << network.name << " round " << round;
    }
  }
}

TEST(Bind, HasTheSameOutputArraysAtEveryCall) {
  auto executor = testing::bind_with_values(testing::mlp());
  const NDArray first = executor->outputs()[0];
  EXPECT_TRUE(executor->forward(false)[0].same_memory(first));
  EXPECT_TRUE(executor->forward(true)[0].same_memory(first));
  executor->backward();
  EXPECT_TRUE(executor->outputs()[0].same_memory(first));
  EXPECT_TRUE(executor->output_dict().at("softmax_output").same_memory(first));
}

TEST(Bind, TakesTheSameArrayForTwoArguments) {
  for (const Context context : all_devices()) {
    NDArray x = array({1, 2, 3}, context);
    NDArray da = zeros({3}, context), db = zeros({3}, context);
    auto executor = bind(var("a") * var("b"), context, {{"a", x}, {"b", x}},
                         {.args_grad = {{"a", da}, {"b", db}}, .grad_req = "write"});
    EXPECT_EQ(executor->forward(true)[0].to_vector<float>(), (Floats{1, 4, 9}));
    executor->backward(std::vector<NDArray>{ones({3}, context)});
    EXPECT_EQ(da.to_vector<float>(), (Floats{1, 2, 3}));
    EXPECT_EQ(db.to_vector<float>(), (Floats{1, 2, 3}));
  }
}

TEST(Bind, TakesOverlappingViewsForTwoArguments) {
  const NDArray x = testing::counted({5});
  auto executor = bind(var("a") + var("b"), cpu(), {{"a", x.slice(0, 4)}, {"b", x.slice(1, 5)}}, {.grad_req = "null"});
  EXPECT_EQ(executor->forward()[0].to_vector<float>(), (Floats{3, 5, 7, 9}));
}

TEST(Bind, TakesViewsAtUnalignedOffsets) {
  for (const auto& network : testing::all_networks()) {
    auto plain = testing::bind_with_values(network);
    NamedArrays args, grads, aux;
    const auto shifted = [](const NDArray& from) {
      const NDArray room(Shape{from.size() + 3});
      NDArray view(room.storage_ptr(), 3 * sizeof(float), from.shape(), DType::float32);
      from.copyto(view);
      return view;
    };
    for (const auto& [name, array] : plain->arg_dict()) args[name] = shifted(array);
    for (const auto& [name, array] : plain->grad_dict()) grads[name] = shifted(array);
    for (const auto& [name, array] : plain->aux_dict()) aux[name] = shifted(array);
    auto executor = bind(network.symbol, cpu(), args, {.args_grad = grads, .grad_req = "write", .aux_states = aux});
    const auto expected = testing::train(*plain, network.inputs, 3),
               actual = testing::train(*executor, network.inputs, 3);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(all_close(actual[i], expected[i])) << network.name << " array " << i;
  }
}

TEST(Bind, TakesArraysWithoutElements) {
  NDArray x = zeros({0, 3}), dx = zeros({0, 3});
  auto executor = bind(var("x") * 2, cpu(), {{"x", x}}, {.args_grad = {{"x", dx}}});
  EXPECT_EQ(executor->forward(true)[0].shape(), (Shape{0, 3}));
  EXPECT_NO_THROW(executor->backward(std::vector<NDArray>{zeros({0, 3})}));
}

TEST(Bind, LeavesTheCallersArraysWhereTheyAre) {
  NDArray x = array({1, 2}), other = array({3, 4});
  auto executor = bind(var("x") * 2, cpu(), {{"x", x}}, {.grad_req = "null"});
  executor->forward(false, {{"x", other}});
  EXPECT_EQ(x.to_vector<float>(), (Floats{3, 4})) << "inputs are copied into the bound array";
  EXPECT_EQ(executor->outputs()[0].to_vector<float>(), (Floats{6, 8}));
}

// ---- simple_bind ---------------------------------------------------------------------------------------------------

TEST(SimpleBind, AllocatesEverythingFilledWithZeros) {
  for (const Context context : all_devices()) {
    const auto network = testing::batch_norm_net();
    auto executor = simple_bind(network.symbol, context, network.inputs);
    for (const auto* arrays : {&executor->arg_arrays(), &executor->grad_arrays(), &executor->aux_arrays()})
      for (const NDArray& each : *arrays) {
        EXPECT_EQ(each.context(), context);
        EXPECT_TRUE(same_bits(each, zeros(each.shape(), context)));
      }
    EXPECT_EQ(executor->arg_dict().at("conv1_weight").shape(), (Shape{8, 3, 3, 3}));
    EXPECT_NO_THROW(executor->forward()) << "forward right after it is legal";
  }
}

TEST(SimpleBind, WritesTheGradientsOfParametersAlone) {
  Symbol net = fully_connected(Symbol::variable("pixels"), {.num_hidden = 3}, "fc1");
  net = softmax_output(net, {}, "softmax");
  const auto executor = simple_bind(net, cpu(), {{"pixels", {2, 4}}}, {.grad_req = "parameters"});
  std::vector<std::string> names;
  for (const auto& [name, gradient] : executor->grad_dict())
    if (gradient) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"fc1_bias", "fc1_weight"}));
}

TEST(SimpleBind, KnowsTheOutputsByTheNamesGiven) {
  const Symbol a = var("a"), net = Symbol::group({a * 2, a * 3});
  const std::vector<std::string> all{"write"}, names{"y", "z"};
  const ExecutorPtr executor = simple_bind(net, cpu(), {{"a", {2}}}, {.grad_req = all, .output_names = names});
  for (const ExecutorPtr& each : {executor, executor->reshape({{"a", {1}}})}) {
    each->forward(true);
    EXPECT_EQ(each->output_names(), names);
    EXPECT_TRUE(each->output_dict().at("z").same_memory(each->outputs()[1]));
    EXPECT_TRUE(fails_with([&] { each->backward(); }, "out_grads are needed for y, z:"));
  }
  EXPECT_TRUE(fails_with(
      [&] {
        simple_bind(net, cpu(), {{"a", {2}}}, {.output_names = {"y"}});
      },
      "1 names were given", "2 outputs"));
}

TEST(SimpleBind, FollowsTheTypesGiven) {
  auto executor = simple_bind(fc(var("x"), 2, "fc"), cpu(), {{"x", {3, 4}}}, {.type_dict = {{"x", DType::float64}}});
  EXPECT_EQ(executor->arg_dict().at("fc_weight").dtype(), DType::float64);
  EXPECT_EQ(executor->outputs()[0].dtype(), DType::float64);
  EXPECT_EQ(executor->grad_dict().at("fc_bias").dtype(), DType::float64);
}

TEST(SimpleBind, CopiesParametersByName) {
  auto executor = simple_bind(fc(var("x"), 1, "fc"), cpu(), {{"x", {1, 2}}});
  const NamedArrays params{{"fc_weight", array(Floats{2, 3}, {1, 2})}, {"fc_bias", array({10})}};
  executor->copy_params_from(params);
  EXPECT_EQ(executor->forward(false, {{"x", array(Floats{1, 1}, {1, 2})}})[0].item(), 15);
  NamedArrays extra = params;
  extra["fc_wait"] = array({1});
  EXPECT_TRUE(fails_with([&] { executor->copy_params_from(extra); }, "fc_wait"));
  EXPECT_NO_THROW(executor->copy_params_from(extra, {}, true));
  EXPECT_TRUE(fails_with([&] { executor->copy_params_from({{"fc_bias", zeros({2})}}); }, "fc_bias", "(1,)", "(2,)"));
}

TEST(SimpleBind, ConvertsParametersToTheBoundType) {
  auto executor = simple_bind(var("x") * 1, cpu(), {{"x", {2}}}, {.type_dict = {{"x", DType::float16}}});
  executor->copy_params_from({{"x", array({1.5, 2.5})}});
  EXPECT_EQ(executor->arg_arrays()[0].to_vector<float>(), (Floats{1.5, 2.5}));
}

TEST(SimpleBind, ReportsItsMemory) {
  const auto network = testing::mlp();
  auto executor = testing::bind_with_values(network);
  executor->forward(true);
  executor->backward();
  const MemoryReport memory = executor->memory();
  size_t arguments = 0;
  for (const NDArray& each : executor->arg_arrays()) arguments += each.bytes();
  EXPECT_EQ(memory.arguments, arguments);
  EXPECT_EQ(memory.gradients, arguments);
  EXPECT_EQ(memory.outputs, 6 * 4 * sizeof(float));
  EXPECT_GT(memory.arena, 0u);
  EXPECT_GT(memory.unshared, memory.arena);
}

TEST(SimpleBind, ReportsTheMemoryOfItsLargestPlanWhicheverRanLast) {
  const auto network = testing::lenet();
  const size_t training = testing::bind_with_values(network)->memory().arena;
  auto executor = testing::bind_with_values(network);
  executor->forward(false);
  EXPECT_LT(executor->memory().arena, training);
  executor->forward(true);
  executor->forward(false);
  EXPECT_EQ(executor->memory().arena, training);
}

TEST(Bind, CountsAnArrayThatIsBoundTwiceOnce) {
  const NDArray x = ones({100});
  auto executor = bind(var("a") * var("b"), cpu(), {{"a", x}, {"b", x}}, {.grad_req = "null"});
  EXPECT_EQ(executor->memory().arguments, x.bytes());
}

TEST(Eval, ComputesANetworkOnce) {
  const auto outputs = eval(var("a") + var("b"), {{"a", ones({2})}, {"b", full({2}, 2)}});
  EXPECT_EQ(outputs[0].to_vector<float>(), (Floats{3, 3}));
}

TEST(Bind, ANetworkThatIsOnlyAVariableGivesACopy) {
  NDArray x = array({1, 2});
  auto executor = bind(var("x"), cpu(), {{"x", x}}, {.grad_req = "null"});
  EXPECT_EQ(executor->forward()[0].to_vector<float>(), (Floats{1, 2}));
  EXPECT_FALSE(executor->outputs()[0].same_memory(x));
}

TEST(Bind, AnOutputListedTwiceIsTwoArrays) {
  const Symbol y = var("x") * 3;
  auto executor = bind(Symbol::group({y, y}), cpu(), {{"x", array({2})}}, {.grad_req = "null"});
  executor->forward();
  EXPECT_EQ(executor->outputs()[0].item(), 6);
  EXPECT_EQ(executor->outputs()[1].item(), 6);
}

// More than an address can name: nothing is allocated.
TEST(Bind, OutOfMemorySaysWhichNodeAskedAndTheNextCallWorks) {
  const Shape huge{1 << 24, 1 << 24};
  const Symbol large = apply("broadcast_to", {var("x")}, {{"shape", join(huge)}}, "enlarge");
  const auto executor = simple_bind(apply("sum", large, {}, "total"), cpu(), {{"x", {1, 1}}},
                                    {.grad_req = "null", .options = {.fuse = false}});
  EXPECT_TRUE(fails_with([&] { executor->forward(); }, "[broadcast_to enlarge]", "(16777216,16777216)",
                         "out of memory on cpu(0)", "bytes were asked for"));
  EXPECT_TRUE(fails_with(
      [&] {
        simple_bind(var("y") + 1, cpu(), {{"y", huge}});
      },
      "'y'", "(16777216,16777216)", "out of memory on cpu(0)"));
  EXPECT_TRUE(fails_with(
      [&] {
        invoke("broadcast_to", {ones({1, 1})}, {{"shape", join(huge)}});
      },
      "[broadcast_to]", "(16777216,16777216)", "out of memory on cpu(0)"));
  EXPECT_EQ(eval(var("a") + 1, {{"a", ones({2})}})[0].to_vector<float>(), (Floats{2, 2}));
}

}  // namespace
}  // namespace symbind
