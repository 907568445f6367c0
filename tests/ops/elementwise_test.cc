#include "symbind/ops/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"
#include "tests/support/gradient_check.h"

namespace {
// As a user writes it: both are called by their bare names.
double exp_of_number_and_array() {
  using namespace symbind;
  return exp(1.0) + exp(array({1})).item();
}
}  // namespace

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x"), y = Symbol::variable("y");
constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

NDArray whole(const NestedNumbers& values, DType dtype) { return array(values, cpu(), dtype); }

TEST(Elementwise, FunctionsCoexistWithThoseOfCmath) { EXPECT_NEAR(exp_of_number_and_array(), 2 * M_E, 1e-6); }

TEST(Elementwise, FloatFunctionsAreWithinThreeUnitsOfCmath) {
  struct Case {
    const char* op;
    double (*reference)(double);
    double low, high;
  };
  const Case cases[] = {{"exp", std::exp, -87, 88},
                        {"log", std::log, 1e-6, 20},
                        {"tanh", std::tanh, -10, 10},
                        {"sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }, -80, 80},
                        {"sqrt", std::sqrt, 0, 1000}};
  for (const auto& c : cases) {
    std::vector<float> in;
    for (int i = 0; i < 100000; ++i) in.push_back(static_cast<float>(c.low + (c.high - c.low) * i / 100000));
    const auto out = invoke(c.op, {array(in, {100000})})[0].to_vector<float>();
    for (size_t i = 0; i < in.size(); ++i) {
      const double expected = c.reference(in[i]);
      const double unit = std::ldexp(1.0, std::ilogb(std::max(std::abs(expected), 0x1p-126)) - 23);
      ASSERT_LE(std::abs(out[i] - expected), 3 * unit) << c.op << "(" << in[i] << ")";
    }
  }
}

TEST(Elementwise, FunctionsKnowInfinityAndNan) {
  const auto in = array({infinity, -infinity, nan, 200, -200, 0});
  constexpr Tolerance exact{};
  EXPECT_TRUE(all_close(exp(in).to_vector<double>(), {infinity, 0, nan, infinity, 0, 1}, exact));
  EXPECT_TRUE(all_close(tanh(in).to_vector<double>(), {1, -1, nan, 1, -1, 0}, exact));
  EXPECT_TRUE(all_close(sigmoid(in).to_vector<double>(), {1, 0, nan, 1, 0, 0.5}, exact));
  EXPECT_TRUE(all_close(relu(in).to_vector<double>(), {infinity, 0, nan, 200, 0, 0}, exact));
  EXPECT_TRUE(
      all_close(log(array({infinity, -1, nan, 0})).to_vector<double>(), {infinity, nan, nan, -infinity}, exact));
}

// The last elements of a loop, and the neighbours of those that a formula cannot handle, are computed by the same code.
TEST(Elementwise, ValuesDependNeitherOnPlaceNorOnNeighbours) {
  const char* unary[] = {"exp",     "log1p",  "expm1", "tanh",     "sigmoid",     "erf",  "sin",
                         "cos",     "tan",    "cbrt",  "arctan",   "sinh",        "cosh", "arcsinh",
                         "gammaln", "square", "sqrt",  "softsign", "hard_sigmoid"};
  const auto in = random_array({5003}, 7, 0.01, 3);
  for (const char* op : unary) {
    const auto expected = invoke(op, {in})[0];
    for (int64_t begin = 0; begin + 7 <= 5003; begin += 61)
      EXPECT_TRUE(same_bits(invoke(op, {in.slice(begin, begin + 7)})[0], expected.slice(begin, begin + 7))) << op;
    auto beside_infinity = in.copy();
    invoke("_full", {}, {{"shape", "(1,)"}, {"value", "inf"}}, {.out = {beside_infinity.slice(200, 201)}});
    const auto result = invoke(op, {beside_infinity})[0];
    EXPECT_TRUE(same_bits(result.slice(0, 200), expected.slice(0, 200))) << op;
    EXPECT_TRUE(same_bits(result.slice(201, 5003), expected.slice(201, 5003))) << op;
  }
}

TEST(Elementwise, WholeNumbersWrapAndAreCutOff) {
  EXPECT_EQ(elemwise_add(whole({250, 255}, DType::uint8), whole({10, 1}, DType::uint8)).to_vector<int>(),
            (std::vector<int>{4, 0}));
  EXPECT_EQ(elemwise_div(whole({7, -7, 1}, DType::int32), whole({2, 2, 0}, DType::int32)).to_vector<int>(),
            (std::vector<int>{3, -3, 0}));
  EXPECT_EQ(elemwise_power(whole({2, -1, 3}, DType::int64), whole({-1, -3, 4}, DType::int64)).to_vector<int>(),
            (std::vector<int>{0, -1, 81}));
  EXPECT_EQ(exp(whole({3, -1}, DType::int8)).to_vector<int>(), (std::vector<int>{20, 0}));
  EXPECT_EQ(log(whole({3, 0}, DType::int32)).to_vector<int>(), (std::vector<int>{1, std::numeric_limits<int>::min()}));
}

// As an element is: to the least number of the type.
TEST(Elementwise, AScalarThatWholeNumbersCannotHoldIsConverted) {
  for (const DType dtype : {DType::int32, DType::int64})
    for (const char* scalar : {"nan", "inf", "-1e30", "1e30"}) {
      SCOPED_TRACE(join(dtype, " ", scalar));
      const auto in = whole({-3, 0, 5}, dtype);
      EXPECT_EQ(invoke("smooth_l1", {in}, {{"scalar", scalar}})[0].to_vector<int>(), (std::vector<int>{3, 0, 5}));
    }
}

TEST(Elementwise, HalfPrecisionIsComputedInFloat) {
  const auto a = random_array({3, 700}, 1, -2, 2, DType::float16), b = random_array({3, 700}, 2, 1, 2, DType::float16);
  const auto expected = elemwise_div(a.astype(DType::float32), b.astype(DType::float32)).astype(DType::float16);
  EXPECT_TRUE(same_bits(elemwise_div(a, b), expected));
}

TEST(Elementwise, ComparisonsGiveOneAndZero) {
  const auto a = array({1, 2, nan}), b = array({2, 2, nan});
  EXPECT_EQ(elemwise_lesser(a, b).to_vector<int>(), (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(elemwise_greater_equal(a, b).to_vector<int>(), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(elemwise_not_equal(a, b).to_vector<int>(), (std::vector<int>{1, 0, 1}));
}

TEST(Elementwise, ResultsMayReplaceAnOperand) {
  auto a = random_array({100003}, 3);
  const auto b = random_array({100003}, 4);
  const auto expected = elemwise_mul(a, b);
  invoke(elemwise_mul, {a, b}, {}, {.out = {a}});
  EXPECT_TRUE(same_bits(a, expected));
}

TEST(Elementwise, GradientsAgreeWithFiniteDifferences) {
  const auto any = random_array({3, 5}, 1, -2, 2, DType::float64);
  const auto positive = random_array({3, 5}, 2, 0.25, 2, DType::float64);
  for (const auto& f : {negative(x), relu(x), sigmoid(x), tanh(x), exp(x), square(x), identity(x)})
    EXPECT_TRUE(check_gradient(f, {{"x", any}}));
  for (const auto& f : {log(x), sqrt(x)}) EXPECT_TRUE(check_gradient(f, {{"x", positive}}));
  for (const auto& f : {elemwise_add(x, y), elemwise_sub(x, y), elemwise_mul(x, y), elemwise_div(x, y)})
    EXPECT_TRUE(check_gradient(f, {{"x", any}, {"y", positive}}));
  EXPECT_TRUE(check_gradient(elemwise_power(x, y), {{"x", positive}, {"y", any}}));
}

NDArray gradient_of(const Symbol& net, double out_grad) {
  auto executor = simple_bind(net, cpu(), {{"x", {2}}});
  NDArray argument = executor->arg_dict().at("x"), gradient = executor->grad_dict().at("x");
  argument.copy_from(std::vector<float>{1, -2});
  gradient.fill(9);
  executor->forward(true);
  executor->backward(std::vector<NDArray>{full({2}, out_grad)});
  return gradient;
}

TEST(Elementwise, StopGradientLetsNothingThrough) {
  EXPECT_EQ(gradient_of(stop_gradient(square(x)), 3).to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(Elementwise, ALossHasTheGradientOne) {
  EXPECT_EQ(gradient_of(as_loss(square(x)), 3).to_vector<float>(), (std::vector<float>{2, -4}));
}

TEST(Elementwise, ShapesGoBothWaysAndContradictionsAreNamed) {
  const auto shapes = infer_shape_partial(elemwise_add(x, y), {{"x", {2, 0}}, {"y", {0, 3}}});
  EXPECT_EQ(shapes.args[0], (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(shapes.args[1], (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(fails_with(
      [] {
        infer_shape(elemwise_add(x, y, {}, "plus"), {{"x", {2, 3}}, {"y", {3, 2}}});
      },
      "plus", "(2,3)", "(3,2)"));
}

TEST(Elementwise, TakesArraysWithoutElements) {
  const auto none = zeros({0, 3});
  EXPECT_EQ(elemwise_add(none, none).shape(), (Shape{0, 3}));
  EXPECT_EQ(exp(none).size(), 0);
}

}  // namespace
}  // namespace symbind::testing
