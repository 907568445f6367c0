// A worker is a thread and a bounded queue between it and the caller. Everything they share is under one mutex, and
// one condition variable signals changes to both. The iterator itself is touched by the worker while it makes a batch,
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

// The state that the thread uses lives as long as the thread, which may be detached.
class PrefetchingIter::Worker {
 public:
  Worker(std::shared_ptr<DataIter> iter, size_t capacity)
      : shared_(std::make_shared<Shared>(std::move(iter), capacity)), thread_([shared = shared_] { shared->run(); }) {}
  ~Worker() {
    if (!thread_.joinable()) return;
    ask_to_stop();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void ask_to_stop() {
    shared_->change([this] { shared_->stopped = true; });
  }
  // After ask_to_stop(): false when its iterator does not return in time.
  bool end_before(std::chrono::steady_clock::time_point time) {
    if (!thread_.joinable()) return true;
    std::unique_lock lock(shared_->mutex);
    const bool idle = shared_->changed.wait_until(lock, time, [this] { return !shared_->busy; });
    lock.unlock();
    if (idle)
      thread_.join();
    else
      thread_.detach();
    return idle;
  }

  // Discards prepared batches; on return the iterator belongs to the caller, until start().
  void pause() {
    std::unique_lock lock(shared_->mutex);
    shared_->paused = true;
    shared_->changed.wait(lock, [this] { return !shared_->busy || shared_->stopped; });
    shared_->require_running();
    shared_->batches.clear();
    shared_->over = false;
    shared_->error = nullptr;
  }
  void start() {
    shared_->change([this] { shared_->paused = false; });
  }

  std::optional<DataBatch> take() {
    Shared& shared = *shared_;
    std::unique_lock lock(shared.mutex);
    shared.changed.wait(lock, [&] { return shared.over || !shared.batches.empty() || shared.stopped; });
    shared.require_running();
    if (!shared.batches.empty()) {
      DataBatch batch = std::move(shared.batches.front());
      shared.batches.pop_front();
      shared.changed.notify_all();
      return batch;
    }
    if (shared.error) std::rethrow_exception(shared.error);
    return std::nullopt;
  }

 private:
  struct Shared {
    Shared(std::shared_ptr<DataIter> source, size_t most) : iter(std::move(source)), capacity(most) {}

    template <class Change>
    void change(Change make) {
      const std::lock_guard lock(mutex);
      make();
      changed.notify_all();
    }
    void require_running() const {
      require(!stopped, "[PrefetchingIter] its threads were stopped: there are no more batches");
    }

    void run() {
      std::unique_lock lock(mutex);
      for (;;) {
        changed.wait(lock, [this] { return stopped || (!paused && !over && batches.size() < capacity); });
        if (stopped) return;
        busy = true;
        lock.unlock();
        std::optional<DataBatch> batch;
        std::exception_ptr thrown;
        try {
          batch = iter->next();
        } catch (...) {
          thrown = std::current_exception();
        }
        lock.lock();
        busy = false;
        over = !batch;
        error = std::move(thrown);
        if (batch) batches.push_back(std::move(*batch));
        changed.notify_all();
      }
    }

    const std::shared_ptr<DataIter> iter;
    const size_t capacity;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<DataBatch> batches;
    bool stopped = false, paused = true;  // set by the caller
    bool busy = false, over = false;      // set by the worker
    std::exception_ptr error;
  };

  std::shared_ptr<Shared> shared_;
  std::thread thread_;  // last: it starts when the other members are constructed
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
           desc.name, " is not among ", known.empty() ? "the entries: there are none" : comma_separated(known));
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
    workers_.push_back(std::make_unique<Worker>(iter, static_cast<size_t>(options_.prefetch_buffer)));
}

PrefetchingIter::~PrefetchingIter() = default;

bool PrefetchingIter::stop(std::chrono::milliseconds patience) {
  for (const auto& worker : workers_) worker->ask_to_stop();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool all = true;
  for (const auto& worker : workers_) all &= worker->end_before(deadline);
  return all;
}

void PrefetchingIter::describe() {
  std::vector<std::vector<DataDesc>> data_of, label_of;
  for (size_t i = 0; i < iters_.size(); ++i) {
    data_of.push_back(renamed(iters_[i]->provide_data(), options_.rename_data, i, "rename_data"));
    label_of.push_back(renamed(iters_[i]->provide_label(), options_.rename_label, i, "rename_label"));
  }
  const int64_t batch_size = iters_[0]->batch_size();
  BucketKey key = iters_[0]->default_bucket_key();
  const std::lock_guard lock(described_mutex_);
  data_of_ = std::move(data_of);
  label_of_ = std::move(label_of);
  batch_size_ = batch_size;
  default_bucket_key_ = std::move(key);
}

std::vector<DataDesc> PrefetchingIter::provide_data() const {
  const std::lock_guard lock(described_mutex_);
  return joined(data_of_);
}
std::vector<DataDesc> PrefetchingIter::provide_label() const {
  const std::lock_guard lock(described_mutex_);
  return joined(label_of_);
}
int64_t PrefetchingIter::batch_size() const {
  const std::lock_guard lock(described_mutex_);
  return batch_size_;
}
BucketKey PrefetchingIter::default_bucket_key() const {
  const std::lock_guard lock(described_mutex_);
  return default_bucket_key_;
}

void PrefetchingIter::reset() {
  const std::lock_guard lock(mutex_);
  for (const auto& worker : workers_) worker->pause();
  failure_ = nullptr;
  try {
    for (const auto& iter : iters_) iter->reset();
    describe();
  } catch (...) {
    failure_ = std::current_exception();  // the iterators' positions are unknown: next() fails until a reset succeeds
    throw;
  }
  started_ = false;
}

void PrefetchingIter::begin_epoch() {
  const std::lock_guard lock(mutex_);
  begin();
}

void PrefetchingIter::begin() {
  if (std::exchange(started_, true)) return;
  for (const auto& iter : iters_) iter->begin_epoch();  // one after the other: draws are reproducible
  for (const auto& worker : workers_) worker->start();
}

std::optional<DataBatch> PrefetchingIter::next() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  try {
    begin();
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

  // If one batch has its own descriptions, the others use those from the start of the epoch.
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
  // The batch is no longer the one that the first iterator made.
  if (parts.size() > 1 || !options_.rename_data.empty() || !options_.rename_label.empty()) batch.source.reset();
  return batch;
}

}  // namespace symbind
