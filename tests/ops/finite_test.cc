#include "symbind/ops/finite.h"

#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "symbind/core/random.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/amp.h"
#include "symbind/ops/random.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

std::vector<NDArray> zipfian(const Attributes& attributes) {
  return invoke("_sample_unique_zipfian", std::vector<NDArray>{}, attributes);
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

TEST(Finite, OneElementDecides) {
  std::vector<double> values(100000, 1);
  EXPECT_EQ(all_finite(array(values, {100000})).item(), 1);
  for (const double wrong : {nan, inf, -inf}) {
    values[77777] = wrong;
    EXPECT_EQ(all_finite(array(values, {100000})).item(), 0);
    EXPECT_EQ(multi_all_finite(std::vector<NDArray>{array({1, 2}), array(values, {100000})}, {}).item(), 0);
  }
  EXPECT_EQ(all_finite(zeros({0})).item(), 1);
  EXPECT_EQ(all_finite(array({1, 2}).astype(DType::int32)).item(), 1);
  EXPECT_TRUE(fails_with([] { all_finite(zeros({1}), {.init_output = false}); }, "init_output"));
}

TEST(Finite, ClosenessIsRelativeToTheSecond) {
  const NDArray a = array({1, 100}), b = array({1.0001, 100.01});
  EXPECT_EQ(allclose(a, b).item(), 0);
  EXPECT_EQ(allclose(a, b, {.rtol = 1e-3}).item(), 1);
  EXPECT_EQ(allclose(a, b, {.rtol = 0, .atol = 0.02}).item(), 1);
  EXPECT_EQ(allclose(array({nan, inf}), array({nan, inf})).item(), 0);
  EXPECT_EQ(allclose(array({nan, inf}), array({nan, inf}), {.equal_nan = true}).item(), 1);
  EXPECT_EQ(allclose(array({inf}), array({-inf})).item(), 0);
  EXPECT_TRUE(fails_with([&] { allclose(a, zeros({3})); }, "(2,)", "(3,)"));
}

TEST(MixedPrecision, CastsFloatsAndLetsTheRestPass) {
  EXPECT_EQ(amp_cast(array({1, 2}), {.dtype = DType::float16}).dtype(), DType::float16);
  EXPECT_EQ(amp_cast(array({1, 2}), {.dtype = DType::bfloat16}).dtype(), DType::bfloat16);
  for (const DType type : {DType::int32, DType::float64, DType::uint8})
    EXPECT_EQ(amp_cast(array({1, 2}).astype(type), {.dtype = DType::float16}).dtype(), type);
  EXPECT_EQ(amp_cast(array({1.5, -2}), {.dtype = DType::int8}).to_vector<int>(), (std::vector<int>{1, -2}));
}

TEST(DifferentClasses, AreDifferentAndMostlySmall) {
  seed(3);
  const auto drawn = zipfian({{"range_max", "1000"}, {"shape", "(50, 20)"}});
  const auto classes = drawn[0].to_vector<int64_t>(), tries = drawn[1].to_vector<int64_t>();
  int64_t small = 0;
  for (size_t row = 0; row < 50; ++row) {
    const std::set<int64_t> of_row(classes.begin() + static_cast<int64_t>(row) * 20,
                                   classes.begin() + static_cast<int64_t>(row + 1) * 20);
    EXPECT_EQ(of_row.size(), 20u);
    EXPECT_GE(*of_row.begin(), 0);
    EXPECT_LT(*of_row.rbegin(), 1000);
    EXPECT_GE(tries[row], 20);
    small += of_row.contains(0);
  }
  EXPECT_GE(small, 40);  // class 0 has a tenth of the probability
  const auto all = zipfian({{"range_max", "5"}, {"shape", "(2, 5)"}})[0].to_vector<int64_t>();
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.begin() + 5), (std::set<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(fails_with([] { zipfian({{"range_max", "4"}, {"shape", "(1, 5)"}}); }, "different", "5"));
}

TEST(RandomLike, FollowsTheArrayAndTheSeed) {
  const NDArray like = zeros({200, 300}).astype(DType::float64);
  seed(5);
  const NDArray first = random_normal_like(like, {.loc = 3, .scale = 2});
  seed(5);
  const NDArray second =
      invoke("_random_normal", std::vector<NDArray>{},
             Attributes{{"loc", "3"}, {"scale", "2"}, {"shape", "(200, 300)"}, {"dtype", "float64"}})[0];
  EXPECT_EQ(first.shape(), like.shape());
  EXPECT_EQ(first.dtype(), DType::float64);
  EXPECT_EQ(first.to_vector<double>(), second.to_vector<double>());
  EXPECT_TRUE(fails_with([] { random_uniform_like(zeros({2}).astype(DType::int32)); }, "float"));
}

}  // namespace
}  // namespace symbind::testing
