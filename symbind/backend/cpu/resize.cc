#include "symbind/ops/resize.h"

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/resize.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Planes of rows × columns are written, and planes of `read` elements read.
struct Planes {
  int64_t count, rows, columns, read;

  explicit Planes(const NodeView& node)
      : count(node.outputs[0].shape[0] * node.outputs[0].shape[1]),
        rows(node.outputs[0].shape[2]),
        columns(node.outputs[0].shape[3]),
        read(node.inputs[0].shape[2] * node.inputs[0].shape[3]) {}
};

// out[plane][row][column] = element(row, column, load), where load reads the plane of the same number.
template <class T, class Element>
std::unique_ptr<Kernel> kernel_of(const Planes& planes, Element element) {
  using C = compute_type<T>;
  return make_kernel([=](const Args& args) {
    const T* const in = args.in<T>(0);
    T* const out = args.out<T>();
    parallel_for(planes.count * planes.rows, element_grain / (16 * planes.columns + 1) + 1,
                 [=](int64_t begin, int64_t end) {
                   for (int64_t line = begin; line < end; ++line) {
                     const T* const plane = in + line / planes.rows * planes.read;
                     const auto load = [plane](int64_t i) { return static_cast<C>(plane[i]); };
                     for (int64_t column = 0; column < planes.columns; ++column)
                       out[line * planes.columns + column] = static_cast<T>(element(line % planes.rows, column, load));
                   }
                 });
  });
}

template <class C>
BilinearPlane<C> bilinear_plane(const Shape& in, const Shape& out, bool align) {
  return {{in[2], out[2], align}, {in[3], out[3], align}};
}

std::unique_ptr<Kernel> build_bilinear(const NodeView& node) {
  const bool align = node.as<BilinearResize2D>().align_corners;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    const auto plane = bilinear_plane<compute_type<T>>(node.inputs[0].shape, node.outputs[0].shape, align);
    return kernel_of<T>(Planes(node), [plane](int64_t row, int64_t column, const auto& load) {
      return plane.forward(row, column, load);
    });
  });
}

std::unique_ptr<Kernel> build_bilinear_grad(const NodeView& node) {
  const bool align = node.as<BilinearResize2DGrad>().align_corners;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    const auto plane = bilinear_plane<compute_type<T>>(node.outputs[0].shape, node.inputs[0].shape, align);
    return kernel_of<T>(Planes(node), [plane](int64_t row, int64_t column, const auto& load) {
      return plane.backward(row, column, load);
    });
  });
}

template <class C>
AdaptivePlane<C> adaptive_plane(const Shape& in, const Shape& out) {
  return {{in[2], out[2]}, {in[3], out[3]}};
}

std::unique_ptr<Kernel> build_adaptive(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    const auto plane = adaptive_plane<compute_type<T>>(node.inputs[0].shape, node.outputs[0].shape);
    return kernel_of<T>(Planes(node), [plane](int64_t row, int64_t column, const auto& load) {
      return plane.forward(row, column, load);
    });
  });
}

std::unique_ptr<Kernel> build_adaptive_grad(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    const auto plane = adaptive_plane<compute_type<T>>(node.outputs[0].shape, node.inputs[0].shape);
    return kernel_of<T>(Planes(node), [plane](int64_t row, int64_t column, const auto& load) {
      return plane.backward(row, column, load);
    });
  });
}

}  // namespace

void add_resize(ImplementationTable& table) {
  add_plain<BilinearResize2D>(table, build_bilinear);
  add_plain<BilinearResize2DGrad>(table, build_bilinear_grad);
  add_plain<AdaptiveAvgPooling2D>(table, build_adaptive);
  add_plain<AdaptiveAvgPooling2DGrad>(table, build_adaptive_grad);
}

}  // namespace symbind::cpu_backend
