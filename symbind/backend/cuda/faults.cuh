// Recording of faults in kernels.
#pragma once

#include "symbind/backend/cuda/faults.h"

namespace symbind::cuda_backend {

// The first thread writes; the host reads the rest once it finds a kind.
__device__ inline void note_fault(const FaultNotes& notes, FaultKind kind, int at, int64_t value, int64_t least,
                                  int64_t most) {
  if (atomicCAS(notes.claimed, 0u, 1u) != 0u) return;
  Fault& fault = *notes.fault;
  fault.at = at;
  fault.value = value;
  fault.least = least;
  fault.most = most;
#pragma unroll
  for (int word = 0; word < Fault::words; ++word) fault.where[word] = notes.where[word];
  __threadfence_system();
  fault.kind = kind;
}

}  // namespace symbind::cuda_backend
