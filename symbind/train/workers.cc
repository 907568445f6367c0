#include "symbind/train/workers.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "symbind/backend/cpu/parallel.h"

namespace symbind {

struct Workers::Impl {
  std::mutex mutex;
  std::condition_variable start, done;
  const std::function<void(size_t)>* job = nullptr;
  uint64_t round = 0;  // of jobs; a worker runs each once
  size_t running = 0;
  bool stopping = false;
  std::vector<std::exception_ptr> thrown;
  std::vector<std::thread> threads;

  void work(size_t worker, int share) {
    cpu_backend::set_thread_share(share);
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      start.wait(lock, [&] { return stopping || round != seen; });
      if (stopping) return;
      seen = round;
      const auto* const current = job;
      lock.unlock();
      std::exception_ptr error;
      try {
        (*current)(worker);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      thrown[worker] = error;
      if (--running == 0) done.notify_one();
    }
  }
};

Workers::Workers(size_t count, int cores) : impl_(std::make_unique<Impl>()) {
  impl_->thrown.resize(count);
  if (count < 2) return;
  const int share = std::max(1, cores / static_cast<int>(count));
  for (size_t i = 0; i < count; ++i) impl_->threads.emplace_back([this, i, share] { impl_->work(i, share); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->start.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
}

void Workers::run(const std::function<void(size_t worker)>& job) {
  if (impl_->threads.empty()) return job(0);
  std::unique_lock lock(impl_->mutex);
  impl_->job = &job;
  impl_->running = impl_->threads.size();
  ++impl_->round;
  impl_->start.notify_all();
  impl_->done.wait(lock, [&] { return impl_->running == 0; });
  for (std::exception_ptr& error : impl_->thrown)
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
}

}  // namespace symbind
