#include "symbind/backend/cuda/capture.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace symbind::cuda_backend {
namespace {

using Nodes = std::vector<cudaGraphNode_t>;

// CUDA 13 took the version out of the names.
cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status, const cudaGraphNode_t** nodes,
                         size_t* count, cudaGraph_t* graph = nullptr) {
#if CUDART_VERSION >= 13000
  return cudaStreamGetCaptureInfo(stream, status, nullptr, graph, nodes, nullptr, count);
#else
  return cudaStreamGetCaptureInfo_v3(stream, status, nullptr, graph, nodes, nullptr, count);
#endif
}
cudaError_t set_capture_dependencies(cudaStream_t stream, Nodes& nodes) {
#if CUDART_VERSION >= 13000
  return cudaStreamUpdateCaptureDependencies(stream, nodes.data(), nullptr, nodes.size(),
                                             cudaStreamSetCaptureDependencies);
#else
  return cudaStreamUpdateCaptureDependencies_v2(stream, nodes.data(), nullptr, nodes.size(),
                                                cudaStreamSetCaptureDependencies);
#endif
}

// The graph while it grows: the last nodes of each step. A step that queues nothing has those of the steps before it.
class Recording {
 public:
  Recording(cudaStream_t stream, size_t steps) : stream_(stream), ends_(steps) {}

  bool begin(size_t step, std::span<const size_t> waits) {
    step_ = step;
    Nodes after;
    for (const size_t each : waits) add(ends_[each], after);
    if (alone_) add(ends_[*alone_], after);
    return place(std::move(after));
  }
  bool end() { return find_last_nodes(ends_[step_]); }
  // After all steps so far.
  bool join() {
    Nodes after;
    for (size_t i = alone_.value_or(0); i <= step_; ++i) add(ends_[i], after);
    return place(std::move(after));
  }
  bool current_runs_alone() {
    if (alone_ == step_) return true;
    Nodes after;
    if (!find_last_nodes(after)) return false;
    for (size_t i = alone_.value_or(0); i < step_; ++i) add(ends_[i], after);
    alone_ = step_;
    return place(std::move(after));
  }

 private:
  // Those that the next work would come after.
  bool find_last_nodes(Nodes& into) const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t* nodes = nullptr;
    size_t count = 0;
    if (capture_info(stream_, &status, &nodes, &count) != cudaSuccess || status != cudaStreamCaptureStatusActive)
      return false;
    into.assign(nodes, nodes + count);
    return true;
  }
  static void add(const Nodes& nodes, Nodes& to) { to.insert(to.end(), nodes.begin(), nodes.end()); }
  // Work from now on comes after these nodes.
  bool place(Nodes after) {
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    return set_capture_dependencies(stream_, after) == cudaSuccess;
  }

  cudaStream_t stream_;
  std::vector<Nodes> ends_;
  size_t step_ = 0;
  std::optional<size_t> alone_;  // the last step that runs alone: all later ones come after it
};

thread_local Recording* current = nullptr;
thread_local bool current_failed = false;

}  // namespace

bool record_steps(cudaStream_t stream, std::span<const std::vector<size_t>> waits,
                  const std::function<void(size_t step)>& run_step, std::span<const JoinedWork> joined) {
  Recording recording(stream, waits.size());
  struct Scope {
    explicit Scope(Recording& now) : before(std::exchange(current, &now)) { current_failed = false; }
    ~Scope() { current = before; }
    Recording* before;
  };
  const Scope scope(recording);
  for (size_t i = 0; i < waits.size(); ++i) {
    if (!recording.begin(i, waits[i])) return false;
    run_step(i);
    if (current_failed || !recording.end()) return false;
    for (; !joined.empty() && joined.front().step == i; joined = joined.subspan(1))
      if (!recording.join() || !joined.front().queue()) return false;
  }
  return waits.empty() || recording.join();
}

bool add_recorded(cudaStream_t stream, cudaGraph_t work, cudaGraphNode_t& node) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* before = nullptr;
  size_t count = 0;
  cudaGraph_t graph = nullptr;
  if (capture_info(stream, &status, &before, &count, &graph) != cudaSuccess || status != cudaStreamCaptureStatusActive)
    return false;
  if (cudaGraphAddChildGraphNode(&node, graph, before, count, work) != cudaSuccess) return false;
  Nodes after{node};
  return set_capture_dependencies(stream, after) == cudaSuccess;
}

void run_alone() {
  if (current && !current->current_runs_alone()) current_failed = true;
}

bool comes_after_one_kernel(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* nodes = nullptr;
  size_t count = 0;
  if (capture_info(stream, &status, &nodes, &count) != cudaSuccess) return false;
  if (status != cudaStreamCaptureStatusActive) return true;
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  return count == 1 && cudaGraphNodeGetType(nodes[0], &type) == cudaSuccess && type == cudaGraphNodeTypeKernel;
}

}  // namespace symbind::cuda_backend
