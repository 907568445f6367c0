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
  int64_t live = 0;    // bytes handed out and not returned
  int64_t peak = 0;    // the most that was live at once
  int64_t pooled = 0;  // bytes kept for reuse
};

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // The device of a context; fails with a sentence when there is no such device here.
  static Device& get(Context context);

  Context context() const { return context_; }
  bool is_host() const { return !context_.is_gpu(); }  // can the CPU read its memory?
  RandomState& random() { return random_; }

  // Memory is aligned to 64 bytes or better, and comes back to a pool.
  void* allocate(size_t bytes);
  void release(void* data, size_t bytes) noexcept;
  MemoryStats memory() const;
  void reset_peak();
  virtual void empty_pool() {}

  // Queued on the device, in order; a host pointer may be reused when copy_from_host returns, and holds the data when
  // copy_to_host returns.
  virtual void copy_from_host(void* dst, const void* src, size_t bytes) = 0;
  virtual void copy_to_host(void* dst, const void* src, size_t bytes) = 0;
  virtual void copy_within(void* dst, const void* src, size_t bytes) = 0;
  virtual void fill(void* dst, DType dtype, int64_t count, double value) = 0;
  virtual void cast(void* dst, DType to, const void* src, DType from, int64_t count) = 0;
  // Waits for the queue; throws what went wrong in it.
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

// Copies between any two devices; the result is there for work queued on dst afterwards.
void copy_bytes(Device& dst_device, void* dst, Device& src_device, const void* src, size_t bytes);

// A barrier on every device in use.
void waitall();

// A piece of device memory with a version that every write advances, so that data derived from it (reordered weights,
// folded statistics) can be cached against the version.
class Storage {
 public:
  Storage(Device& device, size_t bytes);
  // Memory of somebody else; `owner` keeps it alive. Such memory may change unseen: it counts as exported.
  Storage(Device& device, void* data, size_t bytes, std::shared_ptr<void> owner);
  // Memory that nobody keeps alive for it: whoever lends it calls keep_copy() before it goes.
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
  // Whoever holds a raw pointer may write at any time: nothing may be cached from this storage any more.
  void mark_exported() { exported_.store(true, std::memory_order_relaxed); }
  bool exported() const { return exported_.load(std::memory_order_relaxed); }
  // Moves into memory of its own; what somebody else's memory held is copied.
  void keep_copy();

 private:
  Device& device_;
  void* data_;
  size_t bytes_;
  std::shared_ptr<void> owner_;
  std::atomic<uint64_t> version_{1};
  std::atomic<bool> exported_{false};
};

// Supplied by backend/cpu, and by backend/cuda or its stub twin.
std::unique_ptr<Device> make_cpu_device(Context context);
std::unique_ptr<Device> make_gpu_device(Context context);
int count_gpu_devices();

}  // namespace symbind
