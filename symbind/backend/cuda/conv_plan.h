// A convolution, or one of its gradients, by a library: the problem, and a plan that is ready to run.
// backend/cuda/cudnn creates the plans; the stubs in no_cudnn return none.
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
  bool tune = true;  // time the candidates and use the fastest; otherwise the library's first choice
  size_t most_workspace = size_t{256} << 20;
};

// Must products of float32 numbers be computed in float32, not in TF32?
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
