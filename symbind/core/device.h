// A device: memory with its counters, a queue of work, a random state. One object per context, alive for the whole
// process. The backends supply the two factories at the bottom when linking.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "symbind/core/context.h"
#include "symbind/core/dtype.h"
#include "symbind/core/random.h"

namespace SYMBIND_API symbind {

struct MemoryStats {
  int64_t live = 0;    // bytes allocated and not released
  int64_t peak = 0;    // the largest value of live so far
  int64_t pooled = 0;  // released bytes in the pool, for reuse
};

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // The device of a context; fails if this machine has no such device.
  static Device& get(Context context);

  Context context() const { return context_; }
  bool is_host() const { return !context_.is_gpu(); }  // can the CPU read its memory?
  RandomState& random() { return random_; }

  // Memory is aligned to at least 64 bytes; released memory goes into a pool.
  void* allocate(size_t bytes);
  void release(void* data, size_t bytes) noexcept;
  MemoryStats memory() const;
  void reset_peak();
  virtual void empty_pool() {}

  // Queued on the device, in order. The host memory may be reused when copy_from_host returns; it holds the data when
  // copy_to_host returns.
  virtual void copy_from_host(void* dst, const void* src, size_t bytes) = 0;
  virtual void copy_to_host(void* dst, const void* src, size_t bytes) = 0;
  virtual void copy_within(void* dst, const void* src, size_t bytes) = 0;
  // From another device, neither of them the host, in the order of the work queued on both.
  virtual void copy_from_device(void* dst, Device& src_device, const void* src, size_t bytes) = 0;
  virtual void fill(void* dst, DType dtype, int64_t count, double value) = 0;
  virtual void cast(void* dst, DType to, const void* src, DType from, int64_t count) = 0;
  // Waits for the queue; throws errors of queued work.
  virtual void synchronize() = 0;

 protected:
  explicit Device(Context context) : context_(context), random_(context.id) {}
  virtual void* allocate_bytes(size_t bytes) = 0;
  virtual void release_bytes(void* data, size_t bytes) noexcept = 0;
  virtual int64_t pooled_bytes() const { return 0; }

 private:
  Context context_;
  RandomState random_;
  std::atomic<int64_t> live_{0}, peak_{0};
};

// Copies between any two devices; work queued on dst afterwards sees the result.
void copy_bytes(Device& dst_device, void* dst, Device& src_device, const void* src, size_t bytes);

// Synchronizes every device in use.
void waitall();

// A piece of device memory with a version that every write advances, so that data derived from it (reordered weights,
// folded statistics) can be cached against the version.
class Storage {
 public:
  Storage(Device& device, size_t bytes);
  // Memory that `owner` owns and keeps alive. Writes to it go unnoticed, so it counts as exported.
  Storage(Device& device, void* data, size_t bytes, std::shared_ptr<void> owner);
  // Memory of the caller, who calls copy_borrowed() before releasing it.
  static std::shared_ptr<Storage> borrowed(Device& device, void* data, size_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Device& device() const { return device_; }
  const void* data() const { return data_; }
  void* mutable_data() {
    bump();
    return data_;
  }
  size_t bytes() const { return bytes_; }
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump() { version_.fetch_add(1, std::memory_order_relaxed); }
  // The holder of a raw pointer may write at any time: nothing may be cached from this storage any more.
  void mark_exported() { exported_.store(true, std::memory_order_relaxed); }
  bool exported() const { return exported_.load(std::memory_order_relaxed); }
  // Copies the data into memory that this storage owns.
  void copy_borrowed();

 private:
  Device& device_;
  void* data_;
  size_t bytes_;
  std::shared_ptr<void> owner_;
  std::atomic<uint64_t> version_{1};
  std::atomic<bool> exported_{false};
};

// Supplied by backend/cpu, and by backend/cuda or its stubs.
std::unique_ptr<Device> make_cpu_device(Context context);
std::unique_ptr<Device> make_gpu_device(Context context);
int count_gpu_devices();
int gpu_number(Context gpu);  // CUDA's number of the GPU that the context uses: see SYMBIND_GPUS in environment.h

}  // namespace symbind
