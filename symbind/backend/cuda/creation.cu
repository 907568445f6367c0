// Arrays that are created from numbers alone. Products and sums are rounded separately, as on a CPU, so that truncation
// to an integer gives the same result.
#include "symbind/ops/creation.h"

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/ops/elementwise.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

std::string accept(const NodeView&) { return ""; }

std::unique_ptr<Kernel> build_fill(const NodeView& node, double value) {
  const Tensor& out = node.outputs[0];
  return make_step(node, [value, dtype = out.dtype, count = out.shape.size()](const Args& args) {
    if (count > 0) queue_fill(stream_of(args), args.outputs[0], dtype, count, value);
  });
}

Implementation filled_with(double value) {
  return {"cuda", accept, [value](const NodeView& node) { return build_fill(node, value); }};
}

template <class Number>
__global__ void write_numbers(void* out, DType dtype, int64_t count, Number number) {
  for (int64_t i = first_element(); i < count; i += element_step()) AnyOutput{out, dtype}.set(i, number(i));
}

template <class Number>
std::unique_ptr<Kernel> build_numbers(const NodeView& node, const Number& number) {
  const Tensor& out = node.outputs[0];
  return make_step(node, [number, dtype = out.dtype, count = out.shape.size()](const Args& args) {
    if (count > 0)
      write_numbers<<<blocks_for(count), block_size, 0, stream_of(args)>>>(args.outputs[0], dtype, count, number);
  });
}

__device__ float rounded_line(float first, float step, float i) { return __fadd_rn(first, __fmul_rn(i, step)); }
__device__ double rounded_line(double first, double step, double i) { return __dadd_rn(first, __dmul_rn(i, step)); }

template <class C>
struct FloatingSteps {
  C first, step;
  int64_t repeat;
  __device__ C operator()(int64_t i) const {
    return rounded_line(first, step, static_cast<C>(divided(i, repeat).quotient));
  }
};

// Unsigned numbers wrap around where signed ones would be undefined.
struct WholeSteps {
  uint64_t first, step;
  int64_t repeat;
  __device__ int64_t operator()(int64_t i) const {
    return static_cast<int64_t>(first + static_cast<uint64_t>(divided(i, repeat).quotient) * step);
  }
};

std::unique_ptr<Kernel> build_arange(const NodeView& node) {
  const auto& p = node.as<Arange>();
  const double start = p.stop || p.infer_range ? p.start.get() : 0;
  const DType dtype = node.outputs[0].dtype;
  if (dtype == DType::float64) return build_numbers(node, FloatingSteps<double>{start, p.step, p.repeat});
  if (is_floating(dtype))
    return build_numbers(node, FloatingSteps<float>{static_cast<float>(start), static_cast<float>(p.step), p.repeat});
  return build_numbers(node, WholeSteps{static_cast<uint64_t>(convert<int64_t>(start)),
                                        static_cast<uint64_t>(convert<int64_t>(p.step)), p.repeat});
}

std::unique_ptr<Kernel> build_linspace(const NodeView& node) {
  const auto& p = node.as<Linspace>();
  const int64_t steps = std::max<int64_t>(1, p.num - (p.endpoint ? 1 : 0));
  return build_numbers(node, FloatingSteps<double>{p.start, (p.stop - p.start) / static_cast<double>(steps), 1});
}

struct Diagonal {
  int64_t columns, k;
  __device__ float operator()(int64_t i) const {
    const Divided at = divided(i, columns);
    return at.rest - at.quotient == k ? 1.0f : 0.0f;
  }
};

std::unique_ptr<Kernel> build_eye(const NodeView& node) {
  return build_numbers(node, Diagonal{node.outputs[0].shape[1], node.as<Eye>().k});
}

}  // namespace

void add_creation(ImplementationTable& table) {
  table.add<Zeros>(filled_with(0));
  table.add<Ones>(filled_with(1));
  table.add<Unary<"zeros_like">>(filled_with(0));
  table.add<Unary<"ones_like">>(filled_with(1));
  table.add<Full>({"cuda", accept, [](const NodeView& node) { return build_fill(node, *node.as<Full>().value); }});
  table.add<Arange>({"cuda", accept, build_arange});
  table.add<Linspace>({"cuda", accept, build_linspace});
  table.add<Eye>({"cuda", accept, build_eye});
}

}  // namespace symbind::cuda_backend
