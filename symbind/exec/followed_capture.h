// The captured steps of a plan together with the work that follows them. Where only arguments of that work change, such
// as the learning rate, the captured graph gets the new ones. Work of another form, such as that of a padded batch, is
// queued by itself; if it stays, all is captured again, and more and more rarely if captures are soon of no use, since
// one takes as long as some steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "symbind/exec/following_work.h"
#include "symbind/passes/target.h"

namespace symbind {

class FollowedCapture {
 public:
  // Null: the device cannot record this.
  using Capture = std::function<std::unique_ptr<Captured>(const std::vector<FollowingWorkPtr>& work)>;

  // What to launch for the steps and this work; null: the work is queued after the steps this time.
  Captured* find(const std::vector<FollowingWorkPtr>& work, const Capture& capture) {
    if (captured_ && take(work)) {
      runs_ = 0;
      ++launches_;
      return captured_.get();
    }
    if (!can_capture_ || ++runs_ < runs_before_capture_) return nullptr;
    release();
    runs_before_capture_ *= 2;
    captured_ = capture(work);
    can_capture_ = captured_ != nullptr;
    if (!captured_) return nullptr;
    work_ = work;
    follows_forward_.clear();
    for (const FollowingWorkPtr& each : work) follows_forward_.push_back(each->follows_forward());
    return captured_.get();
  }
  // Nothing follows this run: the arrays of the work are not kept for another.
  void release() {
    if (launches_ >= worth_a_capture) runs_before_capture_ = 1;
    launches_ = runs_ = 0;
    captured_ = nullptr;
    work_.clear();
  }
  // The steps have other addresses or milestones now: what was learned about captures concerned the old ones.
  void forget() { *this = FollowedCapture(); }

 private:
  bool take(const std::vector<FollowingWorkPtr>& work) {
    if (!std::ranges::equal(work, follows_forward_, {}, &FollowingWork::follows_forward)) return false;
    for (size_t i = 0; i < work.size(); ++i) {
      if (work[i] == work_[i]) continue;
      work_[i] = nullptr;  // unknown if it cannot be replaced
      if (!captured_->replace_following(i, [&] { work[i]->queue(); })) return false;
      work_[i] = work[i];
    }
    return true;
  }

  static constexpr uint64_t worth_a_capture = 100;  // launches: what one takes is then little beside what it saved

  std::unique_ptr<Captured> captured_;
  std::vector<FollowingWorkPtr> work_;  // in captured_
  std::vector<bool> follows_forward_;   // where each piece of it is: replacing it does not move it
  uint64_t launches_ = 0;               // of captured_
  uint64_t runs_ = 0;                   // in a row, with other work than captured_ can have
  uint64_t runs_before_capture_ = 1;
  bool can_capture_ = true;
};

}  // namespace symbind
