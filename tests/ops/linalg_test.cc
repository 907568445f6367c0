#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/linalg_element.h"
#include "symbind/ops/linalg_factor.h"
#include "symbind/ops/linalg_product.h"
#include "symbind/ops/scalar.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"
#include "tests/support/lapack.h"

namespace symbind::testing {
namespace {

using Numbers = std::vector<double>;
const double nan = std::numeric_limits<double>::quiet_NaN();

NDArray square(const std::vector<double>& elements) {
  const auto extent = static_cast<int64_t>(std::lround(std::sqrt(elements.size())));
  return array(elements, {extent, extent}, cpu(), DType::float64);
}
NDArray filled(const Shape& shape, double value) { return full(shape, value, cpu(), DType::float64); }
NDArray random_matrices(const Shape& shape, uint64_t seed = 5) {
  return random_array(shape, seed, -1, 1, DType::float64);
}

class Linalg : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lapack_is_missing()) GTEST_SKIP() << without_lapack;
  }
};

// Symmetric positive definite matrices, as a function of any matrices: A · Aᵀ + 1.
Symbol positive(const Symbol& a) { return elemwise_add(linalg_syrk(a), linalg_makediag(Symbol::variable("ones"))); }
void expect_gradient(const Symbol& net, const NDArray& a) {
  const Shape rows = a.shape().slice(0, a.shape().rank() - 1);
  EXPECT_TRUE(check_gradient(net, {{"a", a}, {"ones", filled(rows, 1)}}, {.skip = {"ones"}}));
}

TEST_F(Linalg, FactorsOfSymmetricMatricesHaveTheirGradients) {
  const Symbol a = positive(Symbol::variable("a"));
  const NDArray values = random_matrices({2, 3, 3});
  expect_gradient(linalg_potrf(a), values);
  expect_gradient(linalg_potri(linalg_potrf(a)), values);
  expect_gradient(linalg_sumlogdiag(linalg_potrf(a)), values);
  expect_gradient(linalg_syevd(a), values);
  expect_gradient(linalg_syevd(a)[0], values);
  expect_gradient(linalg_syevd(a)[1], values);
  expect_gradient(linalg_inverse(a), values);
}

TEST_F(Linalg, EachOutputOfAnLQFactorizationHasAGradientAlone) {
  const NDArray values = random_matrices({2, 2, 3});
  for (const int output : {0, 1})
    EXPECT_TRUE(check_gradient(linalg_gelqf(Symbol::variable("a"))[static_cast<size_t>(output)], {{"a", values}}));
}

TEST_F(Linalg, FactorsMultiplyToTheMatrix) {
  const NDArray a = random_matrices({3, 40, 40});
  const NDArray one = linalg_makediag(filled({3, 40}, 1)), symmetric = linalg_syrk(a);
  const NDArray l = linalg_potrf(symmetric + one);
  EXPECT_TRUE(all_close(linalg_syrk(l), symmetric + one, {.absolute = 1e-10}));
  const auto parts = invoke("_linalg_syevd", {symmetric});
  const NDArray scaled = linalg_gemm2(linalg_makediag(parts[1]), parts[0]);
  EXPECT_TRUE(all_close(linalg_gemm2(parts[0], scaled, {.transpose_a = true}), symmetric, {.absolute = 1e-9}));
  const auto lq = invoke("_linalg_gelqf", {a});
  EXPECT_TRUE(all_close(linalg_gemm2(lq[1], lq[0]), a, {.absolute = 1e-10}));
  EXPECT_TRUE(all_close(linalg_gemm2(linalg_inverse(a), a), one, {.absolute = 1e-8}));
}

TEST_F(Linalg, SolutionsSatisfyTheirSystem) {
  const NDArray a = random_matrices({2, 6, 6}) + linalg_makediag(filled({2, 6}, 3));
  const NDArray b = random_matrices({2, 6, 6}, 9);
  for (const bool transpose : {false, true})
    for (const bool rightside : {false, true})
      for (const bool lower : {false, true}) {
        const NDArray x = linalg_trsm(a, b, LinalgTrsm{transpose, rightside, lower, 2});
        EXPECT_TRUE(all_close(linalg_trmm(a, x, LinalgTrmm{transpose, rightside, lower, 0.5}), b, {.absolute = 1e-12}));
      }
}

// Larger than the parts that a kernel multiplies at a time, in a type that a library may multiply.
TEST_F(Linalg, ProductsWithTrianglesReadNothingElse) {
  const int64_t extent = 150;
  const NDArray b = random_array({2, extent, extent}, 9);
  for (const bool lower : {false, true}) {
    std::vector<float> numbers = random_array({2, extent, extent}, 5).to_vector<float>(), zeros = numbers;
    for (int64_t i = 0; i < 2 * extent * extent; ++i) {
      const int64_t row = i / extent % extent, column = i % extent;
      if (lower ? column <= row : column >= row) continue;
      numbers[static_cast<size_t>(i)] = 1e10f;
      zeros[static_cast<size_t>(i)] = 0;
    }
    const NDArray a = array(numbers, {2, extent, extent}), triangle = array(zeros, {2, extent, extent});
    for (const bool transpose : {false, true}) {
      EXPECT_TRUE(all_close(linalg_trmm(a, b, {.transpose = transpose, .lower = lower, .alpha = 2}),
                            linalg_gemm2(triangle, b, {.transpose_a = transpose, .alpha = 2}), {1e-4, 1e-4}));
      EXPECT_TRUE(all_close(linalg_trmm(a, b, {.transpose = transpose, .rightside = true, .lower = lower}),
                            linalg_gemm2(b, triangle, {.transpose_b = transpose}), {1e-4, 1e-4}));
    }
  }
}

TEST_F(Linalg, ReadsTheLowerTriangleOfSymmetricMatricesAlone) {
  const NDArray a = square({4, nan, 2, 5});
  EXPECT_EQ(linalg_potrf(a).to_vector<double>(), (Numbers{2, 0, 1, 2}));
  EXPECT_EQ(invoke("_linalg_syevd", {square({3, nan, 0, 2})})[1].to_vector<double>(), (Numbers{2, 3}));
}

TEST_F(Linalg, MatricesThatCannotBeFactorizedAreNamed) {
  const NDArray two = array(Numbers{1, 0, 0, 1, 1, 2, 2, 1}, {2, 2, 2}).astype(DType::float64);
  EXPECT_TRUE(fails_with([&] { linalg_potrf(two); }, "matrix 1 of A is not positive definite", "order 2"));
  EXPECT_TRUE(fails_with([&] { linalg_inverse(square({1, 2, 2, 4})); }, "matrix 0 of A is singular"));
  EXPECT_TRUE(fails_with(
      [&] {
        linalg_potri(square({1, 0, 5, 0}));
      },
      "matrix 0 of A is no Cholesky factor", "element 1"));
}

TEST_F(Linalg, NaNStaysNaN) {
  const NDArray a = square({nan, 0, 0, 1});
  for (const char* op : {"_linalg_potrf", "_linalg_potri", "_linalg_syevd", "_linalg_det"})
    EXPECT_TRUE(std::isnan(invoke(op, {a})[0].to_vector<double>()[0])) << op;
}

TEST_F(Linalg, SingularMatricesHaveDeterminantZeroAndNoGradient) {
  const NDArray a = square({1, 2, 2, 4});
  EXPECT_EQ(linalg_det(a).to_vector<double>(), (Numbers{0}));
  const auto parts = invoke("_linalg_slogdet", {a});
  EXPECT_EQ(parts[0].to_vector<double>(), (Numbers{0}));
  EXPECT_EQ(parts[1].to_vector<double>(), (Numbers{-std::numeric_limits<double>::infinity()}));
  for (const Symbol& net : {linalg_det(Symbol::variable("a")), linalg_slogdet(Symbol::variable("a"))[1]}) {
    const auto executor = bind(net, cpu(), NamedArrays{{"a", a}}, {.args_grad = NamedArrays{{"a", filled({2, 2}, 7)}}});
    executor->forward(true);
    executor->backward({filled({1}, 1)});
    EXPECT_EQ(executor->grad_dict().at("a").to_vector<double>(), (Numbers{0, 0, 0, 0}));
  }
}

TEST_F(Linalg, TrianglesAreStoredRowByRowOrColumnByColumn) {
  const NDArray a = square({0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(linalg_extracttrian(a).to_vector<double>(), (Numbers{0, 3, 4, 6, 7, 8}));
  EXPECT_EQ(linalg_extracttrian(a, {.lower = false}).to_vector<double>(), (Numbers{0, 1, 4, 2, 5, 8}));
  EXPECT_EQ(linalg_extracttrian(a, {.offset = 1}).to_vector<double>(), (Numbers{1, 2, 5}));
  EXPECT_EQ(linalg_extracttrian(a, {.offset = -1, .lower = false}).to_vector<double>(), (Numbers{3, 6, 7}));
}

TEST_F(Linalg, ErrorsNameTheMatricesThatDoNotFit) {
  const NDArray a = random_matrices({2, 3}), b = random_matrices({2, 4, 5});
  EXPECT_TRUE(fails_with([&] { linalg_gemm2(a, b); }, "as many axes: A (2,3), B (2,4,5)"));
  EXPECT_TRUE(fails_with([&] { linalg_gemm2(a, a); }, "must be equally long: A (2,3), B (2,3)"));
  EXPECT_TRUE(fails_with([&] { linalg_gemm2(b, b, {.axis = 2}); }, "axis 2 must be that of the rows"));
  EXPECT_TRUE(fails_with([&] { linalg_extractdiag(square({1, 2, 3, 4}), {.offset = -2}); }, "no diagonal -2"));
  EXPECT_TRUE(fails_with([&] { linalg_maketrian(array({1, 2})); }, "m(m + 1)/2"));
  EXPECT_TRUE(fails_with(
      [&] {
        linalg_det(array(Numbers{1, 2, 3, 4}, {2, 2}).astype(DType::float16));
      },
      "float32 or float64: float16"));
}

}  // namespace
}  // namespace symbind::testing
