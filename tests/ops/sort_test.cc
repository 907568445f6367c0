#include "symbind/ops/sort.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

// Numbers of which many are equal: the first of them come first, however many are asked for.
TEST(TopK, FewOfManyAreTheFirstOfAll) {
  constexpr int64_t rows = 3, length = 500;
  std::vector<double> values(static_cast<size_t>(rows * length));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 7919 % 41);
  const NDArray data = array(values, {rows, length});
  for (const bool ascend : {false, true})
    for (const int64_t k : {1, 5, 60, 70, 500}) {
      const auto found = invoke(topk, {data}, {.k = k, .ret_typ = "both", .is_ascend = ascend});
      const auto indices = found[1].to_vector<double>();
      for (int64_t row = 0; row < rows; ++row) {
        std::vector<int64_t> order(length);
        std::iota(order.begin(), order.end(), 0);
        const auto at = [&](int64_t i) { return values[static_cast<size_t>(row * length + i)]; };
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return ascend ? at(a) < at(b) : at(a) > at(b); });
        for (int64_t i = 0; i < k; ++i)
          ASSERT_EQ(indices[static_cast<size_t>(row * k + i)], static_cast<double>(order[static_cast<size_t>(i)]))
              << "row " << row << ", " << i << " of " << k << (ascend ? ", ascending" : "");
      }
    }
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

// Values as text, so that NaN can be compared.
std::string text_of(const NDArray& values) { return comma_separated(values.to_vector<double>()); }

// NaN counts as the largest: nothing is lost, and it is last in ascending order.
TEST(Sort, NaNIsTheLargestOfAllInEveryFloatingType) {
  for (const DType type : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    SCOPED_TRACE(join(type));
    const NDArray data = array({3, nan, -inf, inf, nan, 1}, cpu(), type);
    EXPECT_EQ(text_of(invoke(sort, {data})[0]), "-inf, 1, 3, inf, nan, nan");
    EXPECT_EQ(text_of(invoke(sort, {data}, {.is_ascend = false})[0]), "nan, nan, inf, 3, 1, -inf");
    EXPECT_EQ(text_of(invoke(argsort, {data})[0]), "2, 5, 0, 3, 1, 4");
    EXPECT_EQ(text_of(invoke(argsort, {data}, {.is_ascend = false})[0]), "1, 4, 3, 0, 5, 2");
  }
}

TEST(TopK, NaNIsTheLargestInEveryMode) {
  for (const DType type : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    SCOPED_TRACE(join(type));
    const NDArray data = array({1, nan, 5, 2}, cpu(), type);
    EXPECT_EQ(text_of(invoke(topk, {data}, {.k = 2, .ret_typ = "value"})[0]), "nan, 5");
    EXPECT_EQ(text_of(invoke(topk, {data}, {.k = 2})[0]), "1, 2");
    EXPECT_EQ(text_of(invoke(topk, {data}, {.k = 2, .ret_typ = "mask"})[0]), "0, 1, 1, 0");
    EXPECT_EQ(text_of(invoke(topk, {data}, {.k = 3, .ret_typ = "value", .is_ascend = true})[0]), "1, 2, 5");
    const auto both = invoke(topk, {data}, {.k = 3, .ret_typ = "both"});
    EXPECT_EQ(text_of(both[0]), "nan, 5, 2");
    EXPECT_EQ(text_of(both[1]), "1, 2, 3");
  }
}

// Few of many are found without sorting all.
TEST(TopK, FindsNaNAmongMany) {
  std::vector<double> values(1000, 0.0);
  for (size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? nan : static_cast<double>(i);
  const NDArray found = invoke(topk, {array(values, {1000})}, {.k = 4, .ret_typ = "value", .is_ascend = true})[0];
  EXPECT_EQ(text_of(found), "1, 2, 4, 5");
}

}  // namespace
}  // namespace symbind::testing
