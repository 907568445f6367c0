#include "symbind/ops/sort.h"

#include <algorithm>
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
      const auto places = found[1].to_vector<double>();
      for (int64_t row = 0; row < rows; ++row) {
        std::vector<int64_t> order(length);
        std::iota(order.begin(), order.end(), 0);
        const auto at = [&](int64_t i) { return values[static_cast<size_t>(row * length + i)]; };
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return ascend ? at(a) < at(b) : at(a) > at(b); });
        for (int64_t i = 0; i < k; ++i)
          ASSERT_EQ(places[static_cast<size_t>(row * k + i)], static_cast<double>(order[static_cast<size_t>(i)]))
              << "row " << row << ", " << i << " of " << k << (ascend ? ", ascending" : "");
      }
    }
}

}  // namespace
}  // namespace symbind::testing
