// Runs candidate engines of a convolution in separate memory and on a separate stream: the device's stream may be in
// the middle of a capture.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "symbind/backend/cuda/conv_plan.h"
#include "symbind/backend/cuda/memory_pool.h"

namespace symbind::cuda_backend::cudnn {

// Queues an engine, and a pass for the epilogue that it does not apply, on the trial's stream; false when it fails.
using RunEngine = std::function<bool(const ConvolutionArrays& arrays, void* workspace)>;

class Trial {
 public:
  Trial(CudaDevice& device, const ConvolutionProblem& problem, size_t workspace_bytes);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  cudaStream_t stream() const { return stream_; }
  bool has_memory() const;

  // Milliseconds on random values that are not in the device's cache, the least of several runs; nothing when the
  // engine fails.
  std::optional<float> time(const RunEngine& run);

  // Does a float32 engine agree with the definition, up to the rounding of float32 sums? cuDNN's numerical notes are
  // not sufficient: one for weight gradients of 5 × 5 kernels has no note at all and is off by 0.1 %.
  bool is_exact(const RunEngine& run);

  // Is the result NaN where the data is? Some engines with ReLU return 0.
  bool keeps_nan(const RunEngine& run);

  // Are the sums per channel those of the result, up to its rounding, and assigned rather than added to? Rules out an
  // engine that means something else by them; how precise sums have to be is BatchNorm's concern.
  bool has_right_statistics(const RunEngine& run);

 private:
  enum Block {
    data,
    weight,
    output,
    residual,
    bias,
    sum,
    square_sum,
    more_grad,
    activation,
    norm_data,
    mean,
    workspace,
    expected,
    difference,
    blocks
  };

  Block result() const;
  void* at(Block block) const { return bytes_[block] > 0 ? memory_[block] : nullptr; }
  ConvolutionArrays arrays() const {
    return {at(data),       at(weight),    at(output),     at(residual),  at(bias), at(sum),
            at(square_sum), at(more_grad), at(activation), at(norm_data), at(mean)};
  }
  int64_t count(Block block) const { return static_cast<int64_t>(bytes_[block] / size_of(problem_.dtype)); }
  void allocate();
  void fill();
  std::optional<std::vector<float>> copy_to_host(Block block);  // an array of float32; nothing when work has failed
  void compute_expected();
  std::optional<float> time_once(const RunEngine& run);
  float tolerance() const;

  const ConvolutionProblem& problem_;
  Pool pool_;  // not the device's: nothing else needs blocks of these sizes
  std::vector<size_t> bytes_;
  std::vector<void*> memory_;
  size_t cache_bytes_;     // twice the device's cache
  void* cache_ = nullptr;  // overwritten before each timed run; null if there is no memory for it
  bool has_expected_ = false;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace symbind::cuda_backend::cudnn
