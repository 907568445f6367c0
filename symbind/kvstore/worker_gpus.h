// One GPU of each worker of a job, which exchange arrays directly, by NCCL.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "symbind/core/ndarray.h"

namespace symbind {

// Called by one thread, on all workers in the same order.
class WorkerGpus {
 public:
  virtual ~WorkerGpus() = default;

  // Assigns to `to` the sum of the arrays `from` of all workers. Both have one shape and type and are on this worker's
  // GPU; they may be the same array.
  struct Sum {
    NDArray from, to;
    bool after_queue = true;  // after the work queued on the GPU; else that has nothing to do with the arrays any more
  };
  // Beside the GPU's queue; `sums` must live until finished().
  virtual void all_reduce(std::span<const Sum> sums) = 0;
  virtual bool finished() = 0;  // the last sums; throws errors
  virtual void abort() = 0;     // ends sums that wait for a lost worker; nothing can be queued afterwards
};

// How the workers of a job connect their GPUs.
class GpuConnector {
 public:
  virtual ~GpuConnector() = default;
  virtual bool takes(Context context, DType dtype) const = 0;
  virtual std::string identity(Context gpu) const = 0;  // different for different GPUs on all hosts
  using Id = std::array<std::byte, 128>;
  virtual Id make_id() const = 0;  // of a new connection, by worker 0
  // By all workers; waits for them.
  virtual std::unique_ptr<WorkerGpus> connect(Context gpu, const Id& id, int rank, int size) const = 0;
};

// Supplied by nccl/ or no_nccl/, where it is null.
std::shared_ptr<const GpuConnector> nccl_connector();

}  // namespace symbind
