// Persistent threads, one per device, that run the same job on all devices at once. The calling thread is the first of
// them.
#pragma once

#include <functional>
#include <memory>

namespace symbind {

namespace cpu_backend {
class LoopThreads;
}

class Workers {
 public:
  // Each may use its share of `cores` for its own loops.
  Workers(size_t count, int cores);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Runs job(0) … job(count - 1) at the same time and waits for all; throws the first exception there was.
  void run(const std::function<void(size_t worker)>& job);
  // May a job wait for another? Not in a forked child, where they run one after the other.
  bool at_once() const;
  size_t count() const;
  int share() const;  // of the cores, for each

  // As helpers for loops of the calling thread.
  cpu_backend::LoopThreads& loop_threads() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace symbind
