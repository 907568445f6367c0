#include "symbind/backend/unfold.h"

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

template <class T>
void unfold(const UnfoldIndex& index, int64_t planes, const T* in, T* out) {
  const int64_t length = index.windows[2].number(), stride = index.stride[2].number(), width = index.image[2].number();
  parallel_for(planes * index.lines_per_plane(), element_grain / (length + 8) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      const auto [row, first] = index.line(number);
      T* const line = out + number * length;
      if (row < 0) {
        std::fill_n(line, length, T(0));
        continue;
      }
      for (int64_t i = 0, column = first; i < length; ++i, column += stride)
        line[i] = column >= 0 && column < width ? in[row + column] : T(0);
    }
  });
}

template <class T>
void fold(const UnfoldIndex& index, int64_t planes, const T* columns, T* out) {
  using C = compute_type<T>;
  const int64_t terms = index.kernel_size();
  parallel_for(planes * index.image_size(), element_grain / (8 * terms) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] = static_cast<T>(index.sum_for<C>(i, [&](int64_t at) { return static_cast<C>(columns[at]); }));
  });
}

template <class P>
std::unique_ptr<Kernel> build_unfold(const NodeView& node) {
  const UnfoldSize size = unfold_size(node.as<P>(), node.inputs[0].shape);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
    return make_kernel([index = UnfoldIndex(size), planes = size.planes](const Args& args) {
      unfold(index, planes, args.in<T>(0), args.out<T>());
    });
  });
}

template <class P>
std::unique_ptr<Kernel> build_fold(const NodeView& node) {
  const UnfoldSize size = unfold_size(node.as<P>(), node.outputs[0].shape);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
    return make_kernel([index = UnfoldIndex(size), planes = size.planes](const Args& args) {
      fold(index, planes, args.in<T>(0), args.out<T>());
    });
  });
}

}  // namespace

void add_unfold(ImplementationTable& table) {
  add_plain<Im2col>(table, build_unfold<Im2col>);
  add_plain<Im2colGrad>(table, build_fold<Im2colGrad>);
  add_plain<Col2im>(table, build_fold<Col2im>);
}

}  // namespace symbind::cpu_backend
