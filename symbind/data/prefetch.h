// Batches made ahead of time: each iterator runs on a thread of its own while the network computes. Over several
// iterators, a batch holds the inputs of all of them. An epoch begins with the first next(): what is drawn at random
// for it is drawn then, on the calling thread, and the threads go on from there.
#pragma once

#include <chrono>
#include <exception>
#include <map>
#include <mutex>

#include "symbind/data/iterator.h"

namespace SYMBIND_API symbind {

struct PrefetchingIterOptions {
  // For every iterator, its inputs' names and what they are called here; empty: as they are.
  std::vector<std::map<std::string, std::string>> rename_data = {};
  std::vector<std::map<std::string, std::string>> rename_label = {};
  int64_t prefetch_buffer = 2;  // batches ready ahead of the caller, per iterator
};

// Any number of threads may call it: each batch goes to one of them. The iterators may not be used elsewhere meanwhile;
// referenced ones must outlive this one. What an iterator throws comes out of the next() whose batch it was to be, and
// of every next() after it, until reset().
class PrefetchingIter : public DataIter {
 public:
  explicit PrefetchingIter(std::vector<std::shared_ptr<DataIter>> iters, PrefetchingIterOptions options = {});
  explicit PrefetchingIter(DataIter& iter, PrefetchingIterOptions options = {})
      : PrefetchingIter({std::shared_ptr<DataIter>(std::shared_ptr<DataIter>(), &iter)}, std::move(options)) {}
  ~PrefetchingIter() override;  // waits for batches that are being made
  PrefetchingIter(const PrefetchingIter&) = delete;
  PrefetchingIter& operator=(const PrefetchingIter&) = delete;

  // As they were when the epoch began: the iterators are busy.
  std::vector<DataDesc> provide_data() const override;
  std::vector<DataDesc> provide_label() const override;
  int64_t batch_size() const override;
  BucketKey default_bucket_key() const override;
  void reset() override;        // runs the iterators' reset() on the calling thread, one after the other
  void begin_epoch() override;  // the threads begin
  std::optional<DataBatch> next() override;

  // Ends the threads; next() fails from here on. A thread whose iterator does not return a batch within `patience` is
  // left behind and keeps the iterator alive: for programs that end while a source blocks. Returns whether all ended.
  bool stop(std::chrono::milliseconds patience);

 private:
  class Worker;
  void describe();
  void begin();
  std::optional<DataBatch> merge_next();

  std::vector<std::shared_ptr<DataIter>> iters_;
  PrefetchingIterOptions options_;
  std::mutex mutex_;                                       // one caller at a time draws or resets
  mutable std::mutex described_mutex_;                     // for the descriptions, which are asked for meanwhile
  std::vector<std::vector<DataDesc>> data_of_, label_of_;  // by iterator, renamed
  int64_t batch_size_ = 0;
  BucketKey default_bucket_key_;
  std::exception_ptr failure_;
  bool started_ = false;  // is the epoch begun?
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace symbind
