// The last index of each slot is found first; then every slice is copied from its source.
#include "symbind/backend/scatter.h"

#include <algorithm>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/core/error_kinds.h"
#include "symbind/ops/scatter.h"

namespace symbind::cpu_backend {
namespace {

void find_last(const Replacing& size, DType of_index, const void* indices, int64_t* last, const std::string& where) {
  const auto refuse = [&](int axis, int64_t index) {
    throw IndexError(join(where, " index ", index, " is outside of axis ", axis, " of length ", size.extents[axis]));
  };
  std::fill_n(last, size.slots, int64_t{-1});
  visit_dtype(of_index, [&]<class N>(std::type_identity<N>) {
    const auto value = [numbers = static_cast<const N*>(indices)](int64_t k) { return index_of(numbers[k]); };
    for (int64_t i = 0; i < size.count; ++i)
      if (const int64_t slot = size.slot(i, value, refuse); slot >= 0) last[slot] = i;
  });
}

// Calls copy(slice) for slices of `inner` elements on several threads.
template <class Copy>
void each_slice(int64_t slices, int64_t inner, Copy copy) {
  parallel_for(slices, element_grain / (inner + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) copy(i);
  });
}

std::unique_ptr<Kernel> build_replace(const NodeView& node, size_t indices, size_t fresh, bool nd) {
  const Replacing size(node.inputs[0].shape, node.inputs[indices].shape, nd);
  const auto slice = static_cast<size_t>(size.inner) * size_of(node.outputs[0].dtype);
  return make_kernel(
      [=, of_index = node.inputs[indices].dtype, where = node.where()](const Args& args) {
        auto* const last = static_cast<int64_t*>(args.scratch);
        find_last(size, of_index, args.inputs[indices], last, where);
        const auto *old = args.in<std::byte>(0), *with = args.in<std::byte>(fresh);
        auto* const out = args.out<std::byte>();
        each_slice(size.slots, size.inner, [=](int64_t slot) {
          const auto* from =
              last[slot] < 0 ? old + static_cast<size_t>(slot) * slice : with + static_cast<size_t>(last[slot]) * slice;
          std::copy_n(from, slice, out + static_cast<size_t>(slot) * slice);
        });
      },
      {.scratch_bytes = static_cast<size_t>(size.slots) * sizeof(int64_t)});
}

std::unique_ptr<Kernel> build_grad(const NodeView& node) {
  const Replacing size(node.inputs[0].shape, node.inputs[1].shape, node.as<ReplaceGrad>().nd);
  const auto slice = static_cast<size_t>(size.inner) * size_of(node.outputs[0].dtype);
  return make_kernel(
      [=, of_index = node.inputs[1].dtype, where = node.where()](const Args& args) {
        auto* const last = static_cast<int64_t*>(args.scratch);
        find_last(size, of_index, args.inputs[1], last, where);
        const auto* const dy = args.in<std::byte>(0);
        if (auto* const old = args.out<std::byte>(0))
          each_slice(size.slots, size.inner, [=](int64_t slot) {
            const auto at = static_cast<size_t>(slot) * slice;
            last[slot] < 0 ? std::copy_n(dy + at, slice, old + at) : std::fill_n(old + at, slice, std::byte{});
          });
        auto* const fresh = args.out<std::byte>(1);
        if (!fresh) return;
        std::fill_n(fresh, static_cast<size_t>(size.count) * slice, std::byte{});
        for (int64_t slot = 0; slot < size.slots; ++slot)
          if (last[slot] >= 0)
            std::copy_n(dy + static_cast<size_t>(slot) * slice, slice, fresh + static_cast<size_t>(last[slot]) * slice);
      },
      {.scratch_bytes = static_cast<size_t>(size.slots) * sizeof(int64_t)});
}

}  // namespace

void add_scatter(ImplementationTable& table) {
  add_plain<IndexCopy>(table, [](const NodeView& node) { return build_replace(node, 1, 2, false); });
  add_plain<ScatterSetNd>(table, [](const NodeView& node) { return build_replace(node, 2, 1, true); });
  add_plain<ReplaceGrad>(table, build_grad);
}

}  // namespace symbind::cpu_backend
