// Kernels that apply a function of numbers (backend/pointwise.h) to the elements of arrays that lie alike in memory.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "symbind/backend/cpu/convert.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/pointwise.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

template <class C, size_t arity>
using Operands = std::array<const C*, arity>;

// Elementwise loops over whole numbers are rare enough for the instructions every processor has.
template <class C>
inline constexpr InstructionSet widest_for = std::is_floating_point_v<C> ? InstructionSet::avx2 : InstructionSet::baseline;

// out[i] = function(in[0][i], in[1][i], …). `out` may be one of the operands.
template <class Function, class C, size_t arity, size_t... k>
void map_loop(const Function& function, C* out, Operands<C, arity> in, int64_t begin, int64_t end,
              std::index_sequence<k...>) {
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) out[i] = function(in[k][i]...);
}
template <class Function, class C, size_t arity>
[[gnu::noinline]] void map_range(const Function& function, C* out, const Operands<C, arity>& in, int64_t begin, int64_t end) {
  for_range<widest_for<C>>(begin, end, [function, out, in](int64_t first, int64_t last) {
    map_loop(function, out, in, first, last, std::make_index_sequence<arity>{});
  });
}

inline const void* element_at(const void* array, DType dtype, int64_t index) {
  return static_cast<const std::byte*>(array) + static_cast<size_t>(index) * size_of(dtype);
}
inline void* element_at(void* array, DType dtype, int64_t index) {
  return static_cast<std::byte*>(array) + static_cast<size_t>(index) * size_of(dtype);
}

// The same for types that are not computed in themselves: piece by piece the operands are widened to C and the results
// narrowed.
template <class C, size_t arity>
struct NarrowMap {
  static constexpr int64_t piece = 1024;
  std::array<DType, arity> types;
  DType type;

  template <class Function>
  void run(const Function& function, void* out, const std::array<const void*, arity>& in, int64_t begin,
           int64_t end) const {
    C wide_in[arity][piece], wide_out[piece];
    Operands<C, arity> operands;
    for (int64_t at = begin; at < end; at += piece) {
      const int64_t count = std::min(piece, end - at);
      for (size_t k = 0; k < arity; ++k) {
        convert_array(wide_in[k], dtype_of<C>(), element_at(in[k], types[k], at), types[k], count);
        operands[k] = wide_in[k];
      }
      map_range(function, wide_out, operands, 0, count);
      convert_array(element_at(out, type, at), type, wide_out, dtype_of<C>(), count);
    }
  }
};

// A kernel for output 0 from the first `arity` inputs. make_function(type_identity<C>) gives the function for the type C
// that the output is computed in; inputs of other types are converted.
template <size_t arity, class MakeFunction>
std::unique_ptr<Kernel> map_kernel(const NodeView& node, MakeFunction make_function) {
  const DType type = node.outputs[0].dtype;
  const int64_t count = node.outputs[0].shape.size();
  std::array<DType, arity> types;
  KernelTraits traits;
  for (size_t k = 0; k < arity; ++k) {
    types[k] = node.inputs[k].dtype;
    if (size_of(types[k]) == size_of(type)) traits.in_place.emplace_back(static_cast<int>(k), 0);
  }
  return pointwise::visit_wide(type, [&](auto wide_type) -> std::unique_ptr<Kernel> {
    using C = typename decltype(wide_type)::type;
    const auto function = make_function(wide_type);
    const bool direct = type == dtype_of<C>() && std::ranges::all_of(types, [&](DType t) { return t == type; });
    if (direct) {
      return make_kernel(
          [function, count](const Args& args) {
            Operands<C, arity> in;
            for (size_t k = 0; k < arity; ++k) in[k] = args.in<C>(k);
            C* const out = args.out<C>();
            parallel_for(count, element_grain,
                         [&](int64_t begin, int64_t end) { map_range(function, out, in, begin, end); });
          },
          traits);
    }
    return make_kernel(
        [function, count, map = NarrowMap<C, arity>{types, type}](const Args& args) {
          std::array<const void*, arity> in;
          for (size_t k = 0; k < arity; ++k) in[k] = args.inputs[k];
          parallel_for(count, element_grain,
                       [&](int64_t begin, int64_t end) { map.run(function, args.outputs[0], in, begin, end); });
        },
        traits);
  });
}

// The implementations of all operators of a table, each a function of `arity` arrays.
template <size_t arity, class Entries>
void add_maps(ImplementationTable& table, Entries entries) {
  pointwise::for_each(entries, [&]<class Entry>(Entry) {
    using Function = typename Entry::Function;
    add_plain(table, OpRegistry::get().find(Entry::name.view()), [](const NodeView& node) {
      return map_kernel<arity>(node, [](auto) { return Function{}; });
    });
  });
}

}  // namespace symbind::cpu_backend
