#include "symbind/train/rnn_cell.h"

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
  EXPECT_TRUE(fails_with([&] { fused.unpack_weights({{"lstm_parameters", zeros({17})}}); }, "no number of parameters"));
}

}  // namespace
}  // namespace symbind::testing
