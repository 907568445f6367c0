// Sums over the contexts that run one network concurrently, and over the workers of a distributed job: for operators
// whose result depends on the whole batch (SyncBatchNorm). An operator asks sums_over_contexts() in every run: outside
// of a group and of a job its own part is the whole batch.
//
// Every context calls sum_over_contexts() with the same keys in the same order, and waits there for the others. Values
// are added in the order of the contexts, then of the workers, and all get the same bits. Where the sum cannot be
// formed, since a context has failed or ended its pass without it, those that wait throw.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace symbind {

class Workers;

// Replaces the values of every worker by their sum. Keys as in sum_over_contexts().
using WorkerSum = std::function<void(const std::string& key, std::span<double> values)>;

class SumGroup {
 public:
  // One title for each context, for errors: "context 1 (cpu(1))".
  explicit SumGroup(std::vector<std::string> titles);

  // Runs pass(0), pass(1), … on the workers, one for each context; they may sum meanwhile. Throws the exception of
  // the first that failed: the others may have failed only because they waited for it.
  void run(Workers& workers, const std::function<void(size_t context)>& pass);
  void sum(size_t context, const std::string& key, std::span<double> values);

 private:
  void start(bool concurrent);
  void end(size_t context, std::exception_ptr error);
  void check_arrival(size_t context, const std::string& key, size_t size) const;
  void check_others(const std::string& key) const;
  void finish_round(const std::string& key, std::unique_lock<std::mutex>& lock);

  struct Member {
    std::string title;
    std::vector<double> values;
    bool here = false;   // in this round
    bool ended = false;  // its pass
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  size_t arrived_ = 0;
  uint64_t rounds_ = 0;  // finished
  std::string key_;      // of this round
  std::vector<double> total_;
  bool concurrent_ = true;
  std::exception_ptr first_error_;  // of this pass
  std::string first_failure_;       // "context 1 (cpu(1)) has failed: …"
  std::shared_ptr<const WorkerSum> over_workers_;
};

// What the calling thread sums over while an InSumScope lives. Tests whose workers are threads have a WorkerSum for
// each.
struct SumScope {
  SumGroup* group = nullptr;
  size_t context = 0;
  std::shared_ptr<const WorkerSum> over_workers = nullptr;  // none: that of the process
};
class InSumScope {
 public:
  explicit InSumScope(SumScope scope);
  ~InSumScope();
  InSumScope(const InSumScope&) = delete;
  InSumScope& operator=(const InSumScope&) = delete;

 private:
  SumScope before_;
};

// Of the process: set by a distributed store whose workers train in step. None: there are no other workers.
void set_worker_sum(std::shared_ptr<const WorkerSum> sum);

bool sums_over_contexts();
// The key names the operator in errors: "[_contrib_SyncBatchNorm bn1]".
void sum_over_contexts(const std::string& key, std::span<double> values);

}  // namespace symbind
