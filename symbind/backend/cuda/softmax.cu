#include "symbind/backend/cuda/softmax.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/vector_math.h"
#include "symbind/ops/softmax.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// What the threads of a row do together; alone, a thread has the row to itself. Each reads and writes its own elements
// only, so that the result may be over an input.
struct Block {
  __device__ static int64_t first() { return threadIdx.x; }
  __device__ static int64_t step() { return blockDim.x; }
  template <template <class> class Combine, class C>
  __device__ static C combined(C value) {
    return combine_block<Combine>(value);
  }
};
struct Alone {
  __device__ static int64_t first() { return 0; }
  __device__ static int64_t step() { return 1; }
  template <template <class> class Combine, class C>
  __device__ static C combined(C value) {
    return value;
  }
};

// The numbers of a row, `inner` apart.
template <class Team, class T, class C>
__device__ void softmax_row(const T* x, T* y, int64_t length, int64_t inner, C factor, bool logarithm) {
  C most = Largest<C>::identity();
  for (int64_t k = Team::first(); k < length; k += Team::step())
    most = Largest<C>::combine(most, load(x[k * inner]) * factor);
  most = Team::template combined<Largest>(most);
  C sum = 0;
  for (int64_t k = Team::first(); k < length; k += Team::step())
    sum += vector_math::exp(load(x[k * inner]) * factor - most);
  sum = Team::template combined<Add>(sum);
  const C scale = C(1) / sum, shift = vector_math::log(sum);
  for (int64_t k = Team::first(); k < length; k += Team::step()) {
    const C above = load(x[k * inner]) * factor - most;
    y[k * inner] = store<T>(logarithm ? above - shift : vector_math::exp(above) * scale);
  }
}

// y·(dy - sum of dy·y), and for the logarithm dy - exp(y)·sum of dy.
template <class Team, class T, class C>
__device__ void gradient_row(const T* dy, const T* y, T* dx, int64_t length, int64_t inner, C factor, bool logarithm) {
  C sum = 0;
  for (int64_t k = Team::first(); k < length; k += Team::step())
    sum += load(dy[k * inner]) * (logarithm ? C(1) : load(y[k * inner]));
  sum = Team::template combined<Add>(sum);
  for (int64_t k = Team::first(); k < length; k += Team::step()) {
    const C by = load(dy[k * inner]), at = load(y[k * inner]);
    dx[k * inner] = store<T>(factor * (logarithm ? by - vector_math::exp(at) * sum : at * (by - sum)));
  }
}

template <class T>
__global__ void softmax_blocks(const T* x, T* y, SoftmaxRows rows) {
  for (int64_t row = blockIdx.x; row < rows.outer; row += gridDim.x)
    softmax_row<Block>(x + row * rows.length, y + row * rows.length, rows.length, 1,
                       static_cast<compute_type<T>>(rows.factor), rows.logarithm);
}
template <class T>
__global__ void softmax_threads(const T* x, T* y, SoftmaxRows rows) {
  for (int64_t row = first_element(); row < rows.row_count(); row += element_step()) {
    const int64_t start = rows.row_start(row);
    softmax_row<Alone>(x + start, y + start, rows.length, rows.inner, static_cast<compute_type<T>>(rows.factor),
                       rows.logarithm);
  }
}
template <class T>
__global__ void gradient_blocks(const T* dy, const T* y, T* dx, SoftmaxRows rows) {
  for (int64_t row = blockIdx.x; row < rows.outer; row += gridDim.x) {
    const int64_t start = row * rows.length;
    gradient_row<Block>(dy + start, y + start, dx + start, rows.length, 1, static_cast<compute_type<T>>(rows.factor),
                        rows.logarithm);
  }
}
template <class T>
__global__ void gradient_threads(const T* dy, const T* y, T* dx, SoftmaxRows rows) {
  for (int64_t row = first_element(); row < rows.row_count(); row += element_step()) {
    const int64_t start = rows.row_start(row);
    gradient_row<Alone>(dy + start, y + start, dx + start, rows.length, rows.inner,
                        static_cast<compute_type<T>>(rows.factor), rows.logarithm);
  }
}

// As many threads as a row has elements, in whole warps.
unsigned threads_for(int64_t length) {
  return static_cast<unsigned>(std::clamp<int64_t>((length + 31) / 32 * 32, 32, 256));
}

SoftmaxRows rows_along(const Shape& shape, int64_t given, std::string_view who) {
  return {view_along(shape, shape.axis(given, who))};
}

// ---- The operators --------------------------------------------------------------------------------------------------

std::string refuse(const NodeView& node, bool use_length) {
  const DType dtype = node.outputs[0].dtype;
  if (!is_floating(dtype)) return "wants floating numbers";
  if (use_length) return "rows of different lengths are the host's";
  for (const Tensor& input : node.inputs) {
    if (input.dtype != dtype) return "arrays of different types";
    if (input.layout != Layout::plain) return "wants plain arrays";
  }
  return "";
}

std::unique_ptr<Kernel> build_forward(const NodeView& node, const SoftmaxRows& rows) {
  return make_step(node,
                   [rows, dtype = node.outputs[0].dtype](const Args& args) {
                     queue_softmax(stream_of(args), dtype, args.inputs[0], args.outputs[0], rows);
                   },
                   {.in_place = {{0, 0}}});
}

std::unique_ptr<Kernel> build_backward(const NodeView& node, const SoftmaxRows& rows) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [rows](const Args& args) {
                       if (rows.size() == 0) return;
                       const T *dy = args.in<T>(0), *y = args.in<T>(1);
                       if (rows.inner == 1)
                         gradient_blocks<<<blocks_for(rows.outer, 1), threads_for(rows.length), 0, stream_of(args)>>>(
                             dy, y, args.out<T>(), rows);
                       else
                         gradient_threads<<<blocks_for(rows.row_count()), block_size, 0, stream_of(args)>>>(
                             dy, y, args.out<T>(), rows);
                     },
                     {.in_place = {{0, 0}, {1, 0}}});
  });
}

enum class Kind { softmax, log_softmax, softmin };
using Build = std::unique_ptr<Kernel> (*)(const NodeView&, const SoftmaxRows&);

template <FixedString name>
void add_one(ImplementationTable& table, Kind kind, Build build) {
  using P = SoftmaxLike<name>;
  table.add<P>({"cuda", [](const NodeView& node) { return refuse(node, node.as<P>().use_length.value_or(false)); },
                [=](const NodeView& node) {
                  const P& p = node.as<P>();
                  SoftmaxRows rows = rows_along(node.outputs[0].shape, p.axis, node.where());
                  rows.factor = (kind == Kind::softmin ? -1 : 1) / p.temperature.value_or(1);
                  rows.logarithm = kind == Kind::log_softmax;
                  return build(node, rows);
                }});
}

}  // namespace

void queue_softmax(cudaStream_t stream, DType dtype, const void* x, void* y, const SoftmaxRows& rows) {
  if (rows.size() == 0) return;
  visit_floating(dtype, [&]<class T>(std::type_identity<T>) {
    const T* const from = static_cast<const T*>(x);
    T* const to = static_cast<T*>(y);
    if (rows.inner == 1)
      softmax_blocks<<<blocks_for(rows.outer, 1), threads_for(rows.length), 0, stream>>>(from, to, rows);
    else
      softmax_threads<<<blocks_for(rows.row_count()), block_size, 0, stream>>>(from, to, rows);
  });
}

void add_softmax(ImplementationTable& table) {
  add_one<"softmax">(table, Kind::softmax, build_forward);
  add_one<"log_softmax">(table, Kind::log_softmax, build_forward);
  add_one<"softmin">(table, Kind::softmin, build_forward);
  add_one<"_backward_softmax">(table, Kind::softmax, build_backward);
  add_one<"_backward_log_softmax">(table, Kind::log_softmax, build_backward);
  add_one<"_backward_softmin">(table, Kind::softmin, build_backward);
  table.add<SoftmaxActivation>({"cuda", [](const NodeView& node) { return refuse(node, false); },
                                [](const NodeView& node) {
                                  const int64_t axis = node.as<SoftmaxActivation>().mode == "channel" ? 1 : -1;
                                  return build_forward(node, rows_along(node.outputs[0].shape, axis, node.where()));
                                }});
}

}  // namespace symbind::cuda_backend
