#include "symbind/backend/cuda/target.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "symbind/backend/cuda/capture.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/empty.h"
#include "symbind/backend/cuda/graph_fills.h"
#include "symbind/backend/cuda/host.h"
#include "symbind/backend/cuda/implementations.h"
#include "symbind/backend/cuda/random.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/core/error.h"
#include "symbind/passes/own_kernels.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace cuda_backend {
namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

// What `record` queues; null if it returns false, or CUDA cannot record it. An error of the work is not reported: it
// recurs when the work runs uncaptured.
Graph recorded(CudaDevice& device, const std::function<bool()>& record) {
  if (cudaStreamBeginCapture(device.stream(), cudaStreamCaptureModeRelaxed) != cudaSuccess) return nullptr;
  bool complete = true;
  const auto end_capture = [&] {
    cudaGraph_t graph = nullptr;
    complete &= cudaStreamEndCapture(device.stream(), &graph) == cudaSuccess;
    return Graph(graph);
  };
  try {
    complete = record();
  } catch (const Error&) {
    complete = false;
  } catch (...) {
    end_capture();
    throw;
  }
  Graph graph = end_capture();
  return complete && graph && fill_by_kernels(graph.get()) ? std::move(graph) : nullptr;
}

Graph recorded_following(CudaDevice& device, const QueueWork& work) {
  const NoAllocation fixed_memory;
  return recorded(device, [&] {
    work();
    return true;
  });
}

class CapturedGraph final : public Captured {
 public:
  // Adds a piece of the following work after what was queued so far; false: CUDA cannot record it.
  using AddFollowing = std::function<bool(size_t index)>;
  // Null: CUDA cannot record the work. `record` adds all pieces, or returns false in that case too.
  static std::unique_ptr<Captured> create(CudaDevice& device, const std::function<bool(const AddFollowing&)>& record,
                                          std::span<const QueueWork> following) {
    const Queueing queueing(device);
    std::unique_ptr<CapturedGraph> captured(new CapturedGraph(device));
    if (captured->take(record, following)) return captured;
    cudaGetLastError();
    return nullptr;
  }
  ~CapturedGraph() override {
    if (executable_) cudaGraphExecDestroy(executable_);
  }

  void launch() override {
    const Queueing queueing(device_);
    device_.note("a captured plan");
    device_.check(cudaGraphLaunch(executable_, device_.stream()), "launching a captured plan");
  }

  bool replace_following(size_t index, const QueueWork& work) override {
    const Queueing queueing(device_);
    const Graph graph = recorded_following(device_, work);
    if (graph && cudaGraphExecChildGraphNodeSetParams(executable_, following_[index], graph.get()) == cudaSuccess)
      return true;
    cudaGetLastError();
    return false;
  }

 private:
  explicit CapturedGraph(CudaDevice& device) : device_(device) {}

  bool take(const std::function<bool(const AddFollowing&)>& record, std::span<const QueueWork> following) {
    std::vector<Graph> after;  // copied into nodes of the whole graph
    for (const QueueWork& work : following) {
      after.push_back(recorded_following(device_, work));
      if (!after.back()) return false;
    }
    following_.resize(after.size());
    const auto add = [&](size_t i) { return add_recorded(device_.stream(), after[i].get(), following_[i]); };
    graph_ = recorded(device_, [&] { return record(add); });
    if (!graph_ || cudaGraphInstantiate(&executable_, graph_.get(), 0) != cudaSuccess) return false;
    if (following_.empty()) graph_ = nullptr;
    return true;
  }

  CudaDevice& device_;
  Graph graph_;  // has the nodes that following_ names
  std::vector<cudaGraphNode_t> following_;
  cudaGraphExec_t executable_ = nullptr;
};

// Builds kernels with their GPU as the current one of the calling thread, as it is when they are queued: they may ask
// for its properties (grid.h).
Implementation on_own_gpu(Implementation implementation) {
  implementation.build = [build = std::move(implementation.build)](const NodeView& node) {
    const CurrentDevice current(CudaDevice::of(node.context).id());
    return build(node);
  };
  return implementation;
}

}  // namespace

CudaTarget::CudaTarget() {
  const ImplementationTable table = all_implementations();
  for (const OpDef* op : OpRegistry::get().all()) {
    if (op->own) continue;
    for (const Implementation& implementation : table.of(*op)) lists_[op].push_back(on_own_gpu(implementation));
    lists_[op].push_back(nothing_implementation());
    lists_[op].push_back(host_implementation());
  }
}

const std::vector<Implementation>& CudaTarget::listed(const OpDef& op) {
  static const std::vector<Implementation> none;
  const auto found = lists_.find(&op);
  return found == lists_.end() ? none : found->second;
}

std::vector<Implementation> CudaTarget::own(const OpDef& op) {
  std::vector<Implementation> list;
  if (const detail::OwnKernel* const kernel = own_kernel(op, DeviceType::gpu))
    list.push_back({"own", nullptr, [kernel](const NodeView& node) {
                      return make_step(node, work_of(*kernel, node), traits_of(*kernel, node));
                    }});
  list.push_back(host_implementation());
  return list;
}

std::unique_ptr<Captured> CudaTarget::capture(Device& device, const QueueWork& work,
                                              std::span<const QueueWork> following) {
  const auto record = [&](const CapturedGraph::AddFollowing& add) {
    work();
    for (size_t i = 0; i < following.size(); ++i)
      if (!add(i)) return false;
    return true;
  };
  return CapturedGraph::create(CudaDevice::of(device), record, following);
}

std::unique_ptr<Captured> CudaTarget::capture_steps(Device& any_device, std::span<const std::vector<size_t>> waits,
                                                    const std::function<void(size_t step)>& run_step,
                                                    std::span<const size_t> joined,
                                                    const std::function<void(size_t step)>& run_joined,
                                                    std::span<const Following> following) {
  CudaDevice& device = CudaDevice::of(any_device);
  std::map<size_t, std::vector<size_t>> pieces;  // of the following work, by the step they come after
  std::vector<QueueWork> work;
  for (const Following& piece : following) {
    pieces[piece.after].push_back(work.size());
    work.push_back(piece.queue);
  }
  const auto record = [&](const CapturedGraph::AddFollowing& add) {
    std::vector<JoinedWork> all;
    for (const size_t step : joined)
      all.push_back({step, [&run_joined, step] {
                       run_joined(step);
                       return true;
                     }});
    for (const auto& [step, indices] : pieces)
      all.push_back({step, [&add, &indices = indices] { return std::ranges::all_of(indices, add); }});
    std::ranges::stable_sort(all, {}, &JoinedWork::step);
    return record_steps(device.stream(), waits, run_step, all);
  };
  return CapturedGraph::create(device, record, work);
}

void* CudaTarget::stream(Device& device) { return CudaDevice::of(device).stream(); }

void CudaTarget::start_random(Device& any_device, RandomCursor* cursor, uint64_t draws) {
  if (draws == 0) return;
  CudaDevice& device = CudaDevice::of(any_device);
  const Queueing queueing(device);
  device.note("[random cursor]");
  queue_cursor(device.stream(), cursor, device.random().take(draws));
  device.check_queued("setting the random cursor");
}

}  // namespace cuda_backend

std::unique_ptr<Target> make_gpu_target() { return std::make_unique<cuda_backend::CudaTarget>(); }

}  // namespace symbind
