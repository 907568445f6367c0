// Runs candidate engines of a convolution in separate memory and on a separate stream: the device's stream may be in
// the middle of a capture.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "symbind/backend/cuda/conv_plan.h"
#include "symbind/backend/cuda/memory_pool.h"

namespace symbind::cuda_backend::cudnn {

// Queues an engine on the trial's stream; false when it fails.
using RunEngine = std::function<bool(void* data, void* weight, void* output, void* workspace)>;

class Trial {
 public:
  Trial(CudaDevice& device, const ConvolutionProblem& problem, size_t workspace_bytes);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  cudaStream_t stream() const { return stream_; }
  bool has_memory() const;

  // Milliseconds, the least of several runs; nothing when the engine fails.
  std::optional<float> time(const RunEngine& run);

  // Does a float32 engine agree with the definition, up to the rounding of float32 sums? cuDNN's numerical notes are
  // not sufficient: one for weight gradients of 5 × 5 kernels has no note at all and is off by 0.1 %.
  bool is_exact(const RunEngine& run);

 private:
  enum Block { data, weight, output, workspace, expected, difference, blocks };

  Block result() const;
  float* at(Block block) const { return static_cast<float*>(memory_[block]); }
  int64_t count(Block block) const { return static_cast<int64_t>(bytes_[block] / sizeof(float)); }
  void fill();
  std::optional<float> time_once(const RunEngine& run);
  float tolerance() const;

  const ConvolutionProblem& problem_;
  Pool pool_;  // not the device's: nothing else needs blocks of these sizes
  std::vector<size_t> bytes_;
  std::vector<void*> memory_;
  bool has_expected_ = false;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace symbind::cuda_backend::cudnn
