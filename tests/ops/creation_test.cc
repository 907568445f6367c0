#include "symbind/ops/creation.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/elementwise.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(Creation, FillsEveryType) {
  for (const char* type : {"float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"}) {
    const auto filled = invoke("_ones", {}, {{"shape", "(2, 3)"}, {"dtype", type}})[0];
    EXPECT_EQ(filled.dtype(), dtype_from_name(type));
    EXPECT_EQ(filled.to_vector<int>(), std::vector<int>(6, 1));
  }
  EXPECT_EQ(zeros_like(counted({2})).to_vector<int>(), (std::vector<int>{0, 0}));
  EXPECT_EQ(ones_like(counted({2})).to_vector<int>(), (std::vector<int>{1, 1}));
}

TEST(Creation, InfersWhatIsNotGiven) {
  const auto net = elemwise_add(make_zeros({.shape = {0, 3}}), Symbol::variable("x"));
  EXPECT_EQ(infer_shape(net, {{"x", {2, 3}}}).outputs[0], (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(eval(net, {{"x", ones({2, 3})}})[0].to_vector<int>(), std::vector<int>(6, 1));
}

}  // namespace
}  // namespace symbind::testing
