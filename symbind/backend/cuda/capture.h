// Steps of a plan that are captured in the order that their data requires (passes/step_capture.h).
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <cuda_runtime_api.h>

namespace symbind::cuda_backend {

// Work after all steps up to this one, which no step waits for. It returns false if CUDA cannot record it.
struct JoinedWork {
  size_t step;
  std::function<bool()> queue;
};

// Runs the steps while the stream is captured, each after the steps it waits for, and the joined work, which is in the
// order of its steps. What is queued next comes after all steps. False: CUDA cannot record them so.
bool record_steps(cudaStream_t stream, std::span<const std::vector<size_t>> waits,
                  const std::function<void(size_t step)>& run_step, std::span<const JoinedWork> joined);

// Adds recorded work as one node while the stream is captured, after what was queued so far. False: CUDA cannot.
bool add_recorded(cudaStream_t stream, cudaGraph_t work, cudaGraphNode_t& node);

// Called by a kernel before it queues work that uses more than its arrays and scratch: a library's own workspace, or
// blocks that wait for each other and need the whole GPU. In a captured plan no other step runs at the same time.
void run_alone();

// Would work that is queued now directly follow one kernel, or is the stream not captured? Only then may a captured
// launch overlap with what is before it.
bool comes_after_one_kernel(cudaStream_t stream);

}  // namespace symbind::cuda_backend
