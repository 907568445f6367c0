// Loops over several threads, and how many of them the calling thread may use. Small work stays on the calling thread:
// waking others costs a few microseconds.
#pragma once

#include <cstdint>
#include <type_traits>

namespace symbind {

class Workers;

// How the loops of a thread run.
struct ThreadPolicy {
  // Number of OpenMP threads of a loop, including the calling one. oneDNN's loops always run on these.
  int threads = 1;
  // If given, parallel_for() runs on these instead. OpenMP's threads spin for a while after every loop, which takes
  // cores from the code that computes next.
  Workers* workers = nullptr;
};

// The policy of the calling thread: that of its innermost ThreadScope. Without one, OpenMP has as many threads as
// OMP_NUM_THREADS says, or one per core.
ThreadPolicy thread_policy();

// Sets the policy of the calling thread, and restores the previous one when destroyed.
class ThreadScope {
 public:
  explicit ThreadScope(ThreadPolicy policy);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  ThreadPolicy before_;
};

// How many threads a loop started here may use: 1 inside another parallel loop and in a forked child.
int available_threads();

// The type-erased form of parallel_for(): function(context, begin, end) for `threads` pieces of [0, count).
using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);
inline void run_piece(int64_t count, int piece, int pieces, RangeFunction function, void* context) {
  const int64_t begin = count * piece / pieces, end = count * (piece + 1) / pieces;
  if (begin < end) function(context, begin, end);
}
void run_ranges(int64_t count, int threads, RangeFunction function, void* context);

// Calls body(begin, end) for pieces of [0, count), in parallel when there are at least two grains of work. The pieces
// depend on count and the number of threads alone. An exception of a piece is rethrown when all are done.
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  if (count <= 0) return;
  const int64_t wanted = grain > 0 ? count / grain : count;
  const int64_t available = wanted < 2 ? 1 : available_threads();
  const int threads = static_cast<int>(wanted < available ? wanted : available);
  if (threads <= 1) {
    body(int64_t{0}, count);
    return;
  }
  auto trampoline = [](void* context, int64_t begin, int64_t end) {
    (*static_cast<std::remove_reference_t<Body>*>(context))(begin, end);
  };
  run_ranges(count, threads, trampoline, const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace symbind
