#include "symbind/ops/pool.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/transpose.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");

std::vector<double> pooled(const NDArray& data, const Pooling& params) {
  return pooling(data, params).to_vector<double>();
}

TEST(Pooling, TakesMaximumMeanSumAndNorm) {
  const auto data = array<double>({3, -4, 0, 5, 12, 0}, {1, 1, 6});
  EXPECT_EQ(pooled(data, {.kernel = {2}, .stride = {2}}), (std::vector<double>{3, 5, 12}));
  EXPECT_EQ(pooled(data, {.kernel = {2}, .pool_type = "avg", .stride = {2}}), (std::vector<double>{-0.5, 2.5, 6}));
  EXPECT_EQ(pooled(data, {.kernel = {2}, .pool_type = "sum", .stride = {2}}), (std::vector<double>{-1, 5, 12}));
  EXPECT_EQ(pooled(data, {.kernel = {2}, .pool_type = "lp", .stride = {2}, .p_value = 2}),
            (std::vector<double>{5, 5, 12}));
}

TEST(Pooling, ConventionsDecideHowManyWindowsThereAre) {
  const auto data = counted({1, 1, 6});
  const auto with = [&](const char* convention) {
    return pooled(data, {.kernel = {3}, .pool_type = "avg", .pooling_convention = convention, .stride = {2}});
  };
  EXPECT_EQ(with("valid"), (std::vector<double>{2, 4}));
  EXPECT_EQ(with("full"), (std::vector<double>{2, 4, 5.5}));
  EXPECT_EQ(with("same"), (std::vector<double>{2, 4, 5.5}));
}

TEST(Pooling, AMeanCountsPaddingUnlessToldNotTo) {
  const auto data = array<double>({6, 12}, {1, 1, 2});
  Pooling params{.kernel = {3}, .pool_type = "avg", .pad = {1}};
  EXPECT_EQ(pooled(data, params), (std::vector<double>{6, 6}));
  params.count_include_pad = false;
  EXPECT_EQ(pooled(data, params), (std::vector<double>{9, 9}));
}

TEST(Pooling, GloballyIgnoresKernelStrideAndPad) {
  const auto data = counted({1, 2, 2, 2});
  EXPECT_EQ(pooled(data, {.kernel = {1, 1}, .global_pool = true, .stride = {2, 2}, .pad = {3, 3}}),
            (std::vector<double>{4, 8}));
  EXPECT_EQ(pooled(data, {.pool_type = "avg", .global_pool = true}), (std::vector<double>{2.5, 6.5}));
}

TEST(Pooling, WithChannelsLastIsTheTransposedOne) {
  const auto data = random_array({2, 5, 4, 3}, 1);
  const auto first = [](const NDArray& a) { return transpose(a, {.axes = {0, 3, 1, 2}}); };
  for (const char* type : {"max", "avg", "sum", "lp"}) {
    Pooling params{.kernel = {3, 2}, .pool_type = type, .stride = {2, 1}, .pad = {1, 1}, .p_value = 2};
    const auto expected = pooling(first(data), params);
    params.layout = "NHWC";
    EXPECT_TRUE(all_close(first(pooling(data, params)), expected)) << type;
  }
}

TEST(Pooling, GradientsAgreeWithFiniteDifferences) {
  for (const char* type : {"max", "avg", "sum", "lp"})
    for (const char* convention : {"valid", "full"}) {
      const auto net = pooling(x, {.kernel = {3, 2},
                                   .pool_type = type,
                                   .pooling_convention = convention,
                                   .stride = {2, 2},
                                   .pad = {1, 0},
                                   .p_value = 2,
                                   .count_include_pad = false});
      EXPECT_TRUE(check_gradient(net, {{"x", random_array({2, 2, 6, 5}, 1, 0.5, 2, DType::float64)}})) << type;
    }
}

TEST(Pooling, TheFirstOfEqualMaximaGetsTheGradient) {
  auto executor = simple_bind(pooling(x, {.kernel = {3}}), cpu(), {{"x", {1, 1, 3}}});
  executor->forward(true);
  executor->backward(std::vector<NDArray>{ones({1, 1, 1})});
  EXPECT_EQ(executor->grad_arrays()[0].to_vector<double>(), (std::vector<double>{1, 0, 0}));
}

TEST(Pooling, InfersItsOutputAndTheBatchBack) {
  const auto net = pooling(x, {.kernel = {2, 3}, .stride = {2, 2}, .pad = {1, 1}}, "pool");
  EXPECT_EQ(infer_shape(net, {{"x", {5, 4, 7, 8}}}).outputs[0], (std::vector<int64_t>{5, 4, 4, 4}));
  const auto back =
      infer_shape_partial(net + Symbol::variable("other"), {{"x", {0, 0, 7, 8}}, {"other", {5, 4, 4, 4}}});
  EXPECT_EQ(back.args[0], (std::vector<int64_t>{5, 4, 7, 8}));
}

// As MXNet 1.9.1 counts them in node_row_ptr: a maximum over a window has a second output, unless the channels are
// last.
TEST(Pooling, HasASecondOutputInFilesWhereMXNetHasOne) {
  const auto outputs = [](const Pooling& params) {
    const std::string text = pooling(x, params, "pool").tojson();
    const bool one = text.find("[0, 1, 2]") != std::string::npos, two = text.find("[0, 1, 3]") != std::string::npos;
    EXPECT_NE(one, two) << text;
    return two ? 2 : 1;
  };
  EXPECT_EQ(outputs({.kernel = {2, 2}}), 2);
  EXPECT_EQ(outputs({.kernel = {2, 2}, .layout = "NCHW"}), 2);
  EXPECT_EQ(outputs({.kernel = {2, 2}, .global_pool = true}), 2);
  EXPECT_EQ(outputs({.kernel = {2}, .layout = "NCW"}), 2);
  EXPECT_EQ(outputs({.kernel = {2, 2}, .layout = "NHWC"}), 1);
  EXPECT_EQ(outputs({.kernel = {2}, .layout = "NWC"}), 1);
  EXPECT_EQ(outputs({.kernel = {2, 2, 2}, .layout = "NDHWC"}), 1);
  EXPECT_EQ(outputs({.kernel = {2, 2}, .pool_type = "avg"}), 1);
  EXPECT_EQ(outputs({.global_pool = true}), 1);
}

TEST(Pooling, SaysWhatDoesNotFit) {
  const auto make = [](const Pooling& params) { return [=] { pooling(x, params, "p"); }; };
  EXPECT_TRUE(fails_with(make({}), "[Pooling p] kernel must have 1, 2 or 3 numbers"));
  EXPECT_TRUE(fails_with(make({.kernel = {2}, .pad = {2}}), "pad must be smaller than kernel"));
  EXPECT_TRUE(fails_with(make({.kernel = {2}, .pool_type = "min"}), "pool_type must be one of avg, lp, max, sum: min"));
  EXPECT_TRUE(fails_with(make({.kernel = {2}, .pool_type = "lp"}), "lp needs p_value"));
  EXPECT_TRUE(fails_with(make({.kernel = {2}, .pool_type = "lp", .p_value = 4}), "p_value must be 1, 2 or 3: 4"));
  EXPECT_TRUE(fails_with(make({.kernel = {2, 2}, .pooling_convention = "same"}), "one spatial axis"));
  EXPECT_TRUE(fails_with(make({.kernel = {2}, .pooling_convention = "same", .pad = {1}}), "takes no pad"));
  const auto net = pooling(x, {.kernel = {3, 3}}, "p");
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"x", {1, 1, 2, 4}}}); }, "[Pooling p]", "kernel has 3", "has 2"));
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"x", {1, 1, 4}}}); }, "[Pooling p]", "kernel must have 1 numbers"));
}

}  // namespace
}  // namespace symbind::testing
