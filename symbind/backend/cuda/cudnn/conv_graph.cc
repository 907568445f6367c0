#include "symbind/backend/cuda/cudnn/conv_graph.h"

#include <array>
#include <deque>

namespace symbind::cuda_backend::cudnn {
namespace {

constexpr int64_t first_virtual_id = 8;
constexpr int64_t array_alignment = 16;

// The spatial axes that cuDNN sees: two at least.
std::vector<int64_t> spatial(const std::array<int64_t, 3>& axes, bool three) {
  return {axes.begin() + (three ? 0 : 1), axes.end()};
}

struct Arrays {
  bool three;                                       // spatial axes
  std::vector<int64_t> data, weight, output, bias;  // sums per channel have the dimensions of bias

  explicit Arrays(const ConvolutionSize& size)
      : three(size.in[0] > 1 || size.kernel[0] > 1 || size.out[0] > 1 || size.pad[0] > 0),
        data{size.batch, size.channels},
        weight{size.filters, size.group_channels()},
        output{size.batch, size.filters},
        bias{1, size.filters} {
    const auto add = [&](std::vector<int64_t>& dims, const std::array<int64_t, 3>& axes) {
      const auto extents = spatial(axes, three);
      dims.insert(dims.end(), extents.begin(), extents.end());
    };
    add(data, size.in);
    add(weight, size.kernel);
    add(output, size.out);
    add(bias, {1, 1, 1});
  }
};

std::vector<int64_t> strides(const std::vector<int64_t>& dims, bool channels_last) {
  std::vector<int64_t> result(dims.size());
  int64_t step = 1;
  const auto take = [&](size_t axis) {
    result[axis] = step;
    step *= dims[axis];
  };
  if (channels_last) take(1);
  for (size_t axis = dims.size(); axis-- > 2;) take(axis);
  if (!channels_last) take(1);
  take(0);
  return result;
}

Descriptor described_array(int64_t id, const std::vector<int64_t>& dims, bool channels_last, cudnnDataType_t type) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides(dims, channels_last))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, array_alignment);
  return tensor;
}

Descriptor describe_array(int64_t id, const std::vector<int64_t>& dims, const ConvolutionProblem& problem) {
  Descriptor tensor = described_array(id, dims, problem.channels_last, data_type(problem.dtype));
  tensor.finalize();
  return tensor;
}

// Sums per channel are float32, whatever the type of the other arrays.
Descriptor describe_sum(int64_t id, const std::vector<int64_t>& dims, const ConvolutionProblem& problem) {
  Descriptor tensor = described_array(id, dims, problem.channels_last, CUDNN_DATA_FLOAT);
  tensor.finalize();
  return tensor;
}

// A value between two operations, which is not in memory.
Descriptor describe_virtual(int64_t id, const std::vector<int64_t>& dims, const ConvolutionProblem& problem) {
  Descriptor tensor = described_array(id, dims, problem.channels_last, CUDNN_DATA_FLOAT);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true).finalize();
  return tensor;
}

Descriptor describe_convolution(const ConvolutionSize& size, bool three) {
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{three ? 3 : 2})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial(size.dilate, three))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial(size.stride, three))
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial(size.pad, three))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial(size.pad, three))
      .finalize();
  return convolution;
}

// The names of an operation's attributes, which differ from pass to pass.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, convolution, data, weight, output;
};

OperationNames names_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::data_grad:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case ConvolutionPass::weight_grad:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  }
}

// The graph of a problem: products, then residual, then bias, then ReLU. cuDNN has compiled engines for the whole
// sequence in this order and with a bias of the type of the other arrays; for other orders or types it compiles kernels
// at run time. The statistics are of the array that is written; for float16 products alone there are compiled engines.
class GraphDescription {
 public:
  explicit GraphDescription(const ConvolutionProblem& problem) : problem_(problem), arrays_(problem.size) {
    const ConvolutionEpilogue& epilogue = problem.epilogue;
    left_ = 1 + epilogue.residual + epilogue.bias + epilogue.relu;
    add_products();
    if (epilogue.residual) add(CUDNN_POINTWISE_ADD, &keep(describe_array(residual_id, arrays_.output, problem)));
    if (epilogue.bias) add(CUDNN_POINTWISE_ADD, &keep(describe_array(bias_id, arrays_.bias, problem)));
    if (epilogue.relu) add(CUDNN_POINTWISE_RELU_FWD, nullptr);
    if (epilogue.statistics) add_statistics();
  }

  Descriptor graph(cudnnHandle_t handle) const {
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
        .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
             std::span<const cudnnBackendDescriptor_t>(operations_))
        .finalize();
    return graph;
  }

 private:
  // Until the graph is made, what it is made of must exist.
  Descriptor& keep(Descriptor descriptor) { return kept_.emplace_back(std::move(descriptor)); }

  // The result of the next operation: that of the last one is in memory.
  const Descriptor& next_result() {
    --left_;
    return keep(left_ == 0 ? describe_array(output_id, arrays_.output, problem_)
                           : describe_virtual(first_virtual_id + left_, arrays_.output, problem_));
  }

  void add_products() {
    const OperationNames names = names_of(problem_.pass);
    result_ = &next_result();
    Descriptor& operation = keep(Descriptor(names.type));
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f)
        .set(names.beta, CUDNN_TYPE_FLOAT, 0.0f)
        .set(names.convolution, keep(describe_convolution(problem_.size, arrays_.three)))
        .set(names.data, keep(describe_array(data_id, arrays_.data, problem_)))
        .set(names.weight, keep(describe_array(weight_id, arrays_.weight, problem_)))
        .set(names.output, *result_)
        .finalize();
    operations_.push_back(operation.raw());
  }

  // A function of the last result, and of an operand where it has two.
  void add(cudnnPointwiseMode_t mode, const Descriptor* operand) {
    Descriptor& function = keep(Descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
    function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
        .finalize();
    Descriptor& operation = keep(Descriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *result_)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1.0f);
    if (operand)
      operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *operand)
          .set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, 1.0f);
    result_ = &next_result();
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *result_).finalize();
    operations_.push_back(operation.raw());
  }

  // Of the last result, which is in memory. cuDNN documents that they are of the elements of that array, computed in
  // float32; it does not document whether an engine sums them before or after it rounds them to the array's type.
  void add_statistics() {
    Descriptor& operation = keep(Descriptor(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR));
    operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM)
        .set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, *result_)
        .set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, keep(describe_sum(channel_sum_id, arrays_.bias, problem_)))
        .set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, keep(describe_sum(channel_square_sum_id, arrays_.bias, problem_)))
        .finalize();
    operations_.push_back(operation.raw());
  }

  const ConvolutionProblem& problem_;
  const Arrays arrays_;
  int64_t left_;  // operations to come
  std::deque<Descriptor> kept_;
  const Descriptor* result_ = nullptr;  // of the last operation
  std::vector<cudnnBackendDescriptor_t> operations_;
};

}  // namespace

Descriptor describe_graph(cudnnHandle_t handle, const ConvolutionProblem& problem) {
  return GraphDescription(problem).graph(handle);
}

}  // namespace symbind::cuda_backend::cudnn
