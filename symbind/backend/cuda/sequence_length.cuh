// Lengths of sequences that kernels read. One that does not fit is reported when the device is synchronized (faults.h).
#pragma once

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/faults.cuh"

namespace symbind::cuda_backend {

struct LengthRange {
  int64_t least, most;
};

// The length of a sequence, or the nearest valid one.
__device__ inline int64_t length_of_sequence(const AnyArray& lengths, int64_t sequence, const LengthRange& range,
                                             const FaultNotes& faults) {
  const int64_t given = lengths.whole(sequence);
  if (given >= range.least && given <= range.most) return given;
  note_fault(faults, FaultKind::sequence_length, static_cast<int>(sequence), given, range.least, range.most);
  return given < range.least ? range.least : range.most;
}

}  // namespace symbind::cuda_backend
