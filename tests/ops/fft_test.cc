#include "symbind/ops/fft.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/count_sketch.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using Numbers = std::vector<double>;

TEST(FFT, OfEveryLengthIsUndoneByItsInverse) {
  for (int64_t length : {1, 2, 3, 5, 8, 17, 30, 49, 64, 101, 128, 1000, 1009}) {
    const NDArray x = random_array({3, length}, 5, -1, 1, DType::float64);
    const auto back = contrib_ifft(contrib_fft(x)).to_vector<double>(), before = x.to_vector<double>();
    for (size_t i = 0; i < before.size(); ++i)
      EXPECT_NEAR(back[i] / static_cast<double>(length), before[i], 1e-12) << length;
  }
}

TEST(FFT, OfAPulseIsFlat) {
  for (const int64_t length : {4, 6}) {
    Numbers pulse(static_cast<size_t>(length), 0), flat(static_cast<size_t>(2 * length), 0);
    pulse[0] = 1;
    for (size_t k = 0; k < flat.size(); k += 2) flat[k] = 1;
    EXPECT_TRUE(all_close(contrib_fft(array(pulse, {length})).to_vector<double>(), flat, {.absolute = 1e-6}));
  }
}

TEST(FFT, InfersRealAndComplexNumbersFromEachOther) {
  const Symbol net = contrib_fft(Symbol::variable("x"));
  EXPECT_EQ(infer_shape(net, {{"x", {2, 5}}}).outputs[0], (std::vector<int64_t>{2, 10}));
  EXPECT_TRUE(fails_with([] { contrib_ifft(array({1, 2, 3})); }, "the last axis must be even"));
}

TEST(CountSketch, RefusesSumsThatAreNotThere) {
  EXPECT_TRUE(fails_with(
      [] {
        count_sketch(array({{1, 2}}), array({{0, 3}}), array({{1, 1}}), {.out_dim = 3});
      },
      "h[1] is 3, not between 0 and 2"));
  EXPECT_TRUE(fails_with(
      [] {
        count_sketch(array({{1, 2}}), array({{0}, {1}}), array({{1, 1}}), {.out_dim = 3});
      },
      "h must be (d) or (1, d)"));
}

}  // namespace
}  // namespace symbind::testing
