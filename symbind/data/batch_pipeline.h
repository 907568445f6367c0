// Threads that prepare batches ahead of the caller, sample by sample: the samples of a batch, and of the next batches,
// are prepared concurrently, and batches are returned in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "symbind/data/iterator.h"

namespace symbind {

// A batch in preparation. Makers derive from it to add their own data.
struct BatchJob {
  virtual ~BatchJob() = default;
  DataBatch batch;
  size_t samples = 0;
};

class BatchMaker {
 public:
  virtual ~BatchMaker() = default;
  // The next batch of the epoch: its arrays, and what make() needs; none when the epoch is over. Never concurrently.
  virtual std::unique_ptr<BatchJob> plan() = 0;
  // One sample. Concurrently, with another `worker` each.
  virtual void make(BatchJob& job, size_t sample, size_t worker) = 0;
  // Called when all samples are made, before the batch is returned.
  virtual void finish(BatchJob& job) = 0;
};

class BatchPipeline {
 public:
  // `who` is named in errors.
  BatchPipeline(BatchMaker& maker, size_t threads, size_t batches_ahead, std::string who);
  ~BatchPipeline();  // only in the process that created it
  // False in a forked child, which has none of the threads: there the pipeline must be leaked instead of destroyed.
  bool in_this_process() const;
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;

  void start();  // starts preparing batches; does nothing if already started
  // Waits until nothing is in preparation, and discards finished batches: the maker belongs to the caller until
  // start().
  void stop();
  // The next batch; none when the epoch is over. An exception of the maker is thrown here, and by every call until
  // stop().
  std::unique_ptr<BatchJob> take();

 private:
  struct Slot {
    std::unique_ptr<BatchJob> job;
    size_t claimed = 0, done = 0;
    std::exception_ptr error;
  };

  void run(size_t worker);
  bool can_plan() const { return !planning_ && !over_ && slots_.size() < capacity_; }
  Slot* with_unclaimed_sample();
  void plan_one(std::unique_lock<std::mutex>& lock);
  void make_one(Slot& slot, size_t worker, std::unique_lock<std::mutex>& lock);
  void require_same_process() const;

  BatchMaker& maker_;
  const size_t capacity_;
  const std::string who_;
  const pid_t process_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Slot>> slots_;  // in the order of the batches
  bool ended_ = false, running_ = false;     // set by the caller
  bool planning_ = false, over_ = false;
  size_t making_ = 0;  // samples in preparation
  std::vector<std::thread> threads_;
};

}  // namespace symbind
