// Operators of a user's own: how they are written, that they run everywhere others run, and what happens when they
// fail.
#include "symbind/ops/custom.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "symbind/symbind.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using Arrays = std::vector<NDArray>;
using Reqs = std::vector<OpReq>;
using Floats = std::vector<float>;

const Symbol data = Symbol::variable("data"), label = Symbol::variable("label");

// A prop made of a few lists and a function that makes the operator.
struct Listing {
  Names arguments = {"data"}, outputs = {"output"}, aux = {};
  bool need_top_grad = true;
};
template <class Operator>
class PropOf : public CustomOpProp {
 public:
  explicit PropOf(Listing listing = {}) : CustomOpProp(listing.need_top_grad), listing_(std::move(listing)) {}
  Names list_arguments() const override { return listing_.arguments; }
  Names list_outputs() const override { return listing_.outputs; }
  Names list_auxiliary_states() const override { return listing_.aux; }
  std::shared_ptr<CustomOp> create_operator(Context, const std::vector<Shape>&,
                                            const std::vector<DType>&) const override {
    return std::make_shared<Operator>();
  }

 private:
  Listing listing_;
};

template <class Prop, class... Arguments>
void use(const std::string& name, Arguments... arguments) {
  register_custom_op(name, [=](const Attributes&) { return std::make_shared<Prop>(arguments...); });
}

Symbol custom_of(const std::string& op_type, const Inputs& inputs = data, const std::string& name = "op") {
  return custom(inputs, {.op_type = op_type}, name);
}

// ---- A loss head ----------------------------------------------------------------------------------------------------

class Softmax : public CustomOp {
 public:
  void forward(bool, const Reqs& req, const Arrays& in, const Arrays& out, const Arrays&) override {
    const int64_t rows = in[0].shape()[0], classes = in[0].shape()[1];
    auto y = in[0].to_vector<float>();
    for (int64_t row = 0; row < rows; ++row) {
      float* const each = y.data() + row * classes;
      float sum = 0;
      for (int64_t k = 0; k < classes; ++k) sum += each[k] = std::exp(each[k]);
      for (int64_t k = 0; k < classes; ++k) each[k] /= sum;
    }
    assign(out[0], req[0], array(y, in[0].shape()));
  }
  void backward(const Reqs& req, const Arrays& out_grad, const Arrays& in, const Arrays& out, const Arrays& in_grad,
                const Arrays&) override {
    EXPECT_FALSE(out_grad[0]);  // a loss head needs none
    const int64_t classes = out[0].shape()[1];
    auto dx = out[0].to_vector<float>();
    const auto wanted = in[1].to_vector<float>();
    for (size_t row = 0; row < wanted.size(); ++row)
      dx[row * static_cast<size_t>(classes) + static_cast<size_t>(wanted[row])] -= 1;
    assign(in_grad[0], req[0], array(dx, out[0].shape()));
    assign(in_grad[1], req[1], 0);
  }
};

class SoftmaxProp : public PropOf<Softmax> {
 public:
  SoftmaxProp() : PropOf({.arguments = {"data", "label"}, .need_top_grad = false}) {}
  CustomShapes infer_shape(const std::vector<Shape>& in) const override {
    require(in[0].rank() == 2, "[softmax] needs rows: ", in[0]);
    return {{in[0], Shape{in[0][0]}}, {in[0]}, {}};
  }
};

Symbol network(bool with_custom) {
  const Symbol hidden = fully_connected(data, {.num_hidden = 3}, "fc");
  if (!with_custom) return softmax_output(hidden, {}, "softmax");
  use<SoftmaxProp>("test_softmax");
  return custom_of("test_softmax", hidden, "softmax");
}

TEST(Custom, SoftmaxLossIsTheOneInTheLibrary) {
  std::vector<NamedArrays> grads;
  std::vector<NDArray> outputs;
  for (const bool with_custom : {false, true}) {
    const Symbol net = network(with_custom);
    EXPECT_EQ(net.list_arguments(), (Names{"data", "fc_weight", "fc_bias", "softmax_label"}));
    EXPECT_EQ(net.list_outputs(), Names{"softmax_output"});
    auto executor = simple_bind(net, cpu(), {{"data", {4, 5}}});
    executor->arg_dict().at("fc_weight").copy_from(random_array({3, 5}, 7).to_vector<float>());
    executor->forward(true, {{"data", random_array({4, 5}, 3)}, {"softmax_label", array({0, 2, 1, 2})}});
    executor->backward();
    outputs.push_back(executor->outputs()[0]);
    grads.push_back(executor->grad_dict());
  }
  EXPECT_TRUE(all_close(outputs[1], outputs[0], {1e-5, 1e-6}));
  for (const char* name : {"data", "fc_weight", "fc_bias"})
    EXPECT_TRUE(all_close(grads[1].at(name), grads[0].at(name), {1e-5, 1e-6})) << name;
}

TEST(Custom, RunsInAModuleOverTwoContexts) {
  std::vector<NamedArrays> trained;
  for (const auto& contexts : {std::vector{cpu(0)}, std::vector{cpu(0), cpu(1)}}) {
    const NDArray labels = array({0, 2, 1, 2, 1, 0, 0, 2});
    NDArrayIter batches(random_array({8, 5}, 5), labels, {.batch_size = 4});
    Module module(network(true), {.context = contexts});
    module.bind(batches.provide_data(), batches.provide_label());
    module.init_params({.arg_params = NamedArrays{{"fc_weight", random_array({3, 5}, 7)}, {"fc_bias", zeros({3})}}});
    module.init_optimizer({.optimizer_params = {{"learning_rate", 0.1}}});
    for (int epoch = 0; epoch < 3; ++epoch, batches.reset())
      while (const auto batch = batches.next()) {
        module.forward_backward(*batch);
        module.update();
      }
    trained.push_back(module.get_params().arg_params);
  }
  for (const auto& [name, value] : trained[0]) EXPECT_TRUE(all_close(trained[1].at(name), value, {1e-5, 1e-6})) << name;
}

// ---- What is kept between calls -------------------------------------------------------------------------------------

std::mutex made_mutex;
std::set<const CustomOp*> made;  // every operator there is

class Remembering : public CustomOp {
 public:
  Remembering() {
    const std::lock_guard lock(made_mutex);
    made.insert(this);
  }
  ~Remembering() override {
    const std::lock_guard lock(made_mutex);
    made.erase(this);
  }
  // y = x · (number of calls so far); keeps x itself, not a copy.
  void forward(bool is_train, const Reqs& req, const Arrays& in, const Arrays& out, const Arrays&) override {
    ++calls_;
    was_training_ = is_train;
    x_ = in[0];
    assign(out[0], req[0], in[0] * calls_);
  }
  // dx = x · calls + 100 if it was training
  void backward(const Reqs& req, const Arrays&, const Arrays&, const Arrays&, const Arrays& in_grad,
                const Arrays&) override {
    assign(in_grad[0], req[0], x_ * calls_ + (was_training_ ? 100 : 0));
  }

 private:
  double calls_ = 0;
  bool was_training_ = false;
  NDArray x_;
};

class RememberingProp : public PropOf<Remembering> {
 public:
  std::vector<int> declare_backward_dependency(const std::vector<int>&, const std::vector<int>&,
                                               const std::vector<int>&) const override {
    return {};
  }
};

TEST(Custom, OneOperatorServesAllPassesOfAnExecutor) {
  use<RememberingProp>("remembering");
  // The input is an activation: its memory is reused after its last read.
  const Symbol net = square(custom_of("remembering", data * 2.0, "op"));
  auto first = simple_bind(net, cpu(), {{"data", {2}}}), second = simple_bind(net, cpu(), {{"data", {2}}});
  const NDArray x = array({1, 2}), ones_there = ones({2});
  EXPECT_EQ(first->forward(true, {{"data", x}})[0].to_vector<float>(), (Floats{4, 16}));
  first->backward({ones_there});
  EXPECT_EQ(first->grad_dict().at("data").to_vector<float>(), (Floats{204, 208}));
  EXPECT_EQ(first->forward(false)[0].to_vector<float>(), (Floats{16, 64}));  // the second call
  EXPECT_EQ(second->forward(true, {{"data", x}})[0].to_vector<float>(), (Floats{4, 16}));
  EXPECT_EQ(first->forward(true)[0].to_vector<float>(), (Floats{36, 144}));
  second->backward({ones_there});
  EXPECT_EQ(second->grad_dict().at("data").to_vector<float>(), (Floats{204, 208}));
  first->backward({ones_there});
  EXPECT_EQ(first->grad_dict().at("data").to_vector<float>(), (Floats{212, 224}));
  // With a monitor other plans run, and the operator is still the same.
  std::vector<std::string> seen;
  first->set_monitor_callback([&](const std::string& name, const NDArray&) { seen.push_back(name); });
  EXPECT_EQ(first->forward(true)[0].to_vector<float>(), (Floats{64, 256}));
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "op_output"), 1);
  EXPECT_EQ(made.size(), 2u);
  first.reset();
  second.reset();
  EXPECT_TRUE(made.empty());
}

TEST(Custom, TwoNodesHaveTwoOperators) {
  use<RememberingProp>("remembering");
  const Symbol one = custom_of("remembering", data, "one");
  auto executor = simple_bind(custom_of("remembering", one, "two"), cpu(), {{"data", {1}}});
  executor->forward(true, {{"data", array({3})}});
  EXPECT_EQ(executor->forward(true)[0].to_vector<float>(), Floats{12});
  EXPECT_EQ(made.size(), 2u);
}

TEST(Custom, InvokedOnArraysItKeepsNothing) {
  use<RememberingProp>("remembering");
  for (int i = 0; i < 3; ++i) {
    const auto result = invoke("Custom", {array({1, 2})}, {{"op_type", "remembering"}});
    EXPECT_EQ(result[0].to_vector<float>(), (Floats{1, 2}));
    EXPECT_TRUE(made.empty());
  }
  EXPECT_EQ(custom(array({5}), {.op_type = "remembering"}).to_vector<float>(), Floats{5});
}

// ---- Auxiliary states, several outputs, types -----------------------------------------------------------------------

// The sum and the difference of two arrays; a state counts the calls of either pass, another is like the data.
class SumAndDifference : public CustomOp {
 public:
  void forward(bool, const Reqs& req, const Arrays& in, const Arrays& out, const Arrays& aux) override {
    EXPECT_EQ(aux[1].shape(), in[0].shape());
    assign(out[0], req[0], in[0] + in[1]);
    assign(out[1], req[1], in[0] - in[1]);
    assign(aux[0], OpReq::add, 1);
  }
  void backward(const Reqs& req, const Arrays& out_grad, const Arrays&, const Arrays&, const Arrays& in_grad,
                const Arrays& aux) override {
    EXPECT_EQ(name_of(req[0]), "write");
    assign(in_grad[0], req[0], out_grad[0] + out_grad[1]);
    assign(in_grad[1], req[1], out_grad[0] - out_grad[1]);
    in_grad[1].fill(req[1] == OpReq::null ? 7 : in_grad[1].to_vector<double>()[0]);  // there is room in either case
    assign(aux[0], OpReq::add, 10);
  }
};
class SumAndDifferenceProp : public PropOf<SumAndDifference> {
 public:
  SumAndDifferenceProp() : PropOf({{"left", "right"}, {"sum", "difference"}, {"calls", "spare"}}) {}
  CustomShapes infer_shape(const std::vector<Shape>& in) const override {
    const Shape& shape = in[0].known() ? in[0] : in[1];
    return {{shape, shape}, {shape, shape}, {Shape{1}, shape}};
  }
  CustomTypes infer_type(const std::vector<DType>& in) const override {
    return {{in[0], in[0]}, {in[0], in[0]}, {DType::int32, in[0]}};
  }
};

TEST(Custom, HasStatesAndSeveralOutputs) {
  use<SumAndDifferenceProp>("sum_and_difference");
  const Symbol net = custom_of("sum_and_difference", Inputs(std::vector<Symbol>{}));
  EXPECT_EQ(net.list_arguments(), (Names{"op_left", "op_right"}));
  EXPECT_EQ(net.list_outputs(), (Names{"op_sum", "op_difference"}));
  EXPECT_EQ(net.list_auxiliary_states(), (Names{"op_calls", "op_spare"}));
  // Known from the second input alone.
  const auto shapes = infer_shape(net, {{"op_right", {2, 3}}});
  EXPECT_EQ(shapes.args[0], (std::vector<int64_t>{2, 3}));
  for (const DType dtype : {DType::float32, DType::float64, DType::float16}) {
    auto executor = simple_bind(
        net, cpu(), {{"op_right", {2}}},
        {.grad_req = std::map<std::string, std::string>{{"op_left", "add"}}, .type_dict = {{"op_left", dtype}}});
    EXPECT_EQ(executor->aux_dict().at("op_calls").dtype(), DType::int32);
    executor->grad_dict().at("op_left").fill(1000);
    executor->forward(true, {{"op_left", array({5, 6})}, {"op_right", array({1, 2})}});
    EXPECT_EQ(executor->outputs()[0].to_vector<float>(), (Floats{6, 8}));
    EXPECT_EQ(executor->outputs()[1].to_vector<float>(), (Floats{4, 4}));
    EXPECT_EQ(executor->outputs()[0].dtype(), dtype);
    executor->backward(std::vector{array({1, 2}), array({3, 4})});
    EXPECT_EQ(executor->grad_dict().at("op_left").to_vector<float>(), (Floats{1004, 1006}));
    EXPECT_EQ(executor->aux_dict().at("op_calls").to_vector<int>(), std::vector{11});
  }
  const auto invoked = invoke("Custom", {array({5}), array({2}), zeros({1}, cpu(), DType::int32), zeros({1})},
                              {{"op_type", "sum_and_difference"}});
  EXPECT_EQ(invoked.size(), 2u);
  EXPECT_EQ(invoked[1].to_vector<float>(), Floats{3});
}

// ---- Names and files ------------------------------------------------------------------------------------------------

// y = factor · x
class Scaling : public CustomOp {
 public:
  explicit Scaling(double factor) : factor_(factor) {}
  void forward(bool, const Reqs& req, const Arrays& in, const Arrays& out, const Arrays&) override {
    assign(out[0], req[0], in[0] * factor_);
  }

 private:
  double factor_;
};
class ScalingProp : public CustomOpProp {
 public:
  explicit ScalingProp(double factor) : factor_(factor) {}
  std::shared_ptr<CustomOp> create_operator(Context, const std::vector<Shape>&,
                                            const std::vector<DType>&) const override {
    return std::make_shared<Scaling>(factor_);
  }

 private:
  double factor_;
};
void register_scaling(double sign = 1) {
  register_custom_op("scaling", [sign](const Attributes& arguments) {
    return std::make_shared<ScalingProp>(sign * std::stod(arguments.at("factor")));
  });
}

TEST(Custom, KeywordsGoToTheFactoryAndIntoFiles) {
  register_scaling();
  const Symbol net = apply("Custom", data, {{"op_type", "scaling"}, {"factor", "2.5"}, {"lr_mult", "3"}}, "op");
  const Symbol same = custom(data, {.op_type = "scaling", .arguments = {{"factor", "2.5"}}}, "op");
  const std::string text = net.tojson();
  EXPECT_NE(text.find(R"("factor": "2.5")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("op_type": "scaling")"), std::string::npos) << text;
  for (const Symbol& symbol : {net, same, Symbol::load_json(text), Symbol::load_json(same.tojson())})
    EXPECT_EQ(eval(symbol, {{"data", array({2, 4})}})[0].to_vector<float>(), (Floats{5, 10}));
  EXPECT_EQ(Symbol::load_json(text).tojson(), text);
}

TEST(Custom, ANameCanBeTakenAgain) {
  register_scaling();
  const Symbol before = custom(data, {.op_type = "scaling", .arguments = {{"factor", "3"}}}, "op");
  register_scaling(-1);
  const Symbol after = Symbol::load_json(before.tojson());
  EXPECT_EQ(eval(before, {{"data", array({2})}})[0].item(), 6);
  EXPECT_EQ(eval(after, {{"data", array({2})}})[0].item(), -6);
}

TEST(Custom, UnknownNamesAreRefused) {
  register_scaling();
  EXPECT_TRUE(fails_with([] { custom_of("scalling"); }, "[Custom op]", "unknown custom operator 'scalling'",
                         "there are", "scaling"));
  EXPECT_TRUE(fails_with([] { apply("Custom", data, {{"factor", "2"}}, "op"); }, "op_type must be given"));
  std::string text = custom(data, {.op_type = "scaling", .arguments = {{"factor", "3"}}}, "op").tojson();
  text.replace(text.find("scaling"), 7, "missing");
  EXPECT_TRUE(fails_with([&] { Symbol::load_json(text); }, "'missing'", "there are"));
}

TEST(Custom, RegistersFromManyThreads) {
  register_scaling();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i] {
      for (int k = 0; k < 100; ++k) {
        register_custom_op(join("thread", i, "_", k % 3), [](const Attributes&) -> std::shared_ptr<CustomOpProp> {
          return std::make_shared<ScalingProp>(1);
        });
        custom_of(join("thread", i, "_", k % 3));
      }
    });
  for (std::thread& thread : threads) thread.join();
  const Names names = custom_op_names();
  EXPECT_TRUE(std::find(names.begin(), names.end(), "thread3_2") != names.end());
}

// ---- Mistakes -------------------------------------------------------------------------------------------------------

class WrongShapes : public PropOf<Softmax> {
 public:
  explicit WrongShapes(CustomShapes shapes) : PropOf({.arguments = {"data", "label"}}), shapes_(std::move(shapes)) {}
  CustomShapes infer_shape(const std::vector<Shape>&) const override { return shapes_; }

 private:
  CustomShapes shapes_;
};

TEST(Custom, WrongShapesAreSaid) {
  use<SoftmaxProp>("test_softmax");
  const NamedShapes four{{"data", {4, 3}}, {"label", {3}}};
  EXPECT_TRUE(fails_with(
      [&] {
        simple_bind(custom_of("test_softmax", {data, label}), cpu(), four);
      },
      "[Custom op]", "label has shape (3,)", "(4,)"));
  EXPECT_TRUE(fails_with(
      [&] {
        simple_bind(custom_of("test_softmax"), cpu(), {{"data", {4}}});
      },
      "[softmax] needs rows: (4,)"));
  use<WrongShapes>("too_few", CustomShapes{{Shape{1}}, {Shape{1}}});
  EXPECT_TRUE(fails_with(
      [&] {
        simple_bind(custom_of("too_few"), cpu(), {{"data", {4}}});
      },
      "[Custom op]", "1 inputs", "there are 2: data, label"));
  use<WrongShapes>("no_outputs", CustomShapes{{Shape{1}, Shape{1}}, {}});
  EXPECT_TRUE(fails_with(
      [&] {
        simple_bind(custom_of("no_outputs"), cpu(), {{"data", {1}}});
      },
      "0 outputs", "there are 1: output"));
}

struct Mishap {
  int code;
};
int failing_in = 0;  // 1: forward, 2: backward

class Failing : public CustomOp {
 public:
  void forward(bool, const Reqs& req, const Arrays& in, const Arrays& out, const Arrays&) override {
    if (failing_in == 1) throw Mishap{17};
    assign(out[0], req[0], in[0]);
  }
  void backward(const Reqs& req, const Arrays& out_grad, const Arrays&, const Arrays&, const Arrays& in_grad,
                const Arrays&) override {
    if (failing_in == 2) throw Mishap{18};
    assign(in_grad[0], req[0], out_grad[0]);
  }
};

template <class Function>
int mishap_of(Function function) {
  try {
    function();
  } catch (const Mishap& mishap) {
    return mishap.code;
  }
  return 0;
}

TEST(Custom, WhatItThrowsReachesTheCallerAndTheExecutorGoesOn) {
  use<PropOf<Failing>>("failing");
  auto executor = simple_bind(custom_of("failing") * 2.0, cpu(), {{"data", {2}}});
  for (int round = 0; round < 2; ++round) {
    failing_in = 1;
    EXPECT_EQ(mishap_of([&] { executor->forward(true); }), 17);
    failing_in = 2;
    executor->forward(true, {{"data", array({1, 2})}});
    EXPECT_EQ(mishap_of([&] { executor->backward({ones({2})}); }), 18);
    failing_in = 0;
    EXPECT_EQ(executor->forward(true)[0].to_vector<float>(), (Floats{2, 4}));
    executor->backward({ones({2})});
    EXPECT_EQ(executor->grad_dict().at("data").to_vector<float>(), (Floats{2, 2}));
  }
  failing_in = 1;
  EXPECT_EQ(mishap_of([&] { invoke("Custom", {ones({2})}, {{"op_type", "failing"}}); }), 17);

  // From the threads of several contexts too.
  const Symbol net = linear_regression_output(custom_of("failing"), label, {}, "lro");
  Module module(net, {.label_names = {"label"}, .context = {cpu(0), cpu(1)}});
  NDArrayIter batches(ones({4, 2}), NDArray(), {.batch_size = 4});
  module.bind(batches.provide_data(), {});
  module.init_params({});
  const auto batch = batches.next();
  EXPECT_EQ(mishap_of([&] { module.forward(*batch, true); }), 17);
  failing_in = 0;
  module.forward(*batch, true);
  EXPECT_EQ(module.get_outputs()[0].to_vector<float>(), Floats(8, 1));
}

TEST(Custom, WithoutBackwardItOnlyPredicts) {
  register_scaling();
  auto executor =
      simple_bind(custom(data, {.op_type = "scaling", .arguments = {{"factor", "3"}}}, "op"), cpu(), {{"data", {1}}});
  executor->forward(true, {{"data", array({2})}});
  EXPECT_TRUE(fails_with([&] { executor->backward({ones({1})}); }, "no backward()"));
}

}  // namespace
}  // namespace symbind::testing
