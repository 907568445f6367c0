// A plan: a flat list of ready-made kernels over one arena per context. Running it is a loop over that list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbind/core/busy.h"
#include "symbind/core/device_event.h"
#include "symbind/core/ndarray.h"
#include "symbind/core/parallel.h"
#include "symbind/core/workers.h"
#include "symbind/exec/followed_capture.h"
#include "symbind/exec/plan_table.h"
#include "symbind/exec/poison.h"
#include "symbind/exec/queues.h"
#include "symbind/passes/plan_memory.h"
#include "symbind/passes/target.h"

namespace symbind {

// Working memory that plans share, an arena per context. An arena only grows; a plan whose addresses are of an older
// generation recomputes them. The stamp identifies the run whose activations the arenas hold: 0 for none.
class Workspace {
 public:
  // Ensures that the arena of a context has at least `bytes`; returns its number.
  size_t reserve(Context context, size_t bytes);
  const std::shared_ptr<Storage>& storage(size_t arena) const { return arenas_[arena].storage; }
  uint64_t generation() const { return generation_; }
  size_t bytes() const;

  uint64_t stamp() const { return stamp_; }
  // Threads for plans over several contexts, one per context; the loops of each use `threads` threads. Executors that
  // share memory never run concurrently, so they can share these too.
  Workers& workers(size_t contexts, int threads);

  // Marks the arenas as holding the activations of a new run; returns its stamp.
  uint64_t new_stamp();

  // Taken by executors while they compile or run.
  BusyFlag& busy() { return busy_; }

 private:
  struct Arena {
    Context context;
    std::shared_ptr<Storage> storage;
  };
  std::vector<Arena> arenas_;
  std::vector<std::unique_ptr<Workers>> workers_;
  uint64_t generation_ = 0;
  uint64_t stamp_ = 0;
  BusyFlag busy_;
};

// Called after each node, with arrays that are valid during the call.
using NodeCallback =
    std::function<void(const GraphNode& node, std::span<const NDArray> inputs, std::span<const NDArray> outputs)>;

struct PlanOptions {
  bool capture = true;   // where the device supports it
  bool profile = false;  // every step is timed and synchronized; nothing is captured
  // Do contexts run concurrently in forward, in backward? If so, their kernels were built for this policy.
  bool concurrent_forward = false, concurrent_backward = false;
  ThreadPolicy policy = {};
};

class Plan {
 public:
  // The memory plan numbers the outside arrays by their index in `outside`.
  Plan(Graph graph, MemoryPlan memory, std::vector<NDArray> outside, std::shared_ptr<Workspace> workspace,
       const PlanOptions& options);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // From now on unused memory is filled with NaN in every run (exec/poison.h).
  void poison() { poison_ = std::make_unique<Poison>(graph_, memory_); }

  // From now on the steps read `array` instead of this outside array, which must be on a CPU and not written by any
  // step. It has the same shape, type and context, and shares no memory with the other outside arrays; an empty array
  // only releases the previous one. Not for plans whose contexts run concurrently: their order depends on the
  // addresses.
  void replace_outside(size_t index, NDArray array);
  bool shares_outside(const NDArray& array) const;  // does it share memory with an outside array?

  // Replaces outside arrays (first) by others (second) of the same shape, type and context, from now on.
  void move_outside(std::span<const std::pair<NDArray, NDArray>> moves);

  // For each array, how many steps of the plan a backward run has finished when no later one writes it; 0: none does.
  std::vector<size_t> steps_until_final(std::span<const NDArray> arrays) const;
  // From now on backward runs report when so many steps of the plan are finished, in ascending order. On a GPU the
  // points are marked by events, also in captured work. None are reported in timed and profiled runs. Only for plans on
  // one context.
  void set_milestones(const std::vector<size_t>& steps);
  bool has_one_context() const { return one_context_; }
  // Called when the steps before a milestone have run, or are queued on a GPU, which reaches the event after them.
  using MilestoneCallback = std::function<void(size_t milestone, const DeviceEventPtr& event)>;

  void run_forward(const NodeCallback* callback = nullptr);
  void run_backward(const NodeCallback* callback = nullptr);
  void run_backward(const MilestoneCallback& reached);
  // Forward, then backward, as by the two calls. Where the device supports it, the last steps of the one and the first
  // steps of the other are replayed as one unit, with the work that follows if all of backward is in that unit.
  void run_forward_backward(const MilestoneCallback* reached = nullptr, FollowedBy* following = nullptr);
  // Runs forward again with the same random numbers, for a backward whose activations were overwritten.
  void rerun_forward() { run(forward_, {}); }

  const Graph& graph() const { return graph_; }
  const MemoryPlan& memory() const { return memory_; }
  size_t arena_bytes() const;
  size_t cached_bytes() const;
  // Releases data cached from parameters; the next run recomputes it.
  void release_kept();
  const StepTimes* times() const { return times_.get(); }  // none: nothing is timed
  std::string str() const;                                 // a table of the steps

 private:
  struct Step {
    Kernel* kernel;
    Args args;
    NodeId node;
    bool prepare_each_run =
        false;  // its cached data depends on more than the user's arrays, or on arrays that training changes
  };
  // Data that a kernel derives from the user's arrays in inference, cached in separate memory until they change.
  struct Cached {
    size_t step;
    std::shared_ptr<Storage> storage;
    std::vector<std::pair<const Storage*, uint64_t>> sources;  // and the versions it was computed from; 0: not yet
  };
  // Consecutive steps that run without interruption, replayed as one unit where the device supports it.
  struct Stretch {
    size_t begin, end;  // of steps
    bool capturable;
    int runs = 0;
    std::unique_ptr<Captured> captured;

    // The next run, or the one after it, is captured again.
    void forget_captured(int runs_so_far) {
      captured.reset();
      runs = std::min(runs, runs_so_far);
    }
  };
  struct Milestone {
    size_t steps;                        // of the plan, that are before it
    std::shared_ptr<DeviceEvent> event;  // none on a CPU
  };
  struct Part {                 // forward, or backward
    size_t begin = 0, end = 0;  // of steps
    size_t first_node = 0, end_node = 0;
    std::vector<Milestone> milestones;  // before the stretches, whose captured work has the events
    std::vector<Stretch> stretches;
    std::vector<size_t> writes;  // outside arrays whose version a run advances
    uint64_t timed_runs = 0;
    std::unique_ptr<Queues> queues;  // if contexts run concurrently, on
    Workers* workers = nullptr;      // these threads of the workspace
  };

  void make_steps();
  void make_cursors();
  const RandomCursor* cursor_of(Context context) const;
  void make_part(Part& part, size_t first_node, size_t end_node);
  void join_parts();
  void make_queues(Part& part);
  StepAccess accesses(size_t step) const;
  ByteRange range_of(TensorId tensor) const;
  void make_cached();
  void find_sources(Cached& cached) const;
  std::shared_ptr<Storage> cached_storage(const Step& step) const;
  void prepare_cached();
  void take_addresses();
  void* address(const Location& location) const;
  NDArray array_of(TensorId tensor) const;
  void find_outside_uses();
  void count_outside_storages();
  struct Callbacks {  // null: none
    const NodeCallback* node = nullptr;
    const MilestoneCallback* milestone = nullptr;
  };
  void start_random() const;
  void run(Part& part, const Callbacks& callbacks);
  void run_part(Part& part, const Callbacks& callbacks);
  // Runs work that writes the results of these parts.
  template <class Work>
  void run_and_mark(std::span<const Part* const> parts, const Work& work) const;
  void run_step(const Step& step) const;
  void poison_arenas() const;
  void poison_results(const Part& part) const;
  void poison_ranges(const Step& step, const std::vector<ArenaRange>& ranges) const;
  void run_stretch(const Part& part, Stretch& stretch, const MilestoneCallback* reached);
  void run_joined(const MilestoneCallback* reached, FollowedBy* following);
  std::unique_ptr<Captured> capture(const Stretch& stretch, std::span<const Milestone> milestones,
                                    const QueueWork& run_steps, std::span<const FollowingWorkPtr> following = {}) const;
  void forget_captured(Part& part, int runs_so_far);  // and what is captured of both parts together
  bool is_short(const Stretch& stretch) const;
  void run_with_callback(const Part& part, const NodeCallback& callback);
  void run_timed(Part& part);
  void run_profiled(const Part& part);
  void run_queues(Part& part);

  Graph graph_;
  MemoryPlan memory_;
  std::vector<NDArray> outside_;
  std::shared_ptr<Workspace> workspace_;
  std::vector<size_t> arenas_;  // the workspace's number for each arena of the memory plan
  uint64_t generation_ = 0;     // generation of the workspace when the addresses were computed
  std::vector<Step> steps_;
  PerNode<int> step_of_node_;     // -1: nothing to run
  std::vector<void*> addresses_;  // of all steps' arrays, one after the other
  // For each outside array the positions in addresses_ that point into it. Found when an array is first replaced.
  std::vector<std::vector<std::pair<size_t, const Location*>>> outside_uses_;
  std::unordered_map<const Storage*, int> outside_storages_;  // how many outside arrays are in each
  struct Cursor {                                             // of a context's random draws, in its device's memory
    Context context;
    std::shared_ptr<Storage> storage;
  };
  std::vector<Cursor> cursors_;
  std::vector<Cached> cached_;
  Part forward_, backward_;
  std::optional<Stretch> joined_;   // the last stretch of forward and the first one of backward, if both are capturable
  FollowedCapture followed_;        // joined_ with the work that follows it
  std::unique_ptr<Poison> poison_;  // none: memory is not poisoned
  bool one_context_ = true;
  bool may_capture_;
  ThreadPolicy policy_;  // of each context if they run concurrently
  std::unique_ptr<StepTimes> times_;
};

}  // namespace symbind
