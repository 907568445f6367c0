#include "symbind/ops/reset_arrays.h"

#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(ResetArrays, SetsArraysOfAllKindsTo0) {
  for (const Context context : all_devices()) {
    SCOPED_TRACE(join(context));
    std::vector<NDArray> arrays;
    for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::int8, DType::int64})
      for (const int64_t length : {0, 1, 5, 70001}) arrays.push_back(full({length}, 1, context, dtype));
    const uint64_t version = arrays.back().storage().version();
    EXPECT_TRUE(invoke(reset_arrays, arrays, {}).empty());
    for (const NDArray& each : arrays)
      for (const double value : each.to_vector<double>()) ASSERT_EQ(value, 0) << each.dtype();
    EXPECT_GT(arrays.back().storage().version(), version) << "a write is seen by whoever caches";
  }
}

TEST(ResetArrays, LeavesWhatIsAroundASlice) {
  for (const Context context : all_devices()) {
    const NDArray whole = full({9}, 1, context, DType::int8);
    invoke(reset_arrays, {whole.slice(3, 7)}, {});
    EXPECT_EQ(whole.to_vector<double>(), (std::vector<double>{1, 1, 1, 0, 0, 0, 0, 1, 1}));
  }
}

TEST(ResetArrays, IsNoPartOfANetwork) {
  EXPECT_TRUE(fails_with([] { reset_arrays(Symbol::variable("x"), {}); }, "output"));
}

}  // namespace
}  // namespace symbind::testing
