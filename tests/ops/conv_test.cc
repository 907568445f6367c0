#include "symbind/ops/conv.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/transpose.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");

TEST(Convolution, SlidesItsKernel) {
  const auto data = counted({1, 1, 3, 3}), weight = array<double>({1, 0, 0, -1}, {1, 1, 2, 2});
  const auto y = convolution(data, weight, array({100}), {.kernel = {2, 2}, .num_filter = 1});
  EXPECT_EQ(y.shape(), Shape({1, 1, 2, 2}));
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{96, 96, 96, 96}));
}

TEST(Convolution, StepsSpreadsAndPads) {
  const auto data = counted({1, 1, 5}), weight = array<double>({1, 10}, {1, 1, 2});
  const auto with = [&](const Convolution& params) { return convolution(data, weight, params).to_vector<double>(); };
  EXPECT_EQ(with({.kernel = {2}, .stride = {2}, .num_filter = 1, .no_bias = true}), (std::vector<double>{21, 43}));
  EXPECT_EQ(with({.kernel = {2}, .dilate = {3}, .num_filter = 1, .no_bias = true}), (std::vector<double>{41, 52}));
  EXPECT_EQ(with({.kernel = {2}, .pad = {1}, .num_filter = 1, .no_bias = true}),
            (std::vector<double>{10, 21, 32, 43, 54, 5}));
}

TEST(Convolution, KeepsGroupsApart) {
  const auto data = array<double>({1, 2, 3, 4}, {1, 4, 1}), weight = array<double>({1, 1, 10, 10}, {2, 2, 1});
  const auto y = convolution(data, weight, {.kernel = {1}, .num_filter = 2, .num_group = 2, .no_bias = true});
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{3, 70}));
}

struct GradientCase {
  Convolution params;
  Shape data;
};

TEST(Convolution, GradientsAgreeWithFiniteDifferences) {
  const std::vector<GradientCase> cases = {
      {{.kernel = {3}, .stride = {2}, .dilate = {2}, .pad = {2}, .num_filter = 4, .num_group = 2}, {2, 4, 9}},
      {{.kernel = {3, 2}, .stride = {2, 1}, .dilate = {1, 2}, .pad = {1, 2}, .num_filter = 3}, {2, 2, 6, 5}},
      {{.kernel = {2, 2, 2}, .stride = {1, 2, 1}, .pad = {1, 0, 1}, .num_filter = 2, .no_bias = true}, {1, 2, 3, 4, 3}},
      {{.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 4, .num_group = 2, .layout = "NHWC"}, {2, 4, 5, 4}},
  };
  for (const auto& [params, shape] : cases) {
    const auto net = convolution(x, params, "conv");
    const auto shapes = infer_shape(net, {{"x", shape}}).args;
    NamedArrays args = {{"x", random_array(shape, 1, -1, 1, DType::float64)},
                        {"conv_weight", random_array(Shape(shapes[1]), 2, -1, 1, DType::float64)}};
    if (!params.no_bias) args["conv_bias"] = random_array(Shape(shapes[2]), 3, -1, 1, DType::float64);
    EXPECT_TRUE(check_gradient(net, args)) << shape;
  }
}

TEST(Convolution, WithChannelsLastIsTheTransposedOne) {
  const auto data = random_array({2, 5, 4, 6}, 1), weight = random_array({4, 3, 2, 3}, 2), bias = random_array({4}, 3);
  Convolution params{.kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 1}, .num_filter = 4, .num_group = 2};
  const auto first = [](const NDArray& a) { return transpose(a, {.axes = {0, 3, 1, 2}}); };
  const auto expected = convolution(first(data), first(weight), bias, params);
  params.layout = "NHWC";
  EXPECT_TRUE(all_close(first(convolution(data, weight, bias, params)), expected));
}

TEST(Convolution, HalfPrecisionIsSummedInFloat) {
  const auto data = ones({1, 4096, 1}, cpu(), DType::float16), weight = ones({1, 4096, 1}, cpu(), DType::float16);
  const auto y = convolution(data, weight, {.kernel = {1}, .num_filter = 1, .no_bias = true});
  EXPECT_EQ(y.item(), 4096);
}

TEST(Convolution, TakesAnEmptyBatch) {
  const auto y = convolution(NDArray({0, 1, 3}), ones({2, 1, 2}), {.kernel = {2}, .num_filter = 2, .no_bias = true});
  EXPECT_EQ(y.shape(), Shape({0, 2, 2}));
}

TEST(Convolution, InfersInBothDirections) {
  const auto net = convolution(x, {.kernel = {3, 3}, .stride = {2, 1}, .num_filter = 8, .num_group = 2}, "conv");
  const auto shapes = infer_shape(net, {{"x", {5, 4, 9, 9}}});
  EXPECT_EQ(shapes.args, (std::vector<std::vector<int64_t>>{{5, 4, 9, 9}, {8, 2, 3, 3}, {8}}));
  EXPECT_EQ(shapes.outputs[0], (std::vector<int64_t>{5, 8, 4, 7}));
  // The batch and the axis of stride 1 from the output, the channels from the weight.
  const auto back = infer_shape_partial(net + Symbol::variable("other"),
                                        {{"x", {0, 0, 9, 0}}, {"conv_weight", {8, 2, 3, 3}}, {"other", {5, 8, 4, 7}}});
  EXPECT_EQ(back.args[0], (std::vector<int64_t>{5, 4, 9, 9}));
  const auto padded =
      convolution(x, {.kernel = {3, 4}, .dilate = {2, 1}, .pad = {1, 3}, .num_filter = 8, .no_bias = true}, "conv");
  EXPECT_EQ(infer_shape(padded, {{"x", {5, 4, 9, 9}}}).outputs[0], (std::vector<int64_t>{5, 8, 7, 12}));
  EXPECT_EQ(
      infer_shape_partial(padded + Symbol::variable("other"), {{"x", {0, 4, 0, 0}}, {"other", {5, 8, 7, 12}}}).args[0],
      (std::vector<int64_t>{5, 4, 9, 9}));
  const auto last = convolution(x, {.kernel = {3, 2}, .num_filter = 8, .layout = "NHWC"}, "conv");
  EXPECT_EQ(infer_shape(last, {{"x", {5, 9, 9, 4}}}).args[1], (std::vector<int64_t>{8, 3, 2, 4}));
}

TEST(Convolution, SaysWhatDoesNotFit) {
  const auto net = convolution(x, {.kernel = {7, 7}, .num_filter = 64}, "conv1");
  EXPECT_EQ(error_of([&] {
              infer_shape(net, {{"x", {32, 4, 224, 224}}, {"conv1_weight", {64, 3, 7, 7}}});
            }),
            "[Convolution conv1] weight has 3 input channels, data has 4: weight (64,3,7,7), data (32,4,224,224); "
            "data = x (32,4,224,224)");
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"x", {32, 4, 224}}}); }, "[Convolution conv1]", "4 axes"));
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"x", {32, 4, 6, 8}}});
      },
      "[Convolution conv1]", "kernel reaches over 7 elements, padded data has 6"));
  const auto make = [](const Convolution& params) { return [=] { convolution(x, params, "c"); }; };
  EXPECT_TRUE(fails_with(make({.kernel = {0, 1}, .num_filter = 1}), "[Convolution c] kernel must hold numbers"));
  EXPECT_TRUE(fails_with(make({.kernel = {1, 1}, .stride = {0, 1}, .num_filter = 1}), "stride must hold numbers"));
  EXPECT_TRUE(fails_with(make({.kernel = {1, 1}, .stride = {1}, .num_filter = 1}), "stride must have as many numbers"));
  EXPECT_TRUE(fails_with(make({.kernel = {1, 1, 1, 1}, .num_filter = 1}), "kernel must have 1, 2 or 3 numbers"));
  EXPECT_TRUE(
      fails_with(make({.kernel = {1, 1}, .num_filter = 3, .num_group = 2}), "num_group must divide num_filter"));
  EXPECT_TRUE(fails_with(make({.kernel = {1, 1}, .num_filter = 1, .layout = "NCW"}), "layout must fit the kernel"));
  EXPECT_TRUE(fails_with(make({.num_filter = 1}), "kernel must be given"));
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(convolution(x, {.kernel = {1}, .num_filter = 2, .num_group = 2}, "c"), {{"x", {1, 3, 4}}});
      },
      "[Convolution c]", "num_group must divide the channels", "(1,3,4)"));
}

// A column or a plane of the kernel that meets only padding, at all or most positions, has its gradient too.
TEST(Convolution, GradientOfRowsBesideTheDataIsRightInEveryType) {
  struct Case {
    Convolution params;
    Shape data;
  };
  const Case cases[] = {
      {{.kernel = {2, 2}, .stride = {1, 3}, .pad = {1, 1}, .num_filter = 8, .no_bias = true}, {2, 8, 3, 2}},
      {{.kernel = {5, 5, 5}, .pad = {2, 2, 2}, .num_filter = 3, .no_bias = true}, {3, 3, 2, 3, 3}},
      {{.kernel = {3, 3, 3}, .pad = {1, 1, 1}, .num_filter = 16, .no_bias = true}, {2, 16, 2, 6, 5}},
      {{.kernel = {3, 3, 3}, .stride = {2, 1, 1}, .pad = {1, 1, 1}, .num_filter = 7, .no_bias = true},
       {2, 3, 3, 6, 5}}};
  for (const Case& each : cases) {
    const Symbol net = convolution(Symbol::variable("data"), each.params, "conv");
    const auto gradient = [&](DType dtype) {
      const auto executor =
          simple_bind(net, cpu(), {{"data", each.data}}, {.type_dict = {{"data", dtype}}, .options = {.poison = true}});
      random_array(each.data, 1, -1, 1, dtype).copyto(executor->arg_dict().at("data"));
      random_array(executor->forward(true)[0].shape(), 2, -1, 1, dtype).copyto(executor->outputs()[0]);
      executor->backward(executor->outputs()[0]);
      return executor->grad_dict().at("conv_weight").to_vector<double>();
    };
    const auto expected = gradient(DType::float64);
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
      EXPECT_TRUE(all_close(gradient(dtype), expected, {0, 0, dtype == DType::float32 ? 1e-5 : 1e-2}))
          << dtype << " " << each.data;
  }
}

}  // namespace
}  // namespace symbind::testing
