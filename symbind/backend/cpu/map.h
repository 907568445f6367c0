// Kernels that apply a function of numbers (backend/functions.h) to the elements of arrays with the same memory layout.
// Only the loop is compiled per function; a MapLoop holds it type-erased, and map.cc does the rest.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/formulas.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/function_tables.h"
#include "symbind/backend/wide.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

template <class C, size_t arity>
using Operands = std::array<const C*, arity>;
inline constexpr size_t max_arity = 3;

// Elementwise loops over integers are rare, so the baseline instruction set suffices, and most others are memory-bound.
template <class C, class Function>
inline constexpr InstructionSet widest_for = std::is_same_v<C, float>&& is_costly<Function> ? InstructionSet::avx512
                                             : std::is_floating_point_v<C>                  ? InstructionSet::avx2
                                                                                            : InstructionSet::baseline;

// A function object of any type, stored as bytes.
class AnyFunction {
 public:
  template <class Function>
  requires std::is_trivially_copyable_v<Function>
  explicit AnyFunction(const Function& function) {
    static_assert(sizeof(Function) <= sizeof(bytes_));
    std::memcpy(bytes_, &function, sizeof(Function));
  }
  template <class Function>
  const Function& as() const {
    return *reinterpret_cast<const Function*>(bytes_);
  }

 private:
  alignas(8) std::byte bytes_[64]{};
};

// out[i] = function(in[0][i], in[1][i], …) for i in [begin, end). `out` may be one of the operands.
struct MapLoop {
  AnyFunction function;
  size_t arity;
  DType type;  // of the numbers it works on
  void (*run)(const AnyFunction& function, void* out, const void* const* in, int64_t begin, int64_t end);
};

template <class Function, class C, size_t... k>
void map_loop(const Function& function, C* out, Operands<C, sizeof...(k)> in, int64_t begin, int64_t end,
              std::index_sequence<k...>) {
  apply(function, out, begin, end, [from = in[k]](int64_t i) { return from[i]; }...);
}

template <size_t arity, class C, class Function>
MapLoop map_loop_of(const Function& function) {
  return {AnyFunction(function), arity, dtype_of<C>(),
          [](const AnyFunction& any, void* out, const void* const* in, int64_t begin, int64_t end) {
            Operands<C, arity> from;
            for (size_t i = 0; i < arity; ++i) from[i] = static_cast<const C*>(in[i]);
            for_range<widest_for<C, Function>>(
                begin, end, [f = any.as<Function>(), to = static_cast<C*>(out), from](int64_t first, int64_t last) {
                  map_loop(f, to, from, first, last, std::make_index_sequence<arity>{});
                });
          }};
}

// The same, where make_function(type_identity<C>) returns the function for the type C that results of type `dtype` are
// computed in.
template <size_t arity, class MakeFunction>
MapLoop map_loop_for(DType dtype, MakeFunction make_function) {
  return functions::visit_wide(
      dtype, [&](auto type) { return map_loop_of<arity, typename decltype(type)::type>(make_function(type)); });
}

// A kernel for output 0 from the first inputs. Arrays of other types than the loop's are converted piece by piece.
std::unique_ptr<Kernel> build_map(const NodeView& node, const MapLoop& loop);

// The loop of a node, or none if its parameters need more than a loop.
using MakeLoop = std::function<std::optional<MapLoop>(const NodeView&)>;

// Registers the factory of an operator's loop, for fused programs (backend/cpu/pointwise.cc). Of several factories for
// one operator, the first that returns a loop is used. Called while the CPU's implementations are registered.
void add_loop(const OpDef& op, MakeLoop make_loop);
std::optional<MapLoop> find_loop(const NodeView& node);

// The implementation of an operator that is a single loop for all parameters.
void add_map(ImplementationTable& table, const OpDef& op);

// A parameter as a number of the type C that elements are computed in: first converted to an element, which may
// truncate it.
template <class C>
C number_as_element(double value, DType element) {
  if constexpr (std::is_floating_point_v<C>)
    return static_cast<C>(value);  // half precision is computed in float, and so are its parameters
  else
    return visit_dtype(element, [&](auto type) { return convert<C>(convert<typename decltype(type)::type>(value)); });
}

// The loop of an entry of backend/function_tables.h.
template <class Entry>
std::optional<MapLoop> loop_of_entry(const NodeView& node) {
  if (!Entry::holds(node.params)) return std::nullopt;
  const DType dtype = node.outputs[0].dtype;
  const auto numbers = Entry::numbers(node.params);
  return map_loop_for<Entry::arity>(dtype, [&](auto type) {
    using C = typename decltype(type)::type;
    return functions::bound<C>(Entry{}, numbers, [&](double value) {
      return Entry::scalar_is_element ? number_as_element<C>(value, dtype) : convert<C>(value);
    });
  });
}

// The loops of all entries of a table; add_maps() adds the implementations of their operators too. Entries of one
// operator follow each other.
template <class Entries>
void add_loops(Entries entries) {
  functions::for_each(
      entries, []<class Entry>(Entry) { add_loop(OpRegistry::get().find(Entry::name.view()), loop_of_entry<Entry>); });
}
template <class Entries>
void add_maps(ImplementationTable& table, Entries entries) {
  add_loops(entries);
  const OpDef* last = nullptr;
  functions::for_each(entries, [&]<class Entry>(Entry) {
    const OpDef& op = OpRegistry::get().find(Entry::name.view());
    if (&op != last) add_map(table, op);
    last = &op;
  });
}

}  // namespace symbind::cpu_backend
