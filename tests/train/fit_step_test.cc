// Which module may overlap its call with what fit() does next.
#include "symbind/train/fit_step.h"

#include <thread>

#include <gtest/gtest.h>

#include "symbind/train/metric.h"

#include "tests/support/training.h"

namespace symbind::testing {
namespace {

using Call = FitStep::Call;

struct Permissions {
  bool update, finish;
  EvalMetric* metric;
  bool operator==(const Permissions&) const = default;
};
constexpr Permissions none{false, false, nullptr};

Permissions of(const BaseModule& module) {
  return {FitStep::update_follows(module), FitStep::finish_follows(module), FitStep::metric(module)};
}

TEST(FitStep, ConcernsTheCallThatIsMade) {
  const Module module(small_network());
  const EvalMetricPtr metric = EvalMetric::create("acc");
  EXPECT_EQ(of(module), none);
  {
    const FitStep step(module, Call::forward_backward, metric.get());
    EXPECT_EQ(of(module), (Permissions{true, false, metric.get()}));
  }
  {
    const FitStep step(module, Call::update);
    EXPECT_EQ(of(module), (Permissions{false, true, nullptr}));
  }
  EXPECT_EQ(of(module), none);
}

TEST(FitStep, ConcernsNoOtherModuleAndNoOtherThread) {
  const Module module(small_network()), other(small_network());
  const FitStep step(module, Call::forward_backward);
  EXPECT_EQ(of(other), none);
  std::thread([&] { EXPECT_EQ(of(module), none); }).join();
  {
    const FitStep nested(other, Call::update);  // fit() of another module, called by an operator of this one
    EXPECT_EQ(of(module), none);
    EXPECT_EQ(of(other), (Permissions{false, true, nullptr}));
  }
  EXPECT_EQ(of(module), (Permissions{true, false, nullptr}));
}

TEST(FitStep, IsPassedToThePartThatMakesTheCall) {
  const Module whole(small_network()), part(small_network());
  const EvalMetricPtr metric = EvalMetric::create("acc");
  {
    const FitStep in_part(whole, part);
    EXPECT_EQ(of(part), none) << "the whole has nothing to pass on";
  }
  const FitStep step(whole, Call::forward_backward, metric.get());
  {
    const FitStep in_part(whole, part);
    EXPECT_EQ(of(part), (Permissions{true, false, metric.get()}));
    EXPECT_EQ(of(whole), none);
  }
  EXPECT_EQ(of(whole), (Permissions{true, false, metric.get()}));
}

// ---- fit() ----------------------------------------------------------------------------------------------------------

// Notes what it may overlap.
class Noting final : public Module {
 public:
  Noting() : Module(small_network()) {}
  void forward_backward(const DataBatch& batch) override {
    passes.push_back(of(*this));
    Module::forward_backward(batch);
  }
  void update() override {
    updates.push_back(of(*this));
    Module::update();
  }
  std::vector<Permissions> passes, updates;
};

FitArgs one_epoch(const EvalMetricPtr& metric) { return {.eval_metric = metric, .num_epoch = 1}; }

TEST(FitStep, IsForDerivedClassesOnlyWhereItIsAllowed) {
  const Quiet quiet;
  const EvalMetricPtr metric = EvalMetric::create("acc");
  for (const Overlaps allowed : {Overlaps::none, Overlaps::update, Overlaps::update_and_metric}) {
    NDArrayIter data = batches(20);  // 2 of 10 samples
    Noting module;
    const AllowOverlaps overlaps(allowed);
    module.fit(data, one_epoch(metric));
    EvalMetric* const in_step = allowed == Overlaps::update_and_metric ? metric.get() : nullptr;
    const Permissions in_passes = allowed == Overlaps::none ? none : Permissions{true, false, in_step};
    const Permissions in_update = in_step ? Permissions{false, true, nullptr} : none;
    EXPECT_EQ(module.passes, std::vector(2, in_passes));
    EXPECT_EQ(module.updates, std::vector(2, in_update));
  }
}

TEST(FitStep, IsNotForAModuleThatACallbackTrains) {
  const Quiet quiet;
  const EvalMetricPtr metric = EvalMetric::create("acc");
  NDArrayIter data = batches(20), inner_data = batches(20);
  Noting outer, inner;
  FitArgs args = one_epoch(metric);
  args.epoch_end_callback = {[&](int, const Symbol&, const NamedArrays&, const NamedArrays&) {
    inner.fit(inner_data, one_epoch(EvalMetric::create("acc")));
  }};
  const AllowOverlaps overlaps;
  outer.fit(data, args);
  EXPECT_EQ(outer.passes, std::vector(2, Permissions{true, false, metric.get()}));
  EXPECT_EQ(inner.passes, std::vector(2, none));
  EXPECT_EQ(AllowOverlaps::allowed(), Overlaps::update_and_metric) << "again";
}

TEST(FitStep, IsNotForFitWithAMonitor) {
  const Quiet quiet;
  NDArrayIter data = batches(20);
  Noting module;
  Monitor monitor(1);
  FitArgs args = one_epoch(EvalMetric::create("acc"));
  args.monitor = &monitor;
  const AllowOverlaps overlaps;
  module.fit(data, args);
  EXPECT_EQ(module.passes, std::vector(2, none));
}

}  // namespace
}  // namespace symbind::testing
