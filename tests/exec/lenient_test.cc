// What MXNet lets pass: names and shapes beyond the network's, and arrays of other types.
#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/symbind.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::fails_with;
using Floats = std::vector<float>;

Symbol var(const std::string& name) { return Symbol::variable(name); }

// What is warned of while it lives.
class Warnings {
 public:
  Warnings() {
    set_log_sink([this](LogLevel, std::string_view text) { texts_ += std::string(text) + "\n"; });
  }
  ~Warnings() { set_log_sink({}); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  bool have(const std::string& part) const { return texts_.find(part) != std::string::npos; }

 private:
  std::string texts_;
};

TEST(Lenient, ShapesThatAreGivenWinOverThoseThatWereDeclared) {
  const Symbol net = fully_connected(Symbol::variable("x", {.shape = Shape{2, 3}}), {.num_hidden = 4}, "fc");
  const auto inferred = infer_shape(net, {{"x", {6, 5}}});
  EXPECT_EQ(inferred.args[0], (Tuple{6, 5}));
  EXPECT_EQ(inferred.args[1], (Tuple{4, 5}));
  EXPECT_EQ(simple_bind(net, cpu(), {{"x", {6, 5}}})->outputs()[0].shape(), (Shape{6, 4}));
  EXPECT_EQ(simple_bind(net, cpu(), {})->outputs()[0].shape(), (Shape{2, 4})) << "declared ones count without";
}

TEST(Lenient, NamesThatTheNetworkLacksArePassedOverWithAWarning) {
  const Symbol net = var("x") * 2;
  NDArray dx = zeros({2});
  {
    const Warnings warnings;
    const auto executor = bind(net, cpu(), {{"x", ones({2})}}, {.args_grad = {{"x", dx}, {"other", zeros({1})}}});
    EXPECT_EQ(executor->grad_dict().size(), 1u);
    EXPECT_TRUE(warnings.have("args_grad names 'other'"));
  }
  const Warnings warnings;
  const std::map<std::string, std::string> requests{{"x", "write"}, {"another", "add"}};
  EXPECT_EQ(simple_bind(net, cpu(), {{"x", {2}}}, {.grad_req = requests})->grad_dict().size(), 1u);
  EXPECT_TRUE(warnings.have("grad_req names 'another'"));
}

TEST(Lenient, GradientsOfOutputsMayBeTooManyOrOnlyThoseThatAreNeeded) {
  const Symbol plain = var("a") * 2;
  const Symbol loss = apply("MakeLoss", {var("b") * 3});
  NDArray da = zeros({2}), db = zeros({2});
  const auto executor = bind(Symbol::group({plain, loss}), cpu(), {{"a", ones({2})}, {"b", ones({2})}},
                             {.args_grad = {{"a", da}, {"b", db}}});
  executor->forward(true);
  executor->backward(std::vector<NDArray>{ones({2})});
  EXPECT_EQ(da.to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(db.to_vector<float>(), (Floats{3, 3}));
  executor->forward(true);
  executor->backward(std::vector<NDArray>{full({2}, 2), ones({2}), ones({7})});
  EXPECT_EQ(da.to_vector<float>(), (Floats{4, 4}));
  executor->forward(true);
  EXPECT_TRUE(fails_with([&] { executor->backward(); }, "out_grads are needed for", "_output"));
}

TEST(Lenient, TwoVariablesMayHaveOneName) {
  const Symbol net = var("w") * 2 + var("w") * 3;
  NDArray dw = zeros({2});
  const auto by_name = bind(net, cpu(), {{"w", array({1, 2})}}, {.args_grad = {{"w", dw}}});
  EXPECT_EQ(by_name->forward(true)[0].to_vector<float>(), (Floats{5, 10}));
  EXPECT_TRUE(by_name->arg_arrays()[0].same_memory(by_name->arg_arrays()[1]));

  const std::vector<NDArray> both{array({1, 2}), array({10, 20})}, grads{zeros({2}), zeros({2})};
  const auto in_order = bind(net, cpu(), both, {.args_grad = grads});
  EXPECT_EQ(in_order->forward(true)[0].to_vector<float>(), (Floats{32, 64}));
  in_order->backward(std::vector<NDArray>{ones({2})});
  EXPECT_EQ(grads[0].to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(grads[1].to_vector<float>(), (Floats{3, 3}));
  EXPECT_EQ(simple_bind(net, cpu(), {{"w", {2}}})->arg_arrays().size(), 2u);
  // A map by name would lose one of them.
  EXPECT_TRUE(fails_with([&] { in_order->arg_dict(); }, "two arguments are named 'w'"));
  EXPECT_TRUE(fails_with([&] { in_order->forward(true, {{"w", ones({2})}}); }, "'w'"));
  EXPECT_TRUE(fails_with([&] { bind(net, cpu(), std::vector<NDArray>{ones({2}), ones({3})}); }, "(2,)", "(3,)"));
}

TEST(Lenient, AGradientArrayMayHaveAnotherFloatType) {
  for (const DType dtype : {DType::float64, DType::float16}) {
    NDArray dx = full({2}, 1, cpu(), dtype);
    const Symbol net = apply("square", {var("x")});
    const auto write = bind(net, cpu(), {{"x", array({1, 2})}}, {.args_grad = {{"x", dx}}});
    write->forward(true);
    write->backward(std::vector<NDArray>{ones({2})});
    EXPECT_EQ(dx.to_vector<float>(), (Floats{2, 4}));
    EXPECT_EQ(dx.dtype(), dtype);
    const auto add = bind(net, cpu(), {{"x", array({1, 2})}}, {.args_grad = {{"x", dx}}, .grad_req = "add"});
    add->forward(true);
    add->backward(std::vector<NDArray>{ones({2})});
    EXPECT_EQ(dx.to_vector<float>(), (Floats{4, 8}));
    const auto larger = add->reshape({{"x", {5}}}, {.allow_up_sizing = true});
    EXPECT_EQ(larger->grad_dict().at("x").dtype(), dtype);
    larger->forward(true);
    larger->backward(std::vector<NDArray>{ones({5})});
  }
  EXPECT_TRUE(fails_with(
      [] {
        bind(var("x") * 2, cpu(), {{"x", ones({2})}}, {.args_grad = {{"x", zeros({2}, cpu(), DType::int32)}}});
      },
      "int32", "float32"));
}

TEST(Lenient, AReshapedExecutorSharesTheMemoryOfTheOutputs) {
  const auto large = simple_bind(var("x") * 2, cpu(), {{"x", {8}}});
  const auto small = large->reshape({{"x", {3}}});
  EXPECT_TRUE(small->outputs()[0].same_memory(large->outputs()[0]));
  const auto own = large->reshape({{"x", {3}}}, {.own_memory = true});
  EXPECT_FALSE(own->outputs()[0].same_memory(large->outputs()[0]));
}

TEST(Lenient, ToolsFindTheMemoryInTheDebugText) {
  const auto executor = simple_bind(var("x") * 2, cpu(), {{"x", {1 << 20}}}, {.grad_req = "null"});
  EXPECT_NE(executor->debug_str().find("Total 4 MB allocated"), std::string::npos);
}

TEST(Lenient, AMonitorOfAllSeesVariablesByTheirNamesAndHiddenOutputs) {
  const Symbol net = apply("BatchNorm", {fully_connected(var("data"), {.num_hidden = 3}, "fc")}, {}, "bn");
  const auto executor = simple_bind(net, cpu(), {{"data", {2, 4}}});
  std::vector<std::string> seen;
  executor->set_monitor_callback([&](const std::string& name, const NDArray&) { seen.push_back(name); }, true);
  executor->forward(true);
  EXPECT_EQ(seen, (std::vector<std::string>{"data", "fc_data", "fc_weight", "fc_weight", "fc_bias", "fc_bias",
                                            "fc_output", "bn_data", "bn_gamma", "bn_gamma", "bn_beta", "bn_beta",
                                            "bn_moving_mean", "bn_moving_mean", "bn_moving_var", "bn_moving_var",
                                            "bn_output", "bn_mean", "bn_var"}));
}

}  // namespace
}  // namespace symbind
