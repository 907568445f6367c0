#include "symbind/ops/sort.h"

#include <algorithm>
#include <numeric>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/wide.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// The outputs of a sorted row, by number; -1: none.
struct Wanted {
  int values = -1, indices = -1, mask = -1;
};

// Writes the indices of a row and sorts the first `count` of them; equal elements keep their order.
template <class Before>
void order_first(std::vector<int64_t>& indices, int64_t count, const Before& before) {
  std::iota(indices.begin(), indices.end(), 0);
  if (count < std::ssize(indices) / 8)  // few of many: the rest need no order
    std::partial_sort(indices.begin(), indices.begin() + count, indices.end(),
                      [&](int64_t a, int64_t b) { return before(a, b) || (!before(b, a) && a < b); });
  else
    std::stable_sort(indices.begin(), indices.end(), before);
}

// A total order of values: NaN is the largest, last in ascending order and first in descending order.
template <class C>
bool is_less(C a, C b) {
  if constexpr (std::is_floating_point_v<C>)
    return a < b || (a == a && b != b);
  else
    return a < b;
}

// The first `count` elements of each row in order. Indices are written as int64 into scratch and converted at the end.
std::unique_ptr<Kernel> build_sorted(const NodeView& node, const AxisView& rows, int64_t count, bool ascend,
                                     const Wanted& wanted) {
  const int64_t total = rows.row_count() * count, elements = node.inputs[0].shape.size();
  const DType index_type = wanted.indices >= 0 ? node.outputs[static_cast<size_t>(wanted.indices)].dtype : DType::int64;
  return visit_dtype(node.inputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = functions::Wide<T>;
    return make_kernel(
        [=](const Args& args) {
          const T* const x = args.in<T>(0);
          T* const values = wanted.values >= 0 ? args.out<T>(static_cast<size_t>(wanted.values)) : nullptr;
          T* const mask = wanted.mask >= 0 ? args.out<T>(static_cast<size_t>(wanted.mask)) : nullptr;
          auto* const indices = static_cast<int64_t*>(args.scratch);
          if (mask) std::fill_n(mask, elements, T(0));
          parallel_for(rows.row_count(), element_grain / 16 / std::max<int64_t>(1, rows.length) + 1,
                       [=](int64_t begin, int64_t end) {
                         std::vector<int64_t> order(static_cast<size_t>(rows.length));
                         for (int64_t row = begin; row < end; ++row) {
                           const int64_t outer = row / rows.inner, inner = row % rows.inner;
                           const T* const from = x + outer * rows.length * rows.inner + inner;
                           const auto at = [=](int64_t k) { return static_cast<C>(from[k * rows.inner]); };
                           if (ascend)
                             order_first(order, count, [=](int64_t a, int64_t b) { return is_less(at(a), at(b)); });
                           else
                             order_first(order, count, [=](int64_t a, int64_t b) { return is_less(at(b), at(a)); });
                           for (int64_t k = 0; k < count; ++k) {
                             const int64_t index = order[static_cast<size_t>(k)];
                             const int64_t to = (outer * count + k) * rows.inner + inner;
                             indices[to] = index;
                             if (values) values[to] = from[index * rows.inner];
                             if (mask) mask[(outer * rows.length + index) * rows.inner + inner] = T(1);
                           }
                         }
                       });
          if (wanted.indices >= 0)
            convert_array(args.outputs[static_cast<size_t>(wanted.indices)], index_type, indices, DType::int64, total);
        },
        {.scratch_bytes = static_cast<size_t>(total) * sizeof(int64_t)});
  });
}

std::unique_ptr<Kernel> build_sort(const NodeView& node) {
  const auto& p = node.as<Sort>();
  const AxisView rows = sorted_rows(p.axis, node.inputs[0].shape, node.where());
  return build_sorted(node, rows, rows.length, p.is_ascend, {.values = 0, .indices = 1});
}

std::unique_ptr<Kernel> build_argsort(const NodeView& node) {
  const auto& p = node.as<Argsort>();
  const AxisView rows = sorted_rows(p.axis, node.inputs[0].shape, node.where());
  return build_sorted(node, rows, rows.length, p.is_ascend, {.indices = 0});
}

std::unique_ptr<Kernel> build_topk(const NodeView& node) {
  const auto& p = node.as<TopK>();
  const AxisView rows = sorted_rows(p.axis, node.inputs[0].shape, node.where());
  const Wanted wanted = p.ret_typ == "indices" ? Wanted{.indices = 0}
                        : p.ret_typ == "mask"  ? Wanted{.mask = 0}
                                               : Wanted{.values = 0, .indices = 1};
  return build_sorted(node, rows, p.k <= 0 ? rows.length : p.k, p.is_ascend, wanted);
}

std::unique_ptr<Kernel> build_sort_grad(const NodeView& node) {
  const Shape& shape = node.outputs[0].shape;
  const AxisView rows = sorted_rows(node.as<SortGrad>().axis, shape, node.where());
  const int64_t total = node.inputs[0].shape.size(), elements = shape.size();
  const int64_t count = rows.row_count() > 0 ? total / rows.row_count() : 0;
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    return make_kernel(
        [=, from = node.inputs[1].dtype](const Args& args) {
          const T* const dy = args.in<T>(0);
          T* const dx = args.out<T>();
          auto* const indices = static_cast<int64_t*>(args.scratch);
          convert_array(indices, DType::int64, args.inputs[1], from, total);
          std::fill_n(dx, elements, T(0));
          for (int64_t i = 0; i < total; ++i) {
            const int64_t inner = i % rows.inner, outer = i / rows.inner / count;
            dx[(outer * rows.length + std::clamp<int64_t>(indices[i], 0, rows.length - 1)) * rows.inner + inner] =
                dy[i];
          }
        },
        {.scratch_bytes = static_cast<size_t>(total) * sizeof(int64_t)});
  });
}

}  // namespace

void add_sort(ImplementationTable& table) {
  add_plain<Sort>(table, build_sort);
  add_plain<Argsort>(table, build_argsort);
  add_plain<TopK>(table, build_topk);
  add_plain<SortGrad>(table, build_sort_grad);
}

}  // namespace symbind::cpu_backend
