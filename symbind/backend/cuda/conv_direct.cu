#include "symbind/backend/cuda/conv_direct.h"

#include "symbind/backend/cuda/kernels.cuh"

namespace symbind::cuda_backend {
namespace {

// The extents for device code, and the distances between neighbours along the axes (batch, channel, d, h, w) of the
// activations and (filter, channel, d, h, w) of the weight.
struct Extents {
  int64_t batch, channels, filters, group_channels, group_filters;
  int64_t in[3], out[3], kernel[3], stride[3], dilate[3], pad[3];
  int64_t data_step[5], output_step[5], weight_step[5];
};

void set_steps(int64_t (&step)[5], int64_t channels, const std::array<int64_t, 3>& space, bool last) {
  int64_t next = 1;
  if (last) {
    step[1] = next;
    next *= channels;
  }
  for (int axis = 2; axis >= 0; --axis) {
    step[2 + axis] = next;
    next *= space[static_cast<size_t>(axis)];
  }
  if (!last) {
    step[1] = next;
    next *= channels;
  }
  step[0] = next;
}

Extents extents_of(const ConvolutionProblem& problem, bool weight_last) {
  const ConvolutionSize& size = problem.size;
  Extents e{};
  e.batch = size.batch;
  e.channels = size.channels;
  e.filters = size.filters;
  e.group_channels = size.group_channels();
  e.group_filters = size.group_filters();
  for (size_t axis = 0; axis < 3; ++axis) {
    e.in[axis] = size.in[axis];
    e.out[axis] = size.out[axis];
    e.kernel[axis] = size.kernel[axis];
    e.stride[axis] = size.stride[axis];
    e.dilate[axis] = size.dilate[axis];
    e.pad[axis] = size.pad[axis];
  }
  set_steps(e.data_step, size.channels, size.in, problem.channels_last);
  set_steps(e.output_step, size.filters, size.out, problem.channels_last);
  set_steps(e.weight_step, size.group_channels(), size.kernel, weight_last);
  return e;
}

// Splits an index: the last axis first.
__device__ inline int64_t take(int64_t& index, int64_t among) {
  const int64_t rest = index / among, part = index - rest * among;
  index = rest;
  return part;
}

// The coordinates of an element of an array with five axes.
struct Position {
  int64_t first, second, at[3];
  __device__ Position(int64_t index, int64_t seconds, const int64_t (&extent)[3]) {
    for (int axis = 2; axis >= 0; --axis) at[axis] = take(index, extent[axis]);
    second = take(index, seconds);
    first = index;
  }
  __device__ int64_t offset(const int64_t (&step)[5]) const {
    return first * step[0] + second * step[1] + at[0] * step[2] + at[1] * step[3] + at[2] * step[4];
  }
};

template <class Visit>
__device__ void each_tap(const Extents& e, Visit visit) {
  int64_t tap[3];
  for (tap[0] = 0; tap[0] < e.kernel[0]; ++tap[0])
    for (tap[1] = 0; tap[1] < e.kernel[1]; ++tap[1])
      for (tap[2] = 0; tap[2] < e.kernel[2]; ++tap[2]) visit(tap);
}

template <class T>
__global__ void forward(const T* data, const T* weight, T* output, Extents e, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, e.filters, e.out);
    const int64_t first_channel = position.second / e.group_filters * e.group_channels;
    C sum = 0;
    each_tap(e, [&](const int64_t(&tap)[3]) {
      int64_t from = position.first * e.data_step[0] + first_channel * e.data_step[1];
      int64_t with = position.second * e.weight_step[0];
      for (int axis = 0; axis < 3; ++axis) {
        const int64_t at = position.at[axis] * e.stride[axis] - e.pad[axis] + tap[axis] * e.dilate[axis];
        if (at < 0 || at >= e.in[axis]) return;
        from += at * e.data_step[2 + axis];
        with += tap[axis] * e.weight_step[2 + axis];
      }
      for (int64_t c = 0; c < e.group_channels; ++c)
        sum += load(data[from + c * e.data_step[1]]) * load(weight[with + c * e.weight_step[1]]);
    });
    output[position.offset(e.output_step)] = store<T>(sum);
  }
}

template <class T>
__global__ void data_gradient(T* data, const T* weight, const T* output, Extents e, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Position position(i, e.channels, e.in);
    const int64_t first_filter = position.second / e.group_channels * e.group_filters;
    C sum = 0;
    each_tap(e, [&](const int64_t(&tap)[3]) {
      int64_t from = position.first * e.output_step[0] + first_filter * e.output_step[1];
      int64_t with = first_filter * e.weight_step[0] + position.second % e.group_channels * e.weight_step[1];
      for (int axis = 0; axis < 3; ++axis) {
        const int64_t reach = position.at[axis] + e.pad[axis] - tap[axis] * e.dilate[axis];
        if (reach < 0 || reach % e.stride[axis] != 0 || reach / e.stride[axis] >= e.out[axis]) return;
        from += reach / e.stride[axis] * e.output_step[2 + axis];
        with += tap[axis] * e.weight_step[2 + axis];
      }
      for (int64_t f = 0; f < e.group_filters; ++f)
        sum += load(output[from + f * e.output_step[1]]) * load(weight[with + f * e.weight_step[0]]);
    });
    data[position.offset(e.data_step)] = store<T>(sum);
  }
}

// A block per element of the weight.
template <class T>
__global__ void weight_gradient(const T* data, T* weight, const T* output, Extents e, int64_t count) {
  using C = compute_type<T>;
  const int64_t outputs = e.batch * e.out[0] * e.out[1] * e.out[2];
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    const Position position(i, e.group_channels, e.kernel);
    const int64_t channel = position.first / e.group_filters * e.group_channels + position.second;
    C sum = 0;
    for (int64_t k = threadIdx.x; k < outputs; k += blockDim.x) {
      const Position at(k, 1, e.out);
      int64_t from = at.first * e.data_step[0] + channel * e.data_step[1];
      int64_t with = at.first * e.output_step[0] + position.first * e.output_step[1];
      bool inside = true;
      for (int axis = 0; axis < 3; ++axis) {
        const int64_t in = at.at[axis] * e.stride[axis] - e.pad[axis] + position.at[axis] * e.dilate[axis];
        inside &= in >= 0 && in < e.in[axis];
        from += in * e.data_step[2 + axis];
        with += at.at[axis] * e.output_step[2 + axis];
      }
      if (inside) sum += load(data[from]) * load(output[with]);
    }
    sum = combine_block<Add>(sum);
    if (threadIdx.x == 0) weight[position.offset(e.weight_step)] = store<T>(sum);
  }
}

}  // namespace

void queue_direct_convolution(cudaStream_t stream, const ConvolutionProblem& problem, bool weight_last, void* data,
                              void* weight, void* output) {
  const Extents e = extents_of(problem, weight_last);
  const int64_t data_size = problem.size.data_size(), output_size = problem.size.output_size();
  const int64_t weight_size = problem.size.weight_size();
  visit_floating(problem.dtype, [&]<class T>(std::type_identity<T>) {
    T *const x = static_cast<T*>(data), *const w = static_cast<T*>(weight), *const y = static_cast<T*>(output);
    switch (problem.pass) {
      case ConvolutionPass::forward:
        forward<<<blocks_for(output_size), block_size, 0, stream>>>(x, w, y, e, output_size);
        break;
      case ConvolutionPass::data_grad:
        data_gradient<<<blocks_for(data_size), block_size, 0, stream>>>(x, w, y, e, data_size);
        break;
      case ConvolutionPass::weight_grad:
        weight_gradient<<<blocks_for(weight_size, 1), block_size, 0, stream>>>(x, w, y, e, weight_size);
        break;
    }
  });
}

}  // namespace symbind::cuda_backend
