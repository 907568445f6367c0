// Values recomputed in backward: the same numbers from less memory.
#include <cstdlib>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/graph/attributes.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/custom.h"
#include "symbind/ops/fully_connected.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::fc;
using testing::relu;
using testing::var;

Symbol conv(const Symbol& data, int64_t filters, const std::string& name) {
  return apply("Convolution", data,
               {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"num_filter", std::to_string(filters)}, {"no_bias", "True"}},
               name);
}

// Units of BatchNorm, activation and convolution with a residual sum, so many of them.
testing::Network residual(int units) {
  Symbol net = conv(var("data"), 8, "conv0");
  for (int i = 0; i < units; ++i) {
    const std::string unit = "unit" + std::to_string(i) + "_";
    Symbol body = relu(apply("BatchNorm", net, {{"fix_gamma", i % 2 ? "True" : "False"}}, unit + "bn"), unit + "relu");
    net = conv(body, 8, unit + "conv") + net;
  }
  net = apply("Pooling", net, {{"global_pool", "True"}, {"pool_type", "avg"}, {"kernel", "(1, 1)"}}, "pool");
  return {"residual", testing::softmax(fc(net, 5, "fc")), {{"data", {4, 3, 8, 8}}, {"softmax_label", {4}}}, 5};
}

// Dropout, views and activations between products.
testing::Network with_dropout() {
  Symbol net = apply("Dropout", relu(fc(var("data"), 64, "fc1"), "relu1"), {{"p", "0.4"}}, "drop1");
  net = apply("Reshape", apply("exp", apply("tanh", fc(net, 64, "fc2"))), {{"shape", "(8, 4, 16)"}}, "cubes");
  net = apply("Dropout", apply("sqrt", net), {{"p", "0.5"}, {"axes", "(1,)"}}, "drop2");
  return {"with_dropout", testing::softmax(fc(net, 5, "fc3")), {{"data", {8, 12}}, {"softmax_label", {8}}}, 5};
}

void expect_same_training(const testing::Network& network, const SimpleBindOptions& one, const SimpleBindOptions& other,
                          bool exactly) {
  auto usual = testing::bind_with_values(network, cpu(), one),
       recomputing = testing::bind_with_values(network, cpu(), other);
  const testing::Tolerance tolerance = exactly ? testing::Tolerance{0, 0, 0} : testing::Tolerance{1e-4, 1e-5, 1e-5};
  seed(7);
  const auto expected = testing::train(*usual, network.inputs, 3);
  seed(7);
  const auto actual = testing::train(*recomputing, network.inputs, 3);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)  // outputs, parameters, and the moving statistics
    EXPECT_TRUE(testing::all_close(actual[i], expected[i], tolerance)) << network.name << ": array " << i;
  for (const auto& [name, gradient] : usual->grad_dict())
    EXPECT_TRUE(testing::all_close(recomputing->grad_dict().at(name), gradient, tolerance)) << "gradient of " << name;
}

SimpleBindOptions with_budget(size_t bytes, bool plain = false) {
  return {.options = {.layout = !plain, .memory_budget = bytes}};
}

int count_recomputed(const Executor& executor) {
  const std::string text = executor.debug_str();
  int count = 0;
  for (size_t found = text.find("_recompute"); found != std::string::npos; found = text.find("_recompute", found + 1))
    if (text[found - 1] != 'm') ++count;  // not the operator _BatchNorm_recompute
  return count;
}

class Messages {
 public:
  Messages() : before_(set_log_sink([this](LogLevel, std::string_view text) { all += text; })) {}
  ~Messages() { set_log_sink(before_); }
  std::string all;

 private:
  LogSink before_;
};

TEST(Recompute, GivesTheSameNumbersWhateverTheBudget) {
  const Messages messages;
  for (const auto& network : {residual(6), with_dropout(), testing::lenet(), testing::batch_norm_net(),
                              testing::shared_weights_net(), testing::several_outputs_net()}) {
    const size_t usual = testing::bind_with_values(network)->memory().arena;
    for (const double part : {0.8, 0.6, 0.4, 0.0}) {
      SCOPED_TRACE(part);
      const auto budget = static_cast<size_t>(part * static_cast<double>(usual)) + 1;
      expect_same_training(network, {}, with_budget(budget), /*exactly=*/false);
    }
  }
}

// Where the same kernels run on the same numbers there is no difference at all.
TEST(Recompute, GivesExactlyTheSameNumbersFromTheSameKernels) {
  const Messages messages;
  expect_same_training(with_dropout(), with_budget(0, true), with_budget(1, true), /*exactly=*/true);
  expect_same_training(residual(6), with_budget(0, true), with_budget(1, true), /*exactly=*/true);
}

TEST(Recompute, AddsToGradientsAsBefore) {
  const Messages messages;
  SimpleBindOptions usual, small = with_budget(1);
  usual.grad_req = small.grad_req = "add";
  expect_same_training(residual(5), usual, small, /*exactly=*/false);
}

TEST(Recompute, GradientsInTestModeAreTheSame) {
  const Messages messages;
  const auto network = residual(5);
  auto usual = testing::bind_with_values(network), small = testing::bind_with_values(network, cpu(), with_budget(1));
  for (auto* executor : {&usual, &small}) {
    (*executor)->forward(false);
    (*executor)->backward({}, false);
  }
  for (const auto& [name, gradient] : usual->grad_dict())
    EXPECT_TRUE(testing::all_close(small->grad_dict().at(name), gradient, {1e-4, 1e-5, 1e-5})) << name;
}

TEST(Recompute, KeepsToABudgetThatCanBeMet) {
  const Messages messages;
  const auto network = residual(40);
  const size_t usual = testing::bind_with_values(network)->memory().arena;
  for (const double part : {0.9, 0.7, 0.5}) {
    const auto budget = static_cast<size_t>(part * static_cast<double>(usual));
    auto executor = testing::bind_with_values(network, cpu(), with_budget(budget));
    EXPECT_LE(executor->memory().arena, budget) << part;
    EXPECT_GT(count_recomputed(*executor), 0) << part;
  }
  EXPECT_EQ(messages.all, "");
}

// Making one product of all steps' gradients would hold the rows of every step.
TEST(Recompute, KeepsToABudgetWhereStepsShareAWeight) {
  const Messages messages;
  const Symbol weight = Symbol::variable("weight");
  Symbol net = Symbol::variable("data");
  for (int step = 0; step < 100; ++step) {
    net = fully_connected({{"data", net}, {"weight", weight}}, {.num_hidden = 64, .no_bias = true}, join("fc", step));
    net = activation(net, {.act_type = "tanh"});
  }
  const testing::Network network{"steps", net, {{"data", {16, 64}}}, 0};
  auto usual = testing::bind_with_values(network);
  auto small = testing::bind_with_values(network, cpu(), with_budget(usual->memory().arena / 4));
  EXPECT_LE(small->memory().arena, usual->memory().arena / 4);
  EXPECT_EQ(messages.all, "");
  for (auto* executor : {&usual, &small}) {
    (*executor)->forward(true);
    (*executor)->backward(testing::out_grads_for(**executor));
  }
  for (const auto& [name, gradient] : usual->grad_dict())
    EXPECT_TRUE(testing::all_close(small->grad_dict().at(name), gradient, {1e-3, 1e-6, 1e-5})) << name;
}

TEST(Recompute, RecomputesNothingThatNeedNotBe) {
  const auto network = residual(10);
  auto usual = testing::bind_with_values(network);
  EXPECT_EQ(count_recomputed(*usual), 0);
  auto roomy = testing::bind_with_values(network, cpu(), with_budget(usual->memory().arena));
  EXPECT_EQ(count_recomputed(*roomy), 0);
  auto tight = testing::bind_with_values(network, cpu(), with_budget(usual->memory().arena * 95 / 100));
  auto tighter = testing::bind_with_values(network, cpu(), with_budget(usual->memory().arena * 75 / 100));
  EXPECT_GT(count_recomputed(*tight), 0);
  EXPECT_LT(count_recomputed(*tight), count_recomputed(*tighter));
}

TEST(Recompute, SaysWhenABudgetCannotBeMet) {
  const Messages messages;
  auto executor = testing::bind_with_values(residual(10), cpu(), with_budget(1));
  executor->forward(true);
  executor->backward();
  EXPECT_NE(messages.all.find("budget of 1 bytes cannot be met"), std::string::npos) << messages.all;
  EXPECT_NE(messages.all.find(std::to_string(executor->memory().arena)), std::string::npos) << messages.all;
}

// Four times as deep, about twice the memory.
TEST(Recompute, MemoryGrowsLikeTheRootOfTheDepth) {
  const Messages messages;
  const auto arena = [](int units, size_t budget) {
    auto network = residual(units);
    network.inputs["data"] = {4, 3, 32, 32};
    return static_cast<double>(simple_bind(network.symbol, cpu(), network.inputs, with_budget(budget))->memory().arena);
  };
  const double shallow = arena(40, 1), deep = arena(160, 1);
  EXPECT_LT(deep, 2.6 * shallow);
  EXPECT_LT(deep, 0.25 * arena(160, 0));
}

TEST(Recompute, FusesWhatIsRecomputed) {
  const Messages messages;
  auto executor = testing::bind_with_values(residual(8), cpu(), with_budget(1));
  const std::string text = executor->debug_str();
  EXPECT_NE(text.find("_BatchNorm_recompute"), std::string::npos) << text;
  EXPECT_NE(text.find("_backward_BatchNorm_Relu"), std::string::npos) << text;
  EXPECT_EQ(text.find("_backward_Activation"), std::string::npos) << text;
}

// What is recomputed first is chosen among fused operators: forward and backward are fused as without a budget.
TEST(Recompute, LeavesForwardAndBackwardFused) {
  const testing::Network network = residual(6);
  const auto usual = testing::bind_with_values(network, cpu(), with_budget(0, true));
  const auto recomputing = testing::bind_with_values(network, cpu(), with_budget(usual->memory().arena * 9 / 10, true));
  const std::string before = usual->debug_str(), after = recomputing->debug_str();
  const auto count = [](const std::string& text, const std::string& op) {
    size_t found = 0;
    for (size_t at = text.find(op + " "); at != std::string::npos; at = text.find(op + " ", at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(before, "_BatchNorm_recompute"), 0u) << before;
  EXPECT_GT(count(after, "_BatchNorm_recompute"), 0u) << after;
  for (const char* op : {"_BatchNorm_Relu", "_backward_BatchNorm_Relu"}) {
    EXPECT_GT(count(before, op), 0u) << op << "\n" << before;
    EXPECT_EQ(count(after, op), count(before, op)) << op << "\n" << after;
  }
}

TEST(Recompute, CanBeTurnedOff) {
  const auto network = residual(5);
  auto usual = testing::bind_with_values(network);
  auto executor = testing::bind_with_values(network, cpu(), {.options = {.recompute = false, .memory_budget = 1}});
  EXPECT_EQ(executor->memory().arena, usual->memory().arena);
  EXPECT_EQ(count_recomputed(*executor), 0);
}

// ---- By attribute and environment -----------------------------------------------------------------------------------

testing::Network mirrored(const std::string& value) {
  Symbol net = fc(var("data"), 64, "fc1");
  {
    const AttrScope scope({{"force_mirroring", value}});
    net = apply("Dropout", apply("tanh", net, {}, "tanh1"), {{"p", "0.5"}}, "drop1");
    net = apply("exp", net, {}, "exp1");
  }
  return {"mirrored", testing::softmax(fc(net, 5, "fc2")), {{"data", {8, 12}}, {"softmax_label", {8}}}, 5};
}

TEST(Recompute, HonoursForceMirroring) {
  auto executor = testing::bind_with_values(mirrored("True"));
  EXPECT_EQ(count_recomputed(*executor), 3);
  EXPECT_EQ(count_recomputed(*testing::bind_with_values(mirrored("False"))), 0);
  expect_same_training(mirrored("False"), {}, {.options = {.recompute = false}}, /*exactly=*/true);
  const auto network = mirrored("True");
  expect_same_training(network, {}, {.options = {.recompute = false}}, /*exactly=*/true);
}

TEST(Recompute, HonoursMxnetsEnvironment) {
  const auto network = residual(10);
  const size_t usual = testing::bind_with_values(network)->memory().arena;
  ::setenv("MXNET_BACKWARD_DO_MIRROR", "1", 1);
  auto executor = testing::bind_with_values(network);
  EXPECT_GT(count_recomputed(*executor), 0);
  EXPECT_LT(executor->memory().arena, usual);
  expect_same_training(network, {}, {.options = {.recompute = false}}, /*exactly=*/false);
  ::unsetenv("MXNET_BACKWARD_DO_MIRROR");
}

// ---- What is never recomputed ---------------------------------------------------------------------------------------

class Counting : public CustomOp {
 public:
  explicit Counting(int& forwards) : forwards_(forwards) {}
  void forward(bool, const std::vector<OpReq>& req, const std::vector<NDArray>& in_data,
               const std::vector<NDArray>& out_data, const std::vector<NDArray>&) override {
    ++forwards_;
    assign(out_data[0], req[0], in_data[0]);
  }
  void backward(const std::vector<OpReq>& req, const std::vector<NDArray>& out_grad, const std::vector<NDArray>&,
                const std::vector<NDArray>&, const std::vector<NDArray>& in_grad,
                const std::vector<NDArray>&) override {
    assign(in_grad[0], req[0], out_grad[0]);
  }

 private:
  int& forwards_;
};

class CountingProp : public CustomOpProp {
 public:
  explicit CountingProp(int& forwards) : forwards_(forwards) {}
  std::shared_ptr<CustomOp> create_operator(Context, const std::vector<Shape>&,
                                            const std::vector<DType>&) const override {
    return std::make_shared<Counting>(forwards_);
  }

 private:
  int& forwards_;
};

TEST(Recompute, LeavesCustomOperatorsAlone) {
  const Messages messages;
  static int forwards = 0;
  register_custom_op("counting_forwards", [](const Attributes&) { return std::make_shared<CountingProp>(forwards); });
  Symbol net = fc(var("data"), 64, "fc1");
  {
    const AttrScope scope({{"force_mirroring", "True"}});
    net = apply("Custom", net, {{"op_type", "counting_forwards"}}, "counting");
  }
  net = testing::softmax(fc(apply("exp", net), 5, "fc2"));
  const testing::Network network{"custom", net, {{"data", {8, 12}}, {"softmax_label", {8}}}, 5};
  auto executor = testing::bind_with_values(network, cpu(), with_budget(1));
  executor->forward(true);
  executor->backward();
  EXPECT_EQ(forwards, 1);
}

}  // namespace
}  // namespace symbind
