// A worker is a thread and a bounded queue between it and the caller. Everything they share stands under one mutex, and
// one condition tells either side of any change. The iterator itself is touched by the worker while it makes a batch,
// and by the caller only while the worker is paused and idle.
#include "symbind/data/prefetch.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

namespace symbind {

class PrefetchingIter::Worker {
 public:
  Worker(DataIter& iter, size_t capacity) : iter_(iter), capacity_(capacity), thread_([this] { run(); }) {}
  ~Worker() {
    change([this] { stopped_ = true; });
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Throws away what was made ahead; on return the iterator belongs to the caller, until start().
  void pause() {
    std::unique_lock lock(mutex_);
    paused_ = true;
    changed_.wait(lock, [this] { return !busy_; });
    batches_.clear();
    over_ = false;
    error_ = nullptr;
  }
  void start() {
    change([this] { paused_ = false; });
  }

  std::optional<DataBatch> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || !batches_.empty(); });
    if (!batches_.empty()) {
      DataBatch batch = std::move(batches_.front());
      batches_.pop_front();
      changed_.notify_all();
      return batch;
    }
    if (error_) std::rethrow_exception(error_);
    return std::nullopt;
  }

 private:
  template <class Change>
  void change(Change make) {
    const std::lock_guard lock(mutex_);
    make();
    changed_.notify_all();
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopped_ || (!paused_ && !over_ && batches_.size() < capacity_); });
      if (stopped_) return;
      busy_ = true;
      lock.unlock();
      std::optional<DataBatch> batch;
      std::exception_ptr error;
      try {
        batch = iter_.next();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      busy_ = false;
      over_ = !batch;
      error_ = std::move(error);
      if (batch) batches_.push_back(std::move(*batch));
      changed_.notify_all();
    }
  }

  DataIter& iter_;
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<DataBatch> batches_;
  bool stopped_ = false, paused_ = true;  // said by the caller
  bool busy_ = false, over_ = false;      // said by the worker
  std::exception_ptr error_;
  std::thread thread_;  // last: it begins when the rest is there
};

namespace {

using Names = std::map<std::string, std::string>;

void check_renames(const std::vector<Names>& renames, size_t iterators, std::string_view argument) {
  require(renames.empty() || renames.size() == iterators, "[PrefetchingIter] ", argument,
          " needs an entry for every iterator: ", renames.size(), " for ", iterators, " iterators");
}

// `which` counts the iterators; `renames` has an entry for each, or none at all.
std::vector<DataDesc> renamed(std::vector<DataDesc> descs, const std::vector<Names>& renames, size_t which,
                              std::string_view argument) {
  if (renames.empty()) return descs;
  for (DataDesc& desc : descs) {
    const auto found = renames[which].find(desc.name);
    if (found == renames[which].end()) {
      std::vector<std::string> known;
      for (const auto& [name, ignored] : renames[which]) known.push_back(name);
      fail("[PrefetchingIter] ", argument, "[", which, "] must have an entry for every input of iterator ", which, ": ",
           desc.name, " is not among ", known.empty() ? "the entries, which are none" : comma_separated(known));
    }
    desc.name = found->second;
  }
  return descs;
}

template <class Item>
void append(std::vector<Item>& to, std::vector<Item> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<DataDesc> joined(const std::vector<std::vector<DataDesc>>& groups) {
  std::vector<DataDesc> all;
  for (const auto& group : groups) append(all, group);
  return all;
}

}  // namespace

PrefetchingIter::PrefetchingIter(std::vector<std::shared_ptr<DataIter>> iters, PrefetchingIterOptions options)
    : iters_(std::move(iters)), options_(std::move(options)) {
  require(!iters_.empty(), "[PrefetchingIter] needs at least one iterator");
  for (size_t i = 0; i < iters_.size(); ++i) {
    require(iters_[i] != nullptr, "[PrefetchingIter] iterator ", i, " is missing");
    require(std::find(iters_.begin(), iters_.begin() + static_cast<ptrdiff_t>(i), iters_[i]) ==
                iters_.begin() + static_cast<ptrdiff_t>(i),
            "[PrefetchingIter] each iterator runs on its own thread and may be given once: iterator ", i,
            " was given before");
  }
  require(options_.prefetch_buffer >= 1,
          "[PrefetchingIter] prefetch_buffer must be at least 1: ", options_.prefetch_buffer);
  check_renames(options_.rename_data, iters_.size(), "rename_data");
  check_renames(options_.rename_label, iters_.size(), "rename_label");
  describe();
  for (const auto& iter : iters_)
    workers_.push_back(std::make_unique<Worker>(*iter, static_cast<size_t>(options_.prefetch_buffer)));
}

PrefetchingIter::~PrefetchingIter() = default;

void PrefetchingIter::describe() {
  data_of_.clear();
  label_of_.clear();
  for (size_t i = 0; i < iters_.size(); ++i) {
    data_of_.push_back(renamed(iters_[i]->provide_data(), options_.rename_data, i, "rename_data"));
    label_of_.push_back(renamed(iters_[i]->provide_label(), options_.rename_label, i, "rename_label"));
  }
  batch_size_ = iters_[0]->batch_size();
  default_bucket_key_ = iters_[0]->default_bucket_key();
}

std::vector<DataDesc> PrefetchingIter::provide_data() const { return joined(data_of_); }
std::vector<DataDesc> PrefetchingIter::provide_label() const { return joined(label_of_); }

void PrefetchingIter::reset() {
  for (const auto& worker : workers_) worker->pause();
  failure_ = nullptr;
  try {
    for (const auto& iter : iters_) iter->reset();
    describe();
  } catch (...) {
    failure_ = std::current_exception();  // the iterators stand nobody knows where: next() fails until a reset succeeds
    throw;
  }
  started_ = false;
}

void PrefetchingIter::begin_epoch() {
  if (std::exchange(started_, true)) return;
  for (const auto& iter : iters_) iter->begin_epoch();  // one after the other: what they draw is reproducible
  for (const auto& worker : workers_) worker->start();
}

std::optional<DataBatch> PrefetchingIter::next() {
  if (failure_) std::rethrow_exception(failure_);
  try {
    begin_epoch();
    return merge_next();
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

std::optional<DataBatch> PrefetchingIter::merge_next() {
  std::vector<std::optional<DataBatch>> parts;
  for (const auto& worker : workers_) parts.push_back(worker->take());
  for (size_t i = 1; i < parts.size(); ++i) {
    require(parts[i].has_value() == parts[0].has_value(),
            "[PrefetchingIter] the iterators must have the same number of batches: iterator ", parts[0] ? i : 0,
            " ended before iterator ", parts[0] ? 0 : i);
    require(!parts[i] || parts[i]->pad == parts[0]->pad,
            "[PrefetchingIter] the iterators must have the same number of samples: in this batch iterator 0 has pad ",
            parts[0] ? parts[0]->pad : 0, ", iterator ", i, " has pad ", parts[i] ? parts[i]->pad : 0);
  }
  if (!parts[0]) return std::nullopt;

  // Where one batch describes itself, the others are as they were when the epoch began.
  const auto described = [&](auto member, std::vector<std::vector<DataDesc>> by_iterator,
                             const std::vector<Names>& renames,
                             std::string_view argument) -> std::optional<std::vector<DataDesc>> {
    bool any = false;
    for (size_t i = 0; i < parts.size(); ++i)
      if (const auto& own = (*parts[i]).*member) {
        by_iterator[i] = renamed(*own, renames, i, argument);
        any = true;
      }
    if (!any) return std::nullopt;
    return joined(by_iterator);
  };
  auto provide_data = described(&DataBatch::provide_data, data_of_, options_.rename_data, "rename_data");
  auto provide_label = described(&DataBatch::provide_label, label_of_, options_.rename_label, "rename_label");

  DataBatch batch = std::move(*parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    append(batch.data, std::move(parts[i]->data));
    append(batch.label, std::move(parts[i]->label));
  }
  batch.provide_data = std::move(provide_data);
  batch.provide_label = std::move(provide_label);
  // It is no longer what the first of them made.
  if (parts.size() > 1 || !options_.rename_data.empty() || !options_.rename_label.empty()) batch.source.reset();
  return batch;
}

}  // namespace symbind
