// Convolution over patches against the plain one: random shapes, both types it computes in, all gradients, and the
// operators that the fuse pass fuses into a convolution.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "symbind/core/error.h"
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

void expect_same(const TestNode& node, const std::string& name, double tolerance, const std::string& what) {
  testing::expect_same_as_plain(node, name, tolerance, what, "most products would be with padding");
}

ConvCase random_case(std::mt19937& random) {
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
  const auto axes = static_cast<size_t>(1 + below(3));
  const int64_t groups = below(3) == 0 ? 1 + below(6) : 1;
  const int64_t group_channels = 1 + below(below(4) == 0 ? 40 : 7), group_filters = 1 + below(below(4) == 0 ? 40 : 7);
  Convolution params{.num_filter = groups * group_filters, .num_group = groups, .no_bias = below(2) == 0};
  params.kernel.clear();
  std::vector<int64_t> space;
  for (size_t axis = 0; axis < axes; ++axis) {
    params.kernel.push_back(1 + below(below(5) == 0 ? 9 : 4));
    params.stride.push_back(1 + below(3));
    params.dilate.push_back(1 + below(3));
    params.pad.push_back(below(4));
    const int64_t reach = (params.kernel.back() - 1) * params.dilate.back() + 1;
    const int64_t least = std::max<int64_t>(1, reach - 2 * params.pad.back());
    space.push_back(least + below(axes == 1 ? 90 : axes == 2 ? 20 : 8));
  }
  if (below(4) == 0) params.layout = axes == 1 ? "NWC" : axes == 2 ? "NHWC" : "NDHWC";
  Shape data{1 + below(below(4) == 0 ? 30 : 3)};
  if (!params.layout) data.push_back(groups * group_channels);
  for (const int64_t extent : space) data.push_back(extent);
  if (params.layout) data.push_back(groups * group_channels);
  return {data, params};
}

const std::vector<ConvCase> odd_cases = {
    {{2, 129, 5, 6}, {.kernel = {1, 1}, .num_filter = 154}},
    {{3, 1, 24, 50}, {.kernel = {3, 50}, .num_filter = 20}},        // words as rows
    {{1, 2, 3, 3}, {.kernel = {3, 3}, .num_filter = 200}},          // one position
    {{40, 3, 4, 4}, {.kernel = {3, 3}, .num_filter = 5}},           // few positions, many images
    {{2, 4, 9}, {.kernel = {1}, .stride = {20}, .num_filter = 4}},  // a stride beyond the data
    {{1, 2, 7, 7}, {.kernel = {2, 2}, .stride = {5, 4}, .pad = {1, 0}, .num_filter = 3}},
    {{2, 12, 6, 7, 8}, {.kernel = {3, 3, 3}, .dilate = {2, 2, 2}, .pad = {2, 2, 2}, .num_filter = 12, .num_group = 12}},
    {{1, 3, 200, 210}, {.kernel = {5, 3}, .stride = {2, 1}, .pad = {2, 1}, .num_filter = 4}},  // several slabs
    {{1, 70, 90, 100}, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 2}},
};

template <class Check>
void for_cases(const Check& check) {
  for (const ConvCase& c : odd_cases) check(c);
  std::mt19937 random(5);
  for (int i = 0; i < 150; ++i) check(random_case(random));
}

void compare_all(const ConvCase& c, DType dtype, const std::string& name, double tolerance) {
  const auto node = [&](const auto& params, const std::vector<Shape>& shapes) {
    return testing::make_test_node<double>(params, shapes, dtype);
  };
  const TestNode forward = node(c.params, {c.data});
  const Shape weight = forward.inputs[1].shape, output = forward.outputs[0].shape;
  const std::string what = join(described(c), " ", dtype);
  expect_same(forward, name, tolerance, what);
  expect_same(node(ConvolutionGradData{c.params}, {output, weight, c.data}), name, tolerance, what + " grad data");
  expect_same(node(ConvolutionGradWeight{c.params}, {output, c.data, weight}), name, tolerance, what + " grad weight");
}

TEST(ConvolutionOverPatches, AgreesWithThePlainOneInFloat32) {
  for_cases([](const ConvCase& c) { compare_all(c, DType::float32, "gemm", 2e-5); });
}

TEST(ConvolutionOverPatches, AgreesWithThePlainOneInFloat64) {
  for_cases([](const ConvCase& c) { compare_all(c, DType::float64, "gemm", 1e-13); });
}

TEST(ConvolutionOverPatches, FusesNormsSumsAndActivations) {
  int number = 0;
  for_cases([&](const ConvCase& c) {
    const int what = number++;
    const ConvolutionFused fused = testing::fused_with(c.params, what, what);
    const TestNode node = testing::make_test_node<double>(fused, {c.data});
    expect_same(node, "gemm", 2e-5, join(described(c), " fused ", what));
  });
}

TEST(HalfPrecisionAsFloat32, AgreesWithThePlainKernels) {
  for_cases([](const ConvCase& c) {
    compare_all(c, DType::float16, "float32", 4e-3);
    compare_all(c, DType::bfloat16, "float32", 3e-2);
  });
}

TEST(HalfPrecisionAsFloat32, IsNotForOtherTypes) {
  const TestNode node = testing::make_test_node<double>(odd_cases[0].params, {odd_cases[0].data}, DType::float64);
  EXPECT_EQ(implementation(node.op, "float32").refuse(node.view()), "only for half precision");
}

TEST(ConvolutionOverPatches, BoundsItsScratch) {
  const Convolution params{.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 64};
  const TestNode node = testing::make_test_node<double>(params, {Shape{1, 64, 400, 400}}, DType::float32);
  const auto kernel = implementation(node.op, "gemm").build(node.view());
  EXPECT_LT(kernel->scratch_bytes, size_t{64} << 20);  // the unfolded patches are 369 MB
}

}  // namespace
}  // namespace symbind
