// Convolutions of each channel by itself against the plain ones: random shapes, all gradients, half precision, and the
// operators that the fuse pass fuses into a convolution.
#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "symbind/core/error.h"
#include "symbind/core/parallel.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/passes/target.h"

#include "tests/backend/conv_cases.h"
#include "tests/support/kernel_runs.h"

namespace symbind {
namespace {

using Values = std::vector<double>;
using testing::ConvCase;
using testing::described;
using TestNode = testing::TestNode<double>;
using testing::implementation;
using testing::run;

ConvCase random_case(std::mt19937& random) {
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
  const auto axes = static_cast<size_t>(1 + below(3));
  const int64_t channels = 2 + below(below(4) == 0 ? 40 : 5), multiplier = below(4) == 0 ? 1 + below(4) : 1;
  Convolution params{.num_filter = channels * multiplier, .num_group = channels, .no_bias = below(2) == 0};
  params.kernel.clear();
  Shape data{1 + below(3), channels};
  for (size_t axis = 0; axis < axes; ++axis) {
    params.kernel.push_back(below(3) == 0 ? 1 : 1 + below(below(5) == 0 ? 9 : 4));
    params.stride.push_back(below(2) == 0 ? 1 : 1 + below(5));
    params.dilate.push_back(1 + below(3));
    params.pad.push_back(below(2) == 0 ? 0 : below(7));
    const int64_t reach = (params.kernel.back() - 1) * params.dilate.back() + 1;
    const int64_t least = std::max<int64_t>(1, reach - 2 * params.pad.back());
    data.push_back(least + below(axes == 1 ? 200 : axes == 2 ? 40 : 9));
  }
  return {data, params};
}

const std::vector<ConvCase> odd_cases = {
    {{1, 2, 1, 1}, {.kernel = {1, 1}, .num_filter = 2, .num_group = 2}},  // one element
    {{2, 3, 5, 7}, {.kernel = {1, 1}, .num_filter = 3, .num_group = 3}},
    {{2, 3, 5, 7}, {.kernel = {3, 1}, .pad = {1, 0}, .num_filter = 3, .num_group = 3}},
    {{2, 3, 4, 5, 7}, {.kernel = {3, 1, 1}, .pad = {1, 0, 0}, .num_filter = 3, .num_group = 3}},
    {{1, 2, 9}, {.kernel = {1}, .stride = {20}, .num_filter = 2, .num_group = 2}},  // a stride beyond the data
    {{2, 4, 2, 5},  // a padding wider than the kernel's reach into the data
     {.kernel = {5, 3}, .stride = {1, 2}, .dilate = {2, 1}, .pad = {4, 1}, .num_filter = 4, .num_group = 4}},
    {{1, 3, 4, 4}, {.kernel = {2, 2}, .pad = {5, 6}, .num_filter = 3, .num_group = 3}},
    {{1, 2, 90, 300}, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 2, .num_group = 2}},
    {{9, 5, 2, 3},
     {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 5, .num_group = 5}},  // small planes, not whole vectors
    {{1, 2, 80000}, {.kernel = {5}, .pad = {2}, .num_filter = 4, .num_group = 2}},
};

template <class Check>
void for_cases(const Check& check) {
  for (const ConvCase& c : odd_cases) check(c);
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) check(random_case(random));
}

void compare_all(const ConvCase& c, DType dtype, double tolerance) {
  const auto node = [&](const auto& params, const std::vector<Shape>& shapes) {
    return testing::make_test_node<double>(params, shapes, dtype);
  };
  const TestNode forward = node(c.params, {c.data});
  const Shape weight = forward.inputs[1].shape, output = forward.outputs[0].shape;
  const std::string what = join(described(c), " ", dtype);
  testing::expect_same_as_plain(forward, "depthwise", tolerance, what);
  testing::expect_same_as_plain(node(ConvolutionGradData{c.params}, {output, weight, c.data}), "depthwise", tolerance,
                                what + " data");
  testing::expect_same_as_plain(node(ConvolutionGradWeight{c.params}, {output, c.data, weight}), "depthwise", tolerance,
                                what + " weight");
}

TEST(DepthwiseConvolution, AgreesWithThePlainOneInFloat32) {
  for_cases([](const ConvCase& c) { compare_all(c, DType::float32, 2e-5); });
}

TEST(DepthwiseConvolution, AgreesWithThePlainOneInHalfPrecision) {
  for_cases([](const ConvCase& c) {
    compare_all(c, DType::float16, 4e-3);
    compare_all(c, DType::bfloat16, 3e-2);
  });
}

TEST(DepthwiseConvolution, FusesNormsSumsAndActivations) {
  int number = 0;
  for_cases([&](const ConvCase& c) {
    const int what = number++;
    const ConvolutionFused fused = testing::fused_with(c.params, what, what / 2);
    const TestNode node = testing::make_test_node<double>(fused, {c.data});
    testing::expect_same_as_plain(node, "depthwise", 2e-5, join(described(c), " fused ", what));
    if (fused.has_norms()) return;
    const TestNode half = testing::make_test_node<double>(fused, {c.data}, DType::bfloat16);
    testing::expect_same_as_plain(half, "depthwise", 4e-2, join(described(c), " fused ", what, " in bfloat16"));
  });
}

TEST(DepthwiseConvolution, KeepsWhatIsNotFiniteInItsChannel) {
  const Convolution params{.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 3, .num_group = 3};
  const Shape data{1, 3, 5, 6}, weight{3, 1, 3, 3};
  for (const double value : {std::nan(""), HUGE_VAL}) {
    const auto poisoned = [&](TestNode node, size_t input) {
      node.values[input][30 + 14] = value;  // of the second channel
      const Values result = run(node, implementation(node.op, "depthwise"))[0];
      const auto is_finite = [](double number) { return std::isfinite(number); };
      const auto third = static_cast<std::ptrdiff_t>(result.size() / 3);
      EXPECT_TRUE(std::all_of(result.begin(), result.begin() + third, is_finite));
      EXPECT_FALSE(std::all_of(result.begin() + third, result.begin() + 2 * third, is_finite));
      EXPECT_TRUE(std::all_of(result.begin() + 2 * third, result.end(), is_finite));
    };
    poisoned(testing::make_test_node<double>(params, {data}), 0);
    poisoned(testing::make_test_node<double>(ConvolutionGradData{params}, {data, weight, data}), 0);
    poisoned(testing::make_test_node<double>(ConvolutionGradWeight{params}, {data, data, weight}), 1);
  }
}

TEST(DepthwiseConvolution, DoesNotDependOnTheNumberOfThreads) {
  const Convolution params{.kernel = {3, 5}, .stride = {2, 1}, .pad = {1, 4}, .num_filter = 26, .num_group = 13};
  const Shape data{5, 13, 40, 50};
  const TestNode forward = testing::make_test_node<double>(params, {data});
  const Shape weight = forward.inputs[1].shape, output = forward.outputs[0].shape;
  for (const TestNode& node :
       {forward, testing::make_test_node<double>(ConvolutionGradData{params}, {output, weight, data}),
        testing::make_test_node<double>(ConvolutionGradWeight{params}, {output, data, weight})}) {
    const auto on = [&](int threads) {
      const ThreadScope share({.threads = threads});
      return run(node, implementation(node.op, "depthwise"));
    };
    EXPECT_EQ(on(1), on(3));
  }
}

TEST(DepthwiseConvolution, LeavesArraysInBlocksToOneDnn) {
  const Convolution params{.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 32, .num_group = 32};
  TestNode node = testing::make_test_node<double>(params, {Shape{2, 32, 14, 14}});
  const Implementation& tested = implementation(node.op, "depthwise");
  EXPECT_FALSE(tested.preferred_layouts(node.view()));
  const auto& all = Target::get(cpu()).implementations(node.op);
  const auto onednn = std::find_if(all.begin(), all.end(), [](const auto& each) { return each.name == "onednn"; });
  if (onednn == all.end()) GTEST_SKIP() << "built without oneDNN";
  const std::optional<PreferredLayouts> preferred = onednn->preferred_layouts(node.view());
  if (!preferred || preferred->inputs[0] == Layout::plain) GTEST_SKIP() << "oneDNN has no blocks on this processor";
  node.inputs[0].layout = preferred->inputs[0];
  const std::optional<PreferredLayouts> own = tested.preferred_layouts(node.view());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->inputs, preferred->inputs);
  EXPECT_EQ(own->outputs, preferred->outputs);
}

TEST(DepthwiseConvolution, TakesManyFiltersOfAChannelWithSmallKernels) {
  compare_all({{2, 3, 9, 20}, {.kernel = {2, 1}, .stride = {2, 1}, .num_filter = 60, .num_group = 3}}, DType::float32,
              2e-5);
}

TEST(DepthwiseConvolution, RefusesPaddingFarLargerThanTheData) {
  const Convolution params{
      .kernel = {1, 1}, .stride = {1 << 27, 1 << 27}, .pad = {1 << 30, 1 << 30}, .num_filter = 2, .num_group = 2};
  const TestNode node = testing::make_test_node<double>(params, {Shape{1, 2, 5, 5}});
  EXPECT_EQ(implementation(node.op, "depthwise").refuse(node.view()), "a plane with its padding has too many elements");
}

TEST(DepthwiseConvolution, RefusesFiltersOverSeveralChannels) {
  const Convolution params{.kernel = {3, 3}, .num_filter = 4, .num_group = 2};
  const TestNode node = testing::make_test_node<double>(params, {Shape{1, 4, 5, 5}});
  EXPECT_EQ(implementation(node.op, "depthwise").refuse(node.view()), "a filter reads several channels");
}

}  // namespace
}  // namespace symbind
