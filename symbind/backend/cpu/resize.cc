// Row by row: the indices and weights of columns are computed once, when the kernel is built.
#include "symbind/ops/resize.h"

#include <algorithm>
#include <vector>

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
  int64_t grain() const { return element_grain / (8 * columns + 1) + 1; }
};

// Calls rows(first, last, in, out) for pieces of planes: rows [first, last) of the plane that begins at `out` are to be
// written from the plane at `in`.
template <class T, class Rows>
std::unique_ptr<Kernel> kernel_of(const Planes& planes, Rows rows) {
  return make_kernel([=](const Args& args) {
    const T* const in = args.in<T>(0);
    T* const out = args.out<T>();
    parallel_for(planes.count * planes.rows, planes.grain(), [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t plane = begin / planes.rows, first = begin % planes.rows;
        const int64_t last = std::min(planes.rows, first + end - begin);
        rows(first, last, in + plane * planes.read, out + plane * planes.rows * planes.columns);
        begin += last - first;
      }
    });
  });
}

// ---- Bilinear resizing ----------------------------------------------------------------------------------------------

// The two elements that each element of the output reads along an axis.
template <class C>
struct Sources {
  std::vector<int64_t> first, second;
  std::vector<C> weight;  // of the second

  explicit Sources(const BilinearAxis<C>& axis) {
    for (int64_t i = 0; i < axis.out; ++i) {
      const auto source = axis.source(i);
      first.push_back(source.first);
      second.push_back(source.second);
      weight.push_back(source.weight);
    }
  }
};

template <class T>
std::unique_ptr<Kernel> build_bilinear_for(const NodeView& node, const BilinearAxis<compute_type<T>>& down,
                                           const BilinearAxis<compute_type<T>>& across) {
  using C = compute_type<T>;
  return kernel_of<T>(Planes(node), [=, x = Sources<C>(across), y = Sources<C>(down)](int64_t first, int64_t last,
                                                                                      const T* in, T* out) {
    std::vector<C> line(static_cast<size_t>(across.in));
    for (int64_t row = first; row < last; ++row) {
      const auto i = static_cast<size_t>(row);
      const T *const upper = in + y.first[i] * across.in, *const lower = in + y.second[i] * across.in;
      for (int64_t k = 0; k < across.in; ++k)
        line[static_cast<size_t>(k)] =
            (C(1) - y.weight[i]) * static_cast<C>(upper[k]) + y.weight[i] * static_cast<C>(lower[k]);
      T* const to = out + row * across.out;
      const C *const from = line.data(), *const weight = x.weight.data();
      const int64_t *const left = x.first.data(), *const right = x.second.data();
      for (int64_t k = 0; k < across.out; ++k)
        to[k] = static_cast<T>((C(1) - weight[k]) * from[left[k]] + weight[k] * from[right[k]]);
    }
  });
}

// The gradient of a piece of a plane: each row of dy is mapped to the columns of the data and added to the two rows
// that it was computed from.
template <class C>
struct BilinearGrad {
  BilinearAxis<C> down, across;
  Sources<C> y, x;

  BilinearGrad(const BilinearAxis<C>& down_, const BilinearAxis<C>& across_)
      : down(down_), across(across_), y(down_), x(across_) {}

  template <class T>
  void add_to_columns(const T* dy, C* line) const {
    std::fill_n(line, across.in, C(0));
    for (int64_t k = 0; k < across.out; ++k) {
      const auto i = static_cast<size_t>(k);
      const C value = static_cast<C>(dy[k]);
      line[x.first[i]] += (C(1) - x.weight[i]) * value;
      line[x.second[i]] += x.weight[i] * value;
    }
  }
  // Rows [first, last) of the data, which `sums` holds.
  template <class T>
  void add_rows(int64_t first, int64_t last, const T* dy, C* sums) const {
    std::vector<C> line(static_cast<size_t>(across.in));
    const auto add = [&](int64_t row, C weight) {
      if (row < first || row >= last || weight == C(0)) return;
      C* const to = sums + (row - first) * across.in;
      for (int64_t k = 0; k < across.in; ++k) to[k] += weight * line[static_cast<size_t>(k)];
    };
    for (int64_t row = down.readers(first).begin; row < down.readers(last - 1).end; ++row) {
      const auto i = static_cast<size_t>(row);
      if (y.second[i] < first || y.first[i] >= last) continue;
      add_to_columns(dy + row * across.out, line.data());
      add(y.first[i], C(1) - y.weight[i]);
      add(y.second[i], y.weight[i]);
    }
  }
};

template <class T>
std::unique_ptr<Kernel> build_bilinear_grad_for(const NodeView& node, const BilinearAxis<compute_type<T>>& down,
                                                const BilinearAxis<compute_type<T>>& across) {
  using C = compute_type<T>;
  return kernel_of<T>(Planes(node),
                      [grad = BilinearGrad<C>(down, across)](int64_t first, int64_t last, const T* dy, T* dx) {
                        const int64_t columns = grad.across.in, count = (last - first) * columns;
                        T* const to = dx + first * columns;
                        if constexpr (std::is_same_v<T, C>) {
                          std::fill_n(to, count, C(0));
                          grad.add_rows(first, last, dy, to);
                        } else {
                          std::vector<C> sums(static_cast<size_t>(count));
                          grad.add_rows(first, last, dy, sums.data());
                          for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(sums[static_cast<size_t>(i)]);
                        }
                      });
}

std::unique_ptr<Kernel> build_bilinear(const NodeView& node) {
  const bool align = node.as<BilinearResize2D>().align_corners;
  const Shape &in = node.inputs[0].shape, &out = node.outputs[0].shape;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build_bilinear_for<T>(node, {in[2], out[2], align}, {in[3], out[3], align});
  });
}

std::unique_ptr<Kernel> build_bilinear_grad(const NodeView& node) {
  const bool align = node.as<BilinearResize2DGrad>().align_corners;
  const Shape &in = node.outputs[0].shape, &out = node.inputs[0].shape;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build_bilinear_grad_for<T>(node, {in[2], out[2], align}, {in[3], out[3], align});
  });
}

// ---- Adaptive pooling -----------------------------------------------------------------------------------------------

std::unique_ptr<Kernel> build_adaptive(const NodeView& node) {
  const Shape &in = node.inputs[0].shape, &out = node.outputs[0].shape;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    const AdaptivePlane<C> plane{{in[2], out[2]}, {in[3], out[3]}};
    return kernel_of<T>(Planes(node), [plane](int64_t first, int64_t last, const T* from, T* to) {
      const auto load = [from](int64_t i) { return static_cast<C>(from[i]); };
      for (int64_t row = first; row < last; ++row)
        for (int64_t column = 0; column < plane.columns.out; ++column)
          to[row * plane.columns.out + column] = static_cast<T>(plane.forward(row, column, load));
    });
  });
}

// Each window distributes its gradient to its elements; rows with the same windows are equal.
template <class C>
struct AdaptiveGrad {
  AdaptiveAxis<int64_t> rows, columns;

  bool is_like_the_one_before(int64_t row) const {
    return rows.first_window(row) == rows.first_window(row - 1) && rows.end_window(row) == rows.end_window(row - 1);
  }
  template <class T>
  void add_row(int64_t row, const T* dy, C* sums) const {
    std::fill_n(sums, columns.in, C(0));
    for (int64_t i = rows.first_window(row); i < rows.end_window(row); ++i) {
      const int64_t height = rows.end(i) - rows.begin(i);
      for (int64_t k = 0; k < columns.out; ++k) {
        const int64_t begin = columns.begin(k), end = columns.end(k);
        const C share = static_cast<C>(dy[i * columns.out + k]) / static_cast<C>(height * (end - begin));
        for (int64_t at = begin; at < end; ++at) sums[at] += share;
      }
    }
  }
};

std::unique_ptr<Kernel> build_adaptive_grad(const NodeView& node) {
  const Shape &in = node.outputs[0].shape, &out = node.inputs[0].shape;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    const AdaptiveGrad<C> grad{{in[2], out[2]}, {in[3], out[3]}};
    return kernel_of<T>(Planes(node), [grad](int64_t first, int64_t last, const T* dy, T* dx) {
      const int64_t columns = grad.columns.in;
      std::vector<C> sums(static_cast<size_t>(columns));
      for (int64_t row = first; row < last; ++row) {
        if (row == first || !grad.is_like_the_one_before(row)) grad.add_row(row, dy, sums.data());
        for (int64_t i = 0; i < columns; ++i) dx[row * columns + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
      }
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
