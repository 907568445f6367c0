// Recurrent layers by cuDNN's functions for them. The operator's vector of parameters is in cuDNN's order; a plan
// checks that, matrix by matrix, and is refused otherwise.
#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "symbind/backend/cuda/cudnn/descriptor.h"
#include "symbind/backend/cuda/cudnn_part.h"
#include "symbind/backend/cuda/rnn_plan.h"

namespace symbind::cuda_backend {
namespace cudnn {
namespace {

cudnnRNNMode_t cell_mode(const std::string& mode) {
  if (mode == rnn_mode::lstm) return CUDNN_LSTM;
  if (mode == rnn_mode::gru) return CUDNN_GRU;
  return mode == rnn_mode::rnn_relu ? CUDNN_RNN_RELU : CUDNN_RNN_TANH;
}

cudnnMathType_t math_type(DType dtype) {
  if (dtype == DType::float32) return tf32_wanted() ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  return dtype == DType::float64 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
}

// A descriptor of cuDNN's older kind.
template <class Raw>
class Owned {
 public:
  using Make = cudnnStatus_t (*)(Raw*);
  using Destroy = cudnnStatus_t (*)(Raw);
  Owned(Make make, Destroy destroy) : destroy_(destroy) { check(make(&raw_), "making a descriptor"); }
  ~Owned() { destroy_(raw_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  operator Raw() const { return raw_; }

 private:
  Raw raw_ = nullptr;
  Destroy destroy_;
};

class RnnDescriptor : public Owned<cudnnRNNDescriptor_t> {
 public:
  RnnDescriptor()
      : Owned([](cudnnRNNDescriptor_t* raw) { return cudnnCreateRNNDescriptor(raw); },
              [](cudnnRNNDescriptor_t raw) { return cudnnDestroyRNNDescriptor(raw); }) {}
};
class DropoutDescriptor : public Owned<cudnnDropoutDescriptor_t> {
 public:
  DropoutDescriptor()
      : Owned([](cudnnDropoutDescriptor_t* raw) { return cudnnCreateDropoutDescriptor(raw); },
              [](cudnnDropoutDescriptor_t raw) { return cudnnDestroyDropoutDescriptor(raw); }) {}
};
class SequenceDescriptor : public Owned<cudnnRNNDataDescriptor_t> {
 public:
  SequenceDescriptor()
      : Owned([](cudnnRNNDataDescriptor_t* raw) { return cudnnCreateRNNDataDescriptor(raw); },
              [](cudnnRNNDataDescriptor_t raw) { return cudnnDestroyRNNDataDescriptor(raw); }) {}
};
class TensorDescriptor : public Owned<cudnnTensorDescriptor_t> {
 public:
  TensorDescriptor()
      : Owned([](cudnnTensorDescriptor_t* raw) { return cudnnCreateTensorDescriptor(raw); },
              [](cudnnTensorDescriptor_t raw) { return cudnnDestroyTensorDescriptor(raw); }) {}
};

// One for each device; a handle serves one thread at a time.
struct Handle {
  explicit Handle(CudaDevice& device) {
    const CurrentDevice current(device.id());
    check(cudnnCreate(&raw), "starting cuDNN");
  }
  ~Handle() { cudnnDestroy(raw); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  cudnnHandle_t raw = nullptr;
  std::mutex mutex;
};

int32_t int_of(int64_t extent) {
  require(extent <= std::numeric_limits<int32_t>::max(), "[cuDNN] an extent is too large: ", extent);
  return static_cast<int32_t>(extent);
}

class Plan final : public RnnPlan {
 public:
  Plan(std::shared_ptr<Handle> handle, const RnnProblem& problem)
      : handle_(std::move(handle)), size_(problem.size), type_(data_type(problem.dtype)) {
    const std::lock_guard lock(handle_->mutex);
    describe(problem);
    check(cudnnGetRNNTempSpaceSizes(handle_->raw, rnn_, CUDNN_FWD_MODE_TRAINING, data_, &workspace_, &reserve_),
          "asking about recurrent layers");
    size_t inference_workspace = 0, none = 0;
    check(cudnnGetRNNTempSpaceSizes(handle_->raw, rnn_, CUDNN_FWD_MODE_INFERENCE, data_, &inference_workspace, &none),
          "asking about recurrent layers");
    workspace_ = std::max(workspace_, inference_workspace);
    check(cudnnGetRNNWeightSpaceSize(handle_->raw, rnn_, &weights_), "asking about recurrent layers");
    check_order(problem);
  }

  size_t workspace_bytes() const override { return workspace_; }
  size_t reserve_bytes() const override { return reserve_; }

  void forward(cudaStream_t stream, const RnnForwardArrays& a) override {
    const std::lock_guard lock(handle_->mutex);
    check(cudnnSetStream(handle_->raw, stream), "choosing a stream");
    if (a.lengths) describe_sequences(a.lengths);
    const auto mode = a.reserve ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    check(cudnnRNNForward(handle_->raw, rnn_, mode, nullptr, data_, a.data, output_, a.output, state_, a.state,
                          a.last_state, cell_, a.cell, a.last_cell, weights_, a.parameters, workspace_, a.workspace,
                          a.reserve ? reserve_ : 0, a.reserve),
          "running recurrent layers");
  }

  void backward(cudaStream_t stream, const RnnBackwardArrays& a) override {
    const std::lock_guard lock(handle_->mutex);
    check(cudnnSetStream(handle_->raw, stream), "choosing a stream");
    if (a.lengths) describe_sequences(a.lengths);
    check(cudnnRNNBackwardData_v8(handle_->raw, rnn_, nullptr, output_, a.output, a.output_grad, data_, a.data_grad,
                                  state_, a.state, a.last_state_grad, a.state_grad, cell_, a.cell, a.last_cell_grad,
                                  a.cell_grad, weights_, a.parameters, workspace_, a.workspace, reserve_, a.reserve),
          "running the gradient of recurrent layers");
    if (!a.parameters_grad) return;
    check(cudnnRNNBackwardWeights_v8(handle_->raw, rnn_, CUDNN_WGRAD_MODE_ADD, nullptr, data_, a.data, state_, a.state,
                                     output_, a.output, weights_, a.parameters_grad, workspace_, a.workspace, reserve_,
                                     a.reserve),
          "running the gradient of recurrent layers");
  }

 private:
  void describe(const RnnProblem& problem) {
    const RnnSize& size = size_;
    check(cudnnSetDropoutDescriptor(dropout_, handle_->raw, 0, nullptr, 0, 0), "describing recurrent layers");
    check(cudnnSetRNNDescriptor_v8(
              rnn_, CUDNN_RNN_ALGO_STANDARD, cell_mode(problem.mode), CUDNN_RNN_DOUBLE_BIAS,
              size.directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, type_,
              problem.dtype == DType::float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, math_type(problem.dtype),
              int_of(size.input), int_of(size.hidden), int_of(size.output), int_of(size.layers), dropout_,
              problem.has_lengths ? CUDNN_RNN_PADDED_IO_ENABLED : CUDNN_RNN_PADDED_IO_DISABLED),
          "describing recurrent layers");
    layout_ = problem.has_lengths ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
    describe_sequences(std::vector<int>(static_cast<size_t>(size.batch), int_of(size.steps)).data());
    describe_states(state_, type_, size, size.output);
    describe_states(cell_, type_, size, size.hidden);
  }

  // The workspace and the reserve depend on the extents, not on the lengths.
  void describe_sequences(const int* lengths) {
    describe_sequence(data_, size_.input, lengths);
    describe_sequence(output_, size_.output_width(), lengths);
  }
  void describe_sequence(cudnnRNNDataDescriptor_t sequence, int64_t width, const int* lengths) {
    double padding = 0;  // all bits are 0 for any type
    check(cudnnSetRNNDataDescriptor(sequence, type_, layout_, int_of(size_.steps), int_of(size_.batch), int_of(width),
                                    lengths, &padding),
          "describing sequences");
  }

  static void describe_states(cudnnTensorDescriptor_t states, cudnnDataType_t type, const RnnSize& size,
                              int64_t width) {
    const int extents[] = {int_of(size.layers * size.directions), int_of(size.batch), int_of(width)};
    const int steps[] = {int_of(size.batch * width), int_of(width), 1};
    check(cudnnSetTensorNdDescriptor(states, type, 3, extents, steps), "describing states");
  }

  // Is every matrix and bias at the operator's offset? Addresses are only compared, not read.
  void check_order(const RnnProblem& problem) {
    const RnnSize& size = problem.size;
    const auto element = static_cast<int64_t>(size_of(problem.dtype));
    require(weights_ == static_cast<size_t>(size.parameter_count() * element),
            "[cuDNN] pads the parameters: ", weights_, " bytes for ", size.parameter_count());
    constexpr uintptr_t base = uintptr_t{1} << 20;
    const TensorDescriptor matrix, bias;
    const auto check_part = [&](int64_t layer, int64_t part, int64_t matrix_at, int64_t bias_at) {
      void *matrix_address = nullptr, *bias_address = nullptr;
      check(cudnnGetRNNWeightParams(handle_->raw, rnn_, int_of(layer), weights_, reinterpret_cast<const void*>(base),
                                    int_of(part), matrix, &matrix_address, bias, &bias_address),
            "asking about the parameters");
      const auto is_at = [&](void* address, int64_t at) {
        return at < 0 || reinterpret_cast<uintptr_t>(address) == base + static_cast<uintptr_t>(at * element);
      };
      require(is_at(matrix_address, matrix_at) && is_at(bias_address, bias_at),
              "[cuDNN] orders the parameters otherwise");
    };
    for (int64_t layer = 0; layer < size.layers; ++layer)
      for (int64_t direction = 0; direction < size.directions; ++direction) {
        const RnnSize::Parameters at = size.parameters(layer, direction);
        const int64_t pseudo = layer * size.directions + direction;
        for (int64_t gate = 0; gate < size.gates; ++gate) {
          const int64_t row = gate * size.hidden;
          check_part(pseudo, gate, at.i2h_weight + row * size.input_of(layer), at.i2h_bias + row);
          check_part(pseudo, size.gates + gate, at.h2h_weight + row * size.output, at.h2h_bias + row);
        }
        if (size.has_projection) check_part(pseudo, 2 * size.gates, at.h2r_weight, -1);
      }
  }

  std::shared_ptr<Handle> handle_;
  const RnnSize size_;
  const cudnnDataType_t type_;
  cudnnRNNDataLayout_t layout_ = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  RnnDescriptor rnn_;
  DropoutDescriptor dropout_;
  SequenceDescriptor data_, output_;
  TensorDescriptor state_, cell_;
  size_t workspace_ = 0, reserve_ = 0, weights_ = 0;
};

}  // namespace
}  // namespace cudnn

std::shared_ptr<RnnPlan> find_rnn(CudaDevice& device, const RnnProblem& problem, std::string* reason) {
  if (*reason = cudnn::cudnn_library.problem(); !reason->empty()) {
    warn_without_cudnn();
    return nullptr;
  }
  try {
    const CurrentDevice current(device.id());
    auto handle = std::static_pointer_cast<cudnn::Handle>(
        device.library("cuDNN for recurrent layers", [&] { return std::make_shared<cudnn::Handle>(device); }));
    return std::make_shared<cudnn::Plan>(std::move(handle), problem);
  } catch (const Error& error) {
    *reason = error.what();
    return nullptr;
  }
}

}  // namespace symbind::cuda_backend
