#include "symbind/ops/gather.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using Floats = std::vector<float>;
const NDArray rows = counted({3, 2});

TEST(Take, SaysWhichNumberIsOutside) {
  EXPECT_TRUE(fails_with(
      [] {
        invoke(take, {rows, array({0, 3})}, {.mode = "raise"});
      },
      "[take]", "index 3", "length 3"));
  EXPECT_TRUE(fails_with([] { invoke(take, {rows, array({-1})}, {.mode = "raise"}); }, "index -1"));
  EXPECT_EQ(invoke(take, {rows, array({-1, 9})}, {})[0].to_vector<float>(), (Floats{1, 2, 5, 6}));
  EXPECT_EQ(invoke(take, {rows, array({-1, 4})}, {.mode = "wrap"})[0].to_vector<float>(), (Floats{5, 6, 3, 4}));
}

TEST(Embedding, AddsTheGradientsOfRepeatedRows) {
  const auto net = embedding(Symbol::variable("data"), {.input_dim = 3, .output_dim = 2}, "emb");
  EXPECT_EQ(net.list_arguments(), (Names{"data", "emb_weight"}));
  auto executor = simple_bind(net, cpu(), {{"data", {4}}}, {.type_dict = {{"data", DType::int32}}});
  executor->forward(true, {{"data", array({2, 0, 2, 2})}, {"emb_weight", rows}});
  EXPECT_EQ(executor->outputs()[0].to_vector<float>(), (Floats{5, 6, 1, 2, 5, 6, 5, 6}));
  executor->backward({counted({4, 2})});
  EXPECT_EQ(executor->grad_dict().at("emb_weight").to_vector<float>(), (Floats{3, 4, 0, 0, 13, 16}));
}

TEST(Embedding, SumsManySmallGradientsInHalfPrecision) {
  const auto net = embedding(Symbol::variable("data"), {.input_dim = 1, .output_dim = 1}, "emb");
  auto executor = simple_bind(net, cpu(), {{"data", {4096}}}, {.type_dict = {{"emb_weight", DType::float16}}});
  executor->forward(true);
  executor->backward({ones({4096, 1}, cpu(), DType::float16)});
  EXPECT_EQ(executor->grad_dict().at("emb_weight").item(), 4096);  // one by one it would stop at 2048
}

TEST(GatherNd, CountsFromEitherEndAndRefusesWhatIsOutside) {
  EXPECT_EQ(gather_nd(rows, array<double>({-1, 0, 1, -2}, {2, 2})).to_vector<float>(), (Floats{6, 1}));
  EXPECT_TRUE(fails_with([] { gather_nd(rows, array<double>({3}, {1, 1})); }, "[gather_nd]", "index 3", "axis 0"));
  EXPECT_TRUE(fails_with([] { gather_nd(rows, zeros({3, 1})); }, "indices has 3 rows"));
}

TEST(FillElement, ReplacesOneElementOfEachRow) {
  EXPECT_EQ(fill_element_0index(rows, array({7, 8, 9}), array({0, 1, 0})).to_vector<float>(),
            (Floats{7, 2, 3, 8, 9, 6}));
}

TEST(Where, NeedsAConditionThatFits) {
  EXPECT_EQ(where(array({0, 1, 0}), rows, rows * -1.0).to_vector<float>(), (Floats{-1, -2, 3, 4, -5, -6}));
  EXPECT_TRUE(fails_with([] { where(array({0, 1}), rows, rows); }, "[where]", "condition has shape (2,)", "(3,)"));
}

// What is beyond the numbers of an axis is clipped to the nearer end, however far; NaN is the first.
TEST(Clipping, OfInfiniteAndHugeIndicesFindsTheNearerEnd) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const NDArray values = array({10, 20, 30});
  for (const DType type : {DType::float32, DType::float64, DType::bfloat16}) {
    SCOPED_TRACE(join(type));
    const NDArray indices = array({inf, 1e30, -1e30, -inf, nan, 1}, cpu(), type);
    const std::vector<double> expected{30, 30, 10, 10, 10, 20};
    EXPECT_EQ(invoke("take", {values, indices}, {{"mode", "clip"}})[0].to_vector<double>(), expected);
    const NDArray weight = array({10, 20, 30}).reshape({3, 1});
    EXPECT_EQ(invoke(embedding, {indices, weight}, {.input_dim = 3, .output_dim = 1})[0].to_vector<double>(), expected);
    const NDArray table =
        array<double>({10, 20, 30, 10, 20, 30, 10, 20, 30, 10, 20, 30, 10, 20, 30, 10, 20, 30}, {6, 3});
    EXPECT_EQ(invoke(pick, {table, indices}, {.mode = "clip"})[0].to_vector<double>(), expected);
    EXPECT_EQ(invoke(batch_take, {table, indices})[0].to_vector<double>(), expected);
    EXPECT_TRUE(fails_with([&] { invoke("take", {values, indices}, {{"mode", "raise"}}); }, "outside"));
  }
}

}  // namespace
}  // namespace symbind::testing
