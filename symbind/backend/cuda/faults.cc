#include "symbind/backend/cuda/faults.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "symbind/backend/cuda/device.h"
#include "symbind/core/error_kinds.h"

namespace symbind::cuda_backend {
namespace {

struct Memory {
  uint32_t* claimed = nullptr;
  Fault* fault = nullptr;

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    cudaFree(claimed);
    cudaFreeHost(fault);
  }
};

// Most programs have no kernel that could record a fault, and need no check.
std::atomic<bool> in_use{false};

Memory& memory_of(CudaDevice& device) {
  const auto made = device.library("faults", [&]() -> std::shared_ptr<void> {
    auto memory = std::make_shared<Memory>();
    void* fault = nullptr;
    void* claimed = nullptr;
    device.check(cudaHostAlloc(&fault, sizeof(Fault), cudaHostAllocMapped | cudaHostAllocPortable),
                 "allocating pinned memory");
    memory->fault = new (fault) Fault();
    device.check(cudaMalloc(&claimed, sizeof(uint32_t)), "allocating memory");
    memory->claimed = static_cast<uint32_t*>(claimed);
    device.check(cudaMemsetAsync(claimed, 0, sizeof(uint32_t), device.stream()), "clearing memory");
    return memory;
  });
  in_use.store(true, std::memory_order_release);
  return *static_cast<Memory*>(made.get());  // the device keeps it
}

[[noreturn]] void throw_as_error(const Fault& fault) {
  char text[sizeof(fault.where) + 1] = {};
  std::memcpy(text, fault.where, sizeof(fault.where));
  if (fault.kind == FaultKind::sequence_length)
    fail(text, " sequence_length ", fault.value, " of sequence ", fault.at, " is not between ", fault.least, " and ",
         fault.most);
  throw IndexError(join(text, " index ", fault.value, " is outside of ",
                        fault.at < 0 ? std::string("an axis") : join("axis ", fault.at), " of length ",
                        fault.most + 1));
}

}  // namespace

FaultNotes fault_notes(const NodeView& node) {
  CudaDevice& device = CudaDevice::of(node.context);
  const Queueing queueing(device);
  const Memory& memory = memory_of(device);
  FaultNotes notes{memory.claimed, memory.fault, {}};
  const std::string where = node.where();
  std::memcpy(notes.where, where.data(), std::min(where.size(), sizeof(notes.where)));
  return notes;
}

void throw_faults(CudaDevice& device) {
  if (!in_use.load(std::memory_order_acquire)) return;
  Memory& memory = memory_of(device);
  // Kernels write the kind last.
  std::atomic_ref<FaultKind> kind(memory.fault->kind);
  if (kind.load(std::memory_order_acquire) == FaultKind::none) return;
  const Fault fault = *memory.fault;
  kind.store(FaultKind::none, std::memory_order_relaxed);
  device.check(cudaMemsetAsync(memory.claimed, 0, sizeof(uint32_t), device.stream()), "clearing memory");
  throw_as_error(fault);
}

}  // namespace symbind::cuda_backend
