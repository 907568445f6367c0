#include "symbind/kvstore/worker_gpus.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "symbind/core/device_queue.h"
#include "symbind/core/environment.h"
#include "symbind/core/error.h"
#include "symbind/kvstore/gpu_group.h"
#include "symbind/kvstore/nccl/functions.h"

namespace symbind {
namespace nccl {
namespace {

void check_cuda(cudaError_t status, const char* doing) {
  require(status == cudaSuccess, "[NCCL] ", doing, ": ", cudaGetErrorString(status));
}

// Sets the current device of the calling thread. Does not hold the device's queue: connecting waits for other workers.
class Current {
 public:
  explicit Current(Context gpu) {
    check_cuda(cudaGetDevice(&before_), "asking for the current GPU");
    check_cuda(cudaSetDevice(gpu_number(gpu)), "choosing a GPU");
  }
  ~Current() { cudaSetDevice(before_); }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int before_ = 0;
};

// Sums have a stream of their own, whose kernels the GPU prefers: they run while the GPU computes other gradients, and
// a sum that waits for a lost worker does not hold up the queue.
class NcclWorkerGpus final : public WorkerGpus {
 public:
  NcclWorkerGpus(Context gpu, const GpuConnector::Id& id, int rank, int size) : gpu_(gpu) {
    ncclUniqueId unique;
    static_assert(sizeof unique == sizeof id);
    std::memcpy(&unique, id.data(), sizeof unique);
    Device::get(gpu);  // fails with a clearer message
    const Current current(gpu);
    check_cuda(cudaEventCreateWithFlags(&queued_, cudaEventDisableTiming), "making an event");
    check_cuda(cudaEventCreateWithFlags(&summed_, cudaEventDisableTiming), "making an event");
    int least = 0, greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
    check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "making a stream");
    check(CommInitRank(&comm_, size, unique, rank), "connecting the GPUs of the workers");
  }
  ~NcclWorkerGpus() override {
    if (comm_) CommDestroy(comm_);
    cudaStreamDestroy(stream_);
    cudaEventDestroy(summed_);
    cudaEventDestroy(queued_);
  }

  void all_reduce(std::span<const Sum> sums) override {
    require(comm_ != nullptr, "[NCCL] the GPUs of the workers are no longer connected");
    constexpr const char* doing = "summing over workers";
    const Current current(gpu_);
    if (std::any_of(sums.begin(), sums.end(), [](const Sum& sum) { return sum.after_queue; })) {
      const DeviceQueue queue = hold_queue(Device::get(gpu_));
      check_cuda(cudaEventRecord(queued_, static_cast<cudaStream_t>(queue.stream)), doing);
      check_cuda(cudaStreamWaitEvent(stream_, queued_, 0), doing);
    }
    for (size_t begin = 0; begin < sums.size(); begin += most_operations)
      grouped(doing, [&] {
        for (const Sum& sum : sums.subspan(begin, std::min(most_operations, sums.size() - begin)))
          check(AllReduce(sum.from.data(), sum.to.mutable_data(), static_cast<size_t>(sum.to.size()),
                          *type_of(sum.to.dtype()), ncclSum, comm_, stream_),
                doing);
      });
    check_cuda(cudaEventRecord(summed_, stream_), doing);
  }

  bool finished() override {
    ncclResult_t result = ncclSuccess;
    check(CommGetAsyncError(comm_, &result), "summing over workers");
    if (result != ncclInProgress) check(result, "summing over workers");
    const cudaError_t status = cudaEventQuery(summed_);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check_cuda(status, "summing over workers");
    return true;
  }

  void abort() override {
    if (comm_) CommAbort(std::exchange(comm_, nullptr));
  }

 private:
  const Context gpu_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t queued_ = nullptr, summed_ = nullptr;
  ncclComm_t comm_ = nullptr;
};

class NcclConnector final : public GpuConnector {
 public:
  bool takes(Context context, DType dtype) const override {
    return context.is_gpu() && nccl_adds(dtype) && nccl_problem().empty();
  }

  std::string identity(Context gpu) const override {
    cudaDeviceProp properties;
    check_cuda(cudaGetDeviceProperties(&properties, gpu_number(gpu)), "asking for the identity of a GPU");
    std::string text;
    for (const char byte : properties.uuid.bytes)
      for (const int digit : {(byte >> 4) & 15, byte & 15}) text += "0123456789abcdef"[digit];
    const std::string host = environment::text("NCCL_HOSTID").value();
    return host.empty() ? text : join(text, " of ", host);
  }

  Id make_id() const override {
    ncclUniqueId unique;
    check(GetUniqueId(&unique), "making the id of a connection");
    Id id;
    std::memcpy(id.data(), &unique, sizeof unique);
    return id;
  }

  std::unique_ptr<WorkerGpus> connect(Context gpu, const Id& id, int rank, int size) const override {
    return std::make_unique<NcclWorkerGpus>(gpu, id, rank, size);
  }
};

}  // namespace
}  // namespace nccl

std::shared_ptr<const GpuConnector> nccl_connector() { return std::make_shared<nccl::NcclConnector>(); }

}  // namespace symbind
