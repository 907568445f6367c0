#include "symbind/exec/queues.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "symbind/core/workers.h"
#include "symbind/exec/run_scope.h"
#include "symbind/ops/system.h"

namespace symbind {

Queues::Queues(const std::vector<StepAccess>& steps) {
  std::vector<Context> contexts;
  std::vector<std::vector<Step>> lists;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto found = std::find(contexts.begin(), contexts.end(), steps[i].context);
    const auto queue = static_cast<size_t>(found - contexts.begin());
    if (found == contexts.end()) {
      contexts.push_back(steps[i].context);
      lists.emplace_back();
    }
    position_.emplace_back(queue, lists[queue].size());
    lists[queue].push_back({i, {}, false});
  }
  queues_ = std::vector<Queue>(contexts.size());
  for (size_t i = 0; i < contexts.size(); ++i) {
    queues_[i].context = contexts[i];
    queues_[i].steps = std::move(lists[i]);
  }
  find_waits(steps);
}

void Queues::find_waits(const std::vector<StepAccess>& steps) {
  // needed[step][queue]: how many steps of that queue must be done
  std::vector<std::vector<size_t>> needed(steps.size(), std::vector<size_t>(queues_.size(), 0));
  std::map<int, AccessHistory> spaces;
  for (size_t i = 0; i < steps.size(); ++i) {
    const size_t own = position_[i].first;
    const auto wait_for = [&](size_t earlier) {
      const auto [queue, position] = position_[earlier];
      if (queue != own) needed[i][queue] = std::max(needed[i][queue], position + 1);
    };
    for (const ByteRange& range : steps[i].reads) spaces[range.space].read(range, own, i, wait_for);
    for (const ByteRange& range : steps[i].writes) spaces[range.space].write(range, i, wait_for);
  }
  for (Queue& queue : queues_) {
    std::vector<size_t> waited(queues_.size(), 0);
    for (Step& step : queue.steps)
      for (size_t other = 0; other < queues_.size(); ++other) {
        const size_t wanted = needed[step.number][other];
        if (wanted <= waited[other]) continue;
        waited[other] = wanted;
        step.waits.push_back({other, wanted});
        queues_[other].steps[wanted - 1].awaited = true;
      }
  }
}

std::vector<size_t> Queues::waits_of(size_t step) const {
  const auto [queue, position] = position_[step];
  std::vector<size_t> steps;
  for (const Wait& wait : queues_[queue].steps[position].waits)
    steps.push_back(queues_[wait.queue].steps[wait.steps - 1].number);
  return steps;
}

// ---- Running --------------------------------------------------------------------------------------------------------

void Queues::run(Workers& workers, const std::function<void(size_t step)>& run_step) {
  failed_ = false;
  for (Queue& queue : queues_) queue.done = 0;
  workers.run([&](size_t worker) {
    if (worker < queues_.size()) work(queues_[worker], run_step);
  });
}

// No deadlock: a step waits only for earlier steps of one global order, so the earliest step that is not done can
// always run.
void Queues::work(Queue& queue, const std::function<void(size_t step)>& run_step) {
  const RunScope scope;
  for (const Step& step : queue.steps) {
    for (const Wait& each : step.waits)
      if (!wait(each)) return;
    if (failed_) return;
    try {
      run_step(step.number);
    } catch (...) {
      failed_ = true;
      announce();
      throw;
    }
    ++queue.done;
    if (step.awaited) announce();
  }
}

void Queues::announce() {
  { const std::lock_guard lock(mutex_); }  // a waiting thread either sees the change or is woken
  changed_.notify_all();
}

bool Queues::wait(const Wait& wanted) {
  const auto ready = [&] { return failed_ || queues_[wanted.queue].done >= wanted.steps; };
  // Waking a thread costs as much as a small step.
  constexpr auto patience = std::chrono::microseconds(50);
  for (const auto begin = std::chrono::steady_clock::now(); !ready();) {
    if (std::chrono::steady_clock::now() - begin < patience) {
      std::this_thread::yield();
      continue;
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, ready);
  }
  return !failed_;
}

// ---- Profitability --------------------------------------------------------------------------------------------------

// The time of a step is estimated by the bytes it moves; the sum over all steps is compared with the critical path.
// Views are free, and copies between contexts are made either way. Synchronized operators
// must run in the same order on all contexts.
bool should_use_queues(const Graph& graph, size_t first, size_t end) {
  constexpr double least_gain = 1.25;
  PerNode<double> finished(graph.nodes.size(), 0);
  std::map<Context, double> busy_until;
  double all = 0, longest = 0;
  for (size_t i = first; i < end; ++i) {
    const GraphNode& node = graph.nodes[i];
    if (node.is_variable()) continue;
    if (node.op().synchronized) return false;
    double begin = 0, bytes = 0;
    const std::vector<bool> shape_only = shape_only_inputs(node);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (shape_only[k]) continue;
      begin = std::max(begin, finished[graph.producer_id(node.inputs[k])]);
      bytes += static_cast<double>(graph.tensor(node.inputs[k]).bytes());
    }
    for (int k = 0; k < node.outputs; ++k) bytes += static_cast<double>(graph.tensor(node.first_output + k).bytes());
    if (node.op().view || &node.op() == &op_of<CrossDeviceCopy>()) bytes = 0;
    double& busy = busy_until[node.context];
    finished[node.id] = busy = std::max(begin, busy) + bytes;
    all += bytes;
    longest = std::max(longest, busy);
  }
  return busy_until.size() > 1 && all >= least_gain * longest;
}

}  // namespace symbind
