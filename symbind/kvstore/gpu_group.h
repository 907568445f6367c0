// GPUs of one process that exchange arrays directly, by NCCL.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "symbind/core/ndarray.h"

namespace symbind {

// Operations on one array per GPU, given in the order of the group. They are queued on the GPUs, and the calls return.
class GpuGroup {
 public:
  virtual ~GpuGroup() = default;

  // Assigns the sum of arrays of one shape and type to `to`, which is on one of the GPUs and none of the arrays.
  struct Sum {
    std::vector<NDArray> from;
    NDArray to;
  };
  virtual void reduce(std::span<const Sum> sums) = 0;

  // Copies `from`, which is on one of the GPUs, to arrays of its shape and type. No array is written twice.
  struct Copy {
    NDArray from;
    std::vector<NDArray> to;
  };
  virtual void broadcast(std::span<const Copy> copies) = 0;
};

// The group for arrays of this type in these contexts, in this order; null if there is none.
using GpuGroups = std::function<GpuGroup*(const std::vector<Context>& contexts, DType dtype)>;

// The groups of a store: two or more different GPUs, since NCCL takes each GPU of a process once. They are created when
// first needed, are shared by the stores of a process, and exist until it ends. Without NCCL a warning says what is
// missing, and the result is empty.
GpuGroups nccl_groups();
bool are_different_gpus(std::span<const Context> contexts);  // two or more, each of its own

// Supplied by nccl/ or no_nccl/.
// Why NCCL cannot be used; empty where it can. Opens the library.
std::string nccl_problem();
bool nccl_adds(DType dtype);
std::unique_ptr<GpuGroup> open_gpu_group(std::span<const Context> gpus);

}  // namespace symbind
