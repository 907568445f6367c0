#include "symbind/train/predictor.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "symbind/files/checkpoint.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/all.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"
#include "tests/support/source_dir.h"
#include "tests/support/temp_dir.h"
#include "tests/train/serving_example.inc"

namespace symbind {
namespace {

using testing::fails_with;
using testing::same_bits;

struct Model {
  testing::Network network;
  ExecutorPtr executor;  // bound with the values that the predictor gets
  NamedArrays args, aux;

  explicit Model(testing::Network net) : network(std::move(net)), executor(testing::bind_with_values(network)) {
    for (const auto& [name, array] : executor->arg_dict())
      if (!network.inputs.count(name)) args[name] = array;
    aux = executor->aux_dict();
  }
  NDArray input(int64_t batch, double value = 0.5) const {
    return full(network.inputs.at("data").with(0, batch), value);
  }
  // What an executor bound for that batch alone gives.
  NDArray expected(const NDArray& data) const {
    NamedShapes shapes = network.inputs;
    for (auto& [name, shape] : shapes) shape[0] = data.shape()[0];
    auto alone = simple_bind(network.symbol, cpu(), shapes, {.grad_req = "null"});
    alone->copy_params_from(args, aux);
    return alone->forward(false, {{"data", data}})[0].copy();
  }
};

TEST(Predictor, GivesWhatAnExecutorGivesForEveryBatchSize) {
  for (const auto& network : {testing::mlp(), testing::lenet(), testing::batch_norm_net()}) {
    const Model model(network);
    const Predictor predict(network.symbol, model.args, model.aux);
    for (const int64_t batch : {4, 1, 7, 1, 4}) {
      const NDArray data = model.input(batch, 0.1 * static_cast<double>(batch));
      const std::vector<NDArray> outputs = predict(data);
      ASSERT_EQ(outputs.size(), network.symbol.size());
      EXPECT_TRUE(testing::all_close(outputs[0], model.expected(data))) << network.name << " batch " << batch;
    }
    EXPECT_EQ(predict.executors(), 3u);
  }
}

TEST(Predictor, OutputsBelongToTheCaller) {
  const Model model(testing::mlp());
  const Predictor predict(model.network.symbol, model.args, model.aux);
  const NDArray first = predict(model.input(2, 0.1))[0];
  const NDArray before = first.copy();
  predict(model.input(2, 0.9));
  EXPECT_TRUE(same_bits(first, before));
}

// As in a language model, whose labels are those of all steps.
TEST(Predictor, NeedsNoLabelsThatTheNetworkReshapes) {
  const Symbol data = Symbol::variable("data"), labels = Symbol::variable("labels");
  const Symbol scores = fully_connected(reshape(data, {.shape = {-1, 4}}), {.num_hidden = 3}, "fc");
  const Symbol net = softmax_output(scores, reshape(swap_axis(labels, {.dim1 = 0, .dim2 = 1}), {.shape = {-1}}));
  const NamedArrays params = {{"fc_weight", testing::random_array({3, 4}, 1)},
                              {"fc_bias", testing::random_array({3}, 2)}};
  const NDArray steps = testing::random_array({5, 2, 4}, 3);
  const auto trained = simple_bind(net, cpu(), {{"data", {5, 2, 4}}, {"labels", {2, 5}}}, {.grad_req = "null"});
  trained->copy_params_from(params);
  const Predictor predict(net, params);
  EXPECT_EQ(predict.input_names(), std::vector<std::string>{"data"});
  const NDArray expected = trained->forward(false, {{"data", steps}})[0];
  EXPECT_TRUE(same_bits(predict(steps)[0], expected));
  EXPECT_TRUE(same_bits(predict({{"data", steps}, {"labels", zeros({2, 5})}})[0], expected)) << "they may be given";
}

// An autoencoder: what the loss compares with is computed from the data.
TEST(Predictor, NeedsOnlyTheDataWhereItIsTheLabelToo) {
  const Symbol data = Symbol::variable("data");
  const Symbol net = linear_regression_output(fully_connected(data, {.num_hidden = 8}, "fc"), flatten(data));
  const NamedArrays params = {{"fc_weight", testing::random_array({8, 8}, 1)},
                              {"fc_bias", testing::random_array({8}, 2)}};
  const NDArray input = testing::random_array({3, 2, 4}, 3);
  const auto whole = simple_bind(net, cpu(), {{"data", {3, 2, 4}}}, {.grad_req = "null"});
  whole->copy_params_from(params);
  EXPECT_TRUE(same_bits(Predictor(net, params)(input)[0], whole->forward(false, {{"data", input}})[0]));
}

// A student that learns from a teacher, whose parameters a prediction does not need.
TEST(Predictor, NeedsNoParametersThatOnlyTheLabelsDependOn) {
  const Symbol data = Symbol::variable("data");
  const Symbol student = fully_connected(data, {.num_hidden = 2}, "student");
  const Symbol teacher = batch_norm(fully_connected(data, {.num_hidden = 2}, "teacher"), {}, "norm");
  const Symbol net = linear_regression_output(student, stop_gradient(teacher));
  NamedArrays params = {{"student_weight", testing::random_array({2, 4}, 1)},
                        {"student_bias", testing::random_array({2}, 2)}};
  const NDArray input = testing::random_array({3, 4}, 3);
  const NDArray without = Predictor(net, params)(input)[0];
  params.insert({{"teacher_weight", testing::random_array({2, 4}, 4)}, {"teacher_bias", zeros({2})}});
  EXPECT_TRUE(same_bits(Predictor(net, params, {{"norm_moving_mean", zeros({2})}})(input)[0], without));
  EXPECT_TRUE(same_bits(without, Predictor(student, params)(input)[0]));
}

// They have a gradient of zero, but are no losses.
TEST(Predictor, ComputesWhatReadsAShapeAlone) {
  const Symbol features = convolution(Symbol::variable("data"), {.kernel = {3, 3}, .num_filter = 4}, "conv");
  const Symbol net = Symbol::group({multi_box_prior(features), arange_like(features, {.axis = 2})});
  const NamedArrays params = {{"conv_weight", testing::random_array({4, 3, 3, 3}, 1)}, {"conv_bias", zeros({4})}};
  const std::vector<NDArray> outputs = Predictor(net, params)(testing::random_array({1, 3, 8, 8}, 2));
  EXPECT_EQ(outputs[0].shape(), (Shape{1, 36, 4}));
  EXPECT_EQ(outputs[1].to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(Predictor, ReturnsFloat32WhereNoGradientPasses) {
  const Symbol scores = fully_connected(Symbol::variable("data"), {.num_hidden = 300, .no_bias = true}, "fc");
  const Symbol net = Symbol::group({argmax(scores, {.axis = 1}), stop_gradient(scores), sign(scores)});
  NDArray weight = zeros({300, 1});
  weight(257, 0) = 1;
  const Predictor predict(net, {{"fc_weight", weight}}, {}, {.compute_dtype = DType::bfloat16});
  const std::vector<NDArray> outputs = predict(ones({1, 1}));
  for (const NDArray& output : outputs) EXPECT_EQ(output.dtype(), DType::float32);
  EXPECT_EQ(outputs[0].to_vector<float>(), std::vector<float>{257});
}

TEST(Predictor, ComputesIn16Bits) {
  for (const auto& network : {testing::mlp(), testing::lenet(), testing::batch_norm_net()}) {
    const Model model(network);
    const NDArray data = model.input(4, 0.3), exact = Predictor(network.symbol, model.args, model.aux)(data)[0];
    for (const DType type : {DType::float16, DType::bfloat16}) {
      const Predictor predict(network.symbol, model.args, model.aux, {.compute_dtype = type});
      const NDArray rounded = predict(data)[0];
      EXPECT_EQ(rounded.dtype(), DType::float32);
      EXPECT_FALSE(same_bits(rounded, exact)) << network.name << " was not computed in " << type;
      EXPECT_TRUE(testing::all_close(rounded, exact, {0.05, 0.02})) << network.name << " in " << type;
    }
  }
  const Model model(testing::mlp());
  EXPECT_TRUE(
      fails_with([&] { Predictor(model.network.symbol, model.args, model.aux, {.compute_dtype = DType::int8}); },
                 "compute_dtype", "not int8"));
  NamedArrays wide;
  for (const auto& [name, array] : model.args) wide[name] = array.astype(DType::float64);
  EXPECT_TRUE(fails_with([&] { Predictor(model.network.symbol, wide, model.aux, {.compute_dtype = DType::float16}); },
                         "only networks of float32 compute in float16",
                         "has type float64, which reaches FullyConnected 'fc1'"));
}

TEST(Predictor, ReadsACheckpoint) {
  const testing::TempDir dir;
  const Model model(testing::lenet());
  save_checkpoint(dir.file("net"), 6, model.network.symbol, model.args, model.aux);
  const Predictor predict(dir.file("net"), 6);
  EXPECT_TRUE(testing::all_close(predict(model.input(3))[0], model.expected(model.input(3))));
  EXPECT_EQ(predict.input_names(), std::vector<std::string>{"data"});
  EXPECT_EQ(predict.output_names(), model.network.symbol.list_outputs());
}

TEST(Predictor, ServesThreadsWithDifferentBatchSizes) {
  const Model model(testing::lenet());
  const Predictor predict(model.network.symbol, model.args, model.aux, {.max_concurrent = 3});
  std::vector<NDArray> inputs, expected;
  for (int64_t batch = 1; batch <= 5; ++batch) {
    inputs.push_back(model.input(batch, 0.1 * static_cast<double>(batch)));
    expected.push_back(predict(inputs.back())[0]);
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (size_t seed = 0; seed < 5; ++seed)
    threads.emplace_back([&, seed] {
      for (size_t i = 0; i < 20; ++i) {
        const size_t which = (seed * 7 + i * 3) % inputs.size();
        if (!same_bits(predict(inputs[which])[0], expected[which])) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(predict.executors(), 15u);
}

TEST(Predictor, KeepsNoMoreShapesThanItMay) {
  const Model model(testing::mlp());
  const Predictor predict(model.network.symbol, model.args, model.aux, {.max_shapes = 2});
  for (int64_t batch = 1; batch <= 6; ++batch) predict(model.input(batch));
  EXPECT_EQ(predict.executors(), 2u);
  EXPECT_TRUE(testing::all_close(predict(model.input(1))[0], model.expected(model.input(1))));
}

TEST(Predictor, HoldsOneSetOfWeights) {
  const Model model(testing::mlp());
  const int64_t before = Device::get(cpu()).memory().live;
  const Predictor predict(model.network.symbol, model.args, model.aux);
  EXPECT_EQ(Device::get(cpu()).memory().live, before);
  const NDArray first = predict(model.input(2))[0];
  for (auto& [name, array] : model.args) array.fill(0);  // between calls: the next one sees it
  EXPECT_FALSE(same_bits(predict(model.input(2))[0], first));
}

TEST(Predictor, TakesSeveralInputsByName) {
  const Symbol net = apply("elemwise_add", {testing::var("left"), testing::var("right")}, {}, "sum");
  const Predictor predict(net, {});
  EXPECT_EQ(predict.input_names(), (std::vector<std::string>{"left", "right"}));
  const NamedArrays inputs{{"left", array({1, 2})}, {"right", array({10, 20})}};
  EXPECT_EQ(predict(inputs)[0].to_vector<float>(), (std::vector<float>{11, 22}));
  EXPECT_TRUE(fails_with([&] { predict(array({1, 2})); }, "2 inputs", "left, right", "by name"));
  EXPECT_TRUE(fails_with([&] { predict({{"left", array({1, 2})}}); }, "'right' is missing"));
  EXPECT_TRUE(fails_with(
      [&] {
        predict(NamedArrays{{"left", array({1})}, {"right", array({1})}, {"wrong", array({1})}});
      },
      "'wrong' is not an input"));
}

TEST(Predictor, SaysWhatIsWrong) {
  const Model model(testing::batch_norm_net());
  const Symbol& net = model.network.symbol;
  EXPECT_TRUE(fails_with([&] { Predictor(net, model.args); }, "auxiliary states"));
  EXPECT_TRUE(fails_with([&] { Predictor(net, model.args, model.aux, {.max_shapes = 0}); }, "max_shapes"));
  const Predictor predict(net, model.args, model.aux);
  EXPECT_TRUE(fails_with([&] { predict(NDArray()); }, "empty array"));
  EXPECT_TRUE(fails_with([&] { predict(zeros({2, 99, 4, 4})); }, "99"));
  predict(model.input(2));  // goes on after an error
}

TEST(Predictor, ConvertsInputsAndTakesEmptyBatches) {
  const Model model(testing::mlp());
  const Predictor predict(model.network.symbol, model.args, model.aux);
  const NDArray data = full(model.network.inputs.at("data").with(0, 2), 1);
  EXPECT_TRUE(same_bits(predict(data.astype(DType::uint8))[0], predict(data)[0]));
  EXPECT_EQ(predict(model.input(0))[0].shape()[0], 0);
}

TEST(Predictor, TheServerInTheDocsServes) {
  const std::string example = testing::read_file(testing::source_dir() + "/tests/train/serving_example.inc");
  const std::string page = testing::read_file(testing::source_dir() + "/docs/serving.md");
  const std::string line = "// ----\n";
  ASSERT_NE(example.find(line), std::string::npos);
  EXPECT_NE(page.find(example.substr(example.find(line) + line.size())), std::string::npos);

  const Model model(testing::mlp());
  const Predictor predict(model.network.symbol, model.args, model.aux);
  std::mutex mutex;
  int left = 40, answers = 0;
  const auto next_request = [&]() -> std::optional<NDArray> {
    const std::lock_guard lock(mutex);
    return left-- > 0 ? std::optional(model.input(1 + left % 3)) : std::nullopt;
  };
  const auto answer = [&](const NDArray& scores) {
    const std::lock_guard lock(mutex);
    answers += scores.shape()[0] <= 3;
  };
  std::thread first([&] { serve(predict, next_request, answer); }),
      second([&] { serve(predict, next_request, answer); });
  first.join();
  second.join();
  EXPECT_EQ(answers, 40);
}

}  // namespace
}  // namespace symbind
