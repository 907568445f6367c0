#include "symbind/ops/boxes.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

NDArray numbers(const std::vector<double>& values, const Shape& shape) { return array(values, shape); }

const double nan = std::numeric_limits<double>::quiet_NaN();

TEST(BoxNMS, DropsScoresOfNaN) {
  const NDArray data = numbers({0, nan, 0, 0, 1, 1, 0, 0.5, 0, 0, 1, 1}, {2, 6});
  EXPECT_EQ(invoke(box_nms, {data}, {})[0].to_vector<double>(),
            (std::vector<double>{0, 0.5, 0, 0, 1, 1, -1, -1, -1, -1, -1, -1}));
}

TEST(BoxNMS, KeepsTheFirstOfEqualScores) {
  const NDArray data = numbers({1, 0.5, 0, 0, 1, 1, 2, 0.5, 0, 0, 1, 1}, {2, 6});
  EXPECT_EQ(invoke(box_nms, {data}, {})[0].to_vector<double>()[0], 1);
}

TEST(BoxNMS, SaysWhatIsWrong) {
  const auto with = [](const BoxNMS& params) {
    return [params] { infer_shape(box_nms(Symbol::variable("x"), params, "nms"), {{"x", {2, 3, 6}}}); };
  };
  EXPECT_EQ(error_of(with({})), "");
  EXPECT_TRUE(fails_with(with({.coord_start = 3}), "[_contrib_box_nms nms]", "coord_start", "(2,3,6)"));
  EXPECT_TRUE(fails_with(with({.score_index = 6}), "score_index"));
  EXPECT_TRUE(fails_with(with({.id_index = 9}), "id_index"));
  EXPECT_TRUE(fails_with([] { box_nms(Symbol::variable("x"), {.in_format = "corners"}); }, "in_format", "corner"));
  EXPECT_TRUE(fails_with(
      [] {
        infer_shape(box_nms(Symbol::variable("x"), BoxNMS{}), {{"x", {6}}});
      },
      "two or more axes"));
}

// MXNet matches one pair more than topk.
TEST(BipartiteMatching, MatchesNoMorePairsThanAskedFor) {
  const NDArray data = numbers({0.5, 0.6, 0.1, 0.2, 0.3, 0.4}, {3, 2});
  const auto one = invoke(bipartite_matching, {data}, {.threshold = 0, .topk = 1});
  EXPECT_EQ(one[0].to_vector<double>(), (std::vector<double>{1, -1, -1}));
  EXPECT_EQ(one[1].to_vector<double>(), (std::vector<double>{-1, 0}));
}

TEST(BipartiteMatching, MatchesNoScoresOfNaN) {
  const auto found = invoke(bipartite_matching, {numbers({nan, 0.5, nan, nan}, {2, 2})}, {.threshold = 0});
  EXPECT_EQ(found[0].to_vector<double>(), (std::vector<double>{1, -1}));
}

TEST(BoxEncode, TakesMatchesOutOfRangeForTheFirstBox) {
  const NDArray anchors = numbers({0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1}, {1, 3, 4});
  const auto codes = invoke(box_encode,
                            {ones({1, 3}), numbers({-5, 1e30, nan}, {1, 3}), anchors,
                             numbers({0, 0, 1, 1, 5, 5, 9, 9}, {1, 2, 4}), zeros({4}), ones({4})},
                            {});
  for (const double value : codes[0].to_vector<double>()) EXPECT_EQ(value, 0);
}

TEST(BoxIOU, SaysWhichBoxesAreWrong) {
  const auto net = box_iou(Symbol::variable("a"), Symbol::variable("b"), BoxIOU{}, "iou");
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"a", {3, 4}}, {"b", {2, 5}}}); }, "[_contrib_box_iou iou]", "rhs"));
  EXPECT_EQ(infer_shape(net, {{"a", {3, 4}}, {"b", {2, 5, 4}}}).outputs[0], (std::vector<int64_t>{3, 2, 5}));
}

}  // namespace
}  // namespace symbind::testing
