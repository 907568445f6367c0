// Loops over several cores. Small work stays on the calling thread: waking others costs a few microseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

namespace symbind::cpu_backend {

// How many threads a loop started here may use: 1 inside another parallel loop and in a forked child.
int available_threads();

// How many cores loops started by this thread may use from now on; 0: all there are.
void set_thread_share(int threads);

// The same for as long as it lives.
class ThreadShare {
 public:
  explicit ThreadShare(int threads) : before_(available_threads()) { set_thread_share(threads); }
  ~ThreadShare() { set_thread_share(before_); }
  ThreadShare(const ThreadShare&) = delete;
  ThreadShare& operator=(const ThreadShare&) = delete;

 private:
  int before_;
};

// Threads that may run the loops of another thread in place of OpenMP's, which spin for a while behind every loop and
// so take cores from whoever computes next.
class LoopThreads {
 public:
  virtual ~LoopThreads() = default;
  virtual int count() const = 0;
  virtual void run_pieces(int pieces, const std::function<void(int piece)>& body) = 0;
};

// While it lives, loops of this thread run on those; none: on OpenMP's again.
class LoopsOn {
 public:
  explicit LoopsOn(LoopThreads* threads);
  ~LoopsOn();
  LoopsOn(const LoopsOn&) = delete;
  LoopsOn& operator=(const LoopsOn&) = delete;

 private:
  LoopThreads* before_;
};

using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);
void run_ranges(int64_t count, int threads, RangeFunction function, void* context);

// Calls body(begin, end) for pieces of [0, count), in parallel when there are at least two grains of work. The pieces
// depend on count and the number of threads alone.
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  if (count <= 0) return;
  const int64_t wanted = grain > 0 ? count / grain : count;
  const int threads = wanted < 2 ? 1 : static_cast<int>(wanted < available_threads() ? wanted : available_threads());
  if (threads <= 1) {
    body(int64_t{0}, count);
    return;
  }
  auto trampoline = [](void* context, int64_t begin, int64_t end) {
    (*static_cast<std::remove_reference_t<Body>*>(context))(begin, end);
  };
  run_ranges(count, threads, trampoline, const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace symbind::cpu_backend
