// Values in arrays that an operator must refuse, such as an index outside of its axis. A kernel cannot throw: it
// records the first such value in host memory and continues with a valid one. The next call that synchronizes with the
// device, or with one that has copied from it, throws the error that the CPU's kernel throws immediately.
#pragma once

#include <cstdint>

#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

class CudaDevice;

enum class FaultKind : uint32_t { none, index, sequence_length };

struct Fault {
  static constexpr int words = 12;  // of the operator's name, eight characters each

  FaultKind kind = FaultKind::none;  // none: no fault was recorded
  int32_t at = -1;                   // the axis, or the sequence; -1: there is only one
  int64_t value = 0;
  int64_t least = 0, most = 0;  // the values that are allowed
  uint64_t where[words] = {};
};

// What a kernel needs to record a fault (note_fault in faults.cuh); passed by value.
struct FaultNotes {
  uint32_t* claimed = nullptr;  // in device memory: is a fault already recorded?
  Fault* fault = nullptr;       // in pinned memory of the host
  uint64_t where[Fault::words] = {};
};

// The notes of the node's device, with the node's name. Called when a kernel is built.
FaultNotes fault_notes(const NodeView& node);

// Throws the fault recorded since the last call, if any. Called by a thread that waited for the work that may have
// recorded it, and that holds a Queueing.
void throw_faults(CudaDevice& device);

}  // namespace symbind::cuda_backend
