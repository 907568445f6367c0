// What every metric does that has updates which its sums do not have yet.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/train/metrics.h"

namespace symbind::testing {

// `update` leaves an update of two samples for later, of which one is counted as right.
inline void expect_reads_and_changes_see_waiting_updates(const std::function<void(metric::Accuracy&)>& update) {
  const auto updated = [&] {
    auto metric = std::make_unique<metric::Accuracy>();
    update(*metric);
    return metric;
  };
  EXPECT_EQ(updated()->get()[0].second, 0.5);
  EXPECT_EQ(updated()->get_global()[0].second, 0.5);
  EXPECT_EQ(updated()->sums().instances, 2);
  EXPECT_EQ(updated()->global_sums().sum, 1);
  EXPECT_EQ(updated()->state(), (std::vector<double>{1, 2, 1, 2}));
  EXPECT_EQ(updated()->str(), "EvalMetric: {'accuracy': 0.5}");
  EXPECT_EQ(metric::Accuracy(*updated()).sums().instances, 2) << "a copy";
  metric::Accuracy other;
  update(other);
  update(other);
  other = *updated();
  EXPECT_EQ(other.sums().instances, 2) << "its own were replaced";

  auto metric = updated();
  metric->update({array({1})}, {array({{0, 1}})});
  EXPECT_EQ(metric->sums().sum, 2);
  metric = updated();
  metric->set_sums({5, 5});
  EXPECT_EQ(metric->sums().instances, 5) << "the earlier update does not come after the change";
  EXPECT_EQ(metric->global_sums().instances, 2);
  metric = updated();
  metric->set_state({5, 6, 7, 8});
  EXPECT_EQ(metric->state(), (std::vector<double>{5, 6, 7, 8}));
  metric = updated();
  metric->set_options({"renamed"});
  EXPECT_EQ(metric->sums().instances, 2);
  metric = updated();
  metric->reset_local();
  EXPECT_EQ(metric->sums().instances, 0);
  EXPECT_EQ(metric->global_sums().instances, 2);
  metric = updated();
  metric->reset();
  EXPECT_EQ(metric->global_sums().instances, 0);
}

}  // namespace symbind::testing
