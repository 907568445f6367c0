#include "symbind/ops/upsample.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/graph/json.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(UpSampling, RefusesExtentsThatCannotBeCounted) {
  const auto x = Symbol::variable("x"), y = Symbol::variable("y");
  const UpSampling larger{.scale = 1 << 20, .sample_type = "nearest", .num_args = 1};
  const int64_t rows = int64_t{1} << 44;
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(up_sampling({x}, larger, "up"), {{"x", {1, 1, rows, 1}}});
      },
      "[UpSampling up]", "too long", "times 1048576"));
  EXPECT_TRUE(fails_with([&] { invoke(up_sampling, {zeros({0, 1, 1, rows})}, larger); }, "[UpSampling]", "too long"));
  const UpSampling joined{.scale = 1, .sample_type = "nearest", .num_args = 2};
  const Shape channels{1, int64_t{1} << 62, 1, 1};
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(up_sampling({x, y}, joined, "up"), {{"x", channels}, {"y", channels}});
      },
      "[UpSampling up]", "too long"));
  EXPECT_THROW(invoke(up_sampling, {ones({1, 1, 8, 8})}, larger), Error) << "more memory than there is";
}

TEST(UpSampling, MakesTheWeightOfBilinearSampling) {
  const UpSampling twice{.scale = 2, .num_filter = 3, .sample_type = "bilinear"};
  const auto net = up_sampling({Symbol::variable("x")}, twice, "up");
  EXPECT_EQ(net.list_arguments(), (Names{"x", "up_weight"}));
  EXPECT_EQ(net.attr_dict().at("up_weight").at("__init__"), R"(["bilinear", {}])");
  const auto shapes = infer_shape(net, {{"x", {2, 3, 4, 5}}});
  EXPECT_EQ(shapes.args[1], (Tuple{3, 1, 4, 4}));
  EXPECT_EQ(shapes.outputs[0], (Tuple{2, 3, 8, 10}));
  // As MXNet writes it: one input is counted, two are there.
  EXPECT_EQ(from_json(to_json(net), "up.json").list_arguments(), net.list_arguments());
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"x", {2, 4, 4, 5}}}); }, "[UpSampling up]", "(2,4,4,5)"));
  EXPECT_TRUE(
      fails_with([&] { up_sampling({Symbol::variable("x")}, {.scale = 2, .sample_type = "bilinear"}); }, "num_filter"));
}

}  // namespace
}  // namespace symbind::testing
