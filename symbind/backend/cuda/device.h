// A GPU as a device: one stream that all work is queued on, pools of device and of pinned host memory, and the name of
// the operator queued last, since CUDA reports an error of a kernel only at a later call. Any number of
// threads may use it.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

#include "symbind/backend/cuda/check.h"
#include "symbind/backend/cuda/memory_pool.h"
#include "symbind/core/device.h"

struct cublasLtContext;

namespace symbind::cuda_backend {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(Context context);
  ~CudaDevice() override;

  static CudaDevice& of(Context context) { return static_cast<CudaDevice&>(Device::get(context)); }
  static CudaDevice& of(Device& device) { return static_cast<CudaDevice&>(device); }

  int id() const { return id_; }  // CUDA's number, which several contexts may have: gpu_number()
  cudaStream_t stream() const { return stream_; }
  int attribute(cudaDeviceAttr name) const;                     // 0 if it is not known
  std::recursive_mutex& queue_mutex() { return queue_mutex_; }  // see Queueing
  cublasLtContext* blas();                                      // created on first use
  // An object that another library keeps for this device, created on first use.
  std::shared_ptr<void> library(const std::string& name, const std::function<std::shared_ptr<void>()>& make);
  Pool& pinned() { return pinned_; }

  // Records the operator that queues work now; `check_queued` fails if queueing failed, or if earlier queued work is
  // found to have failed.
  void note(std::string_view who);
  // Throws faults (faults.h) of the devices that this one has copied from. Called by a thread that has waited for this
  // device and holds no Queueing.
  void throw_faults_of_sources();
  void check_queued(std::string_view who);
  void check(cudaError_t status, std::string_view doing);

  void empty_pool() override { pool_.empty(); }
  void copy_from_host(void* dst, const void* src, size_t bytes) override;
  void copy_to_host(void* dst, const void* src, size_t bytes) override;
  void copy_within(void* dst, const void* src, size_t bytes) override;
  void copy_from_device(void* dst, Device& src_device, const void* src, size_t bytes) override;
  void fill(void* dst, DType dtype, int64_t count, double value) override;
  void cast(void* dst, DType to, const void* src, DType from, int64_t count) override;
  void synchronize() override;

 protected:
  void* allocate_bytes(size_t bytes) override;
  void release_bytes(void* data, size_t bytes) noexcept override { pool_.release(data, bytes); }
  int64_t pooled_bytes() const override { return pool_.pooled_bytes(); }

 private:
  [[noreturn]] void fail_out_of_memory(size_t bytes) const;
  void note_source(CudaDevice& source);

  // Pinned staging buffers for copies from the host, so that the caller's memory may be reused as soon as the copy is
  // queued. Each is reused once the copy out of it is done.
  struct StagingSlot {
    void* buffer = nullptr;
    cudaEvent_t copied = nullptr;
  };
  static constexpr size_t staging_bytes = size_t{1} << 20;
  StagingSlot& next_slot();

  const int id_;
  Pool pool_;
  Pool pinned_;
  cudaStream_t stream_ = nullptr;
  cublasLtContext* blas_ = nullptr;
  std::once_flag blas_made_;
  std::mutex libraries_mutex_;
  std::map<std::string, std::shared_ptr<void>> libraries_;
  std::mutex staging_mutex_;
  std::array<StagingSlot, 8> staging_;
  size_t staged_ = 0;
  std::mutex sources_mutex_;
  std::set<CudaDevice*> sources_;  // devices that this one has copied from
  std::mutex note_mutex_;
  std::string last_queued_;
  std::recursive_mutex queue_mutex_;
};

// Held by a thread that queues work on the device's stream or waits for it: sets the device as the calling thread's
// current one, and excludes other threads from the stream. Work that one thread queues while another captures a plan
// would become part of that plan, and synchronizing the stream would end the capture. Taken before any other lock, and
// never held while user code runs.
class Queueing {
 public:
  explicit Queueing(CudaDevice& device) : lock_(device.queue_mutex()), current_(device.id()) {}

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  CurrentDevice current_;
};

// While it lives, allocating memory of a GPU fails on the calling thread: memory that recorded work uses must be there
// for every launch.
class NoAllocation {
 public:
  NoAllocation();
  ~NoAllocation();
  NoAllocation(const NoAllocation&) = delete;
  NoAllocation& operator=(const NoAllocation&) = delete;

 private:
  bool before_;
};

// Does float32 arithmetic use TF32? SYMBIND_TF32=0 turns it off.
bool tf32_wanted();

// Device code of fill and cast, in device.cu.
void queue_fill(cudaStream_t stream, void* dst, DType dtype, int64_t count, double value);
void queue_cast(cudaStream_t stream, void* dst, DType to, const void* src, DType from, int64_t count);

}  // namespace symbind::cuda_backend
