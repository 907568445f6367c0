#pragma once

#include <memory>
#include <span>
#include <vector>

#include "symbind/exec/invoke.h"
#include "symbind/passes/target.h"

namespace symbind {

// An operator prepared for arrays of certain shapes and types: what invoke() computes at each call, for reuse. Serves
// one thread at a time.
class ReadyOp {
 public:
  ReadyOp() = default;
  // For inputs of these shapes, types and contexts. Fails as invoke() does.
  ReadyOp(const OpDef& op, std::span<const NDArray> inputs, std::shared_ptr<const void> params,
          const InvokeOptions& options = {});

  // The visible outputs, in `out` where arrays are given. The inputs must have the shapes, types and contexts of those
  // passed to the constructor.
  std::vector<NDArray> run(std::span<const NDArray> inputs, const std::vector<NDArray>& out = {}) const;
  // The same for an operator of one output without scratch, random numbers or states; `into` may be null.
  NDArray run_simple(std::span<const NDArray> inputs, const NDArray* into) const;
  bool simple() const { return simple_; }

 private:
  void run_kernel(const Args& args) const;  // and records it for the profiler
  NDArray new_result(Device& device, const Tensor& tensor) const;

  const OpDef* op_ = nullptr;
  std::shared_ptr<const void> params_;
  Context context_;
  std::vector<Tensor> outputs_;
  size_t visible_ = 0;
  bool random_ = false, simple_ = false;
  std::vector<bool> updated_;  // inputs that it writes
  std::shared_ptr<Kernel> kernel_;
  Target* target_ = nullptr;
};

}  // namespace symbind
