#include "symbind/train/mixed_precision.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/core/random.h"
#include "symbind/data/ndarray_iter.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/graph/attributes.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/all.h"
#include "symbind/train/module.h"

#include "examples/support/digits.h"
#include "examples/support/networks/resnet.h"
#include "tests/support/arrays.h"
#include "tests/support/networks.h"
#include "tests/support/source_dir.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

// The names of the nodes that a node reads.
std::vector<std::string> sources_of(const Symbol& network, const std::string& name) {
  for (const NodePtr& node : topological_order(network.entries()))
    if (node->name == name) {
      std::vector<std::string> names;
      for (const Entry& input : node->inputs) names.push_back(input.node->name);
      return names;
    }
  ADD_FAILURE() << "no node is called " << name;
  return {};
}

size_t count_of(const Symbol& network, const std::string& op) {
  size_t count = 0;
  for (const NodePtr& node : topological_order(network.entries()))
    count += !node->is_variable() && node->op->name == op;
  return count;
}

using Names = std::vector<std::string>;

TEST(MixedPrecision, CastsWhatComputesInAnotherType) {
  const Symbol hidden = fc(var("data"), 4, "fc1"), second = fc(hidden, 3, "fc2");
  const Symbol net = mixed_precision(softmax_output(second, {}, "softmax"), DType::float16);
  EXPECT_EQ(sources_of(net, "fc1"),
            (Names{"data_amp_cast_float16", "fc1_weight_amp_cast_float16", "fc1_bias_amp_cast_float16"}));
  EXPECT_EQ(sources_of(net, "softmax"), (Names{"fc2_output_amp_cast_float32", "softmax_label"}));
  EXPECT_TRUE(fails_with([&] { mixed_precision(hidden, DType::int8); }, "int8"));
}

TEST(MixedPrecision, LeavesTheNetworkItWasGivenAsItWas) {
  const Symbol net = softmax_output(fc(var("data"), 4, "fc1"), {}, "softmax");
  const std::string before = net.tojson();
  const Symbol low = with_low_parameters(mixed_precision(net, DType::float16), DType::float16, {"data"});
  EXPECT_EQ(net.tojson(), before);
  EXPECT_EQ(low.attr_dict().at("fc1_weight").at("__dtype__"), "2");
  EXPECT_FALSE(low.attr_dict().contains("data"));
}

TEST(MixedPrecision, CastsNothingThatIsComputedInTheTypeItComesIn) {
  const Symbol low = relu(fc(var("data"), 4, "fc1"), "relu");
  const Symbol net = computed_in(low + low, DType::bfloat16);
  EXPECT_EQ(net.list_outputs().size(), 1);
  const auto executor = simple_bind(net, cpu(), {{"data", {2, 3}}}, {.grad_req = "null"});
  EXPECT_EQ(executor->outputs()[0].dtype(), DType::float32);
}

TEST(MixedPrecision, DefinitionsOfOperatorsStateHowTheyAreComputed) {
  const auto precision = [](const char* op) { return OpRegistry::get().find(op).precision; };
  for (const char* op : {"Convolution", "Deconvolution", "FullyConnected", "RNN"})
    EXPECT_EQ(precision(op), Precision::low) << op;
  for (const char* op : {"softmax", "SoftmaxOutput", "exp", "log", "_power", "broadcast_power", "_rdiv_scalar", "sum",
                         "mean", "norm", "LayerNorm", "Custom", "CTCLoss", "make_loss", "smooth_l1"})
    EXPECT_EQ(precision(op), Precision::full) << op;
  for (const char* op : {"elemwise_add", "_greater", "broadcast_mul", "broadcast_equal", "add_n", "Concat", "stack",
                         "dot", "batch_dot", "where"})
    EXPECT_EQ(precision(op), Precision::widest) << op;
  EXPECT_EQ(precision("LeakyReLU"), Precision::narrowest);
  for (const char* op :
       {"BatchNorm", "Pooling", "Activation", "relu", "tanh", "_mul_scalar", "max", "Embedding", "Reshape", "Dropout"})
    EXPECT_EQ(precision(op), Precision::as_given) << op;
}

TEST(MixedPrecision, RulesNameOperatorsWithTheirAliases) {
  const PrecisionRules rules = default_precision_rules();
  const auto has = [](const Names& names, const char* name) { return std::ranges::count(names, name) == 1; };
  EXPECT_TRUE(has(rules.low, "Convolution") && has(rules.low, "Convolution_v1"));
  EXPECT_TRUE(has(rules.full, "SoftmaxOutput") && has(rules.full, "Softmax"));
  EXPECT_TRUE(has(rules.widest, "Concat") && has(rules.widest, "concat") && has(rules.widest, "_plus"));
  EXPECT_EQ(std::ranges::count(rules.full, "_backward_log"), 0);

  const Symbol both = concat({fc(var("a"), 3, "fc1"), var("b")}, {}, "both");
  const Symbol net = mixed_precision(both, DType::float16, {.full = {"concat", "an operator of MXNet alone"}});
  EXPECT_EQ(sources_of(net, "both")[1], "b");
  EXPECT_EQ(count_of(net, "amp_cast"), 1);
}

TEST(MixedPrecision, AParameterDoesNotWidenTheData) {
  const Symbol low = fc(var("data"), 4, "fc1");
  const Symbol net = mixed_precision(leaky_relu(low, var("slope"), {.act_type = "prelu"}, "prelu"), DType::float16);
  const auto executor = simple_bind(net, cpu(), {{"data", {2, 3}}}, {.grad_req = "null"});
  EXPECT_EQ(executor->outputs()[0].dtype(), DType::float16);
  EXPECT_EQ(executor->arg_dict().at("slope").dtype(), DType::float32);
}

TEST(MixedPrecision, AnInputReadForItsShapeAloneDoesNotNarrowTheData) {
  const Symbol data = var("data"), low = amp_cast(var("like"), {.dtype = DType::float16});
  for (const Symbol& net : {crop({data, low}, {.num_args = 2}), bilinear_resize_2d(data, low, {.mode = "like"})}) {
    const auto executor = simple_bind(mixed_precision(net, DType::float16), cpu(),
                                      {{"data", {1, 1, 2, 2}}, {"like", {1, 1, 2, 2}}}, {.grad_req = "null"});
    executor->arg_dict().at("data").fill(100'000);
    EXPECT_EQ(executor->forward(false)[0].to_vector<float>(), std::vector<float>(4, 100'000));
  }
}

TEST(MixedPrecision, TrainsBesideOutputsWithoutAGradient) {
  const Symbol scores = fc(var("data"), 4, "fc");
  const Symbol net = Symbol::group(
      {softmax_output(scores, {}, "softmax"), stop_gradient(scores), argmax(scores, {.axis = 1}), shape_array(scores)});
  const NDArray data = random_array({8, 3}, 1), labels = array({0, 1, 2, 3, 0, 1, 2, 3});
  for (const DType type : {DType::float16, DType::bfloat16}) {
    Module module(net, {.compute_dtype = type});
    module.bind({{"data", {8, 3}}}, {{"softmax_label", {8}}});
    module.init_params();
    module.init_optimizer();
    const NDArray before = module.get_params().arg_params.at("fc_bias").copy();
    for (int step = 0; step < 5; ++step) {  // the first steps of float16 overflow
      module.forward_backward({.data = {data}, .label = {labels}});
      module.update();
    }
    EXPECT_FALSE(same_bits(module.get_params().arg_params.at("fc_bias"), before));
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(module.get_outputs()[i].dtype(), DType::float32) << i;
    EXPECT_EQ(module.get_outputs()[3].dtype(), DType::int64);
    EXPECT_EQ(module.output_names(), net.list_outputs());
  }
}

// bfloat16 has 8 bits.
// Which type they have is known from their reader alone.
TEST(MixedPrecision, IntegersThatPassACastKeepTheirType) {
  const Symbol words = var("words"), other = cast(var("other"), {.dtype = DType::int32});
  const Symbol net = mixed_precision(words + other, DType::float16);
  ASSERT_EQ(count_of(net, "amp_multicast"), 1U);
  const std::vector<DType> types = infer_type(net, {{"other", DType::float32}}).args;
  EXPECT_EQ(types, (std::vector{DType::int32, DType::float32}));
}

TEST(MixedPrecision, LengthsAreExact) {
  const int64_t steps = 300;
  const Symbol lengths = var("lengths"), data = var("data");
  const Symbol low = fully_connected(data, {.num_hidden = 1, .no_bias = true, .flatten = false}, "fc");
  const RNN layer{.state_size = 1, .num_layers = 1, .mode = rnn_mode::rnn_relu, .use_sequence_length = true};
  const Symbol layers[] = {sequence_mask(low, lengths, {.use_sequence_length = true}),
                           rnn({low, var("weights"), var("state"), lengths}, layer)};
  for (const Symbol& each : layers) {
    const auto executor =
        simple_bind(computed_in(each, DType::bfloat16), cpu(), {{"data", {steps, 1, 1}}}, {.grad_req = "null"});
    for (const auto& [name, array] : executor->arg_dict()) {
      EXPECT_EQ(array.dtype(), DType::float32) << name;
      array.fill(name == "state" ? 0 : name == "lengths" ? steps - 1 : 1);
    }
    const std::vector<float> outputs = executor->forward(false)[0].to_vector<float>();
    EXPECT_GT(outputs[static_cast<size_t>(steps - 2)], 0);
    EXPECT_EQ(outputs[static_cast<size_t>(steps - 1)], 0);
  }
}

TEST(MixedPrecision, AValueOfAParameterCanRequireFloat32) {
  for (const bool is_delicate : {false, true}) {
    const Symbol body = fc(var("data"), 4, "fc1");
    const Symbol net =
        mixed_precision(Symbol::group({activation(body, {.act_type = is_delicate ? "softrelu" : "relu"}, "activation"),
                                       leaky_relu(body, {.act_type = is_delicate ? "selu" : "leaky"}, "leaky")}),
                        DType::bfloat16);
    const std::string source = is_delicate ? "fc1_output_amp_cast_float32" : "fc1";
    EXPECT_EQ(sources_of(net, "activation"), Names{source});
    EXPECT_EQ(sources_of(net, "leaky"), Names{source});
  }
}

// ---- scaled losses --------------------------------------------------------------------------------------------------

std::map<std::string, NDArray> gradients_of(const Symbol& net, double scale) {
  auto executor = simple_bind(net, cpu(), {{"data", {6, 5}}});
  for (const auto& [name, array] : executor->arg_dict())
    if (name.starts_with("_"))
      array.fill(name == "_scale" ? scale : 1 / scale);
    else if (name.ends_with("label"))
      array.fill(1);
    else
      random_array(array.shape(), array.shape().size(), -0.5, 0.5).copyto(array);
  executor->forward(true);
  const bool is_loss = net.list_arguments().back().ends_with("label") || count_of(net, "MakeLoss") > 0;
  executor->backward(is_loss ? std::vector<NDArray>{} : std::vector<NDArray>{ones({6, 3})});
  std::map<std::string, NDArray> grads;
  for (const auto& [name, grad] : executor->grad_dict())
    if (name.starts_with("fc")) grads.emplace(name, grad.copy());
  return grads;
}

// The identity, whose gradient has a penalty besides that of its output; of two outputs, so that each counts.
class Penalty final : public CustomOp {
 public:
  void forward(bool, const std::vector<OpReq>& req, const std::vector<NDArray>& in, const std::vector<NDArray>& out,
               const std::vector<NDArray>&) override {
    for (size_t i = 0; i < 2; ++i) assign(out[i], req[i], in[0]);
  }
  void backward(const std::vector<OpReq>& req, const std::vector<NDArray>& out_grad, const std::vector<NDArray>& in,
                const std::vector<NDArray>&, const std::vector<NDArray>& in_grad,
                const std::vector<NDArray>&) override {
    assign(in_grad[0], req[0], out_grad[0] + out_grad[1] + in[0] * 0.125);
  }
};
class PenaltyProp final : public CustomOpProp {
 public:
  std::vector<std::string> list_outputs() const override { return {"first", "second"}; }
  CustomShapes infer_shape(const std::vector<Shape>& in) const override { return {in, {in[0], in[0]}}; }
  std::shared_ptr<CustomOp> create_operator(Context, const std::vector<Shape>&,
                                            const std::vector<DType>&) const override {
    return std::make_shared<Penalty>();
  }
};

// Powers of two change no digit.
TEST(ScaledLoss, GradientsAreThoseOfTheLossItself) {
  register_custom_op("penalty", [](const Attributes&) { return std::make_shared<PenaltyProp>(); });
  const Symbol body = fc(relu(fc(var("data"), 4, "fc1"), "relu"), 3, "fc2");
  const Symbol penalized = custom({relu(fc(var("data"), 4, "fc1"), "relu")}, {.op_type = "penalty"}, "penalized");
  const Symbol sparse = identity_attach_kl_sparse_reg(sigmoid(fc(var("data"), 4, "fc1")), {.penalty = 0.25}, "sparse");
  const auto [of_steps, last] = foreach(
      [](auto& step, auto&) -> LoopResult {
        return {{make_loss(square(step[0]))}, {}};
      },
      {body}, {}, "each");
  const Symbol kinds[] = {softmax_output(body, {}, "softmax"),
                          linear_regression_output(body, {}, "lro"),
                          make_loss(square(body)),
                          body,
                          softmax_output(fc(penalized[0] + penalized[1], 3, "fc2"), {}, "softmax"),
                          softmax_output(fc(penalized[1], 3, "fc2"), {}, "softmax"),
                          linear_regression_output(fc(sparse, 3, "fc2"), {}, "lro"),
                          of_steps[0]};
  for (const Symbol& net : kinds) {
    const Symbol scaled = with_scaled_loss(net, net.list_arguments(), "_scale", "_inverse");
    const auto plain = gradients_of(net, 1), with_scale = gradients_of(scaled, 1024);
    ASSERT_EQ(plain.size(), 4U);
    for (const auto& [name, grad] : plain) EXPECT_TRUE(same_bits(with_scale.at(name), grad)) << name;
  }
}

TEST(ScaledLoss, IsMultipliedOnceForEachLoss) {
  const Symbol body = fc(var("data"), 3, "fc1");
  const Symbol net = Symbol::group({softmax_output(body, {}, "softmax"), stop_gradient(body), body});
  const Symbol scaled = with_scaled_loss(net, {"fc1_weight"}, "_scale", "_inverse");
  EXPECT_EQ(count_of(scaled, "_scale_gradient"), 3U);  // the loss, the last output, the parameter
  EXPECT_EQ(sources_of(scaled, "softmax")[0], "fc1_scaled");
}

TEST(LossScale, HalvesAtAnOverflowAndDoublesAfterManyGoodSteps) {
  LossScale scale;
  EXPECT_EQ(scale.value(), 65536);
  scale.finish_step(false);
  EXPECT_EQ(scale.value(), 32768);
  for (int64_t i = 0; i < LossScale::steps_before_growth; ++i) scale.finish_step(true);
  EXPECT_EQ(scale.value(), 65536);
  for (int i = 0; i < 40; ++i) scale.finish_step(false);
  EXPECT_EQ(scale.value(), 1);
}

// ---- modules --------------------------------------------------------------------------------------------------------

// Points of a plane in two classes that no line divides.
struct Points {
  NDArray data = random_array({256, 2}, 1), labels{Shape{256}};
  Points() {
    const std::vector<float> points = data.to_vector<float>();
    std::vector<float> classes(256);
    for (size_t i = 0; i < 256; ++i) classes[i] = points[2 * i] * points[2 * i + 1] > 0 ? 1 : 0;
    labels.copy_from(classes);
  }
  NDArrayIter batches() const { return NDArrayIter(data, labels, {.batch_size = 32}); }
};

Symbol classifier() {
  const Symbol hidden = activation(fc(var("data"), 16, "fc1"), {.act_type = "relu"});
  return softmax_output(fc(hidden, 2, "fc2"), {}, "softmax");
}

double accuracy_after_training(DType dtype, const std::vector<Context>& contexts = {cpu()}) {
  seed(1);
  const Points points;
  Module module(classifier(), {.context = contexts});
  NDArrayIter train = points.batches();
  module.fit(train, {.optimizer = "sgd",
                     .optimizer_params = {{"learning_rate", 0.5}, {"momentum", 0.9}},
                     .initializer = std::make_shared<init::Xavier>(),
                     .num_epoch = 25,
                     .compute_dtype = dtype});
  for (const auto& [name, array] : module.get_params().arg_params) EXPECT_EQ(array.dtype(), DType::float32) << name;
  EXPECT_EQ(module.output_names(), Names{"softmax_output"});
  EXPECT_EQ(module.loss_scale() > 1, dtype == DType::float16);
  NDArrayIter test = points.batches();
  return module.score(test, "acc")[0].second;
}

TEST(ComputeDtype, LearnsAsInFloat32) {
  for (const Context context : all_devices())
    for (const DType type : {DType::none, DType::float16, DType::bfloat16})
      EXPECT_GT(accuracy_after_training(type, {context}), 0.95) << type << " on " << context;
  EXPECT_GT(accuracy_after_training(DType::float16, {cpu(0), cpu(1)}), 0.95);
}

// The gradients of a residual network, by parameter, that computes in `compute`, with data and parameters rounded to
// `rounded`.
using Gradients = std::map<std::string, std::vector<float>>;

Gradients gradients_of_resnet(DType compute, DType rounded, Context context) {
  seed(3);
  const auto round = [&](const NDArray& array) { return array.astype(rounded).astype(DType::float32); };
  Module module(networks::resnet({.depth = 18, .classes = 4}), {.context = {context}, .compute_dtype = compute});
  module.bind({{"data", {8, 3, 64, 64}}}, {{"softmax_label", {8}}});
  module.init_params({.initializer = std::make_shared<init::Xavier>()});
  BaseModule::Params params = module.get_params();
  for (auto& [name, array] : params.arg_params) array = round(array);
  module.set_params(params.arg_params, params.aux_params);
  module.init_optimizer({.optimizer_params = {{"learning_rate", 0.0}}});
  const DataBatch batch{.data = {round(random_array({8, 3, 64, 64}, 4))}, .label = {random_array({8}, 5, 0, 3)}};
  for (double scale = 0; scale != module.loss_scale();) {  // until the scale is small enough
    scale = module.loss_scale();
    module.forward_backward(batch);
    module.update();
  }
  Gradients gradients;
  for (const auto& [name, gradient] : module.exec_group()->execs()[0]->grad_dict())
    gradients[name] = gradient.to_vector<float>();
  return gradients;
}

double epsilon_of(DType type) { return type == DType::float16 ? 0x1p-11 : 0x1p-8; }

// |a - b| / |b|
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, length = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += std::pow(double{a[i]} - b[i], 2);
    length += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(error / length);
}

std::vector<float> all_of(const Gradients& gradients) {
  std::vector<float> all;
  for (const auto& [name, own] : gradients) all.insert(all.end(), own.begin(), own.end());
  return all;
}

// How far 16 bits may move a gradient depends on how well-conditioned the network is, which no formula over epsilon
// knows: the yardstick is what the same rounding does to float32. Rounding the data and the parameters once perturbs
// every layer by epsilon, and moves each gradient by some distance. Computing in 16 bits rounds the weights too, and in
// addition the result of each layer in forward and the gradient of each in backward: independent errors of that size at
// three places instead of one, so about sqrt(3) times the distance, and a last rounding of the gradient itself. 4 times
// leaves room for the few roundings between layers.
void expect_gradients_of_float32(Context context) {
  // Zero but for rounding: gamma is fixed, and a BatchNorm follows that undoes what bn0_gamma scales.
  const std::set<std::string> vanish{"bn_data_gamma", "bn0_gamma"};
  const Gradients exact = gradients_of_resnet(DType::none, DType::float32, context);
  for (const DType type : {DType::float16, DType::bfloat16}) {
    const Gradients rounded = gradients_of_resnet(DType::none, type, context);
    const Gradients computed = gradients_of_resnet(type, DType::float32, context);
    const double of_rounding = distance(all_of(rounded), all_of(exact));
    const double of_computing = distance(all_of(computed), all_of(exact));
    EXPECT_GT(of_computing, 0);
    EXPECT_LT(of_computing, 4 * of_rounding) << type;
    for (const auto& [name, gradient] : exact) {
      if (vanish.contains(name)) continue;
      EXPECT_LT(distance(computed.at(name), gradient), 4 * (distance(rounded.at(name), gradient) + epsilon_of(type)))
          << type << " " << name;
    }
  }
}

TEST(ComputeDtype, GradientsAreThoseOfFloat32ButForRounding) {
  for (const Context context : all_devices()) {
    SCOPED_TRACE(context);
    expect_gradients_of_float32(context);
  }
}

// ---- a convolutional network on digits ------------------------------------------------------------------------------

// 1280 digits, in batches of 32.
class Digits {
 public:
  Digits() {
    const examples::Digits all = examples::read_digits(source_dir() + "/data", "train");
    images_ = all.images.slice(0, 1280);
    labels_ = all.labels.slice(0, 1280);
  }
  NDArrayIter batches() const { return NDArrayIter(images_, labels_, {.batch_size = 32}); }

 private:
  NDArray images_, labels_;
};

Symbol convolutional_classifier(Symbol net = var("data")) {
  for (const int64_t filters : {8, 16}) {
    net = convolution(net, {.kernel = {3, 3}, .stride = {2, 2}, .num_filter = filters, .no_bias = true});
    net = activation(batch_norm(net, {.fix_gamma = false}), {.act_type = "relu"});
  }
  return fc(flatten(net), 10, "fc");
}

// Trained for 40 steps an epoch.
std::unique_ptr<Module> trained_on(const Digits& digits, const Symbol& classifier, const ModuleOptions& options,
                                   int epochs, bool multi_precision = false) {
  seed(1);
  auto module = std::make_unique<Module>(softmax_output(classifier, {}, "softmax"), options);
  NDArrayIter train = digits.batches();
  module->fit(train,
              {.optimizer_params = {{"learning_rate", 0.005}, {"momentum", 0.9}, {"multi_precision", multi_precision}},
               .initializer = std::make_shared<init::Xavier>(),
               .num_epoch = epochs});
  return module;
}

std::unique_ptr<Module> trained_on(const Digits& digits, DType dtype, int epochs, Context context) {
  return trained_on(digits, convolutional_classifier(), {.context = {context}, .compute_dtype = dtype}, epochs);
}

double training_loss(Module& module, const Digits& digits) {
  NDArrayIter data = digits.batches();
  return module.score(data, "ce")[0].second;
}

// From the same beginning (a loss of 2.3) 200 steps in each type end at nearly the same loss.
TEST(ComputeDtype, ConvolutionsLearnDigitsAsInFloat32) {
  const Digits digits;
  for (const Context context : all_devices()) {
    const auto loss_in = [&](DType type) {
      return training_loss(*trained_on(digits, type, /*epochs=*/5, context), digits);
    };
    const double in_float32 = loss_in(DType::none);
    EXPECT_LT(in_float32, 0.2) << context;
    EXPECT_NEAR(loss_in(DType::float16), in_float32, 0.02) << context;
    EXPECT_NEAR(loss_in(DType::bfloat16), in_float32, 0.02) << context;
  }
}

double largest_difference(const NDArray& a, const NDArray& b) {
  const std::vector<float> values = a.to_vector<float>(), others = b.to_vector<float>();
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) largest = std::max(largest, std::abs(double{values[i]} - others[i]));
  return largest;
}

// What the module saves, loaded and bound for predictions of the data.
std::unique_ptr<Module> loaded_again(Module& module, Context context, const DataIter& data) {
  const TempDir folder;
  module.save_checkpoint(folder.file("net"), 2);
  auto loaded = Module::load(folder.file("net"), 2, false, {.context = {context}});
  loaded->bind(data.provide_data(), data.provide_label(), {.for_training = false});
  return loaded;
}

// What a module that computes in 16 bits saves is a float32 network. Its predictions there differ by the roundings of
// three layers: a few epsilons of the type. Another device may load it.
void expect_same_predictions(const Digits& digits, DType type, Context trains, Context predicts) {
  const auto module = trained_on(digits, type, /*epochs=*/2, trains);
  NDArrayIter data = digits.batches();
  const auto loaded = loaded_again(*module, predicts, data);
  for (const auto& [name, array] : loaded->get_params().arg_params) EXPECT_EQ(array.dtype(), DType::float32) << name;
  EXPECT_EQ(loaded->symbol().tojson(), module->symbol().tojson());
  const double largest = largest_difference(loaded->predict(data)[0], module->predict(data)[0]);
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest, 10 * epsilon_of(type));
}

TEST(ComputeDtype, ACheckpointPredictsTheSameInFloat32) {
  const Digits digits;
  for (const DType type : {DType::float16, DType::bfloat16})
    for (const Context trains : all_devices())
      for (const Context predicts : all_devices()) {
        SCOPED_TRACE(join(type, ", trained on ", trains, ", predicts on ", predicts));
        expect_same_predictions(digits, type, trains, predicts);
      }
}

TEST(ComputeDtype, LeavesOutAStepWhoseGradientsOverflow) {
  const Points points;
  Module module(classifier(), {.compute_dtype = DType::float16});
  NDArrayIter train = points.batches();
  module.bind(train.provide_data(), train.provide_label());
  module.init_params({.initializer = std::make_shared<init::Xavier>()});
  module.init_optimizer({.optimizer_params = {{"learning_rate", 0.1}}});
  DataBatch batch = *train.next();
  batch.data[0] = full(batch.data[0].shape(), 60000);  // products with it overflow in float16
  const auto weight = [&] { return module.get_params().arg_params.at("fc1_weight").copy(); };
  const NDArray before = weight();
  module.forward_backward(batch);
  module.update();
  EXPECT_TRUE(same_bits(weight(), before));
  EXPECT_EQ(module.loss_scale(), LossScale::first / 2);
  // The gradients of a batch are sums: the scale is halved until they are finite, and then steps are taken.
  for (int i = 0; i < 7; ++i) {
    module.forward_backward(*train.next());
    module.update();
  }
  EXPECT_FALSE(same_bits(weight(), before));
  EXPECT_GE(module.loss_scale(), 512);
}

TEST(ComputeDtype, OfABoundModuleChangesOnlyWithForceRebind) {
  const Points points;
  Module module(classifier());
  NDArrayIter train = points.batches();
  const auto fit = [&](DType dtype, bool force_rebind = false) {
    module.fit(train, {.force_rebind = force_rebind, .num_epoch = 1, .compute_dtype = dtype});
  };
  fit(DType::none);
  const Quiet quiet;  // the optimizer stays
  for (const DType same : {DType::none, DType::float32}) fit(same);
  EXPECT_TRUE(fails_with([&] { fit(DType::float16); }, "force_rebind", "computes in float32, and float16 was given"));
  for (const DType type : {DType::float16, DType::bfloat16, DType::float32}) {
    fit(type, /*force_rebind=*/true);
    EXPECT_EQ(module.loss_scale() > 1, type == DType::float16) << type;
    EXPECT_EQ(count_of(module.exec_group()->symbol(), "amp_cast") > 0, type != DType::float32) << type;
  }
  EXPECT_TRUE(fails_with([&] { fit(DType::bfloat16); }, "force_rebind", "computes in float32, and bfloat16 was given"));
  EXPECT_TRUE(fails_with([&] { Module(classifier(), {.compute_dtype = DType::int32}); }, "int32", "bfloat16"));
}

// Where gradients overflow whatever the scale is, nothing is learned, and the program is told so once.
TEST(ComputeDtype, WarnsIfNoStepIsTaken) {
  std::string warnings;
  const LogSink before = set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warnings += text;
  });
  Module module(linear_regression_output(fc(var("data"), 1, "fc"), {}, "out"),
                {.label_names = {"out_label"}, .compute_dtype = DType::float16});
  NDArrayIter train(ones({64, 2}), full({64, 1}, 1e5), {.batch_size = 16, .label_name = "out_label"});
  const auto step = [&] {
    train.reset();
    module.forward_backward(*train.next());
    module.update();
  };
  module.bind(train.provide_data(), train.provide_label());
  module.init_params();
  module.init_optimizer();
  while (module.loss_scale() > LossScale::least) step();
  EXPECT_EQ(warnings, "");
  step();
  EXPECT_NE(warnings.find("use compute_dtype bfloat16"), std::string::npos) << warnings;
  const std::string once = warnings;
  step();
  set_log_sink(before);
  EXPECT_EQ(warnings, once);
  EXPECT_EQ(module.get_params().arg_params.at("fc_bias").item(), 0);
}

TEST(ComputeDtype, LearnsWithLayersOnSeveralContexts) {
  const auto trained = [](DType type, const std::map<std::string, Context>& groups) {
    const auto in_group = [](const char* group, const auto& layer) {
      const AttrScope scope(Attributes{{"ctx_group", group}});
      return layer();
    };
    const Symbol hidden = in_group("first", [] { return relu(fc(var("data"), 16, "fc1"), "relu"); });
    const Symbol net = in_group("second", [&] { return softmax_output(fc(hidden, 2, "fc2"), {}, "softmax"); });
    const Points points;
    NDArrayIter train = points.batches();
    Module module(net, {.group2ctxs = {groups}, .compute_dtype = type});
    seed(1);
    module.fit(train, {.initializer = std::make_shared<init::Xavier>(), .num_epoch = 2});
    return module.get_params().arg_params;
  };
  const std::map<std::string, Context> groups{{"first", cpu(0)}, {"second", cpu(1)}};
  for (const DType type : {DType::float16, DType::bfloat16}) expect_same_bits(trained(type, groups), trained(type, {}));
}

TEST(ComputeDtype, AnotherTypeKeepsTheParametersAndTheOptimizer) {
  const Points points;
  const Quiet quiet;
  const auto trained = [&](DType second) {
    seed(1);
    Module module(classifier());
    NDArrayIter train = points.batches();
    FitArgs args{.optimizer_params = {{"learning_rate", 0.1}, {"momentum", 0.9}}, .num_epoch = 2};
    module.fit(train, args);
    args.force_rebind = true;
    args.compute_dtype = second;
    module.fit(train, args);
    return module.get_params().arg_params.at("fc1_weight").to_vector<float>();
  };
  const double moved = distance(trained(DType::bfloat16), trained(DType::none));
  EXPECT_GT(moved, 0);
  EXPECT_LT(moved, 10 * epsilon_of(DType::bfloat16));
}

TEST(ComputeDtype, TheSameTypeGivenAgainKeepsTheScaleOfTheLoss) {
  const Points points;
  const Quiet quiet;
  Module module(classifier(), {.compute_dtype = DType::float16});
  NDArrayIter train = points.batches();
  const FitArgs args{.num_epoch = 1, .compute_dtype = DType::float16};
  module.fit(train, args);
  DataBatch batch = *train.next();
  batch.data[0] = full(batch.data[0].shape(), 60000);  // products with it overflow in float16
  for (int i = 0; i < 12; ++i) {
    module.forward_backward(batch);
    module.update();
  }
  const double scale = module.loss_scale();
  EXPECT_LT(scale, 32);
  train.reset();
  module.fit(train, args);
  EXPECT_EQ(module.loss_scale(), scale);
}

TEST(ComputeDtype, ErrorsNameTheOutputsOfTheNetwork) {
  for (const DType type : {DType::float16, DType::bfloat16}) {
    Module module(fc(var("data"), 3, "fc"), {.label_names = {}, .compute_dtype = type});
    module.bind({{"data", {2, 4}}});
    module.init_params();
    module.forward({.data = {ones({2, 4})}}, true);
    EXPECT_TRUE(fails_with([&] { module.backward(); }, "out_grads are needed for fc_output:")) << type;
    module.backward({ones({2, 3})});
  }
}

TEST(ComputeDtype, IsForNetworksOfFloat32) {
  const auto bind_as = [](const Symbol& network, DType data, DType compute) {
    Module module(network, {.compute_dtype = compute});
    module.bind({{"data", {8, 2}, data}}, {{"softmax_label", {8}}});
  };
  for (const DType type : {DType::float16, DType::bfloat16}) {
    EXPECT_TRUE(fails_with([&] { bind_as(classifier(), DType::float64, type); },
                           join("[compute_dtype] only networks of float32 compute in ", type),
                           "'data' has type float64, which reaches FullyConnected 'fc1'"));
    bind_as(classifier(), DType::float32, type);
    const Symbol in_float32 = fc(cast(var("data"), {.dtype = DType::float32}), 3, "fc");
    bind_as(softmax_output(in_float32, {}, "softmax"), DType::float64, type);
    const Symbol words = embedding(var("data"), {.input_dim = 5, .output_dim = 4}, "embed");
    bind_as(softmax_output(fc(words, 3, "fc"), {}, "softmax"), DType::float64, type);
  }
}

// ---- networks that cast by themselves -------------------------------------------------------------------------------

// As scripts for MXNet write them: the data is cast, parameters have its type (those of a BatchNorm are float32), and
// so have their gradients; the optimizer updates a copy in float32.
Symbol written_for(DType type) {
  return cast(convolutional_classifier(cast(var("data"), {.dtype = type})), {.dtype = DType::float32});
}

TEST(MultiPrecision, ANetworkWrittenFor16BitsLearnsAsInFloat32) {
  const Digits digits;
  for (const Context context : all_devices()) {
    const double in_float32 = training_loss(*trained_on(digits, DType::none, /*epochs=*/5, context), digits);
    for (const DType type : {DType::float16, DType::bfloat16}) {
      const auto module =
          trained_on(digits, written_for(type), {.context = {context}}, /*epochs=*/5, /*multi_precision=*/true);
      EXPECT_NEAR(training_loss(*module, digits), in_float32, 0.02) << type << " on " << context;
    }
  }
}

TEST(MultiPrecision, ACheckpointHas16BitsAndItsNormsAreFoldedInInference) {
  const Digits digits;
  for (const DType type : {DType::float16, DType::bfloat16})
    for (const Context trains : all_devices())
      for (const Context predicts : all_devices()) {
        SCOPED_TRACE(join(type, ", trained on ", trains, ", predicts on ", predicts));
        const auto module =
            trained_on(digits, written_for(type), {.context = {trains}}, /*epochs=*/2, /*multi_precision=*/true);
        NDArrayIter data = digits.batches();
        const auto loaded = loaded_again(*module, predicts, data);
        for (const auto& [name, array] : loaded->get_params().arg_params) {
          const bool of_norm = name.find("batchnorm") != std::string::npos;
          EXPECT_EQ(array.dtype(), of_norm ? DType::float32 : type) << name;
        }
        EXPECT_LT(largest_difference(loaded->predict(data)[0], module->predict(data)[0]), 10 * epsilon_of(type));
        const std::string plan = loaded->exec_group()->execs()[0]->debug_str();
        EXPECT_NE(plan.find("_Convolution_Fused"), std::string::npos) << plan;
        EXPECT_EQ(plan.find(" BatchNorm "), std::string::npos) << plan;
      }
}

}  // namespace
}  // namespace symbind::testing
