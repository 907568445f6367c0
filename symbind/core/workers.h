// Persistent threads that run one job together: one per device of a network on several devices. The calling thread is
// the first of them. The calling thread's loops may run on them too (ThreadPolicy in core/parallel.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace symbind {

class Workers {
 public:
  // While they run a job, the loops of each worker use its share of `cores`.
  Workers(size_t count, int cores);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Runs job(0) … job(count - 1) concurrently and waits for all; throws the exception of the first that failed.
  void run(const std::function<void(size_t worker)>& job);
  // May a job wait for another? Not in a forked child, where they run one after the other.
  bool concurrent() const;
  size_t count() const;
  int threads_each() const;  // threads of a loop of each worker

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace symbind
