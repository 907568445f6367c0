// The CPU as a device. Every cpu(i) is a separate device with the same memory, so that data parallelism can be tested
// on any machine. Work is done when a call returns, so there is no queue.
#include "symbind/core/device.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "symbind/backend/cpu/convert_array.h"
#include "symbind/core/error.h"
#include "symbind/core/parallel.h"

namespace symbind {
namespace {

constexpr size_t alignment = 64;
constexpr size_t most_pooled = size_t{64} << 20;  // per device; larger blocks are returned to the system immediately
constexpr size_t largest_pooled_block = size_t{4} << 20;
constexpr size_t huge_page = size_t{2} << 20;

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(Context context) : Device(context) {}
  ~CpuDevice() override { CpuDevice::empty_pool(); }

  void empty_pool() override {
    const std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : pool_)
      for (void* block : blocks) std::free(block);
    pool_.clear();
    pooled_ = 0;
  }

  void copy_from_host(void* dst, const void* src, size_t bytes) override { copy(dst, src, bytes); }
  void copy_to_host(void* dst, const void* src, size_t bytes) override { copy(dst, src, bytes); }
  void copy_within(void* dst, const void* src, size_t bytes) override { copy(dst, src, bytes); }
  void copy_from_device(void*, Device&, const void*, size_t) override { fail("[copy] ", context(), " is the host"); }

  void fill(void* dst, DType dtype, int64_t count, double value) override {
    visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
      const T element = convert<T>(value);
      T* const out = static_cast<T*>(dst);
      parallel_for(count, 1 << 16, [=](int64_t begin, int64_t end) { std::fill(out + begin, out + end, element); });
    });
  }

  void cast(void* dst, DType to, const void* src, DType from, int64_t count) override {
    cpu_backend::convert_array(dst, to, src, from, count);
  }

  void synchronize() override {}

 protected:
  void* allocate_bytes(size_t bytes) override {
    const size_t size = rounded(bytes);
    {
      const std::lock_guard lock(mutex_);
      const auto found = pool_.find(size);
      if (found != pool_.end() && !found->second.empty()) {
        void* block = found->second.back();
        found->second.pop_back();
        pooled_ -= size;
        return block;
      }
    }
    void* block = from_system(size);
    if (!block) {
      empty_pool();
      block = from_system(size);
    }
    require(block != nullptr, "out of memory on ", context(), ": ", bytes, " bytes were asked for with ", memory().live,
            " in use");
    return block;
  }

  void release_bytes(void* data, size_t bytes) noexcept override {
    const size_t size = rounded(bytes);
    if (size <= largest_pooled_block) {
      const std::lock_guard lock(mutex_);
      if (pooled_ + size <= most_pooled) {
        try {
          pool_[size].push_back(data);
          pooled_ += size;
          return;
        } catch (const std::bad_alloc&) {  // no memory for the bookkeeping: it is freed immediately
        }
      }
    }
    std::free(data);
  }

  int64_t pooled_bytes() const override {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(pooled_);
  }

 private:
  // Some systems overcommit memory and kill the process when it is touched: requests beyond the physical memory fail
  // here.
  static void* from_system(size_t size) {
    static const size_t physical =
        static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    if (size > physical) return nullptr;
    if (size < 2 * huge_page) return std::aligned_alloc(alignment, size);
    void* block = nullptr;
    if (::posix_memalign(&block, huge_page, size) != 0) return nullptr;
    // Few large pages instead of many small ones: loops over large arrays have fewer TLB misses. A system without huge
    // pages ignores it. The end of the block keeps small pages, so no memory is wasted.
    ::madvise(block, size / huge_page * huge_page, MADV_HUGEPAGE);
    return block;
  }

  static size_t rounded(size_t bytes) { return (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment; }

  static void copy(void* dst, const void* src, size_t bytes) {
    if (bytes == 0 || dst == src) return;
    const auto to = reinterpret_cast<uintptr_t>(dst), from = reinterpret_cast<uintptr_t>(src);
    if (to < from + bytes && from < to + bytes) {  // overlapping: the order of the bytes matters
      std::memmove(dst, src, bytes);
      return;
    }
    parallel_for(static_cast<int64_t>(bytes), 1 << 20, [=](int64_t begin, int64_t end) {
      std::memcpy(static_cast<std::byte*>(dst) + begin, static_cast<const std::byte*>(src) + begin,
                  static_cast<size_t>(end - begin));
    });
  }

  mutable std::mutex mutex_;
  std::map<size_t, std::vector<void*>> pool_;
  size_t pooled_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(Context context) { return std::make_unique<CpuDevice>(context); }

}  // namespace symbind
