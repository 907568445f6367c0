#include "symbind/ops/rnn.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const auto data = Symbol::variable("data");

RNN lstm(int64_t hidden = 3, int64_t layers = 1) {
  return {.state_size = hidden, .num_layers = layers, .mode = rnn_mode::lstm};
}

ExecutorPtr bound(const RNN& params, const Shape& shape) {
  auto executor = simple_bind(rnn(data, params, "r"), cpu(), {{"data", shape}});
  uint64_t number = 3;
  for (auto [name, array] : executor->arg_dict())
    random_array(array.shape(), ++number, -0.75, 0.75, array.dtype()).copyto(array);
  return executor;
}

TEST(Rnn, NamesItsInputsAndOutputsAsMxnetDoes) {
  RNN params = lstm();
  EXPECT_EQ(rnn(data, params, "r").list_outputs(), (Names{"r_output"}));
  params.state_outputs = true;
  const Symbol net = rnn(data, params, "r");
  EXPECT_EQ(net.list_arguments(), (Names{"data", "r_parameters", "r_state", "r_state_cell"}));
  EXPECT_EQ(net.list_outputs(), (Names{"r_output", "r_state_output", "r_statecell_output"}));
  const RNN gru{.state_size = 3, .num_layers = 1, .mode = "gru", .state_outputs = true, .use_sequence_length = true};
  EXPECT_EQ(rnn(data, gru, "g").list_arguments(), (Names{"data", "g_parameters", "g_state", "g_sequence_length"}));
  EXPECT_EQ(rnn(data, gru, "g").list_outputs(), (Names{"g_output", "g_state_output"}));
}

TEST(Rnn, InfersParametersAndStatesFromTheData) {
  RNN params = lstm(3, 2);
  params.bidirectional = true;
  const auto shapes = infer_shape(rnn(data, params, "r"), {{"data", {5, 2, 4}}});
  EXPECT_EQ(shapes.args[1], (std::vector<int64_t>{480}));
  EXPECT_EQ(shapes.args[2], (std::vector<int64_t>{4, 2, 3}));
  EXPECT_EQ(shapes.args[3], (std::vector<int64_t>{4, 2, 3}));
  EXPECT_EQ(shapes.outputs[0], (std::vector<int64_t>{5, 2, 6}));
}

// The parts of an array one after the other: where each begins, and how long it is.
void expect_whole(std::vector<std::pair<int64_t, int64_t>> parts, int64_t count) {
  std::sort(parts.begin(), parts.end());
  int64_t position = 0;
  for (const auto& [begin, length] : parts) {
    EXPECT_EQ(begin, position);
    position = begin + length;
  }
  EXPECT_EQ(position, count);
}

TEST(Rnn, PartsOfItsVectorsAreOneAfterTheOther) {
  for (const char* mode : {"rnn_tanh", "lstm", "gru"})
    for (const bool projected : {false, true}) {
      if (projected && mode != std::string("lstm")) continue;
      RNN params{.state_size = 5, .num_layers = 3, .bidirectional = true, .mode = mode, .p = 0.5};
      if (projected) params.projection_size = 2;
      const RnnSize size = size_of(params, {4, 3, 7});
      std::vector<std::pair<int64_t, int64_t>> parameters, reserve;
      for (int64_t layer = 0; layer < 3; ++layer) {
        for (int64_t direction = 0; direction < 2; ++direction) {
          const auto of = size.parameters(layer, direction);
          parameters.emplace_back(of.i2h_weight, size.gate_width() * size.input_of(layer));
          parameters.emplace_back(of.h2h_weight, size.gate_width() * size.output);
          if (projected) parameters.emplace_back(of.h2r_weight, size.output * size.hidden);
          parameters.emplace_back(of.i2h_bias, size.gate_width());
          parameters.emplace_back(of.h2h_bias, size.gate_width());
          const auto kept = size.reserve(layer, direction);
          reserve.emplace_back(kept.gates, 12 * size.gate_width());
          reserve.emplace_back(kept.states, 15 * size.output);
          if (size.is_lstm) reserve.emplace_back(kept.cells, 15 * size.hidden);
          if (projected) reserve.emplace_back(kept.projected, 12 * size.hidden);
          if (size.is_gru) reserve.emplace_back(kept.recurrence, 12 * size.hidden);
        }
        if (layer == 0) continue;
        reserve.emplace_back(size.layer_input(layer), 12 * size.output_width());
        reserve.emplace_back(size.mask(layer), 12 * size.output_width());
      }
      expect_whole(parameters, size.parameter_count());
      expect_whole(reserve, size.reserve_count());
    }
}

TEST(Rnn, InfersTheDataFromParametersAndStates) {
  const auto shapes = infer_shape(
      rnn(data, lstm(), "r"), {{"data", {5, 0, 0}}, {"r_parameters", {4 * 3 * (7 + 3 + 2)}}, {"r_state", {1, 2, 3}}});
  EXPECT_EQ(shapes.args[0], (std::vector<int64_t>{5, 2, 7}));
}

TEST(Rnn, SaysWhatDoesNotFit) {
  const auto infer = [](const Symbol& net, const std::map<std::string, Shape>& known) { infer_shape(net, known); };
  EXPECT_TRUE(fails_with([&] { infer(rnn(data, lstm(), "r"), {{"data", {3, 4}}}); }, "(steps, batch, features)"));
  EXPECT_TRUE(fails_with(
      [&] {
        infer(rnn(data, lstm(), "r"), {{"data", {5, 2, 0}}, {"r_parameters", {145}}});
      },
      "no number of features"));
  EXPECT_TRUE(fails_with(
      [&] {
        infer(rnn(data, lstm(), "r"), {{"data", {5, 2, 7}}, {"r_parameters", {100}}});
      },
      "parameters"));
  EXPECT_TRUE(fails_with([] { rnn(data, {.state_size = 3, .num_layers = 1, .mode = "rnn"}); }, "mode"));
  RNN params;
  params.state_size = 3;
  params.mode = "gru";
  EXPECT_TRUE(fails_with([&] { rnn(data, params); }, "num_layers must be given"));
  params.num_layers = 1;
  params.projection_size = 2;
  EXPECT_TRUE(fails_with([&] { rnn(data, params); }, "projection_size is for mode 'lstm'"));
  params = lstm();
  params.lstm_state_clip_min = 1;
  EXPECT_TRUE(fails_with([&] { rnn(data, params); }, "together"));
  params.lstm_state_clip_max = 0;
  EXPECT_TRUE(fails_with([&] { rnn(data, params); }, "above lstm_state_clip_max"));
}

TEST(Rnn, ExtentsBeyondAllMemoryAreRefused) {
  EXPECT_TRUE(fails_with(
      [] {
        infer_shape(rnn(data, lstm(int64_t{1} << 40, int64_t{1} << 40), "r"), {{"data", {5, 2, 3}}});
      },
      "too large"));
}

TEST(Rnn, LengthsThatDoNotFitAreRefused) {
  RNN params{.state_size = 3, .num_layers = 1, .mode = "gru", .use_sequence_length = true};
  auto executor = bound(params, {4, 2, 3});
  NDArray lengths = executor->arg_dict().at("r_sequence_length");
  lengths.copy_from(std::vector<float>{4, 5});
  EXPECT_TRUE(fails_with([&] { executor->forward(false); }, "sequence_length 5 of sequence 1"));
  lengths.copy_from(std::vector<float>{-1, 4});
  EXPECT_TRUE(fails_with([&] { executor->forward(false); }, "sequence_length -1 of sequence 0"));
  lengths.copy_from(std::vector<float>{0, 4});
  const auto y = executor->forward(false)[0].to_vector<double>();
  for (size_t step = 0; step < 4; ++step)
    for (size_t j = 0; j < 3; ++j) EXPECT_EQ(y[step * 6 + j], 0) << "a sequence without steps has no outputs";
}

TEST(Rnn, DropsBetweenLayersInTrainingAlone) {
  RNN params = lstm(16, 2);
  params.p = 0.5;
  auto executor = bound(params, {5, 4, 3});
  seed(1);
  const auto first = executor->forward(true)[0].to_vector<double>();
  const auto second = executor->forward(true)[0].to_vector<double>();
  EXPECT_NE(first, second);
  seed(1);
  EXPECT_EQ(executor->forward(true)[0].to_vector<double>(), first);
  const auto tested = executor->forward(false)[0].to_vector<double>();
  EXPECT_EQ(executor->forward(false)[0].to_vector<double>(), tested);
  params.p = 0;
  EXPECT_EQ(bound(params, {5, 4, 3})->forward(true)[0].to_vector<double>(), tested);
}

TEST(Rnn, InferenceDrawsNoRandomNumbers) {
  RNN params = lstm(4, 2);
  params.p = 0.5;
  auto executor = bound(params, {2, 3, 4});
  const RandomCursor before = Device::get(cpu()).random().peek();
  executor->forward(false);
  EXPECT_EQ(Device::get(cpu()).random().peek().draw, before.draw);
  executor->forward(true);
  EXPECT_EQ(Device::get(cpu()).random().peek().draw, before.draw + 1);
}

TEST(Rnn, DropsNothingAfterTheLastLayer) {
  RNN params = lstm(16, 1);
  params.p = 0.5;
  auto executor = bound(params, {5, 4, 3});
  EXPECT_EQ(executor->forward(true)[0].to_vector<double>(), executor->forward(false)[0].to_vector<double>());
}

// The mean over many masks is near the layers without dropout, where they are almost linear.
TEST(Rnn, KeepsTheExpectationOfWhatItDrops) {
  RNN params{.state_size = 4, .num_layers = 2, .mode = "rnn_tanh", .p = 0.25};
  auto executor = bound(params, {1, 2000, 3});
  for (auto [name, array] : executor->arg_dict())
    if (name != "data") random_array(array.shape(), 5, 0, 0.1).copyto(array);
  NDArray(executor->arg_dict().at("data")).fill(0.5);
  const auto mean = [&](bool is_train) {
    double sum = 0;
    for (const double y : executor->forward(is_train)[0].to_vector<double>()) sum += std::abs(y);
    return sum;
  };
  seed(3);
  EXPECT_NEAR(mean(true) / mean(false), 1, 0.02);
}

TEST(Rnn, TheGradientPassesTheSameMasks) {
  RNN params{.state_size = 5, .num_layers = 2, .mode = "gru", .p = 0.5};
  const Shape shape{2, 3, 4};
  auto executor =
      simple_bind(rnn(data, params, "r"), cpu(), {{"data", shape}}, {.type_dict = {{"data", DType::float64}}});
  uint64_t number = 0;
  for (auto [name, array] : executor->arg_dict())
    random_array(array.shape(), ++number, -0.75, 0.75, array.dtype()).copyto(array);
  const auto loss = [&] {
    seed(7);
    double sum = 0;
    for (const double y : executor->forward(true)[0].to_vector<double>()) sum += y;
    return sum;
  };
  loss();
  executor->backward(std::vector<NDArray>{full({2, 3, 5}, 1, cpu(), DType::float64)});
  for (const char* name : {"data", "r_parameters", "r_state"}) {
    NDArray array = executor->arg_dict().at(name);
    const auto gradient = executor->grad_dict().at(name).to_vector<double>();
    auto values = array.to_vector<double>();
    for (size_t i = 0; i < values.size(); i += 5) {
      const double old = values[i], step = 1e-5;
      values[i] = old + step;
      array.copy_from(values);
      const double above = loss();
      values[i] = old - step;
      array.copy_from(values);
      EXPECT_NEAR((above - loss()) / (2 * step), gradient[i], 1e-6) << name << " " << i;
      values[i] = old;
      array.copy_from(values);
    }
  }
}

TEST(Rnn, ClipsCellsThatAreNoNumbersWhereAsked) {
  RNN params = lstm(2);
  params.state_outputs = true;
  params.lstm_state_clip_min = -1;
  params.lstm_state_clip_max = 1;
  for (const bool clip_nan : {false, true}) {
    params.lstm_state_clip_nan = clip_nan;
    auto executor = bound(params, {1, 1, 2});
    NDArray(executor->arg_dict().at("r_state_cell")).fill(std::nan(""));
    const auto cells = executor->forward(false)[2].to_vector<double>();
    for (const double cell : cells) EXPECT_TRUE(clip_nan ? cell == -1 : std::isnan(cell)) << cell;
  }
}

TEST(Rnn, DoesNotDependOnTheSizeOfTheBatch) {
  for (const char* mode : {"rnn_tanh", "lstm", "gru"}) {
    const RNN params{.state_size = 37, .num_layers = 2, .bidirectional = true, .mode = mode};
    auto whole = bound(params, {6, 21, 5}), part = bound(params, {6, 1, 5});
    NDArray parameters = part->arg_dict().at("r_parameters");
    whole->arg_dict().at("r_parameters").copyto(parameters);
    for (const auto& executor : {whole, part})
      for (auto [name, array] : executor->arg_dict())
        if (name.starts_with("r_state")) array.fill(0.25);
    const auto x = whole->arg_dict().at("data").to_vector<float>();
    std::vector<float> one;
    for (size_t t = 0; t < 6; ++t) one.insert(one.end(), x.begin() + (t * 21 + 17) * 5, x.begin() + (t * 21 + 18) * 5);
    part->arg_dict().at("data").copy_from(one);
    const auto all = whole->forward(false)[0].to_vector<float>(), alone = part->forward(false)[0].to_vector<float>();
    for (size_t t = 0; t < 6; ++t)
      for (size_t j = 0; j < 74; ++j)
        EXPECT_NEAR(alone[t * 74 + j], all[(t * 21 + 17) * 74 + j], 1e-5) << mode << " " << t << " " << j;
  }
}

}  // namespace
}  // namespace symbind::testing
