// Batches prepared ahead of time: each iterator runs on its own thread while the network computes. With several
// iterators, a batch holds the inputs of all of them. An epoch starts with the first next(): its random numbers are
// drawn then, on the calling thread, before the threads start.
#pragma once

#include <chrono>
#include <exception>
#include <map>
#include <mutex>

#include "symbind/data/iterator.h"

namespace SYMBIND_API symbind {

struct PrefetchingIterOptions {
  // For every iterator, a map from its input names to the names used here; empty: unchanged.
  std::vector<std::map<std::string, std::string>> rename_data = {};
  std::vector<std::map<std::string, std::string>> rename_label = {};
  int64_t prefetch_buffer = 2;  // batches ready ahead of the caller, per iterator
};

// Any number of threads may call it: each batch goes to one of them. The iterators may not be used elsewhere meanwhile;
// referenced ones must outlive this one. An exception of an iterator is rethrown by the next() whose batch failed, and
// by every next() after it, until reset().
class PrefetchingIter : public DataIter {
 public:
  explicit PrefetchingIter(std::vector<std::shared_ptr<DataIter>> iters, PrefetchingIterOptions options = {});
  explicit PrefetchingIter(DataIter& iter, PrefetchingIterOptions options = {})
      : PrefetchingIter({std::shared_ptr<DataIter>(std::shared_ptr<DataIter>(), &iter)}, std::move(options)) {}
  ~PrefetchingIter() override;  // waits for batches in preparation
  PrefetchingIter(const PrefetchingIter&) = delete;
  PrefetchingIter& operator=(const PrefetchingIter&) = delete;

  // The descriptions at the start of the epoch: the iterators are busy.
  std::vector<DataDesc> provide_data() const override;
  std::vector<DataDesc> provide_label() const override;
  int64_t batch_size() const override;
  BucketKey default_bucket_key() const override;
  void reset() override;        // runs the iterators' reset() on the calling thread, one after the other
  void begin_epoch() override;  // starts the threads
  std::optional<DataBatch> next() override;

  // Stops the threads; next() fails from here on. A thread whose iterator does not return a batch within `patience` is
  // detached and keeps the iterator alive: for programs that exit while a source blocks. Returns whether all have
  // stopped.
  bool stop(std::chrono::milliseconds patience);

 private:
  class Worker;
  void describe();
  void begin();
  std::optional<DataBatch> merge_next();

  std::vector<std::shared_ptr<DataIter>> iters_;
  PrefetchingIterOptions options_;
  std::mutex mutex_;                                       // one caller at a time draws or resets
  mutable std::mutex described_mutex_;                     // for the descriptions, which may be queried meanwhile
  std::vector<std::vector<DataDesc>> data_of_, label_of_;  // by iterator, renamed
  int64_t batch_size_ = 0;
  BucketKey default_bucket_key_;
  std::exception_ptr failure_;
  bool started_ = false;  // has the epoch started?
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace symbind
