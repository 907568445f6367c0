// Shared by the kernels of loops and branches: parts of scratch memory, and small networks of copies and zeros.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "symbind/backend/sub_plan.h"
#include "symbind/passes/target.h"

namespace symbind {

constexpr size_t scratch_alignment = 64;
constexpr size_t aligned_bytes(size_t bytes) {
  return (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
}

inline std::byte* offset(void* base, size_t bytes) { return base ? static_cast<std::byte*>(base) + bytes : nullptr; }

// Allocates the parts of a kernel's scratch memory one after the other.
class ScratchLayout {
 public:
  size_t take(size_t bytes) { return std::exchange(total_, total_ + aligned_bytes(bytes)); }
  size_t total() const { return total_; }

 private:
  size_t total_ = 0;
};

inline size_t scratch_of(const std::unique_ptr<SubPlan>& plan) { return plan ? plan->scratch_bytes() : 0; }

// An array without its first axis.
Tensor slice_of(const Tensor& whole);

// A network that copies arrays, and one that fills them with zeros; null where there are none.
std::unique_ptr<SubPlan> make_copy_plan(std::span<const Tensor> tensors, Context context);
std::unique_ptr<SubPlan> make_zero_plan(std::span<const Tensor> tensors, Context context);
void run_zero_plan(const std::unique_ptr<SubPlan>& plan, const Args& inner, std::span<void* const> arrays);

}  // namespace symbind
