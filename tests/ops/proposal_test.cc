#include "symbind/ops/proposal.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const Proposal one_anchor{.rpn_post_nms_top_n = 3,
                          .rpn_min_size = 0,
                          .scales = {1},
                          .ratios = {1},
                          .feature_stride = 8,
                          .output_score = true};

NDArray numbers(const std::vector<double>& values, const Shape& shape) { return array(values, shape); }

// The scores of two positions; the first channel is the background.
NDArray scores(double first, double second) { return numbers({0, 0, first, second}, {1, 2, 1, 2}); }

TEST(Proposal, SortsBoxesByScoreAndRepeatsThem) {
  const auto found =
      invoke(proposal, {scores(0.25, 0.75), zeros({1, 4, 1, 2}), numbers({8, 16, 1}, {1, 3})}, one_anchor);
  EXPECT_EQ(found[0].to_vector<double>(), (std::vector<double>{0, 8, 0, 15, 7, 0, 0, 0, 7, 7, 0, 8, 0, 15, 7}));
  EXPECT_EQ(found[1].to_vector<double>(), (std::vector<double>{0.75, 0.25, 0.75}));
}

TEST(Proposal, PutsScoresOfNaNLast) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto found = invoke(proposal, {scores(nan, 0.5), zeros({1, 4, 1, 2}), numbers({8, 16, 1}, {1, 3})}, one_anchor);
  EXPECT_EQ(found[0].to_vector<double>()[1], 8);
  EXPECT_EQ(found[1].to_vector<double>()[0], 0.5);
}

TEST(Proposal, InfersEveryShapeFromTheOffsets) {
  const auto net = multi_proposal({Symbol::variable("p"), Symbol::variable("b"), Symbol::variable("i")},
                                  {Proposal{.scales = {8}, .output_score = true}});
  const auto shapes = infer_shape(net, {{"b", {4, 12, 5, 6}}});
  EXPECT_EQ(shapes.args, (std::vector<std::vector<int64_t>>{{4, 6, 5, 6}, {4, 12, 5, 6}, {4, 3}}));
  EXPECT_EQ(shapes.outputs, (std::vector<std::vector<int64_t>>{{1200, 5}, {1200, 1}}));
}

TEST(Proposal, SaysWhatIsWrong) {
  const auto net = proposal({Symbol::variable("p"), Symbol::variable("b"), Symbol::variable("i")}, one_anchor, "rpn");
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"p", {2, 2, 3, 3}}}); }, "[_contrib_Proposal rpn]", "cls_prob"));
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"p", {1, 4, 3, 3}}}); }, "cls_prob", "(1,4,3,3)"));
  EXPECT_TRUE(fails_with([] { proposal(Symbol::variable("p"), {.scales = {}}); }, "scales"));
  EXPECT_TRUE(fails_with([] { proposal(Symbol::variable("p"), {.ratios = {1, -1}}); }, "ratios"));
  EXPECT_TRUE(fails_with([] { proposal(Symbol::variable("p"), {.rpn_post_nms_top_n = -1}); }, "rpn_post_nms_top_n"));
}

}  // namespace
}  // namespace symbind::testing
