// The observable results of a run, by name, and a reference run.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/arrays.h"
#include "tests/support/sensitivity.h"

namespace symbind::testing {

struct Record {
  std::vector<std::string> names;  // "gradient of fc1_weight"
  std::vector<std::string> kinds;  // "gradient"
  std::vector<NDArray> arrays;

  void add(const std::string& kind, const NamedArrays& found) {
    for (const auto& [name, array] : found) add(kind, " of " + name, array);
  }
  // Outputs by number: two of them may have one name.
  void add(const std::string& kind, const std::vector<NDArray>& found) {
    for (size_t i = 0; i < found.size(); ++i) add(kind, " " + std::to_string(i), found[i]);
  }

 private:
  void add(const std::string& kind, const std::string& which, const NDArray& array) {
    names.push_back(kind + which);
    kinds.push_back(kind);
    arrays.push_back(array.as_copy_in(cpu()));
  }
};

class Reference {
 public:
  // `run(noise)` runs with arguments disturbed by some noise.
  explicit Reference(std::function<Record(Noise noise)> run) : run_(std::move(run)), expected_(run_({})) {
    for (size_t i = 0; i < expected_.arrays.size(); ++i)
      for (const double value : expected_.arrays[i].to_vector<double>())
        if (std::isfinite(value))
          largest_[expected_.kinds[i]] = std::max(largest_[expected_.kinds[i]], std::abs(value));
  }

  const Record& expected() const { return expected_; }

  // Equal within the tolerance and a fraction of the largest value of the same kind (cancellation leaves the rounding
  // error of the terms), or else within the change caused by a disturbance in the last digits, `slack` times that if
  // many runs are compared: of very many, some have larger rounding errors than the disturbances tried. Names the first
  // array that does not agree.
  ::testing::AssertionResult agrees_with(const Record& actual, Tolerance tolerance, double slack = 1) {
    if (actual.names != expected_.names)
      return ::testing::AssertionFailure()
             << comma_separated(actual.names) << "; expected " << comma_separated(expected_.names);
    for (size_t i = 0; i < actual.arrays.size(); ++i) {
      Tolerance allowed = tolerance;
      allowed.absolute += 5e-5 * largest_[expected_.kinds[i]];
      if (compare(actual, i, allowed)) continue;
      if (moves_.empty()) moves_ = moves();
      allowed.absolute = slack * (allowed.absolute + moves_[i]);
      if (const auto close = compare(actual, i, allowed); !close)
        return ::testing::AssertionFailure() << expected_.names[i] << ": " << close.message();
    }
    return ::testing::AssertionSuccess();
  }

 private:
  // How far a disturbance by 2e-5 moves each array. One by 1e-6 finds it where results follow their arguments smoothly.
  // One by 1e-5 finds more kinks: after a function that is flat there, such as x / (1 + x²) near x = 1, two elements
  // of a window are equal in float32 though their arguments are far apart.
  std::vector<double> moves() const {
    const auto run = [&](Noise noise) { return run_(noise).arrays; };
    const auto small = sensitivity(expected_.arrays, 1e-6, run), large = sensitivity(expected_.arrays, 1e-5, run);
    std::vector<double> result;
    for (size_t i = 0; i < small.size(); ++i) result.push_back(std::max(20 * small[i], 2 * large[i]));
    return result;
  }

  // The reference may be of a more exact type.
  ::testing::AssertionResult compare(const Record& actual, size_t index, Tolerance allowed) const {
    const NDArray &ours = actual.arrays[index], &theirs = expected_.arrays[index];
    if (ours.shape() != theirs.shape())
      return ::testing::AssertionFailure() << "shape " << ours.shape() << ", expected " << theirs.shape();
    return all_close(ours.to_vector<double>(), theirs.to_vector<double>(), allowed, ours.shape());
  }

  std::function<Record(Noise noise)> run_;
  Record expected_;
  std::map<std::string, double> largest_;  // by kind
  std::vector<double> moves_;              // by array; empty: not known yet
};

}  // namespace symbind::testing
