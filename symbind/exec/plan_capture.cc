// Replaying steps as one unit, on devices that can: stretches of a part, both passes together, and these with the work
// that follows them.
#include <algorithm>
#include <iostream>

#include "symbind/core/environment.h"
#include "symbind/core/error.h"
#include "symbind/exec/plan.h"
#include "symbind/exec/profiling.h"
#include "symbind/exec/step_order.h"
#include "symbind/passes/passes.h"
#include "symbind/passes/step_capture.h"

namespace symbind {

void Plan::join_parts() {
  if (!may_capture_ || forward_.stretches.empty() || backward_.stretches.empty()) return;
  const Stretch &last = forward_.stretches.back(), &first = backward_.stretches.front();
  if (last.capturable && first.capturable) joined_.emplace(Stretch{last.begin, first.end, true, 0, nullptr});
}

void Plan::forget_captured(Part& part, int runs_so_far) {
  for (Stretch& stretch : part.stretches) stretch.forget_captured(runs_so_far);
  if (joined_) joined_->forget_captured(runs_so_far);
  followed_.forget();
}

void Plan::run_stretch(const Part& part, Stretch& stretch, const MilestoneCallback* reached) {
  const auto before = [](const Milestone& milestone, size_t steps) { return milestone.steps <= steps; };
  const auto index_after = [&](size_t steps) {
    const auto& all = part.milestones;
    return static_cast<size_t>(std::lower_bound(all.begin(), all.end(), steps, before) - all.begin());
  };
  const size_t first = index_after(stretch.begin), end = index_after(stretch.end);
  const auto report = [&](size_t milestone) {
    if (reached) (*reached)(milestone, part.milestones[milestone].event);
  };
  const auto launch = [&] {
    stretch.captured->launch();
    for (size_t i = first; i < end; ++i) report(i);
  };
  if (stretch.captured) return launch();
  const auto run_steps = [&](bool captures) {
    size_t next = first;
    for (size_t i = stretch.begin; i < stretch.end; ++i) {
      run_step(steps_[i]);
      if (poison_) poison_ranges(steps_[i], poison_->after(steps_[i].node));
      for (; next < end && part.milestones[next].steps == i + 1; ++next) {
        if (const auto& event = part.milestones[next].event) event->record();
        if (!captures) report(next);
      }
    }
  };
  // The first run lets libraries initialize; the second is captured.
  if (may_capture_ && stretch.capturable && stretch.runs++ == 1) {
    stretch.captured =
        capture(stretch, std::span(part.milestones).subspan(first, end - first), [&] { run_steps(true); });
    if (stretch.captured) return launch();
  }
  run_steps(false);
}

// Work that follows is taken from the run after the capture on, if it comes directly after these steps.
void Plan::run_joined(const MilestoneCallback* reached, FollowedBy* following) {
  const bool is_last = backward_.stretches.size() == 1 && backward_.milestones.empty();
  std::vector<FollowingWorkPtr> work;
  // The profiler of operators waits after each, which cannot be captured.
  if (following && is_last && joined_->captured && !profiler::records_operators()) work = following->take();
  if (work.empty()) {
    followed_.release();
    return run_stretch(backward_, *joined_, reached);
  }
  Captured* const both = followed_.find(work, [&](const std::vector<FollowingWorkPtr>& after) {
    const auto run_steps = [&] {
      for (size_t i = joined_->begin; i < joined_->end; ++i) run_step(steps_[i]);
    };
    return capture(*joined_, {}, run_steps, after);
  });
  if (both) {
    both->launch();
    for (const FollowingWorkPtr& each : work) each->mark_written();
    return;
  }
  run_stretch(backward_, *joined_, reached);
  for (const FollowingWorkPtr& each : work) each->queue();
}

// By the order that the steps need, if they are few: the gradients of weights do not wait for those of data. Poison is
// written to memory that no step accesses: then one after the other.
std::unique_ptr<Captured> Plan::capture(const Stretch& stretch, std::span<const Milestone> milestones,
                                        const QueueWork& run_steps, std::span<const FollowingWorkPtr> following) const {
  const Context context = graph_.node(steps_[stretch.begin].node).context;
  Target& target = Target::get(context);
  Device& device = Device::get(context);
  std::vector<QueueWork> after;
  std::vector<StepCapture::Following> after_steps;
  for (const FollowingWorkPtr& work : following) {
    after.emplace_back([&work] { work->queue(); });
    const size_t end = work->follows_forward() ? backward_.begin : stretch.end;
    after_steps.push_back({end - 1 - stretch.begin, after.back()});
  }
  const bool concurrent = is_short(stretch) && !poison_ && environment::variable("SYMBIND_CONCURRENT_STEPS").on();
  if (auto* const by_need = concurrent ? dynamic_cast<StepCapture*>(&target) : nullptr) {
    std::vector<StepAccess> all;
    for (size_t i = stretch.begin; i < stretch.end; ++i) all.push_back(accesses(i));
    std::vector<size_t> joined;  // the step before each milestone
    for (const Milestone& milestone : milestones) joined.push_back(milestone.steps - 1 - stretch.begin);
    size_t next = 0;
    const auto run_one = [&](size_t step) { run_step(steps_[stretch.begin + step]); };
    const auto record = [&](size_t) {
      if (const auto& event = milestones[next++].event) event->record();
    };
    const std::vector<std::vector<size_t>> waits = step_waits(all);
    auto captured = by_need->capture_steps(device, waits, run_one, joined, record, after_steps);
    if (captured && explain_level() >= 2)
      std::clog << "[plan] " << all.size() << " steps are captured" << (after.empty() ? "" : " with what follows them")
                << ", the longest chain has " << longest_chain(waits) << std::endl;
    if (captured) return captured;
  }
  return target.capture(device, run_steps, after);
}

// In forward and in backward.
bool Plan::is_short(const Stretch& stretch) const {
  const size_t middle = std::clamp(backward_.begin, stretch.begin, stretch.end);
  return std::max(middle - stretch.begin, stretch.end - middle) <= most_concurrent_steps;
}

}  // namespace symbind
