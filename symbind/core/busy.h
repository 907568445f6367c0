// A mark on objects that serve one thread at a time. Every public call takes it for as long as it runs; a call from
// another thread meanwhile fails immediately instead of corrupting memory. The cost is one atomic exchange per call.
#pragma once

#include <atomic>
#include <string_view>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

class BusyFlag {
 public:
  BusyFlag() = default;
  // A copied object starts unused: the flag is not copied.
  BusyFlag(const BusyFlag&) noexcept {}
  BusyFlag& operator=(const BusyFlag&) noexcept { return *this; }

 private:
  friend class InUse;
  std::atomic<const void*> user_ = nullptr;
};

// Marks an object as used by the calling thread while this lives. Nested uses by the same thread are allowed: a
// callback may call back. Otherwise it fails: "[call] what is in use by another thread …; advice".
class InUse {
 public:
  InUse(BusyFlag& flag, std::string_view call, std::string_view what, std::string_view advice = "") : flag_(&flag) {
    const void* const me = current_user();
    const void* user = nullptr;
    if (flag.user_.compare_exchange_strong(user, me, std::memory_order_acquire, std::memory_order_relaxed)) return;
    if (user != me) fail_busy(call, what, advice);
    flag_ = nullptr;  // an outer use of this thread holds it
  }
  ~InUse() {
    if (flag_) flag_->user_.store(nullptr, std::memory_order_release);
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

  // Identifies the calling thread, or the thread that it works for.
  static const void* current_user() noexcept;

 private:
  [[noreturn]] static void fail_busy(std::string_view call, std::string_view what, std::string_view advice);
  BusyFlag* flag_;
};

// While this lives, the calling thread works on behalf of another, identified by `user` (InUse::current_user()), and
// may use the objects that thread has in use. For threads that divide the work of one call.
class WorkFor {
 public:
  explicit WorkFor(const void* user) noexcept;
  ~WorkFor();
  WorkFor(const WorkFor&) = delete;
  WorkFor& operator=(const WorkFor&) = delete;

 private:
  const void* before_;
};

}  // namespace symbind
