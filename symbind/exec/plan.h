// A plan: a flat list of ready-made kernels over one arena per context. Running it is a loop over that list.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "symbind/core/busy.h"
#include "symbind/core/ndarray.h"
#include "symbind/core/parallel.h"
#include "symbind/core/workers.h"
#include "symbind/exec/plan_table.h"
#include "symbind/exec/poison.h"
#include "symbind/exec/queues.h"
#include "symbind/passes/plan_memory.h"
#include "symbind/passes/target.h"

namespace symbind {

// Working memory that plans share, an arena per context. An arena only grows; a plan that took its addresses under an
// older generation takes them again. The stamp says whose activations the arenas hold: 0 for none.
class Workspace {
 public:
  // The arena's number; it has room for `bytes` from here on.
  size_t reserve(Context context, size_t bytes);
  const std::shared_ptr<Storage>& storage(size_t arena) const { return arenas_[arena].storage; }
  uint64_t generation() const { return generation_; }
  size_t bytes() const;

  uint64_t stamp() const { return stamp_; }
  // Threads for plans over several contexts, one per context, whose loops have so many threads each. Executors that
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
  bool capture = true;   // where the device can
  bool profile = false;  // every step is timed, and waited for; nothing is captured
  // Contexts run concurrently in forward, in backward. There the kernels of each were built for this policy.
  bool concurrent_forward = false, concurrent_backward = false;
  ThreadPolicy policy = {};
};

class Plan {
 public:
  // The memory plan counts the outside arrays as they are in `outside`.
  Plan(Graph graph, MemoryPlan memory, std::vector<NDArray> outside, std::shared_ptr<Workspace> workspace,
       const PlanOptions& options);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // From here on, memory that holds nothing is filled with NaN in every run (exec/poison.h).
  void poison() { poison_ = std::make_unique<Poison>(graph_, memory_); }

  // From here on the steps read `array` instead of the outside array of this number, which is on a CPU and written by
  // no step. It has the same shape, type and context, and shares no memory with the other outside arrays; an empty one
  // only releases the last. Not for plans whose contexts run concurrently: their order depends on the addresses.
  void replace_outside(size_t index, NDArray array);
  bool shares_outside(const NDArray& array) const;  // with one of the outside arrays

  // Outside arrays (first) whose values are elsewhere from here on (second): in arrays of the same shape, type and
  // context.
  void move_outside(std::span<const std::pair<NDArray, NDArray>> moves);

  void run_forward(const NodeCallback* callback = nullptr);
  void run_backward(const NodeCallback* callback = nullptr);
  // Forward once more with the random numbers of the last time, for a backward that finds its activations gone.
  void rerun_forward() { run(forward_, nullptr); }

  const Graph& graph() const { return graph_; }
  const MemoryPlan& memory() const { return memory_; }
  size_t arena_bytes() const;
  size_t kept_bytes() const;
  // Lets go of what was derived from parameters; the next run derives it again.
  void release_kept();
  const StepTimes* times() const { return times_.get(); }  // none: nothing is timed
  std::string str() const;                                 // a table of the steps

 private:
  struct Step {
    Kernel* kernel;
    Args args;
    NodeId node;
    bool prepare_each_run =
        false;  // what it keeps depends on more than the user's arrays, or on arrays that training changes
  };
  // What a kernel derives from the user's arrays in inference, in memory of its own as long as they do not change.
  struct Kept {
    size_t step;
    std::shared_ptr<Storage> storage;
    std::vector<std::pair<const Storage*, uint64_t>> sources;  // and the versions it was made from; 0: not yet
  };
  // Steps that run one after the other without a break, replayed as one where the device can.
  struct Stretch {
    size_t begin, end;  // of steps
    bool capturable;
    int runs = 0;
    std::unique_ptr<Captured> captured;
  };
  struct Part {                 // forward, or backward
    size_t begin = 0, end = 0;  // of steps
    size_t first_node = 0, end_node = 0;
    std::vector<Stretch> stretches;
    std::vector<size_t> writes;  // outside arrays whose version a run advances
    uint64_t timed_runs = 0;
    std::unique_ptr<Queues> queues;  // when contexts run at the same time, on
    Workers* workers = nullptr;      // these threads of the workspace
  };

  void make_steps();
  void make_cursors();
  const RandomCursor* cursor_of(Context context) const;
  void make_part(Part& part, size_t first_node, size_t end_node);
  void make_queues(Part& part);
  StepAccess accesses(size_t step) const;
  ByteRange range_of(TensorId tensor) const;
  void make_kept();
  void find_sources(Kept& kept) const;
  std::shared_ptr<Storage> kept_storage(const Step& step) const;
  void prepare_kept();
  void take_addresses();
  void* address(const Location& location) const;
  NDArray array_of(TensorId tensor) const;
  void run(Part& part, const NodeCallback* callback);
  void run_part(Part& part, const NodeCallback* callback);
  void mark_written(const Part& part) const;
  void run_step(const Step& step) const;
  void poison_arenas() const;
  void poison_results(const Part& part) const;
  void poison_ranges(const Step& step, const std::vector<ArenaRange>& ranges) const;
  void run_stretch(Stretch& stretch);
  void run_with_callback(const Part& part, const NodeCallback& callback);
  void run_timed(Part& part);
  void run_profiled(const Part& part);
  void run_queues(Part& part);

  Graph graph_;
  MemoryPlan memory_;
  std::vector<NDArray> outside_;
  std::shared_ptr<Workspace> workspace_;
  std::vector<size_t> arenas_;  // the workspace's number for each arena of the memory plan
  uint64_t generation_ = 0;     // of the workspace when the addresses were taken
  std::vector<Step> steps_;
  PerNode<int> step_of_node_;     // -1: nothing to run
  std::vector<void*> addresses_;  // of all steps' arrays, one after the other
  // Where addresses_ has addresses in a replaceable outside array, by its number.
  std::map<size_t, std::vector<std::pair<size_t, const Location*>>> replaceable_;
  struct Cursor {  // of a context's random draws, in its device's memory
    Context context;
    std::shared_ptr<Storage> storage;
  };
  std::vector<Cursor> cursors_;
  std::vector<Kept> kept_;
  Part forward_, backward_;
  std::unique_ptr<Poison> poison_;  // none: memory is left as it is
  bool may_capture_;
  ThreadPolicy policy_;  // of each context where they run at the same time
  std::unique_ptr<StepTimes> times_;
};

}  // namespace symbind
