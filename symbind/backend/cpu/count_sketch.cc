#include "symbind/ops/count_sketch.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Rows of `length` elements and of `sums`.
struct Sketch {
  int64_t rows, length, sums;
  std::string where;

  Sketch(const NodeView& node, const Shape& data, int64_t out_dim)
      : rows(data.size(0, data.rank() - 1)), length(data[data.rank() - 1]), sums(out_dim), where(node.where()) {}

  template <class T>
  std::vector<int64_t> read(const T* h) const {
    std::vector<int64_t> indices(static_cast<size_t>(length));
    for (size_t i = 0; i < indices.size(); ++i) {
      indices[i] = index_of(h[i]);
      require(indices[i] >= 0 && indices[i] < sums, where, " h[", i, "] is ", indices[i], ", not between 0 and ",
              sums - 1);
    }
    return indices;
  }
  int64_t grain() const { return element_grain / 4 / (length + sums + 1) + 1; }
};

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const Sketch sketch(node, node.inputs[0].shape, node.as<CountSketch>().out_dim);
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel([sketch](const Args& args) {
      using C = compute_type<T>;
      const auto indices = sketch.read(args.in<T>(1));
      const T *const data = args.in<T>(0), *const signs = args.in<T>(2);
      T* const out = args.out<T>();
      parallel_for(sketch.rows, sketch.grain(), [&](int64_t begin, int64_t end) {
        std::vector<C> sums(static_cast<size_t>(sketch.sums));
        for (int64_t row = begin; row < end; ++row) {
          std::fill(sums.begin(), sums.end(), C(0));
          for (int64_t i = 0; i < sketch.length; ++i)
            sums[static_cast<size_t>(indices[static_cast<size_t>(i)])] +=
                static_cast<C>(signs[i]) * static_cast<C>(data[row * sketch.length + i]);
          std::transform(sums.begin(), sums.end(), out + row * sketch.sums, [](C sum) { return T(sum); });
        }
      });
    });
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const Sketch sketch(node, node.outputs[0].shape, node.as<CountSketchGrad>().out_dim);
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel([sketch](const Args& args) {
      using C = compute_type<T>;
      const auto indices = sketch.read(args.in<T>(1));
      const T *const dy = args.in<T>(0), *const signs = args.in<T>(2);
      T* const dx = args.out<T>();
      parallel_for(sketch.rows, sketch.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          for (int64_t i = 0; i < sketch.length; ++i)
            dx[row * sketch.length + i] =
                T(static_cast<C>(signs[i]) * static_cast<C>(dy[row * sketch.sums + indices[static_cast<size_t>(i)]]));
      });
    });
  });
}

}  // namespace

void add_count_sketch(ImplementationTable& table) {
  add_plain<CountSketch>(table, build_forward);
  add_plain<CountSketchGrad>(table, build_backward);
}

}  // namespace symbind::cpu_backend
