#include "symbind/ops/hawkes.h"

#include <cmath>

#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

// One sequence of two events of one kind, at times 1 and 2, seen until 3.
std::vector<NDArray> two_events(double alpha, double mark = 0, double count = 2) {
  return {array({{0.5}}),  array({alpha}),     array({1}),     array({{0}}),
          array({{1, 1}}), array({{0, mark}}), array({count}), array({3})};
}

TEST(HawkesLL, WithoutExcitementIsThatOfAPoissonProcess) {
  const auto results = invoke("_contrib_hawkesll", two_events(0));
  EXPECT_NEAR(results[0].to_vector<double>()[0], 2 * std::log(0.5) - 0.5 * 3, 1e-6);
  EXPECT_NEAR(results[1].to_vector<double>()[0], std::exp(-2.0) + std::exp(-1.0), 1e-6);
}

TEST(HawkesLL, RefusesMarksAndLengthsThatDoNotFit) {
  EXPECT_TRUE(fails_with([] { invoke("_contrib_hawkesll", two_events(0.5, 1)); },
                         "mark 1 of event 1 of sequence 0 is not between 0 and 0"));
  EXPECT_TRUE(fails_with([] { invoke("_contrib_hawkesll", two_events(0.5, 0, 3)); },
                         "valid_length 3 of sequence 0 is not between 0 and 2"));
}

}  // namespace
}  // namespace symbind::testing
