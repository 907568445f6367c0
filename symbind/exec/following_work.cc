#include "symbind/exec/following_work.h"

#include <utility>

namespace symbind {
namespace {

thread_local FollowedBy* unclaimed = nullptr;

}  // namespace

FollowedBy::FollowedBy(Next next) : next_(std::move(next)), before_(std::exchange(unclaimed, this)) {}

FollowedBy::~FollowedBy() { unclaimed = before_; }

FollowedBy* FollowedBy::claim() { return std::exchange(unclaimed, nullptr); }

std::vector<FollowingWorkPtr> FollowedBy::take() {
  std::vector<FollowingWorkPtr> work = next_();
  taken_ = !work.empty();
  return work;
}

}  // namespace symbind
