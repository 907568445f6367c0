#include "symbind/data/batch_pipeline.h"

#include <unistd.h>

#include "symbind/core/error.h"

namespace symbind {

BatchPipeline::BatchPipeline(BatchMaker& maker, size_t threads, size_t batches_ahead, std::string who)
    : maker_(maker), capacity_(batches_ahead), who_(std::move(who)), process_(::getpid()) {
  for (size_t worker = 0; worker < threads; ++worker) threads_.emplace_back([this, worker] { run(worker); });
}

BatchPipeline::~BatchPipeline() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool BatchPipeline::in_this_process() const { return ::getpid() == process_; }

void BatchPipeline::require_same_process() const {
  require(in_this_process(), "[", who_, "] its threads belong to the process that created it and are not in this fork");
}

void BatchPipeline::start() {
  require_same_process();
  const std::lock_guard lock(mutex_);
  running_ = true;
  changed_.notify_all();
}

void BatchPipeline::stop() {
  require_same_process();
  std::unique_lock lock(mutex_);
  running_ = false;
  changed_.wait(lock, [this] { return !planning_ && making_ == 0; });
  slots_.clear();
  over_ = false;
}

std::unique_ptr<BatchJob> BatchPipeline::take() {
  require_same_process();
  std::unique_lock lock(mutex_);
  const auto front_is_done = [this] {
    return !slots_.empty() && (slots_.front()->error || slots_.front()->done == slots_.front()->job->samples);
  };
  changed_.wait(lock, [&] { return front_is_done() || (over_ && slots_.empty()); });
  if (slots_.empty()) return nullptr;
  if (slots_.front()->error) std::rethrow_exception(slots_.front()->error);
  const std::unique_ptr<Slot> slot = std::move(slots_.front());
  slots_.pop_front();
  changed_.notify_all();
  return std::move(slot->job);
}

BatchPipeline::Slot* BatchPipeline::with_unclaimed_sample() {
  for (const auto& slot : slots_)
    if (!slot->error && slot->claimed < slot->job->samples) return slot.get();
  return nullptr;
}

void BatchPipeline::run(size_t worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    Slot* slot = nullptr;
    changed_.wait(lock,
                  [&] { return ended_ || (running_ && ((slot = with_unclaimed_sample()) != nullptr || can_plan())); });
    if (ended_) return;
    // The next batch is planned before the last sample of this one is finished, so that no thread waits.
    if (slot)
      make_one(*slot, worker, lock);
    else
      plan_one(lock);
  }
}

void BatchPipeline::plan_one(std::unique_lock<std::mutex>& lock) {
  planning_ = true;
  lock.unlock();
  auto slot = std::make_unique<Slot>();
  try {
    slot->job = maker_.plan();
  } catch (...) {
    slot->error = std::current_exception();
  }
  lock.lock();
  planning_ = false;
  over_ = !slot->job;
  if (slot->job || slot->error) slots_.push_back(std::move(slot));
  changed_.notify_all();
}

// A slot is not removed while one of its samples is made: it is not done, and stop() waits before it discards slots.
void BatchPipeline::make_one(Slot& slot, size_t worker, std::unique_lock<std::mutex>& lock) {
  const size_t sample = slot.claimed++;
  ++making_;
  lock.unlock();
  std::exception_ptr error;
  try {
    maker_.make(*slot.job, sample, worker);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (!error && slot.done + 1 == slot.job->samples) {
    lock.unlock();
    try {
      maker_.finish(*slot.job);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
  }
  --making_;
  ++slot.done;
  if (error && !slot.error) slot.error = error;
  if (slot.done == slot.job->samples || slot.error || making_ == 0) changed_.notify_all();
}

}  // namespace symbind
