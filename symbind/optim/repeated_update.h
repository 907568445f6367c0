// An update of many parameters that training steps repeat: with the same arrays and the same numbers it is the same
// work on the device, so that it can be captured with the step.
#pragma once

#include <cstdint>
#include <vector>

#include "symbind/exec/following_work.h"
#include "symbind/optim/update_rule.h"

namespace symbind {

class RepeatedUpdate final : public FollowingWork {
 public:
  // The rule repeats, and outlives the calls of queue(). With a condition the device leaves the steps out where
  // it is 0 (core/update_condition.h).
  RepeatedUpdate(UpdateRule& rule, std::vector<UpdateRule::Step> steps, const UpdateRule::StepOptions& options,
                 uint64_t arguments_version, const NDArray& condition);

  void queue() const override;
  void mark_written() const override;

  // Would an update with these be the same? `arguments_version` changes with the arguments of the rule.
  bool is(const UpdateRule& rule, const std::vector<UpdateRule::Step>& steps, const UpdateRule::StepOptions& options,
          uint64_t arguments_version, const NDArray& condition) const;

 private:
  UpdateRule& rule_;
  std::vector<StateTree> states_;  // those of the steps, which hold their arrays as long as a captured step uses them
  std::vector<UpdateRule::Step> steps_;
  UpdateRule::StepOptions options_;
  uint64_t arguments_version_;
  NDArray condition_;
};

}  // namespace symbind
