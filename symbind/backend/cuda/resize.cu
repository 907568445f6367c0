#include "symbind/ops/resize.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/divisor.h"
#include "symbind/backend/resize.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Planes of rows × columns are written, and planes of `read` elements read.
struct Planes {
  Divisor rows, columns;
  int64_t read;

  explicit Planes(const NodeView& node)
      : rows(node.outputs[0].shape[2]),
        columns(node.outputs[0].shape[3]),
        read(node.inputs[0].shape[2] * node.inputs[0].shape[3]) {}
};

template <bool backward, class T, class Plane>
__global__ void write_planes(Plane plane, Planes planes, int64_t count, const T* in, T* out) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const Divided column = planes.columns.divide(i), row = planes.rows.divide(column.quotient);
    const T* const source = in + row.quotient * planes.read;
    const auto load_element = [source](int64_t at) -> C { return load(source[at]); };
    if constexpr (backward)
      out[i] = store<T>(plane.backward(row.rest, column.rest, load_element));
    else
      out[i] = store<T>(plane.forward(row.rest, column.rest, load_element));
  }
}

template <bool backward, class T, class Plane>
std::unique_ptr<Kernel> step_of(const NodeView& node, const Plane& plane) {
  return make_step(node, [plane, planes = Planes(node), count = node.outputs[0].shape.size()](const Args& args) {
    if (count == 0) return;
    write_planes<backward>
        <<<blocks_for(count), block_size, 0, stream_of(args)>>>(plane, planes, count, args.in<T>(0), args.out<T>());
  });
}

// In backward the roles of input and output are swapped.
template <bool backward, class P>
std::unique_ptr<Kernel> build_bilinear(const NodeView& node) {
  const Shape &in = backward ? node.outputs[0].shape : node.inputs[0].shape,
              &out = backward ? node.inputs[0].shape : node.outputs[0].shape;
  const bool align = node.as<P>().align_corners;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    return step_of<backward, T>(node, BilinearPlane<C>{{in[2], out[2], align}, {in[3], out[3], align}});
  });
}

template <bool backward>
std::unique_ptr<Kernel> build_adaptive(const NodeView& node) {
  const Shape &in = backward ? node.outputs[0].shape : node.inputs[0].shape,
              &out = backward ? node.inputs[0].shape : node.outputs[0].shape;
  const auto fits = [](int64_t rows, int64_t columns) { return (rows + 1) * (columns + 1) < int64_t{1} << 31; };
  const bool narrow = fits(in[2], out[2]) && fits(in[3], out[3]) && fits(in[2], in[3]) && fits(out[2], out[3]);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    const auto build = [&]<class Index>(Index) {
      const auto axis = [&](int i) { return AdaptiveAxis<Index>{Index(in[i]), Index(out[i])}; };
      return step_of<backward, T>(node, AdaptivePlane<compute_type<T>, Index>{axis(2), axis(3)});
    };
    return narrow ? build(uint32_t{}) : build(int64_t{});
  });
}

std::string refuse(const NodeView& node) {
  return node.inputs[0].layout == Layout::plain && node.outputs[0].layout == Layout::plain ? "" : "needs plain layouts";
}

}  // namespace

void add_resize(ImplementationTable& table) {
  table.add<BilinearResize2D>({"cuda", refuse, build_bilinear<false, BilinearResize2D>});
  table.add<BilinearResize2DGrad>({"cuda", refuse, build_bilinear<true, BilinearResize2DGrad>});
  table.add<AdaptiveAvgPooling2D>({"cuda", refuse, build_adaptive<false>});
  table.add<AdaptiveAvgPooling2DGrad>({"cuda", refuse, build_adaptive<true>});
}

}  // namespace symbind::cuda_backend
