// Running a plan over several contexts: the steps of each context form a queue with its own thread, and a step
// waits for another queue only where one of the two writes what the other reads or writes. Each context has its own
// arena, so queues interact only where a tensor is copied between contexts: the copy belongs to the destination context
// and waits for the step that computes the tensor, and a step that later overwrites the tensor's memory waits for the
// copy.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "symbind/core/context.h"
#include "symbind/exec/step_order.h"
#include "symbind/passes/graph.h"

namespace symbind {

class Workers;

class Queues {
 public:
  // The steps in sequential order.
  explicit Queues(const std::vector<StepAccess>& steps);

  size_t count() const { return queues_.size(); }
  // Runs every step once, on as many workers as there are queues. An exception of a step ends the run, and is rethrown
  // when all queues have stopped.
  void run(Workers& workers, const std::function<void(size_t step)>& run_step);

  // The steps that a step waits for: the last of each queue, without those that its own queue has already waited for.
  std::vector<size_t> waits_of(size_t step) const;

 private:
  struct Wait {
    size_t queue, steps;  // until `steps` steps of that queue are done
  };
  struct Step {
    size_t number;
    std::vector<Wait> waits;
    bool awaited = false;  // by another queue
  };
  struct Queue {
    Context context;
    std::vector<Step> steps;
    std::atomic<size_t> done = 0;
  };

  void find_waits(const std::vector<StepAccess>& steps);
  void work(Queue& queue, const std::function<void(size_t step)>& run_step);
  bool wait(const Wait& wanted);  // false: a step has failed
  void announce();

  std::vector<Queue> queues_;
  std::vector<std::pair<size_t, size_t>> position_;  // by step: its queue, and its position there
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
};

// Is it faster to run the nodes [first, end) as queues? Not if one context mostly waits for another: then each step
// should use all cores.
bool should_use_queues(const Graph& graph, size_t first, size_t end);

}  // namespace symbind
