// Each sum is computed by one thread, over the elements of its row in order. Indices out of range are ignored; the CPU
// fails on them.
#include "symbind/ops/count_sketch.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

struct Sketch {
  int64_t rows, length, sums;

  Sketch(const Shape& data, int64_t out_dim)
      : rows(data.size(0, data.rank() - 1)), length(data[data.rank() - 1]), sums(out_dim) {}
};

template <class T>
__global__ void add_elements(const T* data, const T* h, const T* signs, T* out, Sketch sketch) {
  for (int64_t i = first_element(); i < sketch.rows * sketch.sums; i += element_step()) {
    const int64_t row = i / sketch.sums, own = i % sketch.sums;
    compute_type<T> sum = 0;
    for (int64_t k = 0; k < sketch.length; ++k)
      if (index_of(load(h[k])) == own) sum += load(signs[k]) * load(data[row * sketch.length + k]);
    out[i] = store<T>(sum);
  }
}

template <class T>
__global__ void spread_sums(const T* dy, const T* h, const T* signs, T* dx, Sketch sketch) {
  for (int64_t i = first_element(); i < sketch.rows * sketch.length; i += element_step()) {
    const int64_t row = i / sketch.length, k = i % sketch.length, index = index_of(load(h[k]));
    const bool inside = index >= 0 && index < sketch.sums;
    dx[i] = store<T>(inside ? load(signs[k]) * load(dy[row * sketch.sums + index]) : compute_type<T>(0));
  }
}

std::string refuse(const NodeView& node) {
  for (const auto& input : node.inputs)
    if (input.layout != Layout::plain) return "needs plain layouts";
  return "";
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const Sketch sketch(node.inputs[0].shape, node.as<CountSketch>().out_dim);
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [sketch](const Args& args) {
      const int64_t count = sketch.rows * sketch.sums;
      if (count == 0) return;
      add_elements<T><<<blocks_for(count), block_size, 0, stream_of(args)>>>(args.in<T>(0), args.in<T>(1),
                                                                             args.in<T>(2), args.out<T>(), sketch);
    });
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const Sketch sketch(node.outputs[0].shape, node.as<CountSketchGrad>().out_dim);
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [sketch](const Args& args) {
      const int64_t count = sketch.rows * sketch.length;
      if (count == 0) return;
      spread_sums<T><<<blocks_for(count), block_size, 0, stream_of(args)>>>(args.in<T>(0), args.in<T>(1), args.in<T>(2),
                                                                            args.out<T>(), sketch);
    });
  });
}

}  // namespace

void add_count_sketch(ImplementationTable& table) {
  table.add<CountSketch>({"cuda", refuse, build_forward});
  table.add<CountSketchGrad>({"cuda", refuse, build_backward});
}

}  // namespace symbind::cuda_backend
