// Work that follows forward and backward on their device, such as the update of the parameters. While a FollowedBy
// lives, a run of both on the calling thread may take the work and queue it itself. Captured plans do: a training step
// is then one launch.
#pragma once

#include <functional>
#include <memory>
#include <vector>

namespace symbind {

class FollowingWork {
 public:
  FollowingWork() = default;
  virtual ~FollowingWork() = default;
  FollowingWork(const FollowingWork&) = delete;
  FollowingWork& operator=(const FollowingWork&) = delete;
  // Queues it on the device. It may be recorded for later launches: no waiting, no memory but its arrays, no data of
  // the host but the arguments of kernels.
  virtual void queue() const = 0;
  // A launch has repeated what queue() recorded: the arrays it writes have new values.
  virtual void mark_written() const = 0;
  // May it run while backward does? It then reads what was given to forward, except parameters, and results of forward;
  // and it shares what it writes with no work but other pieces that follow forward, which keep their order.
  virtual bool follows_forward() const { return false; }
};
using FollowingWorkPtr = std::shared_ptr<const FollowingWork>;

class FollowedBy {
 public:
  // Called at most once, by a run that then queues the work. Each piece is the same object as in the run before if it
  // is the same work. Empty: nothing follows this run.
  using Next = std::function<std::vector<FollowingWorkPtr>()>;
  explicit FollowedBy(Next next);
  ~FollowedBy();
  FollowedBy(const FollowedBy&) = delete;
  FollowedBy& operator=(const FollowedBy&) = delete;

  bool is_taken() const { return taken_; }

  // That of the calling thread, for its first caller; null: there is none. Runs inside of that run, of operators in
  // Python for instance, are not followed by it.
  static FollowedBy* claim();
  std::vector<FollowingWorkPtr> take();

 private:
  const Next next_;
  FollowedBy* const before_;
  bool taken_ = false;
};

}  // namespace symbind
