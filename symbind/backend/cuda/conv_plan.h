// A convolution, or one of its gradients, by a library or a kernel of ours that is timed beside it: the problem, and a
// plan that is ready to run. backend/cuda/cudnn creates the plans; the stubs in no_cudnn return none.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "symbind/backend/cuda/device.h"
#include "symbind/ops/conv.h"

namespace symbind::cuda_backend {

// Of the arrays in a kernel's scratch memory, the library's workspace among them.
inline constexpr size_t workspace_alignment = 256;
constexpr size_t aligned(size_t bytes) {
  return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

enum class ConvolutionPass { forward, data_grad, weight_grad };

// What is applied to the products of a forward convolution while they are written: relu(products + residual + bias),
// of which the parts not set are missing. With statistics, sums per channel of the result are written as well.
// The gradient of data may pass through the ReLU that computed this data (see ConvolutionGradAddRelu), which is given
// by its results or their signs.
struct ConvolutionEpilogue {
  bool residual = false, bias = false, relu = false, statistics = false;
  bool relu_gradient = false, signs = false;
  bool any() const { return residual || bias || relu || statistics || relu_gradient; }
};

struct ConvolutionProblem {
  ConvolutionPass pass = ConvolutionPass::forward;
  ConvolutionSize size{};
  // Activations are (batch, space…, channels) and weights (filters, kernel…, channels); otherwise channels come second.
  bool channels_last = false;
  DType dtype = DType::float32;  // of all arrays
  ConvolutionEpilogue epilogue{};
  bool tune = true;        // time the candidates and use the fastest; otherwise the first choice
  bool repeatable = true;  // the same bits in every run, also of statistics
  size_t most_workspace = size_t{256} << 20;
};

// Must products of float32 numbers be computed in float32, not in TF32?
inline bool requires_exact_results(const ConvolutionProblem& problem) {
  return problem.dtype == DType::float32 && !tf32_wanted();
}

// Two of data, weight and output are read and one is assigned, as the pass has it: in data_grad `data` is the gradient
// of data. The others belong to the epilogue. Residual has the layout of output. The sums, of each channel's elements
// and of their squares, are assigned. In data_grad more_grad, activation and norm_data have the layout of data, and the
// second sum is that of the gradient times the distance of norm_data from its mean; activation may be the signs.
struct ConvolutionArrays {
  void *data, *weight, *output;
  const void *residual = nullptr, *bias = nullptr;
  void *channel_sum = nullptr, *channel_square_sum = nullptr;
  const void *more_grad = nullptr, *activation = nullptr, *norm_data = nullptr, *mean = nullptr;
  // Was the weight complete before this plan's first kernel was queued? It may then be read while the kernel before
  // still runs.
  bool weight_is_settled = false;
};

class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  // All arrays are aligned to 16 bytes, the workspace to 256.
  virtual void run(cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) = 0;
  virtual size_t workspace_bytes() const = 0;
  // Otherwise the epilogue is a pass over the result, which the caller queues: conv_finish.h, and for the statistics
  // conv_sums.h.
  virtual bool applies_epilogue() const = 0;
};

// Plans are found once for each problem on each device. Null when there is none; then the reason is written. A problem
// with an epilogue gets a plan that applies it, if there is one and it is faster than a plan without and a pass.
std::shared_ptr<ConvolutionPlan> find_convolution(CudaDevice& device, const ConvolutionProblem& problem,
                                                  std::string* reason);

}  // namespace symbind::cuda_backend
