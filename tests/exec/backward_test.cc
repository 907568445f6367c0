// Which gradients are computed, where they go, and what backward needs.
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/math.h"
#include "symbind/ops/reshape.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::all_close;
using testing::all_devices;
using testing::fails_with;
using testing::fc;
using testing::random_array;
using testing::same_bits;
using testing::softmax;
using testing::var;
using Floats = std::vector<float>;

Arrays heads(std::vector<NDArray> arrays) { return Arrays(std::move(arrays)); }

struct Product {
  explicit Product(const GradReqs& grad_req, Context context = cpu())
      : a(array({1, 2}, context)),
        b(array({3, 4}, context)),
        da(full({2}, 100, context)),
        db(full({2}, 100, context)),
        executor(bind(var("a") * var("b"), context, {{"a", a}, {"b", b}},
                      {.args_grad = {{"a", da}, {"b", db}}, .grad_req = grad_req})) {}
  void step() {
    executor->forward(true);
    executor->backward(heads({ones({2}, executor->context())}));
  }
  NDArray a, b, da, db;
  ExecutorPtr executor;
};

// ---- grad_req ------------------------------------------------------------------------------------------------------

TEST(GradReq, WriteOverwrites) {
  for (const Context context : all_devices()) {
    Product product("write", context);
    product.step();
    product.step();
    EXPECT_EQ(product.da.to_vector<float>(), (Floats{3, 4}));
    EXPECT_EQ(product.db.to_vector<float>(), (Floats{1, 2}));
  }
}

TEST(GradReq, AddAccumulates) {
  for (const Context context : all_devices()) {
    Product product("add", context);
    product.step();
    product.step();
    EXPECT_EQ(product.da.to_vector<float>(), (Floats{106, 108}));
    EXPECT_EQ(product.db.to_vector<float>(), (Floats{102, 104}));
  }
}

TEST(GradReq, NullTouchesNothing) {
  Product product("null");
  product.step();
  EXPECT_EQ(product.da.to_vector<float>(), (Floats{100, 100}));
  EXPECT_EQ(product.db.to_vector<float>(), (Floats{100, 100}));
}

TEST(GradReq, MayBeAListInTheOrderOfTheArguments) {
  Product product(std::vector<std::string>{"add", "null"});
  product.step();
  EXPECT_EQ(product.da.to_vector<float>(), (Floats{103, 104}));
  EXPECT_EQ(product.db.to_vector<float>(), (Floats{100, 100}));
}

TEST(GradReq, MayBeByName) {
  Product product(std::map<std::string, std::string>{{"b", "write"}});
  product.step();
  EXPECT_EQ(product.da.to_vector<float>(), (Floats{100, 100}));
  EXPECT_EQ(product.db.to_vector<float>(), (Floats{1, 2}));
}

TEST(GradReq, WithoutAnArrayMeansNoGradient) {
  NDArray da = zeros({2});
  auto executor = bind(var("a") * var("b"), cpu(), {{"a", ones({2})}, {"b", ones({2})}}, {.args_grad = {{"a", da}}});
  executor->forward(true);
  executor->backward(heads({ones({2})}));
  EXPECT_EQ(da.to_vector<float>(), (Floats{1, 1}));
  EXPECT_FALSE(executor->grad_dict().contains("b"));
  auto none = bind(var("a") * 2, cpu(), {{"a", ones({2})}});
  none->forward(true);
  EXPECT_NO_THROW(none->backward()) << "nothing to compute, so nothing is needed";
}

TEST(GradReq, MixesInOneNetwork) {
  const auto network = testing::mlp();
  auto all = testing::bind_with_values(network);
  auto some = testing::bind_with_values(
      network, cpu(), {.grad_req = std::map<std::string, std::string>{{"fc1_weight", "add"}, {"fc3_bias", "write"}}});
  for (auto& executor : {all, some}) {
    executor->forward(true);
    executor->backward();
  }
  EXPECT_TRUE(all_close(some->grad_dict().at("fc1_weight"), all->grad_dict().at("fc1_weight")));
  EXPECT_TRUE(all_close(some->grad_dict().at("fc3_bias"), all->grad_dict().at("fc3_bias")));
  EXPECT_EQ(some->grad_dict().size(), 2u);
  some->forward(true);
  some->backward();
  const NDArray twice = all->grad_dict().at("fc1_weight") * 2;
  EXPECT_TRUE(all_close(some->grad_dict().at("fc1_weight"), twice));
}

TEST(GradReq, NullNeedsLessMemory) {
  const auto network = testing::lenet();
  auto all = testing::bind_with_values(network);
  auto last = testing::bind_with_values(network, cpu(),
                                        {.grad_req = std::map<std::string, std::string>{{"fc2_weight", "write"}}});
  EXPECT_LT(last->memory().arena, all->memory().arena) << "nothing that only other gradients need is kept";
}

TEST(GradReq, OneArrayForTwoArgumentsAddsBoth) {
  NDArray both = zeros({2});
  auto executor = bind(var("a") * var("b"), cpu(), {{"a", array({1, 2})}, {"b", array({3, 4})}},
                       {.args_grad = {{"a", both}, {"b", both}}, .grad_req = "add"});
  executor->forward(true);
  executor->backward(heads({ones({2})}));
  EXPECT_EQ(both.to_vector<float>(), (Floats{4, 6}));
}

// ---- out_grads -----------------------------------------------------------------------------------------------------

TEST(OutGrads, MayBeAListOrByName) {
  const Symbol x = var("x");
  const Symbol net = Symbol::group(
      {apply("_mul_scalar", x, {{"scalar", "2"}}, "two"), apply("_mul_scalar", x, {{"scalar", "3"}}, "three")});
  NDArray dx = zeros({2});
  auto executor = bind(net, cpu(), {{"x", ones({2})}}, {.args_grad = {{"x", dx}}});
  executor->forward(true);
  executor->backward(heads({ones({2}), full({2}, 10)}));
  EXPECT_EQ(dx.to_vector<float>(), (Floats{32, 32}));
  executor->forward(true);
  executor->backward({{"three_output", full({2}, 10)}, {"two_output", ones({2})}});
  EXPECT_EQ(dx.to_vector<float>(), (Floats{32, 32}));
}

TEST(OutGrads, AreNotNeededAfterALoss) {
  auto alone = testing::bind_with_values(testing::mlp()), given = testing::bind_with_values(testing::mlp());
  alone->forward(true);
  alone->backward();
  given->forward(true);
  given->backward(testing::out_grads_for(*given));
  ASSERT_FALSE(alone->grad_dict().empty());
  for (const auto& [name, gradient] : alone->grad_dict()) {
    EXPECT_TRUE(same_bits(gradient, given->grad_dict().at(name))) << name << ": the loss looks away from what comes";
    EXPECT_EQ(same_bits(gradient, zeros(gradient.shape())), name == "softmax_label") << name;
  }
}

TEST(OutGrads, AreNotNeededForABlockedOutput) {
  const auto network = testing::several_outputs_net();
  auto executor = testing::bind_with_values(network);
  executor->forward(true);
  EXPECT_NO_THROW(executor->backward());
  auto alone = simple_bind(Symbol::group({softmax(fc(var("data"), 3, "fc")), apply("BlockGrad", var("x"))}), cpu(),
                           {{"data", {2, 4}}, {"x", {5}}});
  alone->forward(true);
  EXPECT_NO_THROW(alone->backward());
  EXPECT_TRUE(same_bits(alone->grad_dict().at("x"), zeros({5})));
}

TEST(OutGrads, ThatAreMissingAreNamed) {
  const Symbol x = var("x");
  const Symbol net =
      Symbol::group({softmax(fc(x, 2, "fc")), apply("relu", x, {}, "plain"), apply("BlockGrad", x, {}, "blocked")});
  auto executor = simple_bind(net, cpu(), {{"x", {3, 4}}});
  executor->forward(true);
  const std::string message = testing::error_of([&] { executor->backward(); });
  EXPECT_NE(message.find("plain_output"), std::string::npos) << message;
  EXPECT_EQ(message.find("softmax_output"), std::string::npos) << message;
  EXPECT_EQ(message.find("blocked_output"), std::string::npos) << message;
  EXPECT_NO_THROW(executor->backward({{"plain_output", ones({3, 4})}})) << "after the error it still works";
}

TEST(OutGrads, OfTheWrongShapeOrNameAreErrors) {
  auto executor = simple_bind(fc(var("x"), 2, "fc"), cpu(), {{"x", {3, 4}}});
  executor->forward(true);
  EXPECT_TRUE(fails_with([&] { executor->backward(heads({ones({3, 3})})); }, "fc_output", "(3,3)", "(3,2)"));
  EXPECT_TRUE(fails_with([&] { executor->backward({{"fc2_output", ones({3, 2})}}); }, "fc2_output", "fc_output"));
}

TEST(OutGrads, AreConvertedAndCopied) {
  NDArray dx = zeros({2}), head = full({2}, 3, cpu(), DType::float64);
  auto executor = bind(var("x") * 2, cpu(), {{"x", ones({2})}}, {.args_grad = {{"x", dx}}});
  executor->forward(true);
  executor->backward(heads({head}));
  EXPECT_EQ(dx.to_vector<float>(), (Floats{6, 6}));
  EXPECT_EQ(head.to_vector<float>(), (Floats{3, 3})) << "the caller's array is not written";
}

TEST(OutGrads, MayBeTheOutputItself) {
  NDArray dx = zeros({2});
  auto executor = bind(var("x") * 2, cpu(), {{"x", array({1, 2})}}, {.args_grad = {{"x", dx}}});
  executor->forward(true);
  executor->backward(heads({executor->outputs()[0]}));
  EXPECT_EQ(dx.to_vector<float>(), (Floats{4, 8}));
}

// They are read where they are: the gradients of these layers could be computed in place.
TEST(OutGrads, AreNotWritten) {
  for (const Symbol& net : {relu(var("x")), -var("x"), reshape(var("x"), {.shape = {6}}), flatten(tanh(var("x")))}) {
    const NDArray x = array({{1, -2, 3}, {-4, 5, -6}}), dx = zeros({2, 3});
    auto executor = bind(net, cpu(), {{"x", x}}, {.args_grad = {{"x", dx}}});
    executor->forward(true);
    const NDArray head = random_array(executor->outputs()[0].shape(), 3), before = head.copy();
    executor->backward(heads({head}));
    EXPECT_TRUE(same_bits(head, before)) << net.tojson();
    EXPECT_NE(dx.to_vector<float>(), Floats(6, 0)) << net.tojson();
  }
}

TEST(OutGrads, AreTakenAgainInEveryCallAndReleasedAfterIt) {
  const NDArray dx = zeros({4});
  auto executor = bind(var("x") * 2, cpu(), {{"x", ones({4})}}, {.args_grad = {{"x", dx}}});
  for (const float value : {1.0f, 5.0f}) {
    executor->forward(true);
    NDArray head = full({4}, value);
    const std::weak_ptr<const Storage> memory = head.storage_ptr();
    executor->backward(heads({head.slice(0, 4)}));
    head = {};
    EXPECT_TRUE(memory.expired());
    EXPECT_EQ(dx.to_vector<float>(), Floats(4, 2 * value));
  }
}

TEST(OutGrads, MayShareMemoryWithAGradient) {
  const NDArray both = array({1, 2, 3, 4, 5, 6});
  const NDArray dx = both.slice(0, 4), head = both.slice(2, 6);
  auto executor = bind(var("x") * 2, cpu(), {{"x", ones({4})}}, {.args_grad = {{"x", dx}}});
  executor->forward(true);
  executor->backward(heads({head}));
  EXPECT_EQ(dx.to_vector<float>(), (Floats{6, 8, 10, 12}));
}

// ---- when ----------------------------------------------------------------------------------------------------------

TEST(Backward, BeforeForwardIsAnError) {
  auto executor = testing::bind_with_values(testing::mlp());
  EXPECT_TRUE(fails_with([&] { executor->backward(); }, "forward"));
}

TEST(Backward, AfterAForwardThatDidNotTrainIsTheGradientInTestMode) {
  const auto network = testing::batch_norm_net();
  auto executor = testing::bind_with_values(network);
  for (NDArray each : executor->aux_arrays()) each += 0.25;
  const NDArray outputs = executor->forward(false)[0].copy();
  std::vector<NDArray> states;
  for (const NDArray& each : executor->aux_arrays()) states.push_back(each.copy());
  executor->backward();
  EXPECT_TRUE(all_close(executor->outputs()[0], outputs)) << "the outputs stay those of test mode";
  for (size_t i = 0; i < states.size(); ++i)
    EXPECT_TRUE(same_bits(executor->aux_arrays()[i], states[i])) << "states stay";
  auto training = testing::bind_with_values(network);
  training->forward(true);
  training->backward();
  EXPECT_FALSE(all_close(executor->grad_dict().at("conv1_weight"), training->grad_dict().at("conv1_weight")))
      << "test mode has other gradients than training";
}

TEST(Backward, InTestModeLetsDropoutPass) {
  const Symbol net = apply("Dropout", var("x"), {{"p", "0.5"}});
  NDArray dx = zeros({100});
  auto executor = bind(net, cpu(), {{"x", ones({100})}}, {.args_grad = {{"x", dx}}});
  executor->forward(false);
  executor->backward(heads({ones({100})}));
  EXPECT_TRUE(same_bits(dx, ones({100})));
}

TEST(Backward, UsesTheMaskOfItsForward) {
  const Symbol net = apply("Dropout", var("x"), {{"p", "0.5"}});
  NDArray dx = zeros({1000});
  auto executor = bind(net, cpu(), {{"x", ones({1000})}}, {.args_grad = {{"x", dx}}});
  NDArray previous;
  for (int round = 0; round < 3; ++round) {
    executor->forward(true);
    const NDArray out = executor->outputs()[0].copy();
    executor->backward(heads({ones({1000})}));
    EXPECT_TRUE(same_bits(dx, out));
    if (previous) {
      EXPECT_FALSE(same_bits(out, previous)) << "a new mask every time";
    }
    previous = out;
  }
}

TEST(Backward, WithStaleActivationsIsAnError) {
  const auto network = testing::mlp();
  auto first = testing::bind_with_values(network);
  auto second = testing::bind_with_values(network, cpu(), {.shared_exec = first});
  first->forward(true);
  second->forward(true);
  EXPECT_TRUE(fails_with([&] { first->backward(); }, "forward"));
  EXPECT_NO_THROW(second->backward());
  first->forward(true);
  EXPECT_NO_THROW(first->backward());
}

TEST(Backward, WithStaleActivationsAfterAPredictionIsAnErrorToo) {
  const auto network = testing::mlp();
  auto first = testing::bind_with_values(network);
  auto second = testing::bind_with_values(network, cpu(), {.shared_exec = first});
  first->forward(true);
  second->forward(false);
  EXPECT_THROW(first->backward(), Error);
}

TEST(Backward, InTestModeIsThatOfTestModeThoughForwardTrained) {
  NDArray dx = zeros({1000});
  auto executor =
      bind(apply("Dropout", var("x"), {{"p", "0.5"}}), cpu(), {{"x", ones({1000})}}, {.args_grad = {{"x", dx}}});
  executor->forward(true);
  executor->backward(heads({ones({1000})}), /*is_train=*/false);
  EXPECT_TRUE(same_bits(dx, ones({1000})));
  executor->forward(true);
  executor->backward(heads({ones({1000})}));
  EXPECT_FALSE(same_bits(dx, ones({1000})));
}

TEST(Backward, InTestModeUsesUpTheActivationsOfATrainingForward) {
  auto executor = testing::bind_with_values(testing::mlp());
  executor->forward(true);
  executor->set_monitor_callback([](const std::string&, const NDArray&) { fail("enough"); });
  EXPECT_THROW(executor->backward({}, false), Error);
  executor->set_monitor_callback({});
  const NDArray expected = executor->grad_dict().at("fc1_weight");
  executor->backward();  // the arena holds half of another run: forward runs again
  auto other = testing::bind_with_values(testing::mlp());
  other->forward(true);
  other->backward();
  EXPECT_TRUE(same_bits(expected, other->grad_dict().at("fc1_weight")));
}

TEST(Backward, OnceMoreIsTheSameGradient) {
  // With dropout and statistics: the same mask, and statistics that move once.
  Symbol net = apply("BatchNorm", fc(var("data"), 6, "fc"), {{"fix_gamma", "False"}}, "bn");
  net = apply("Dropout", net, {{"p", "0.5"}}, "drop");
  const auto executor = simple_bind(net, cpu(), {{"data", {4, 5}}});
  for (const NDArray& each : executor->arg_arrays()) testing::random_array(each.shape(), 3).copyto(each);
  executor->forward(true);
  const NDArray outputs = executor->outputs()[0].copy();
  executor->backward(heads({ones({4, 6})}));
  const NDArray once = executor->grad_dict().at("fc_weight").copy(), mean = executor->aux_arrays()[0].copy();
  executor->backward(heads({ones({4, 6})}));
  EXPECT_TRUE(same_bits(executor->grad_dict().at("fc_weight"), once));
  EXPECT_TRUE(same_bits(executor->outputs()[0], outputs));
  EXPECT_TRUE(same_bits(executor->aux_arrays()[0], mean));
  executor->backward(heads({full({4, 6}, 2)}));
  EXPECT_TRUE(all_close(executor->grad_dict().at("fc_weight"), once * 2, {1e-6, 1e-6}));
}

TEST(Backward, OnceMoreAddsWhereGradientsAreAdded) {
  NDArray dx = zeros({2});
  auto executor =
      bind(apply("square", var("x")), cpu(), {{"x", array({1, 2})}}, {.args_grad = {{"x", dx}}, .grad_req = "add"});
  executor->forward(true);
  for (int i = 0; i < 3; ++i) executor->backward(heads({ones({2})}));
  EXPECT_EQ(dx.to_vector<float>(), (Floats{6, 12}));
}

TEST(Backward, MovesStatisticsOncePerTrainingForward) {
  const auto network = testing::batch_norm_net();
  auto one = testing::bind_with_values(network), two = testing::bind_with_values(network);
  one->forward(true);
  two->forward(true);
  two->backward();
  two->forward(false);
  for (size_t i = 0; i < one->aux_arrays().size(); ++i) {
    EXPECT_TRUE(same_bits(one->aux_arrays()[i], two->aux_arrays()[i])) << i;
    EXPECT_FALSE(same_bits(one->aux_arrays()[i], zeros(one->aux_arrays()[i].shape())));
  }
}

// ---- a whole training ----------------------------------------------------------------------------------------------

TEST(Training, TwiceFromTheSameSeedIsEqualBitForBit) {
  std::vector<testing::Network> networks = testing::all_networks();
  const Symbol dropped = apply("Dropout", fc(var("data"), 8, "fc1"), {{"p", "0.3"}}, "dropout");
  networks.push_back({"dropout_net", softmax(fc(dropped, 3, "fc2")), {{"data", {6, 5}}, {"softmax_label", {6}}}, 3});
  for (const Context context : all_devices()) {
    for (const auto& network : networks) {
      std::vector<std::vector<NDArray>> results;
      for (int run = 0; run < 2; ++run) {
        seed(13);
        auto executor = testing::bind_with_values(network, context);
        results.push_back(testing::train(*executor, network.inputs, 8));
      }
      for (size_t i = 0; i < results[0].size(); ++i)
        EXPECT_TRUE(same_bits(results[1][i], results[0][i])) << network.name << " array " << i << " on " << context;
    }
  }
}

TEST(Training, MakesTheLossSmaller) {
  const auto network = testing::mlp();
  auto executor = testing::bind_with_values(network);
  const auto loss = [&] {
    const auto probabilities = executor->forward()[0].to_vector<double>();
    const auto labels = executor->arg_dict().at("softmax_label").to_vector<int64_t>();
    double sum = 0;
    for (size_t i = 0; i < labels.size(); ++i) sum -= std::log(probabilities[i * 4 + static_cast<size_t>(labels[i])]);
    return sum;
  };
  const double before = loss();
  testing::train(*executor, network.inputs, 200, 0.1);
  EXPECT_LT(loss(), 0.2 * before);
}

}  // namespace
}  // namespace symbind
