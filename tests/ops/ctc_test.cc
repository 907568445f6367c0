#include "symbind/ops/ctc.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

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

}  // namespace
}  // namespace symbind::testing
