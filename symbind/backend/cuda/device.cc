#include "symbind/backend/cuda/device.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "symbind/backend/cuda/architectures.h"
#include "symbind/backend/cuda/cublas_lt.h"
#include "symbind/backend/cuda/event.h"
#include "symbind/backend/cuda/faults.h"
#include "symbind/core/device_queue.h"
#include "symbind/core/environment.h"
#include "symbind/core/error.h"

namespace symbind {
namespace cuda_backend {

void fail_cuda(cudaError_t status, std::string_view what) {
  fail("[CUDA] ", what, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")");
}

bool tf32_wanted() { return environment::variable("SYMBIND_TF32").on(); }

CudaDevice::CudaDevice(Context context)
    : Device(context), id_(gpu_number(context)), pool_(Pool::Kind::device, id_), pinned_(Pool::Kind::pinned_host, id_) {
  const CurrentDevice current(id());
  cuda_backend::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
}

CudaDevice::~CudaDevice() {
  // The process is ending: the driver may be unloaded already, so nothing here is checked.
  if (stream_) cudaStreamSynchronize(stream_);
  libraries_.clear();
  for (auto& slot : staging_) {
    if (slot.copied) cudaEventDestroy(slot.copied);
    pinned_.release(slot.buffer, staging_bytes);
  }
  pinned_.empty();
  pool_.empty();
  if (blas_) cublasLtDestroy(blas_);
  if (stream_) cudaStreamDestroy(stream_);
}

cublasLtContext* CudaDevice::blas() {
  std::call_once(blas_made_, [&] {
    const CurrentDevice current(id());
    const cublasStatus_t status = cublasLtCreate(&blas_);
    require(status == CUBLAS_STATUS_SUCCESS, "[", context(),
            "] cuBLASLt does not start: ", cublasLtGetStatusString(status));
  });
  return blas_;
}

std::shared_ptr<void> CudaDevice::library(const std::string& name, const std::function<std::shared_ptr<void>()>& make) {
  const std::lock_guard lock(libraries_mutex_);
  std::shared_ptr<void>& slot = libraries_[name];
  if (!slot) slot = make();
  return slot;
}

int CudaDevice::attribute(cudaDeviceAttr name) const {
  int value = 0;
  return cudaDeviceGetAttribute(&value, name, id()) == cudaSuccess ? value : 0;
}

void CudaDevice::note(std::string_view who) {
  const std::lock_guard lock(note_mutex_);
  last_queued_ = who;
}

void CudaDevice::check(cudaError_t status, std::string_view doing) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // clears errors that are not sticky, so that the next caller does not see them
  std::string last;
  {
    const std::lock_guard lock(note_mutex_);
    last = last_queued_;
  }
  const Queueing queueing(*this);
  // A sticky error is returned again by the next call.
  const bool stays = cudaPeekAtLastError() != cudaSuccess || cudaStreamQuery(stream_) == status;
  if (!stays) cudaGetLastError();
  fail("[", context(), "] ", doing, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")",
       last.empty() ? "" : "; queued last: ", last, stays ? "; the GPU accepts no more work from this process" : "");
}

void CudaDevice::check_queued(std::string_view who) { check(cudaGetLastError(), who); }

namespace {

thread_local bool allocation_refused = false;

}  // namespace

NoAllocation::NoAllocation() : before_(std::exchange(allocation_refused, true)) {}
NoAllocation::~NoAllocation() { allocation_refused = before_; }

void* CudaDevice::allocate_bytes(size_t bytes) {
  require(!allocation_refused, "[", context(), "] recorded work asked for ", bytes, " bytes of memory of its own");
  if (void* data = pool_.allocate(bytes)) return data;
  fail_out_of_memory(bytes);
}

void CudaDevice::fail_out_of_memory(size_t bytes) const {
  const CurrentDevice current(id());
  size_t free_bytes = 0, total_bytes = 0;
  cudaMemGetInfo(&free_bytes, &total_bytes);
  fail("out of memory on ", context(), ": ", bytes, " bytes were asked for with ", memory().live, " in use here and ",
       free_bytes, " of ", total_bytes, " free on the GPU");
}

CudaDevice::StagingSlot& CudaDevice::next_slot() {
  StagingSlot& slot = staging_[staged_++ % staging_.size()];
  if (!slot.buffer) {
    slot.buffer = pinned_.allocate(staging_bytes);
    require(slot.buffer != nullptr, "[", context(), "] no pinned host memory: ", staging_bytes,
            " bytes were asked for");
    check(cudaEventCreateWithFlags(&slot.copied, cudaEventDisableTiming), "making an event");
  } else {
    check(cudaEventSynchronize(slot.copied), "waiting for a copy to the GPU");
  }
  return slot;
}

void CudaDevice::copy_from_host(void* dst, const void* src, size_t bytes) {
  if (bytes == 0) return;
  const Queueing queueing(*this);
  const std::lock_guard lock(staging_mutex_);
  for (size_t done = 0; done < bytes;) {
    const size_t now = std::min(staging_bytes, bytes - done);
    StagingSlot& slot = next_slot();
    std::memcpy(slot.buffer, static_cast<const std::byte*>(src) + done, now);
    check(cudaMemcpyAsync(static_cast<std::byte*>(dst) + done, slot.buffer, now, cudaMemcpyHostToDevice, stream_),
          "copying to the GPU");
    check(cudaEventRecord(slot.copied, stream_), "copying to the GPU");
    done += now;
  }
}

void CudaDevice::copy_to_host(void* dst, const void* src, size_t bytes) {
  if (bytes == 0) return;
  {
    const Queueing queueing(*this);
    check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, stream_), "copying from the GPU");
    check(cudaStreamSynchronize(stream_), "copying from the GPU");
    throw_faults(*this);
  }
  throw_faults_of_sources();
}

void CudaDevice::copy_within(void* dst, const void* src, size_t bytes) {
  if (bytes == 0 || dst == src) return;
  const Queueing queueing(*this);
  const auto to = reinterpret_cast<uintptr_t>(dst), from = reinterpret_cast<uintptr_t>(src);
  if (to < from + bytes && from < to + bytes) {  // overlapping: through a temporary buffer
    const PoolBlock between(pool_, bytes);
    if (!between.data()) fail_out_of_memory(bytes);
    check(cudaMemcpyAsync(between.data(), src, bytes, cudaMemcpyDeviceToDevice, stream_), "copying on the GPU");
    check(cudaMemcpyAsync(dst, between.data(), bytes, cudaMemcpyDeviceToDevice, stream_), "copying on the GPU");
    return;
  }
  check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, stream_), "copying on the GPU");
}

// Lets this GPU read memory of the other one, where the machine can do that. Otherwise the driver copies through the
// host.
void CudaDevice::note_source(CudaDevice& source) {
  const std::lock_guard lock(sources_mutex_);
  if (!sources_.insert(&source).second || id() == source.id()) return;
  const cudaError_t status = cudaDeviceEnablePeerAccess(source.id(), 0);
  cudaGetLastError();
  if (status != cudaErrorPeerAccessAlreadyEnabled && status != cudaErrorPeerAccessUnsupported)
    check(status, "allowing access to another GPU");
}

// The copy waits for what is queued on the source, and what is queued there later waits for the copy. The two queues
// are held one after the other, since another thread may copy in the opposite direction.
void CudaDevice::copy_from_device(void* dst, Device& src_device, const void* src, size_t bytes) {
  if (bytes == 0) return;
  CudaDevice& from = of(src_device);
  CudaEvent written(from), copied(*this);
  {
    const Queueing queueing(from);
    written.record(from.stream());
  }
  {
    const Queueing queueing(*this);
    note_source(from);
    written.make_wait(*this, stream_);
    check(cudaMemcpyPeerAsync(dst, id(), src, from.id(), bytes, stream_), "copying from another GPU");
    copied.record(stream_);
  }
  const Queueing queueing(from);
  copied.make_wait(from, from.stream());
}

void CudaDevice::throw_faults_of_sources() {
  std::set<CudaDevice*> seen{this};
  std::vector<CudaDevice*> open{this};
  while (!open.empty()) {
    CudaDevice& device = *open.back();
    open.pop_back();
    if (&device != this) {
      const Queueing queueing(device);
      throw_faults(device);
    }
    const std::lock_guard lock(device.sources_mutex_);
    for (CudaDevice* const source : device.sources_)
      if (seen.insert(source).second) open.push_back(source);
  }
}

void CudaDevice::fill(void* dst, DType dtype, int64_t count, double value) {
  if (count == 0) return;
  const Queueing queueing(*this);
  note("[fill]");
  queue_fill(stream_, dst, dtype, count, value);
  check_queued("filling an array");
}

void CudaDevice::cast(void* dst, DType to, const void* src, DType from, int64_t count) {
  if (count == 0) return;
  if (to == from) return copy_within(dst, src, static_cast<size_t>(count) * size_of(to));
  const Queueing queueing(*this);
  note("[cast]");
  queue_cast(stream_, dst, to, src, from, count);
  check_queued("converting an array");
}

void CudaDevice::synchronize() {
  {
    const Queueing queueing(*this);
    check(cudaStreamSynchronize(stream_), "waiting for the GPU");
    throw_faults(*this);
  }
  throw_faults_of_sources();
}

}  // namespace cuda_backend

DeviceQueue hold_queue(Device& gpu) {
  auto& device = cuda_backend::CudaDevice::of(gpu);
  auto hold = std::make_shared<cuda_backend::Queueing>(device);
  return {device.stream(), std::move(hold)};
}

namespace {

int count_of_machine() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

}  // namespace

int count_gpu_devices() {
  static const int wanted = environment::variable("SYMBIND_GPUS").value();
  const int count = count_of_machine();
  return count > 0 ? std::max(count, wanted) : 0;
}

int gpu_number(Context gpu) {
  const int count = count_of_machine();
  return count_gpu_devices() > count ? gpu.id % count : gpu.id;
}

std::unique_ptr<Device> make_gpu_device(Context context) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();
    fail(context, " is not available: this machine has no GPU that CUDA can use (", cudaGetErrorString(status), ")");
  }
  const int contexts = count_gpu_devices();
  require(context.id >= 0 && context.id < contexts, context, " is not available: this machine has ", count,
          count == 1 ? " GPU" : " GPUs", ", numbered from 0",
          contexts > count ? join("; SYMBIND_GPUS makes ", contexts, " of it") : "");
  cuda_backend::check_architecture(context);
  return std::make_unique<cuda_backend::CudaDevice>(context);
}

}  // namespace symbind
