#include "symbind/ops/contrib.h"

#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/graph/json.h"
#include "symbind/ops/attention.h"
#include "symbind/ops/histogram.h"
#include "symbind/ops/pool_v1.h"
#include "symbind/ops/resize.h"
#include "symbind/ops/scatter.h"
#include "symbind/ops/split.h"
#include "symbind/ops/storage.h"
#include "symbind/ops/sync_batch_norm.h"
#include "symbind/ops/unfold.h"
#include "symbind/passes/infer.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x"), y = Symbol::variable("y");

// The gradient of `net` by x, where `out_grad` arrives.
NDArray gradient_of(const Symbol& net, const NDArray& data, const NDArray& out_grad) {
  NDArray grad(data.shape(), cpu(), data.dtype());
  auto executor = bind(net, cpu(), {{"x", data}}, {.args_grad = {{"x", grad}}});
  executor->forward(true);
  executor->backward({out_grad});
  return grad;
}

TEST(StraightThrough, GradientsPassUnchanged) {
  const NDArray data = random_array({3, 4}, 1, -4, 4), dy = random_array({3, 4}, 2);
  EXPECT_TRUE(same_bits(gradient_of(round_ste(x), data, dy), dy));
  EXPECT_TRUE(same_bits(gradient_of(sign_ste(x), data, dy), dy));
  EXPECT_EQ(sign_ste(array({-2, 0, 3})).to_vector<int>(), (std::vector<int>{-1, 0, 1}));
}

TEST(GradientMultiplier, ScalesTheGradientAlone) {
  const NDArray data = random_array({3, 4}, 1), dy = counted({3, 4});
  EXPECT_TRUE(same_bits(gradientmultiplier(data, {.scalar = 7}), data));
  EXPECT_TRUE(all_close(gradient_of(gradientmultiplier(x, {.scalar = -2}), data, dy), dy * -2.0));
}

TEST(Attention, InfersLengthAndBatchFromTheScores) {
  const auto net = interleaved_matmul_selfatt_qk(x, {.heads = 2}, "qk");
  EXPECT_EQ(infer_shape(net, {{"x", {3, 4, 12}}}).outputs[0], (Tuple{8, 3, 3}));
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"x", {3, 4, 13}}}); }, "multiple of 6", "(3,4,13)"));
  const auto values = interleaved_matmul_selfatt_valatt(x, y, {.heads = 2}, "v");
  const auto shapes = infer_shape_partial(values, {{"y", {8, 3, 3}}});
  EXPECT_EQ(shapes.args[0], (Tuple{3, 4, 0}));
  EXPECT_TRUE(fails_with([&] { infer_shape(values, {{"x", {3, 4, 12}}, {"y", {7, 3, 3}}}); }, "heads 2"));
  EXPECT_TRUE(fails_with([&] { interleaved_matmul_encdec_qk(x, y, {.heads = 0}); }, "heads"));
}

TEST(BilinearResize2D, TakesItsSizeFromTheMode) {
  const auto size_of = [&](const BilinearResize2D& params, int64_t rows, int64_t columns) {
    const auto out = infer_shape(bilinear_resize_2d(x, params), {{"x", {1, 1, rows, columns}}}).outputs[0];
    return Tuple{out[2], out[3]};
  };
  EXPECT_EQ(size_of({.mode = "to_even_down"}, 5, 8), (Tuple{4, 8}));
  EXPECT_EQ(size_of({.mode = "to_odd_up"}, 5, 8), (Tuple{5, 9}));
  EXPECT_EQ(size_of({.scale_height = 1.5, .scale_width = 0.5, .mode = "odd_scale"}, 5, 8), (Tuple{7, 4}));
  EXPECT_EQ(size_of({.scale_height = 2, .scale_width = 3}, 5, 6), (Tuple{10, 18}));
  EXPECT_EQ(size_of({.scale_height = 0, .scale_width = 1, .mode = "odd_scale"}, 5, 8), (Tuple{1, 8}));
  EXPECT_TRUE(fails_with([&] { size_of({.scale_height = 0.1, .scale_width = 1}, 5, 6); }, "0 rows"));
  EXPECT_TRUE(fails_with([&] { bilinear_resize_2d(x, {.scale_height = -1, .scale_width = 1}); }, "scales", "-1"));
  EXPECT_TRUE(fails_with([] { bilinear_resize_2d(zeros({1, 1, 0, 6}), {.height = 3, .width = 3}); }, "(1,1,0,6)"));
  EXPECT_TRUE(fails_with([&] { bilinear_resize_2d(x, {.scale_height = 2}); }, "scale_width"));
  EXPECT_TRUE(fails_with([&] { bilinear_resize_2d(x, {.mode = "odd_scale"}); }, "odd_scale"));
  const BilinearResize2D largest{.scale_height = 1 << 20, .scale_width = 1 << 20};
  EXPECT_TRUE(fails_with([&] { size_of(largest, 2, 1); }, "the output would have 2097152 rows"));
  EXPECT_TRUE(fails_with([&] { size_of(largest, 1, int64_t{1} << 50); }, "would have 4611686018427387904 columns"));
}

TEST(IndexArray, ListsAxesInAnyOrderAndTwice) {
  const NDArray indices = index_array(zeros({2, 3}), {.axes = Tuple{1, 0, 1}});
  EXPECT_EQ(indices.shape(), (Shape{2, 3, 3}));
  EXPECT_EQ(indices.to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 0, 1, 0, 1, 2, 0, 2, 0, 1, 0, 1, 1, 1, 2, 1, 2}));
  EXPECT_TRUE(fails_with(
      [&] {
        index_array(zeros({2, 3}), {.axes = Tuple(std::vector<int64_t>(9, 1))});
      },
      "9 axes", "at most 8"));
}

TEST(Unfold, ColumnsAndImagesAreTransposesOfEachOther) {
  const Tuple kernel{2, 3}, stride{2, 1}, dilate{1, 2}, pad{1, 1};
  const NDArray image = random_array({2, 2, 5, 6}, 1, -1, 1, DType::float64);
  const NDArray columns = im2col(image, {kernel, stride, dilate, pad});
  const NDArray other = random_array(columns.shape(), 2, -1, 1, DType::float64);
  const NDArray folded = col2im(other, {{5, 6}, kernel, stride, dilate, pad});
  const auto product = [](const NDArray& a, const NDArray& b) {
    const auto u = a.to_vector<double>(), v = b.to_vector<double>();
    double sum = 0;
    for (size_t i = 0; i < u.size(); ++i) sum += u[i] * v[i];
    return sum;
  };
  EXPECT_NEAR(product(columns, other), product(image, folded), 1e-10);
  EXPECT_TRUE(fails_with([&] { im2col(image, {.kernel = {7, 1}, .pad = {0, 0}}); }, "larger than the padded image"));
  EXPECT_TRUE(fails_with([&] { col2im(other, {.output_size = {5}, .kernel = kernel}); }, "output_size"));
}

TEST(Replacing, TheLastOfEqualIndicesCounts) {
  const NDArray old = counted({4, 2});
  const NDArray index = array({1, 1, 1}, cpu(), DType::int64), fresh = counted({3, 2}) * 10.0;
  EXPECT_EQ(index_copy(old, index, fresh).to_vector<int>(), (std::vector<int>{1, 2, 50, 60, 5, 6, 7, 8}));
  const auto net = index_copy(x, Symbol::variable("index"), y);
  const NDArray dx = zeros({4, 2}), dy = zeros({3, 2});
  auto executor = bind(net, cpu(), {{"x", old}, {"index", index}, {"y", fresh}}, {.args_grad = {{"x", dx}, {"y", dy}}});
  executor->forward(true);
  executor->backward({counted({4, 2})});
  EXPECT_EQ(dx.to_vector<int>(), (std::vector<int>{1, 2, 0, 0, 5, 6, 7, 8}));
  EXPECT_EQ(dy.to_vector<int>(), (std::vector<int>{0, 0, 0, 0, 3, 4}));
}

TEST(Replacing, IndicesOutsideAreErrors) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const NDArray old = counted({4, 2}), fresh = counted({2, 2});
  for (const Context context : all_devices())
    for (const double outside : {4.0, -1.0, 1e30, nan}) {
      const NDArray index = array({1, outside}, context);
      EXPECT_TRUE(
          fails_with([&] { index_copy(old.as_copy_in(context), index, fresh.as_copy_in(context)).to_vector<int>(); },
                     "_contrib_index_copy", "outside of axis 0 of length 4"))
          << outside << " on " << context;
      EXPECT_TRUE(fails_with(
          [&] {
            invoke("_scatter_set_nd", {old.as_copy_in(context), fresh.as_copy_in(context), index.reshape({1, 2})},
                   {{"shape", "(4, 2)"}})[0]
                .to_vector<int>();
          },
          "_scatter_set_nd", "outside of axis 0 of length 4"))
          << outside << " on " << context;
    }
}

TEST(SplitV2, RefusesPartsThatAreNotInside) {
  EXPECT_TRUE(fails_with([&] { split_v2(x, {.indices = {1, 3}}); }, "begins at 0"));
  EXPECT_TRUE(fails_with([&] { split_v2(x, {.indices = {0, 3, 1}}); }, "ascending"));
  const auto beyond = split_v2(x, {.indices = {0, 9}, .axis = 1}, "s");
  EXPECT_TRUE(fails_with([&] { infer_shape(beyond, {{"x", {2, 6}}}); }, "[_split_v2 s]", "part 0", "extent 6"));
  const auto uneven = split_v2(x, {.indices = Tuple{}, .axis = 1, .sections = 4}, "s");
  EXPECT_TRUE(fails_with([&] { infer_shape(uneven, {{"x", {2, 6}}}); }, "sections 4", "extent 6"));
  // A first axis is split without copies; the parts are the same.
  const auto parts = invoke(split_v2, {counted({4, 2})}, {.indices = {0, 1, 3}, .axis = 0});
  EXPECT_EQ(parts[1].to_vector<int>(), (std::vector<int>{3, 4, 5, 6}));
}

TEST(Histogram, CountsBothEdgesOfTheLastBinAlone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const NDArray data = array({-1, 0, 1, 1, 5, 9, 9.5F, nan}), bins = array({0, 1, 5, 9});
  const auto counted_bins = invoke(histogram, {data, bins});
  EXPECT_EQ(counted_bins[0].to_vector<int>(), (std::vector<int>{1, 2, 2}));
  EXPECT_TRUE(same_bits(counted_bins[1], bins));
  EXPECT_TRUE(fails_with([&] { histogram(x, {.bin_cnt = 3}); }, "range"));
  EXPECT_TRUE(fails_with([&] { histogram(x, {.bin_cnt = 3, .range = {2, 1}}); }, "ascending"));
}

TEST(ZerosWithoutDtype, AreOfTheTypeThatTheNetworkNeeds) {
  const auto net = zeros_without_dtype({.shape = {2, 0}}) + x;
  auto executor = bind(net, cpu(), {{"x", counted({2, 3}, DType::float64)}});
  EXPECT_TRUE(same_bits(executor->forward(false)[0], counted({2, 3}, DType::float64)));
}

TEST(SyncBatchNorm, UpdatesTheMovingStatisticsAsBatchNormDoes) {
  const NDArray data = random_array({4, 2, 3}, 1), gamma = ones({2}), beta = zeros({2});
  const NDArray mean = zeros({2}), variance = ones({2}), same_mean = zeros({2}), same_variance = ones({2});
  const InvokeOptions training{.is_train = true};
  const auto sync = invoke(sync_batch_norm, {data, gamma, beta, mean, variance}, {.eps = 0.001, .key = "bn"}, training);
  const auto plain = invoke(batch_norm, {data, gamma, beta, same_mean, same_variance}, {.eps = 0.001}, training);
  EXPECT_TRUE(all_close(sync[0], plain[0]));
  EXPECT_TRUE(all_close(mean, same_mean));
  EXPECT_TRUE(all_close(variance, same_variance));
  EXPECT_NE(mean.to_vector<float>()[0], 0);
  EXPECT_TRUE(fails_with([&] { sync_batch_norm(x, {}); }, "key"));
}

TEST(OperatorsMadeOfOthers, DoNotCountOnTheNamesOfTheUsersNetwork) {
  const auto before = apply("Reshape", x, {{"shape", "(-1,)"}});
  invoke(interleaved_matmul_selfatt_qk, {random_array({3, 2, 12}, 1)}, {.heads = 2});
  const auto after = apply("Reshape", x, {{"shape", "(-1,)"}});
  const auto number = [](const Symbol& net) { return std::stoi(net.name().substr(std::string("reshape").size())); };
  EXPECT_EQ(number(after), number(before) + 1);
}

TEST(Aliases, NameTheOperatorsThatDoTheSame) {
  const auto net = apply("_rnn_param_concat", {x, y}, {{"dim", "0"}}, "params");
  EXPECT_EQ(infer_shape(net, {{"x", {3}}, {"y", {2}}}).outputs[0], Tuple{5});
  EXPECT_EQ(&OpRegistry::get().find("_contrib_SparseEmbedding"), &OpRegistry::get().find("Embedding"));
  EXPECT_EQ(from_json(to_json(net), "net.json").list_arguments(), (Names{"x", "y"}));
}

}  // namespace
}  // namespace symbind::testing
