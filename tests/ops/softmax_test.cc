#include "symbind/ops/softmax.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/reduce.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const NDArray two_rows = array<double>({0, 0, 5, 1, 0, 0}, {2, 3});
const NDArray lengths = array({2, 0}, cpu(), DType::int32);

TEST(Softmax, CountsOnlySoManyElementsOfARow) {
  EXPECT_TRUE(all_close(invoke(softmax, {two_rows, lengths}, {.use_length = true})[0].to_vector<double>(),
                        {0.5, 0.5, 0, 0, 0, 0}, {1e-6, 1e-7}));
  EXPECT_TRUE(all_close(invoke(log_softmax, {two_rows, lengths}, {.use_length = true})[0].to_vector<double>(),
                        {-std::log(2.0), -std::log(2.0), 0, 0, 0, 0}, {1e-6, 1e-7}));
  EXPECT_TRUE(fails_with(
      [] {
        invoke(softmax, {two_rows, array({2, 1})}, {.use_length = true});
      },
      "[softmax]", "length must hold whole numbers"));
  EXPECT_TRUE(fails_with(
      [] {
        invoke(softmax, {two_rows, zeros({3}, cpu(), DType::int32)}, {.use_length = true});
      },
      "length has shape (3,)", "(2,)"));
}

TEST(Softmax, GradientsPassLengthAndTemperature) {
  const Symbol data = Symbol::variable("data"), length = Symbol::variable("length");
  auto executor = simple_bind(softmax({data, length}, {.temperature = 2, .use_length = true}), cpu(),
                              {{"data", {2, 3}}}, {.type_dict = {{"length", DType::int32}}});
  executor->forward(true, {{"data", two_rows}, {"length", lengths}});
  executor->backward({array<double>({1, 0, 3, 1, 1, 1}, {2, 3})});
  EXPECT_TRUE(
      all_close(executor->grad_dict().at("data").to_vector<double>(), {0.125, -0.125, 0, 0, 0, 0}, {1e-6, 1e-7}));
}

TEST(LogSoftmax, KeepsItsDigitsBesideLargeNumbers) {
  const auto values = log_softmax(array({3e4, 3e4 + 1, -5, 0})).to_vector<double>();
  EXPECT_TRUE(all_close(values, {-1.3132617, -0.3132617, -30006.3132617, -30001.3132617}, {1e-6, 0}));
}

TEST(Softmax, RefusesWhatHasNoMeaning) {
  EXPECT_TRUE(fails_with([] { softmax(two_rows, {.temperature = 0}); }, "temperature must not be 0"));
  EXPECT_TRUE(fails_with([] { softmax(two_rows, {.axis = 2}); }, "[softmax]", "axis 2"));
  EXPECT_TRUE(fails_with([] { softmax(zeros({2}, cpu(), DType::int32)); }, "[softmax]", "int32"));
}

TEST(Norm, GivesAnotherTypeIfAsked) {
  const Symbol net = norm(Symbol::variable("data"), {.axis = Tuple{1}, .out_dtype = DType::float64});
  auto executor = simple_bind(net, cpu(), {{"data", {1, 2}}});
  executor->forward(true, {{"data", array<double>({3, 4}, {1, 2})}});
  EXPECT_EQ(executor->outputs()[0].dtype(), DType::float64);
  EXPECT_EQ(executor->outputs()[0].item(), 5);
  executor->backward({full({1}, 10, cpu(), DType::float64)});
  EXPECT_EQ(executor->grad_dict().at("data").dtype(), DType::float32);
  EXPECT_TRUE(all_close(executor->grad_dict().at("data").to_vector<double>(), {6, 8}, {1e-6, 0}));
}

TEST(Max, OfALongRowIsTheSameWhateverTheThreads) {
  NDArray row = random_array({200'000}, 3);
  row.slice(150'001, 150'002).fill(7);
  EXPECT_EQ(max(row).item(), 7);
  EXPECT_EQ(argmax(row).item(), 150'001);
  EXPECT_EQ(min(row * -1.0).item(), -7);
}

}  // namespace
}  // namespace symbind::testing
