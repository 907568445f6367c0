#include "symbind/ops/ctc.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/loss.h"
#include "symbind/ops/softmax.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

using Numbers = std::vector<double>;

TEST(CTCLoss, OfEqualScoresCountsTheAlignments) {
  // Of the 27 paths of three steps over three classes, 1 emits nothing, 6 emit the label 1, 5 the labels 1 2.
  const NDArray data = zeros({3, 3, 3});
  const auto losses = ctc_loss(data, array(Numbers{0, 0, 1, 0, 1, 2}, {3, 2})).to_vector<double>();
  EXPECT_NEAR(losses[0], std::log(27.0 / 1), 1e-5);
  EXPECT_NEAR(losses[1], std::log(27.0 / 6), 1e-5);
  EXPECT_NEAR(losses[2], std::log(27.0 / 5), 1e-5);
}

TEST(CTCLoss, OfLabelsThatHaveNoAlignmentIsZeroAndSoIsItsGradient) {
  const Symbol net = ctc_loss(Symbol::variable("data"), Symbol::variable("label"));
  const auto executor =
      bind(net, cpu(), NamedArrays{{"data", zeros({2, 1, 3})}, {"label", array(Numbers{1, 1}, {1, 2})}},
           {.args_grad = NamedArrays{{"data", full({2, 1, 3}, 7)}}});
  EXPECT_EQ(executor->forward(true)[0].to_vector<double>(), (Numbers{0}));
  executor->backward({array({1})});
  EXPECT_EQ(executor->grad_dict().at("data").to_vector<double>(), Numbers(6, 0));
}

TEST(CTCLoss, LosesNothingOverManySteps) {
  // Every step is certain: the loss of a path of thousands of steps is that of its single uncertain one.
  const int64_t steps = 4000;
  std::vector<double> scores;
  for (int64_t t = 0; t < steps; ++t) {
    scores.push_back(t == 0 ? 0 : 60);
    scores.push_back(0);
  }
  const NDArray loss = ctc_loss(array(scores, {steps, 1, 2}), array(Numbers{0}, {1, 1}));
  EXPECT_NEAR(loss.to_vector<double>()[0], std::log(2.0), 1e-4);
}

TEST(CTCLoss, HasItsGradientWhereScoresAreFarApart) {
  const NDArray data = random_array({6, 2, 4}, 3, -30, 30, DType::float64);
  EXPECT_TRUE(check_gradient(ctc_loss(Symbol::variable("data"), Symbol::variable("label")),
                             {{"data", data}, {"label", array(Numbers{1, 3, 2, 0}, {2, 2})}}, {.skip = {"label"}}));
}

TEST(CTCLoss, RefusesLabelsThatAreNoClassesAndLengthsThatDoNotFit) {
  const NDArray data = zeros({4, 2, 3});
  const auto tried = [&](std::vector<NDArray> more, CTCLoss params) {
    more.insert(more.begin(), data);
    ctc_loss(more, params);
  };
  EXPECT_TRUE(fails_with(
      [&] {
        tried({array(Numbers{1, 3, 1, 0}, {2, 2})}, {});
      },
      "label 3 at position 1 of sequence 0"));
  EXPECT_TRUE(fails_with([&] { tried({array(Numbers{1, -1, 1, 0}, {2, 2})}, {}); }, "label -1 at position 1"));
  EXPECT_TRUE(fails_with(
      [&] {
        tried({array(Numbers{0, 2, 1, -1}, {2, 2})}, {.blank_label = "last"});
      },
      "label 2 at position 1", "the blank is class 2 of 3"));
  EXPECT_TRUE(fails_with(
      [&] {
        tried({array(Numbers{1, 2, 1, 0}, {2, 2}), array({5, 4})}, {.use_data_lengths = true});
      },
      "data_lengths 5 of sequence 0 is not between 0 and 4"));
  EXPECT_TRUE(fails_with(
      [&] {
        tried({array(Numbers{1, 2, 1, 0}, {2, 2}), array({2, -1})}, {.use_label_lengths = true});
      },
      "label_lengths -1 of sequence 1"));
}

TEST(CTCLoss, InfersTheBatchFromAnyOfItsArrays) {
  const Symbol net = ctc_loss(Inputs({{"data", Symbol::variable("data")}}), {.use_label_lengths = true}, "ctc");
  const auto shapes = infer_shape(net, {{"data", {6, 4, 5}}, {"ctc_label", {0, 3}}});
  EXPECT_EQ(shapes.outputs[0], (std::vector<int64_t>{4}));
  EXPECT_EQ(shapes.args[1], (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(shapes.args[2], (std::vector<int64_t>{4}));
}

TEST(WarpCTC, IsASoftmaxWithTheGradientOfCTCLoss) {
  const int64_t steps = 5, batch = 2, classes = 4;
  const NDArray data = random_array({steps * batch, classes}, 1);
  for (const DType type : {DType::int32, DType::float32}) {
    const NDArray label = array(Numbers{1, 3, 2, 2, 0, 0}, {batch * 3}).astype(type);
    const Symbol net = warp_ctc(Symbol::variable("data"), Symbol::variable("label"),
                                {.label_length = 3, .input_length = steps}, "ctc");
    EXPECT_EQ(net.list_outputs(), std::vector<std::string>{"ctc_output"});
    const auto executor = simple_bind(net, cpu(), {{"data", data.shape()}}, {.type_dict = {{"label", type}}});
    EXPECT_EQ(executor->arg_dict().at("label").shape(), label.shape());
    executor->forward(true, {{"data", data}, {"label", label}});
    EXPECT_TRUE(all_close(executor->outputs()[0], softmax(data), {1e-6, 1e-6}));
    executor->backward();
    const auto losses =
        bind(make_loss(ctc_loss(Symbol::variable("data"), Symbol::variable("label"))), cpu(),
             NamedArrays{{"data", data.reshape({steps, batch, classes})}, {"label", label.reshape({batch, 3})}},
             {.args_grad = NamedArrays{{"data", zeros({steps, batch, classes})}}});
    losses->forward(true);
    losses->backward();
    EXPECT_TRUE(all_close(executor->grad_dict().at("data"),
                          losses->grad_dict().at("data").reshape({steps * batch, classes}), {1e-6, 1e-6}));
  }
}

TEST(WarpCTC, RefusesRowsThatAreNoSteps) {
  const Symbol net =
      warp_ctc(Symbol::variable("data"), Symbol::variable("label"), {.label_length = 3, .input_length = 5}, "ctc");
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"data", {11, 4}}}); }, "[WarpCTC ctc]", "input_length 5", "(11,4)"));
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"data", {10, 4}}, {"label", {7}}}); }, "label"));
}

}  // namespace
}  // namespace symbind::testing
