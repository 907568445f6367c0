#include "symbind/backend/unfold.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// The windows of a line whose column `first + i · stride` is inside a row of `width` elements.
struct Inside {
  int64_t begin, end;

  Inside(int64_t first, int64_t stride, int64_t windows, int64_t width)
      : begin(first < 0 ? std::min(windows, (-first + stride - 1) / stride) : 0),
        end(first < width ? std::clamp((width - first + stride - 1) / stride, begin, windows) : begin) {}
};

template <class T>
void unfold(const UnfoldIndex& index, int64_t planes, const T* in, T* out) {
  const int64_t length = index.windows[2], stride = index.stride[2];
  parallel_for(planes * index.lines_per_plane(), element_grain / (length + 8) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      const auto [row, first] = index.line(number);
      T* const line = out + number * length;
      const Inside inside = row < 0 ? Inside(0, 1, 0, 0) : Inside(first, stride, length, index.image[2]);
      std::fill(line, line + inside.begin, T(0));
      const int64_t start = row + first;
      if (stride == 1)
        for (int64_t i = inside.begin; i < inside.end; ++i) line[i] = in[start + i];
      else
        for (int64_t i = inside.begin; i < inside.end; ++i) line[i] = in[start + i * stride];
      std::fill(line + inside.end, line + length, T(0));
    }
  });
}

// The sums of one row of the image, in the order of the kernel elements.
template <class C, class T>
void sum_row(const UnfoldIndex& index, int64_t row, const T* columns, C* sums) {
  const int64_t h = row % index.image[1], d = row / index.image[1] % index.image[0];
  const int64_t plane = row / index.image[1] / index.image[0], stride = index.stride[2];
  std::fill_n(sums, int64_t{index.image[2]}, C(0));
  for (int64_t k0 = 0; k0 < index.kernel[0]; ++k0) {
    const int64_t w0 = index.window_over(0, d, k0);
    if (w0 < 0) continue;
    for (int64_t k1 = 0; k1 < index.kernel[1]; ++k1) {
      const int64_t w1 = index.window_over(1, h, k1);
      if (w1 < 0) continue;
      for (int64_t k2 = 0; k2 < index.kernel[2]; ++k2) {
        const int64_t element = ((plane * index.kernel[0] + k0) * index.kernel[1] + k1) * index.kernel[2] + k2;
        const T* const from =
            columns + element * index.window_count() + (w0 * index.windows[1] + w1) * index.windows[2];
        const int64_t first = k2 * index.dilate[2] - index.pad[2];
        const Inside inside(first, stride, index.windows[2], index.image[2]);
        if (stride == 1)
          for (int64_t i = inside.begin; i < inside.end; ++i) sums[first + i] += static_cast<C>(from[i]);
        else
          for (int64_t i = inside.begin; i < inside.end; ++i) sums[first + i * stride] += static_cast<C>(from[i]);
      }
    }
  }
}

template <class T>
void fold(const UnfoldIndex& index, int64_t planes, const T* columns, T* out) {
  using C = compute_type<T>;
  const int64_t terms = index.kernel_size(), width = index.image[2];
  parallel_for(planes * index.image[0] * index.image[1], element_grain / (terms * (width + 8)) + 1,
               [&](int64_t begin, int64_t end) {
                 std::vector<C> sums(static_cast<size_t>(width));
                 for (int64_t row = begin; row < end; ++row) {
                   sum_row(index, row, columns, sums.data());
                   for (int64_t i = 0; i < width; ++i)
                     out[row * width + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
                 }
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
