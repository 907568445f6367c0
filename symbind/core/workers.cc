#include "symbind/core/workers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "symbind/core/busy.h"
#include "symbind/core/parallel.h"

namespace symbind {
namespace {

// A training step hands over work several times, and waking a thread costs as much as a small operator: a waiting
// thread spins briefly before it sleeps. (OpenMP's threads do so for milliseconds.)
constexpr auto patience = std::chrono::microseconds(50);

template <class Condition>
bool soon(Condition&& condition) {
  const auto begin = std::chrono::steady_clock::now();
  while (!condition()) {
    if (std::chrono::steady_clock::now() - begin > patience) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

struct Workers::Impl {
  size_t workers = 1;
  int threads_each = 1;  // threads of a loop of each worker
  bool patient = false;  // is there a core for every waiting thread?
  std::mutex mutex;
  std::condition_variable start, done;
  const std::function<void(size_t)>* job = nullptr;
  const void* caller = nullptr;     // the thread that submitted the job
  std::atomic<uint64_t> round = 0;  // counts jobs; a worker runs each once
  std::atomic<size_t> running = 0;  // threads that still run the job
  std::atomic<bool> stopping = false;
  std::vector<std::exception_ptr> thrown;
  std::vector<std::thread> threads;
  const pid_t process = ::getpid();

  void run(const std::function<void(size_t worker)>& wanted);

  bool forked() const { return ::getpid() != process; }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    start.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  template <class Condition>
  void wait(std::condition_variable& changed, Condition condition) {
    if (patient && soon(condition)) return;
    std::unique_lock lock(mutex);
    changed.wait(lock, condition);
  }

  void run_one(size_t worker) {
    try {
      (*job)(worker);
    } catch (...) {
      thrown[worker] = std::current_exception();
    }
  }

  void work(size_t worker) {
    const ThreadScope own({.threads = threads_each});
    for (uint64_t seen = 0;;) {
      wait(start, [&] { return stopping || round != seen; });
      if (stopping) return;
      seen = round;
      {
        const WorkFor for_caller(caller);
        run_one(worker);
      }
      if (--running > 0) continue;
      const std::lock_guard lock(mutex);  // a waiting thread either sees it or is woken
      done.notify_one();
    }
  }
};

Workers::Workers(size_t count, int cores) : impl_(std::make_unique<Impl>()) {
  impl_->workers = std::max<size_t>(1, count);
  impl_->thrown.resize(impl_->workers);
  impl_->threads_each = std::max(1, cores / static_cast<int>(impl_->workers));
  impl_->patient = static_cast<size_t>(cores) >= impl_->workers;
  try {
    for (size_t i = 1; i < count; ++i) impl_->threads.emplace_back([impl = impl_.get(), i] { impl->work(i); });
  } catch (...) {  // the system has no more threads
    impl_->stop();
    throw;
  }
}

Workers::~Workers() {
  if (impl_->forked()) {  // a forked child has no thread to join, and a condition variable in use cannot be destroyed
    for (std::thread& thread : impl_->threads) thread.detach();
    (void)impl_.release();
    return;
  }
  impl_->stop();
}

void Workers::Impl::run(const std::function<void(size_t worker)>& wanted) {
  if (threads.empty() || forked()) {  // a forked child has only the calling thread
    for (size_t worker = 0; worker < workers; ++worker) wanted(worker);
    return;
  }
  {
    const std::lock_guard lock(mutex);
    job = &wanted;
    caller = InUse::current_user();
    running = threads.size();
    ++round;
  }
  start.notify_all();
  {
    const ThreadScope own({.threads = threads_each});  // the other workers are busy with the same job
    run_one(0);
  }
  wait(done, [&] { return running == 0; });
  std::exception_ptr first;
  for (std::exception_ptr& error : thrown)
    if (const auto each = std::exchange(error, nullptr); each && !first) first = each;
  if (first) std::rethrow_exception(first);
}

void Workers::run(const std::function<void(size_t worker)>& job) { impl_->run(job); }

bool Workers::concurrent() const { return !impl_->forked(); }
size_t Workers::count() const { return impl_->workers; }
int Workers::threads_each() const { return impl_->threads_each; }

}  // namespace symbind
