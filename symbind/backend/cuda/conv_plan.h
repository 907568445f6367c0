// A convolution, or one of its gradients, by a library. What is asked for, and what is ready to run; backend/cuda/cudnn
// makes the plans; the stubs in no_cudnn return none.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "symbind/backend/cuda/device.h"
#include "symbind/ops/conv.h"

namespace symbind::cuda_backend {

enum class ConvolutionPass { forward, data_grad, weight_grad };

struct ConvolutionProblem {
  ConvolutionPass pass = ConvolutionPass::forward;
  ConvolutionSize size{};
  // Activations are (batch, space…, channels) and weights (filters, kernel…, channels); otherwise channels come second.
  bool channels_last = false;
  DType dtype = DType::float32;
  bool tune = true;  // try what is on offer and take the fastest; otherwise the library's first choice
  size_t most_workspace = size_t{256} << 20;
};

// Are products of float32 numbers to be rounded as float32, not as TF32?
inline bool wants_exact_results(const ConvolutionProblem& problem) {
  return problem.dtype == DType::float32 && !tf32_wanted();
}

class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  // Reads two of the arrays and assigns the one that the pass computes: in data_grad `data` is the gradient of data.
  // All are aligned to 16 bytes, the workspace to 256.
  virtual void run(cudaStream_t stream, void* data, void* weight, void* output, void* workspace) = 0;
  virtual size_t workspace_bytes() const = 0;
};

// Plans are found once for each problem on each device. Null when there is none; then the reason is written.
std::shared_ptr<ConvolutionPlan> find_convolution(CudaDevice& device, const ConvolutionProblem& problem,
                                                  std::string* reason);

}  // namespace symbind::cuda_backend
