// What can be seen of a run, by name, and the comparison of two of them.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/arrays.h"
#include "tests/support/sensitivity.h"

namespace symbind::testing {

struct Record {
  std::vector<std::string> names;
  std::vector<NDArray> arrays;

  void add(const std::string& what, const NamedArrays& found) {
    for (const auto& [name, array] : found) {
      names.push_back(what + " " + name);
      arrays.push_back(array.as_copy_in(cpu()));
    }
  }
};

// Equal within the tolerance, and where it is exceeded within what `disturbed(noise)`, the expected run with arguments
// disturbed, differs by. Names the first array that does not agree.
inline ::testing::AssertionResult agree(const Record& actual, const Record& expected, Tolerance tolerance,
                                        const std::function<Record(uint64_t noise)>& disturbed) {
  if (actual.names != expected.names)
    return ::testing::AssertionFailure() << comma_separated(actual.names) << "; expected "
                                         << comma_separated(expected.names);
  std::vector<double> moves;
  for (size_t i = 0; i < expected.arrays.size(); ++i) {
    if (all_close(actual.arrays[i], expected.arrays[i], tolerance)) continue;
    if (moves.empty()) moves = sensitivity(expected.arrays, [&](uint64_t noise) { return disturbed(noise).arrays; });
    Tolerance wider = tolerance;
    wider.absolute += 20 * moves[i];
    if (const auto close = all_close(actual.arrays[i], expected.arrays[i], wider); !close)
      return ::testing::AssertionFailure() << expected.names[i] << ": " << close.message();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace symbind::testing
