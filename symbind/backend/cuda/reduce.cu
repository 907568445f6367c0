// Sums over axes. With neighbouring axes merged nearly all are sums of rows or of columns; each has a kernel, a third
// one takes whatever is left. Few long sums are cut into pieces that are summed again. Nothing is added atomically, so
// the order of every sum is fixed by the shape.
#include "symbind/ops/reduce.h"

#include "symbind/backend/cuda/axes.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/ops/broadcast.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Integers are summed in 64 bits and wrap when stored.
template <class T>
using sum_type = std::conditional_t<std::is_integral_v<T>, int64_t, compute_type<T>>;

template <class Out, class Sum>
__device__ Out finished(Sum sum, Sum divisor) {
  if (divisor != Sum(1)) sum = sum / divisor;
  return convert_element<Out>(sum);
}

// A warp per row.
template <class In, class Sum, class Out>
__global__ void sum_short_rows(const In* in, Out* out, int64_t rows, int64_t length, Sum divisor) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int64_t row = first_element() / 32; row < rows; row += element_step() / 32) {
    Sum sum = 0;
    for (int64_t i = lane; i < length; i += 32) sum += static_cast<Sum>(load(in[row * length + i]));
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) out[row] = finished<Out>(sum, divisor);
  }
}

// A block per piece of a row.
template <class In, class Sum, class Out>
__global__ void sum_long_rows(const In* in, Out* out, int64_t rows, int64_t length, int64_t pieces, Sum divisor) {
  const int64_t piece_length = (length + pieces - 1) / pieces;
  for (int64_t index = blockIdx.x; index < rows * pieces; index += gridDim.x) {
    const int64_t row = index / pieces, begin = index % pieces * piece_length;
    const int64_t end = begin + piece_length < length ? begin + piece_length : length;
    Sum sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) sum += static_cast<Sum>(load(in[row * length + i]));
    sum = combine_block<Add>(sum);
    if (threadIdx.x == 0) out[index] = finished<Out>(sum, divisor);
  }
}

// in is (outer, terms, inner); a block of 32 × 8 threads sums 32 neighbouring columns over one piece of the terms.
constexpr int column_lanes = 8;
template <class In, class Sum, class Out>
__global__ void sum_columns(const In* in, Out* out, int64_t outer, int64_t terms, int64_t inner, int64_t pieces,
                            Sum divisor) {
  __shared__ Sum shared[column_lanes][32];
  const int64_t tiles = (inner + 31) / 32, piece_length = (terms + pieces - 1) / pieces;
  for (int64_t index = blockIdx.x; index < outer * tiles * pieces; index += gridDim.x) {
    const int64_t piece = index % pieces, tile = index / pieces % tiles, block = index / pieces / tiles;
    const int64_t column = tile * 32 + threadIdx.x, begin = piece * piece_length;
    const int64_t end = begin + piece_length < terms ? begin + piece_length : terms;
    Sum sum = 0;
    if (column < inner)
      for (int64_t term = begin + threadIdx.y; term < end; term += column_lanes)
        sum += static_cast<Sum>(load(in[(block * terms + term) * inner + column]));
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < inner) {
      for (int lane = 1; lane < column_lanes; ++lane) sum += shared[lane][threadIdx.x];
      out[(piece * outer + block) * inner + column] = finished<Out>(sum, divisor);
    }
    __syncthreads();
  }
}

struct AxisList {
  int rank = 0;
  int64_t extent[Shape::max_rank], stride[Shape::max_rank];

  __device__ int64_t offset(int64_t index) const {
    int64_t result = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      result += index % extent[axis] * stride[axis];
      index /= extent[axis];
    }
    return result;
  }
};

// Any axes: a block per sum.
template <class In, class Sum, class Out>
__global__ void sum_any(const In* in, Out* out, AxisList kept, AxisList summed, int64_t outputs, int64_t terms,
                        Sum divisor) {
  for (int64_t index = blockIdx.x; index < outputs; index += gridDim.x) {
    const In* const base = in + kept.offset(index);
    Sum sum = 0;
    for (int64_t i = threadIdx.x; i < terms; i += blockDim.x) sum += static_cast<Sum>(load(base[summed.offset(i)]));
    sum = combine_block<Add>(sum);
    if (threadIdx.x == 0) out[index] = finished<Out>(sum, divisor);
  }
}

enum class SumKind { copy, rows, columns, any };

// How an array is summed, decided when the kernel is built.
struct SumPlan {
  SumKind kind = SumKind::any;
  int64_t outer = 1, terms = 1, inner = 1;
  int64_t pieces = 1;
  AxisList kept{}, summed{};
  int64_t outputs = 1;

  explicit SumPlan(const SumAxes& from) : terms(from.terms()), outputs(from.outputs()) {
    const auto& axes = from.axes;
    if (terms == 1) {
      kind = SumKind::copy;
    } else if (axes.back().summed && axes.size() <= 2) {
      kind = SumKind::rows;
      outer = outputs;
      pieces = cut(outer, terms, 16384);
    } else if (!axes.back().summed && axes.size() <= 3) {
      kind = SumKind::columns;
      inner = axes.back().extent;
      outer = axes.size() == 3 ? axes[0].extent : 1;
      pieces = cut(outer * ((inner + 31) / 32), terms, 512);
    } else {
      int64_t stride = 1;
      for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        AxisList& list = axis->summed ? summed : kept;
        list.extent[list.rank] = axis->extent;
        list.stride[list.rank++] = stride;
        stride *= axis->extent;
      }
      reverse(kept);
      reverse(summed);
    }
  }

  // Enough pieces to keep the GPU busy, none shorter than `least`.
  static int64_t cut(int64_t blocks, int64_t terms, int64_t least) {
    constexpr int64_t wanted_blocks = 264;
    return std::clamp<int64_t>(wanted_blocks / std::max<int64_t>(blocks, 1), 1, std::max<int64_t>(terms / least, 1));
  }
  static void reverse(AxisList& list) {
    std::reverse(list.extent, list.extent + list.rank);
    std::reverse(list.stride, list.stride + list.rank);
  }
};

template <class In, class Sum, class Out>
void queue_rows(cudaStream_t stream, const In* in, Out* out, int64_t rows, int64_t length, int64_t pieces,
                Sum divisor) {
  if (length <= 1024)
    sum_short_rows<<<blocks_for(rows, block_size / 32), block_size, 0, stream>>>(in, out, rows, length, divisor);
  else
    sum_long_rows<<<blocks_for(rows * pieces, 1), block_size, 0, stream>>>(in, out, rows, length, pieces, divisor);
}

template <class In, class Sum, class Out>
void queue_columns(cudaStream_t stream, const In* in, Out* out, int64_t outer, int64_t terms, int64_t inner,
                   int64_t pieces, Sum divisor) {
  const int64_t blocks = outer * ((inner + 31) / 32) * pieces;
  sum_columns<<<blocks_for(blocks, 1), dim3(32, column_lanes), 0, stream>>>(in, out, outer, terms, inner, pieces,
                                                                            divisor);
}

template <class T>
void queue_sum(cudaStream_t stream, const SumPlan& plan, const T* in, T* out, void* scratch, double divide_by) {
  using Sum = sum_type<T>;
  const auto divisor = static_cast<Sum>(divide_by);
  Sum* const partial = static_cast<Sum*>(scratch);
  if (plan.kind == SumKind::copy) {
    if (in != out)
      cudaMemcpyAsync(out, in, static_cast<size_t>(plan.outputs) * sizeof(T), cudaMemcpyDeviceToDevice, stream);
  } else if (plan.kind == SumKind::rows && plan.pieces == 1) {
    queue_rows(stream, in, out, plan.outer, plan.terms, 1, divisor);
  } else if (plan.kind == SumKind::rows) {
    queue_rows(stream, in, partial, plan.outer, plan.terms, plan.pieces, Sum(1));
    queue_rows(stream, partial, out, plan.outer, plan.pieces, 1, divisor);
  } else if (plan.kind == SumKind::columns && plan.pieces == 1) {
    queue_columns(stream, in, out, plan.outer, plan.terms, plan.inner, 1, divisor);
  } else if (plan.kind == SumKind::columns) {
    queue_columns(stream, in, partial, plan.outer, plan.terms, plan.inner, plan.pieces, Sum(1));
    queue_columns(stream, partial, out, 1, plan.pieces, plan.outputs, 1, divisor);
  } else {
    sum_any<<<blocks_for(plan.outputs, 1), block_size, 0, stream>>>(in, out, plan.kept, plan.summed, plan.outputs,
                                                                    plan.terms, divisor);
  }
}

std::unique_ptr<Kernel> build_sum(const NodeView& node, const std::vector<bool>& summed, bool mean) {
  const SumAxes axes(node.inputs[0].shape, summed);
  const DType dtype = node.outputs[0].dtype;
  if (axes.outputs() == 0) return make_step(node, [](const Args&) {});
  if (axes.terms() == 0) {  // sums of nothing
    const double value = mean && is_floating(dtype) ? std::numeric_limits<double>::quiet_NaN() : 0;
    return make_step(node, [dtype, value, count = axes.outputs()](const Args& args) {
      queue_fill(stream_of(args), args.out<void>(), dtype, count, value);
    });
  }
  const SumPlan plan(axes);
  const double divisor = mean ? static_cast<double>(axes.terms()) : 1;
  KernelTraits traits;
  if (plan.pieces > 1) traits.scratch_bytes = static_cast<size_t>(plan.pieces * plan.outputs) * sizeof(double);
  return visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(
        node,
        [plan, divisor](const Args& args) {
          queue_sum(stream_of(args), plan, args.in<T>(0), args.out<T>(), args.scratch, divisor);
        },
        traits);
  });
}

// The axes along which `like`, aligned at the last axis, was broadcast.
std::vector<bool> spread_axes(const Shape& data, const Shape& like) {
  std::vector<bool> summed(static_cast<size_t>(data.rank()));
  const int missing = data.rank() - like.rank();
  for (int axis = 0; axis < data.rank(); ++axis)
    summed[static_cast<size_t>(axis)] = axis < missing || (like[axis - missing] == 1 && data[axis] != 1);
  return summed;
}

template <class P>
std::vector<bool> summed_axes(const NodeView& node) {
  const auto& params = node.as<P>();
  return reduced_axes(params.axis, params.exclude, node.inputs[0].shape, node.where());
}

std::string refuse_sum(const NodeView& node) {
  if (node.inputs[0].dtype != node.outputs[0].dtype) return "the result has another type";
  return node.inputs[0].layout == Layout::plain ? "" : "wants plain arrays";
}

std::string refuse_mean(const NodeView& node) {
  // MXNet's sums wrap around in 8 bits before they are divided.
  return size_of(node.outputs[0].dtype) == 1 ? "no means in 8 bits" : refuse_sum(node);
}

}  // namespace

void add_reduce(ImplementationTable& table) {
  table.add<Sum>(
      {"cuda", refuse_sum, [](const NodeView& node) { return build_sum(node, summed_axes<Sum>(node), false); }});
  table.add<Mean>(
      {"cuda", refuse_mean, [](const NodeView& node) { return build_sum(node, summed_axes<Mean>(node), true); }});
  table.add<SumToLike>({"cuda", refuse_sum, [](const NodeView& node) {
                          return build_sum(node, spread_axes(node.inputs[0].shape, node.outputs[0].shape), false);
                        }});
}

}  // namespace symbind::cuda_backend
