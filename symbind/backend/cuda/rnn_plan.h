// Recurrent layers by a library: the problem, and a plan that is ready to run. backend/cuda/cudnn creates the plans;
// the stubs in no_cudnn return none.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "symbind/backend/cuda/device.h"
#include "symbind/ops/rnn.h"

namespace symbind::cuda_backend {

struct RnnProblem {
  std::string mode;
  RnnSize size{};
  DType dtype = DType::float32;
  bool has_lengths = false;  // sequences may be shorter than size.steps
};

// Arrays have the shapes of the operator's; cells are null except for an LSTM. Everything is aligned to 256 bytes.
// `lengths` is on the host, a number of steps for each sequence, and is read before the call returns; null without
// has_lengths. Steps after the end of a sequence have the output 0; their data_grad is undefined.
struct RnnForwardArrays {
  const int* lengths;
  const void *data, *parameters, *state, *cell;
  void *output, *last_state, *last_cell;  // the states may be null
  void* workspace;
  void* reserve;  // what backward reads; null: nothing is stored
};
struct RnnBackwardArrays {
  const int* lengths;
  const void *data, *parameters, *state, *cell, *output;
  const void *output_grad, *last_state_grad, *last_cell_grad;  // the states' may be null: zeros
  void *data_grad, *state_grad, *cell_grad;
  void* parameters_grad;  // added to; null: not requested
  void *workspace, *reserve;
};

class RnnPlan {
 public:
  virtual ~RnnPlan() = default;
  virtual size_t workspace_bytes() const = 0;
  virtual size_t reserve_bytes() const = 0;
  virtual void forward(cudaStream_t stream, const RnnForwardArrays& arrays) = 0;
  virtual void backward(cudaStream_t stream, const RnnBackwardArrays& arrays) = 0;  // overwrites the reserve
};

// Null when there is none; then the reason is written.
std::shared_ptr<RnnPlan> find_rnn(CudaDevice& device, const RnnProblem& problem, std::string* reason);

}  // namespace symbind::cuda_backend
