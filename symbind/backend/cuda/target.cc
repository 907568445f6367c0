#include "symbind/backend/cuda/target.h"

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

class CapturedGraph final : public Captured {
 public:
  CapturedGraph(CudaDevice& device, cudaGraphExec_t graph) : device_(device), graph_(graph) {}
  ~CapturedGraph() override { cudaGraphExecDestroy(graph_); }
  void launch() override {
    const Queueing queueing(device_);
    device_.note("a captured plan");
    device_.check(cudaGraphLaunch(graph_, device_.stream()), "launching a captured plan");
  }

 private:
  CudaDevice& device_;
  cudaGraphExec_t graph_;
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

namespace {

// `record` queues the work, and returns false if CUDA cannot record it.
std::unique_ptr<Captured> captured(CudaDevice& device, const std::function<bool()>& record) {
  const Queueing queueing(device);
  if (cudaStreamBeginCapture(device.stream(), cudaStreamCaptureModeRelaxed) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  bool recorded = true;
  try {
    recorded = record();
  } catch (const Error&) {
    recorded = false;  // it will recur, and be reported, when the work runs uncaptured
  } catch (...) {
    cudaGraph_t unfinished = nullptr;
    cudaStreamEndCapture(device.stream(), &unfinished);
    if (unfinished) cudaGraphDestroy(unfinished);
    throw;
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  recorded =
      cudaStreamEndCapture(device.stream(), &graph) == cudaSuccess && recorded && graph && fill_by_kernels(graph);
  if (recorded) recorded = cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess;
  if (graph) cudaGraphDestroy(graph);
  if (!recorded) {
    cudaGetLastError();
    return nullptr;
  }
  return std::make_unique<CapturedGraph>(device, executable);
}

}  // namespace

std::unique_ptr<Captured> CudaTarget::capture(Device& device, const std::function<void()>& work) {
  return captured(CudaDevice::of(device), [&] {
    work();
    return true;
  });
}

std::unique_ptr<Captured> CudaTarget::capture_steps(Device& any_device, std::span<const std::vector<size_t>> waits,
                                                    const std::function<void(size_t step)>& run_step,
                                                    std::span<const size_t> joined,
                                                    const std::function<void(size_t step)>& run_joined) {
  CudaDevice& device = CudaDevice::of(any_device);
  return captured(device, [&] { return record_steps(device.stream(), waits, run_step, joined, run_joined); });
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
