#include "symbind/core/sum_group.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/core/interrupt.h"
#include "symbind/core/workers.h"

namespace symbind {
namespace {

thread_local SumScope scope_of_thread;

struct ProcessSum {
  std::mutex mutex;
  std::shared_ptr<const WorkerSum> sum;
};
// Not destroyed: threads may ask to the end of the process.
ProcessSum& process_sum() {
  static auto* const sum = new ProcessSum;
  return *sum;
}

std::shared_ptr<const WorkerSum> worker_sum() {
  if (scope_of_thread.over_workers) return scope_of_thread.over_workers;
  ProcessSum& of_process = process_sum();
  const std::lock_guard lock(of_process.mutex);
  return of_process.sum;
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown exception";
  }
}

}  // namespace

// ---- What a thread sums over ----------------------------------------------------------------------------------------

InSumScope::InSumScope(SumScope scope) : before_(std::exchange(scope_of_thread, std::move(scope))) {}
InSumScope::~InSumScope() { scope_of_thread = std::move(before_); }

void set_worker_sum(std::shared_ptr<const WorkerSum> sum) {
  ProcessSum& of_process = process_sum();
  const std::lock_guard lock(of_process.mutex);
  of_process.sum = std::move(sum);
}

bool sums_over_contexts() { return scope_of_thread.group || worker_sum(); }

void sum_over_contexts(const std::string& key, std::span<double> values) {
  if (scope_of_thread.group) return scope_of_thread.group->sum(scope_of_thread.context, key, values);
  if (const auto over_workers = worker_sum()) (*over_workers)(key, values);
}

// ---- The contexts of one network ------------------------------------------------------------------------------------

SumGroup::SumGroup(std::vector<std::string> titles) {
  for (std::string& title : titles) members_.push_back({.title = std::move(title), .values = {}});
}

void SumGroup::start(bool concurrent) {
  const std::lock_guard lock(mutex_);
  for (Member& member : members_) member.here = member.ended = false;
  arrived_ = 0;
  concurrent_ = concurrent;
  first_error_ = nullptr;
  over_workers_ = worker_sum();
}

void SumGroup::end(size_t context, std::exception_ptr error) {
  const std::string text = error ? text_of(error) : "";
  {
    const std::lock_guard lock(mutex_);
    members_[context].ended = true;
    if (error && !first_error_) {
      first_error_ = std::move(error);
      first_failure_ = join(members_[context].title, " has failed: ", text);
    }
  }
  changed_.notify_all();
}

void SumGroup::run(Workers& workers, const std::function<void(size_t context)>& pass) {
  start(workers.concurrent());
  try {
    workers.run([&](size_t context) {
      const InSumScope scope({.group = this, .context = context, .over_workers = nullptr});
      try {
        pass(context);
      } catch (...) {
        end(context, std::current_exception());
        throw;
      }
      end(context, nullptr);
    });
  } catch (...) {
    if (const std::exception_ptr first = std::exchange(first_error_, nullptr)) std::rethrow_exception(first);
    throw;
  }
}

// Called under the lock, as are the next two.
void SumGroup::check_arrival(size_t context, const std::string& key, size_t size) const {
  require(concurrent_, key, " sums over ", members_.size(),
          " contexts, which run one after the other in a process that was forked: use one context there");
  require(!members_[context].here, key, " is summed on ", members_[context].title, " while it waits for ", key_);
  if (arrived_ == 0) return;
  const auto first = std::find_if(members_.begin(), members_.end(), [](const Member& each) { return each.here; });
  require(key_ == key && first->values.size() == size, key, " sums ", size, " values on ", members_[context].title,
          ", while ", first->title, " sums ", first->values.size(), " values for ", key_,
          ": all contexts are to run the same operators in the same order");
}

void SumGroup::check_others(const std::string& key) const {
  if (first_error_) fail(key, " sums over ", members_.size(), " contexts, but ", first_failure_);
  for (const Member& member : members_)
    if (member.ended)  // those that wait here have not
      fail(key, " sums over ", members_.size(), " contexts, but ", member.title, " has ended its pass without it");
}

// The lock is open while other workers are waited for, so that what happens to the contexts meanwhile is noticed.
void SumGroup::finish_round(const std::string& key, std::unique_lock<std::mutex>& lock) {
  total_ = members_[0].values;
  for (size_t k = 1; k < members_.size(); ++k)
    for (size_t i = 0; i < total_.size(); ++i) total_[i] += members_[k].values[i];
  if (over_workers_) {
    std::vector<double> sum = total_;
    lock.unlock();
    (*over_workers_)(key, sum);
    lock.lock();
    total_ = std::move(sum);
  }
  for (Member& member : members_) member.here = false;
  arrived_ = 0;
  ++rounds_;
  changed_.notify_all();
}

void SumGroup::sum(size_t context, const std::string& key, std::span<double> values) {
  constexpr auto between_checks = std::chrono::milliseconds(100);
  std::unique_lock lock(mutex_);
  check_others(key);
  check_arrival(context, key, values.size());
  Member& own = members_[context];
  if (arrived_++ == 0) key_ = key;
  own.values.assign(values.begin(), values.end());
  own.here = true;
  const uint64_t round = rounds_;
  if (arrived_ == members_.size()) finish_round(key, lock);
  while (rounds_ == round) {
    check_others(key);
    if (changed_.wait_for(lock, between_checks) == std::cv_status::no_timeout) continue;
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
  std::copy(total_.begin(), total_.end(), values.begin());
}

}  // namespace symbind
