#include "symbind/train/rnn_cell.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/elementwise.h"
#include "symbind/train/rnn_checkpoint.h"

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

namespace symbind::testing {
namespace {

using Strings = std::vector<std::string>;

const auto data = Symbol::variable("data");

// Outputs of a network for random arguments, those in `given` as they are.
std::vector<double> run(const Symbol& net, const Shape& shape, const NamedArrays& given = {}) {
  auto executor = simple_bind(net, cpu(), {{"data", shape}}, {.grad_req = "null"});
  for (auto [name, array] : executor->arg_dict()) {
    const auto found = given.find(name);
    if (found != given.end())
      found->second.copyto(array);
    else
      random_array(array.shape(), name.size(), -0.5, 0.5).copyto(array);
  }
  return executor->forward(false)[0].to_vector<double>();
}

NamedArrays random_arguments(const Symbol& net, const Shape& shape) {
  NamedArrays found;
  uint64_t number = 0;
  auto executor = simple_bind(net, cpu(), {{"data", shape}}, {.grad_req = "null"});
  for (const auto& [name, array] : executor->arg_dict()) found[name] = random_array(array.shape(), ++number, -0.5, 0.5);
  return found;
}

TEST(RnnCell, UnrollsIntoStepsOrOneSymbol) {
  LSTMCell cell(4, "l_");
  const RNNUnrolled merged = cell.unroll(3, data, {.merge_outputs = true});
  EXPECT_EQ(merged.merged().list_arguments(),
            (Strings{"data", "l_i2h_weight", "l_i2h_bias", "l_h2h_weight", "l_h2h_bias"}));
  EXPECT_EQ(infer_shape(merged.merged(), {{"data", {2, 3, 5}}}).outputs[0], (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(cell.unroll(3, data).steps().size(), 3u);
  EXPECT_EQ(merged.states.size(), 2u);
  EXPECT_TRUE(fails_with([&] { merged.steps(); }, "merge_outputs = false"));
}

TEST(RnnCell, FusedAndUnfusedLayersAgree) {
  for (const char* mode : {"rnn_relu", "rnn_tanh", "lstm", "gru"})
    for (const bool bidirectional : {false, true}) {
      FusedRNNCell fused(3, {.num_layers = 2, .mode = mode, .bidirectional = bidirectional}, "f_");
      const auto stack = fused.unfuse();
      const Symbol one = fused.unroll(4, data, {.merge_outputs = true}).merged();
      const Symbol other = stack->unroll(4, data, {.merge_outputs = true}).merged();
      const NamedArrays packed = random_arguments(one, {2, 4, 5});
      const NamedArrays unpacked = stack->pack_weights(fused.unpack_weights(packed));
      const auto expected = run(one, {2, 4, 5}, packed), actual = run(other, {2, 4, 5}, unpacked);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << mode << " " << i;
      const NamedArrays again = fused.pack_weights(fused.unpack_weights(packed));
      EXPECT_EQ(again.at("f_parameters").to_vector<float>(), packed.at("f_parameters").to_vector<float>());
    }
}

// h' = x + h
class Sum final : public BaseRNNCell {
 public:
  explicit Sum(std::string prefix) : BaseRNNCell(std::move(prefix)) {}
  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override {
    const Symbol next = elemwise_add(input, states[0], {}, next_step_name() + "out");
    return {next, {next}};
  }
  std::vector<RNNStateInfo> state_info() const override { return {{{0, 2}, "NC"}}; }
};

TEST(RnnCell, ACellOfOnesOwnWorksInsideOthers) {
  SequentialRNNCell stack;
  stack.add(std::make_shared<Sum>("a_"));
  stack.add(std::make_shared<ResidualCell>(std::make_shared<Sum>("b_")));
  const Symbol net = stack.unroll(3, data, {.layout = "TNC", .merge_outputs = true}).merged();
  EXPECT_EQ(run(net, {3, 1, 2}, {{"data", array(std::vector<double>{1, 10, 1, 10, 1, 10}, {3, 1, 2})}}),
            (std::vector<double>{2, 20, 5, 50, 9, 90}));
}

const NamedArrays three_steps{{"data", array(std::vector<double>{1, 10, 2, 20, 3, 30}, {3, 1, 2})}};

TEST(RnnCell, BothDirectionsEndWhereTheOtherBegins) {
  BidirectionalCell cell(std::make_shared<Sum>("a_"), std::make_shared<Sum>("b_"));
  const std::vector<std::vector<double>> expected{{1, 10, 6, 60}, {3, 30, 5, 50}, {6, 60, 3, 30}};
  const RNNUnrolled unrolled = cell.unroll(3, data, {.layout = "TNC", .merge_outputs = false});
  ASSERT_EQ(unrolled.steps().size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(unrolled.steps()[i].list_outputs(), Strings{"bi_t" + std::to_string(i) + "_output"});
    EXPECT_EQ(run(unrolled.steps()[i], {3, 1, 2}, three_steps), expected[i]);
  }
  std::vector<double> merged;
  for (const auto& step : expected) merged.insert(merged.end(), step.begin(), step.end());
  const RNNUnrolled at_once = cell.unroll(3, data, {.layout = "TNC", .merge_outputs = true});
  EXPECT_EQ(run(at_once.merged(), {3, 1, 2}, three_steps), merged);
  ASSERT_EQ(at_once.states.size(), 2u);
  for (const Symbol& last : at_once.states) EXPECT_EQ(run(last, {3, 1, 2}, three_steps), (std::vector<double>{6, 60}));
  ASSERT_EQ(at_once.directions.size(), 2u);
  for (const size_t i : {0u, 1u}) {
    EXPECT_EQ(at_once.directions[i].begin, i);
    EXPECT_EQ(at_once.directions[i].end, i + 1);
  }
  EXPECT_EQ(cell.state_info().size(), 2u);
  EXPECT_TRUE(fails_with([&] { cell.step(data, cell.begin_state()); }, "both ends", "use unroll"));
  const auto params = std::make_shared<RNNParams>("shared_");
  const auto with_params = std::make_shared<RNNCell>(4, "tanh", "c_", params);
  EXPECT_TRUE(fails_with([&] { BidirectionalCell(with_params, with_params, params); }, "not to both"));
}

TEST(RnnCell, ResidualsAreAddedToEveryStep) {
  ResidualCell cell(std::make_shared<Sum>("a_"));
  const RNNUnrolled unrolled = cell.unroll(3, data, {.layout = "TNC", .merge_outputs = false});
  const std::vector<std::vector<double>> expected{{2, 20}, {5, 50}, {9, 90}};
  ASSERT_EQ(unrolled.steps().size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(run(unrolled.steps()[i], {3, 1, 2}, three_steps), expected[i]);
  const RNNStep step = cell.step(data, cell.begin_state());
  EXPECT_EQ(run(step.output, {1, 2}, {{"data", array(std::vector<double>{1, 10}, {1, 2})}}),
            (std::vector<double>{2, 20}));
}

// Outputs of three training steps over ones: rows of 200 elements.
std::vector<std::vector<double>> trained(BaseRNNCell& cell) {
  const Symbol net = cell.unroll(3, data, {.layout = "TNC", .merge_outputs = true}).merged();
  const auto executor = simple_bind(net, cpu(), {{"data", {3, 100, 2}}}, {.grad_req = "null"});
  executor->arg_dict().at("data").fill(1);
  const auto all = executor->forward(true)[0].to_vector<double>();
  std::vector<std::vector<double>> rows;
  for (auto at = all.begin(); at != all.end(); at += 200) rows.emplace_back(at, at + 200);
  return rows;
}

TEST(RnnCell, ZoneoutOfOutputsLeavesTheLastOutput) {
  ZoneoutCell cell(std::make_shared<Sum>("a_"), 0.5, 0);
  std::vector<double> last(200, 0);
  double sum = 0;
  for (const std::vector<double>& row : trained(cell)) {
    ++sum;  // the states are not touched
    int kept = 0;
    for (size_t i = 0; i < 200; ++i) {
      EXPECT_TRUE(row[i] == sum || row[i] == last[i]) << row[i];
      kept += row[i] == last[i] ? 1 : 0;
    }
    EXPECT_GT(kept, 50);
    EXPECT_LT(kept, 150);
    last = row;
  }
}

TEST(RnnCell, ZoneoutOfStatesLeavesTheLastState) {
  ZoneoutCell cell(std::make_shared<Sum>("a_"), 0, 0.5);
  const auto rows = trained(cell);
  EXPECT_EQ(rows[0], std::vector<double>(200, 1));
  for (size_t step = 1; step < 3; ++step) {
    int kept = 0;
    for (size_t i = 0; i < 200; ++i) {
      const double state = rows[step][i] - 1, before = rows[step - 1][i] - 1;
      EXPECT_TRUE(state == before || state == before + 1) << state;
      kept += state == before ? 1 : 0;
    }
    EXPECT_GT(kept, 50);
    EXPECT_LT(kept, 150);
  }
}

TEST(RnnCell, ModifiersRefuseCellsWithoutStepsAndHideTheirs) {
  EXPECT_TRUE(fails_with([] { ZoneoutCell(std::make_shared<FusedRNNCell>(3)); }, "unfuse()"));
  const auto both = std::make_shared<BidirectionalCell>(std::make_shared<Sum>("a_"), std::make_shared<Sum>("b_"));
  EXPECT_TRUE(fails_with([&] { ZoneoutCell zoneout(both); }, "modify its cells"));
  EXPECT_TRUE(fails_with([] { ResidualCell(nullptr); }, "a cell is missing"));
  const auto base = std::make_shared<Sum>("a_");
  ResidualCell cell(base);
  const auto hidden = [&] { return fails_with([&] { base->begin_state(); }, "'a_'", "inside a modifier"); };
  EXPECT_TRUE(hidden());
  EXPECT_EQ(cell.begin_state().size(), 1u);
  EXPECT_TRUE(hidden());
  (void)cell.unroll(2, data);
  EXPECT_TRUE(hidden());
  EXPECT_TRUE(fails_with([&] { cell.unroll(0, data); }, "length must be above 0"));
  EXPECT_TRUE(hidden());
}

TEST(RnnCell, DropoutIsForTrainingAndHasNoStates) {
  DropoutCell cell(0.5, "d_");
  EXPECT_TRUE(cell.state_info().empty());
  for (const double wrong : {1., -0.1}) EXPECT_TRUE(fails_with([&] { DropoutCell{wrong}; }, "[0, 1)"));
  for (const bool merge : {false, true}) {
    const RNNUnrolled unrolled = cell.unroll(3, data, {.layout = "TNC", .merge_outputs = merge});
    const Symbol last = merge ? unrolled.merged() : unrolled.steps()[2];
    const auto all = run(last, {3, 1, 2}, three_steps);
    EXPECT_EQ(std::vector(all.end() - 2, all.end()), (std::vector<double>{3, 30}));
    const auto executor = simple_bind(last, cpu(), {{"data", {3, 100, 2}}}, {.grad_req = "null"});
    executor->arg_dict().at("data").fill(1);
    const auto values = executor->forward(true)[0].to_vector<double>();
    const auto zeros = std::count(values.begin(), values.end(), 0.),
               twos = std::count(values.begin(), values.end(), 2.);
    EXPECT_EQ(zeros + twos, static_cast<int64_t>(values.size()));
    EXPECT_GT(zeros, 50);
    EXPECT_GT(twos, 50);
  }
  EXPECT_EQ(DropoutCell(0).step(data, {}).output.list_outputs(), Strings{"data"});
}

TEST(RnnCell, UnrollsIntoTheSameNamesEveryTime) {
  SequentialRNNCell stack;
  stack.add(std::make_shared<GRUCell>(3, "g_"));
  stack.add(std::make_shared<ZoneoutCell>(std::make_shared<LSTMCell>(3, "z_"), 0.1, 0.1));
  stack.add(std::make_shared<BidirectionalCell>(std::make_shared<RNNCell>(3, "tanh", "l_"),
                                                std::make_shared<RNNCell>(3, "tanh", "r_")));
  const auto unrolled = [&] {
    const NameManager fresh;
    return stack.unroll(2, data, {.merge_outputs = true}).merged().tojson();
  };
  const std::string once = unrolled();
  EXPECT_EQ(unrolled(), once);
  EXPECT_NE(once.find("g_t1_out"), std::string::npos);
  const auto states = stack.begin_state();
  EXPECT_TRUE(fails_with([&] { stack.unroll(2, data, {.begin_state = std::vector(states.begin(), states.end() - 1)}); },
                         "states, which are too few"));
}

// The output of two steps over the same input.
Symbol second_of(BaseRNNCell& cell) {
  return cell.unroll(2, std::vector<Symbol>{data, data}, {.merge_outputs = false}).steps()[1];
}

TEST(RnnCell, AConvolutionOfSinglePixelsIsADenseCell) {
  const ConvRNNOptions pixels{
      .h2h_kernel = {1, 1}, .i2h_kernel = {1, 1}, .i2h_pad = {0, 0}, .activation = RNNActivation("tanh")};
  const auto expect_same = [](BaseRNNCell& convolution, BaseRNNCell& dense) {
    const Symbol net = second_of(dense);
    NamedArrays arguments = random_arguments(net, {2, 5});
    const std::vector<double> expected = run(net, {2, 5}, arguments);
    for (auto& [name, each] : arguments)
      if (each.rank() == 2) each = each.reshape({each.shape()[0], each.shape()[1], 1, 1});
    const std::vector<double> actual = run(second_of(convolution), {2, 5, 1, 1}, arguments);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << i;
  };
  const Tuple shape{1, 5, 1, 1};
  ConvRNNCell conv_rnn(shape, 3, pixels, "c_");
  ConvLSTMCell conv_lstm(shape, 3, pixels, "c_");
  ConvGRUCell conv_gru(shape, 3, pixels, "c_");
  RNNCell rnn(3, "tanh", "c_");
  LSTMCell lstm(3, "c_");
  GRUCell gru(3, "c_");
  expect_same(conv_rnn, rnn);
  expect_same(conv_lstm, lstm);
  expect_same(conv_gru, gru);
}

TEST(RnnCell, StatesOfConvolutionsHaveTheExtentOfTheirInputs) {
  ConvRNNOptions options{.i2h_stride = {2, 3}, .i2h_pad = {1, 0}};
  ConvLSTMCell cell({1, 3, 9, 8}, 4, options);
  EXPECT_EQ(cell.state_shape(), (std::vector<Tuple>{{0, 4, 5, 2}, {0, 4, 5, 2}}));
  EXPECT_EQ(infer_shape(second_of(cell), {{"data", {2, 3, 9, 8}}}).outputs[0], (std::vector<int64_t>{2, 4, 5, 2}));
  options.conv_layout = "NHWC";
  EXPECT_EQ(ConvGRUCell({1, 9, 8, 3}, 4, options).state_shape(), (std::vector<Tuple>{{0, 5, 2, 4}}));
}

TEST(RnnCell, SharedParametersAreOneVariable) {
  const auto params = std::make_shared<RNNParams>("shared_");
  SequentialRNNCell stack;
  stack.add(std::make_shared<RNNCell>(4, "tanh", "a_", params));
  stack.add(std::make_shared<RNNCell>(4, "tanh", "b_", params));
  EXPECT_EQ(stack.unroll(2, data, {.merge_outputs = true}).merged().list_arguments().size(), 5u);
  SequentialRNNCell other(params);
  EXPECT_TRUE(fails_with([&] { other.add(std::make_shared<RNNCell>(4, "tanh", "c_", params)); }, "not to both"));
}

TEST(RnnCell, ZoneoutKeepsWhatItDoesNotTakeInTrainingAlone) {
  const auto net = [](double states) {
    ZoneoutCell cell(std::make_shared<GRUCell>(8, "g_"), states, states);
    return cell.unroll(4, data, {.merge_outputs = true}).merged();
  };
  const NamedArrays arguments = random_arguments(net(0), {2, 4, 3});
  EXPECT_EQ(run(net(0.5), {2, 4, 3}, arguments), run(net(0), {2, 4, 3}, arguments));
  auto executor = simple_bind(net(0.5), cpu(), {{"data", {2, 4, 3}}}, {.grad_req = "null"});
  for (auto [name, array] : executor->arg_dict()) arguments.at(name).copyto(array);
  EXPECT_NE(executor->forward(true)[0].to_vector<double>(), run(net(0), {2, 4, 3}, arguments));
}

TEST(RnnCell, CheckpointsHoldSingleGates) {
  const TempDir folder;
  const auto fused = std::make_shared<FusedRNNCell>(3, FusedRNNOptions{.mode = "gru"}, "f_");
  const Symbol net = fused->unroll(2, data, {.merge_outputs = true}).merged();
  NamedArrays arguments = random_arguments(net, {2, 2, 4});
  arguments.erase("data");
  const std::string prefix = folder.file("model");
  do_rnn_checkpoint({fused}, prefix, 2)(1, net, arguments, {});
  EXPECT_TRUE(load_params(prefix, 2).arg_params.contains("f_l0_i2h_r_weight"));
  const Checkpoint loaded = load_rnn_checkpoint({fused}, prefix, 2);
  EXPECT_EQ(loaded.arg_params.at("f_parameters").to_vector<float>(), arguments.at("f_parameters").to_vector<float>());
}

TEST(RnnCell, SaysWhatIsMissing) {
  LSTMCell cell(3);
  EXPECT_TRUE(fails_with([&] { cell.unpack_weights({}); }, "no parameter lstm_i2h_weight"));
  EXPECT_TRUE(fails_with([&] { cell.step(data, {}); }, "needs 2 states, not 0"));
  EXPECT_TRUE(fails_with([] { SequentialRNNCell().add(nullptr); }, "a cell is missing"));
  EXPECT_TRUE(fails_with([] { SequentialRNNCell().unroll(2, data); }, "add a cell"));
  EXPECT_TRUE(fails_with([] { LSTMCell(0); }, "num_hidden must be above 0"));
  EXPECT_TRUE(fails_with([] { ConvLSTMCell({1, 3, 8, 8}, 4, {.h2h_kernel = {2, 2}}); }, "h2h_kernel must be odd"));
  FusedRNNCell fused(3);
  EXPECT_TRUE(fails_with([&] { fused.pack_weights({}); }, "no matrix lstm_l0_i2h_i_weight"));
  EXPECT_TRUE(fails_with([&] { fused.unpack_weights({{"lstm_parameters", zeros({17})}}); }, "match the parameters"));
}

}  // namespace
}  // namespace symbind::testing
