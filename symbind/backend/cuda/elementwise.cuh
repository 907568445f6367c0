// Kernels that apply a function of backend/functions.h to the elements of one, two or three arrays.
#pragma once

#include <array>
#include <string>

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/function_tables.h"
#include "symbind/backend/wide.h"

namespace symbind::cuda_backend {

// The types elementwise functions are compiled for; booleans and small integers are programs (pointwise.cc).
inline bool has_number_kernels(DType dtype) {
  return is_floating(dtype) || dtype == DType::int32 || dtype == DType::int64;
}
template <class Function>
decltype(auto) visit_number(DType dtype, Function&& function) {
  return visit_types<float, double, float16, bfloat16, int32_t, int64_t>(dtype, function);
}

inline std::string refuse_elementwise(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  if (!has_number_kernels(dtype)) return "no kernel for this type";
  for (const auto& tensor : node.inputs)
    if (tensor.dtype != dtype) return "arrays of different types";
  return one_layout(node) ? "" : "arrays of different layouts";
}

// out[i] = function(in[i]…), `width` elements at a time. An input may be the output.
template <int arity, class T>
struct MapInputs {
  const T* array[arity];
};
template <int arity, int width, class T, class Function>
__global__ void map_elements(MapInputs<arity, T> in, T* out, int64_t count, Function function) {
  const auto at = [&](const auto&... values) { return store<T>(function(load(values)...)); };
  if constexpr (arity == 1)
    map_packs<width>(at, out, count, in.array[0]);
  else if constexpr (arity == 2)
    map_packs<width>(at, out, count, in.array[0], in.array[1]);
  else
    map_packs<width>(at, out, count, in.array[0], in.array[1], in.array[2]);
}

// A kernel of `arity` arrays of type T.
template <int arity, class T, class Function>
std::unique_ptr<Kernel> build_map(const NodeView& node, Function function) {
  return make_step(
      node,
      [function, count = node.outputs[0].shape.size()](const Args& args) {
        if (count == 0) return;
        MapInputs<arity, T> in;
        T* const out = args.out<T>();
        bool wide = aligned_for_packs(out);
        for (int input = 0; input < arity; ++input) {
          in.array[input] = args.in<T>(static_cast<size_t>(input));
          wide = wide && aligned_for_packs(in.array[input]);
        }
        if (wide)
          map_elements<arity, widest<T>>
              <<<blocks_for(count / widest<T>), block_size, 0, stream_of(args)>>>(in, out, count, function);
        else
          map_elements<arity, 1><<<blocks_for(count), block_size, 0, stream_of(args)>>>(in, out, count, function);
      },
      writes_over_inputs(arity));
}

// The kernel of an entry of backend/function_tables.h, with its parameters as numbers.
template <bool floating_alone, int arity, class Function, size_t count>
std::unique_ptr<Kernel> build_entry(functions::Holds<Function> entry, const NodeView& node,
                                    const std::array<double, count>& numbers) {
  const auto build = [&]<class T>(std::type_identity<T>) {
    using Number = functions::Wide<T>;
    return build_map<arity, T>(
        node, functions::bound<Number>(entry, numbers, [](double value) { return convert<Number>(value); }));
  };
  if constexpr (floating_alone)
    return visit_floating(node.outputs[0].dtype, build);
  else
    return visit_number(node.outputs[0].dtype, build);
}

// The operators of a table; `floating_alone` where no other types reach them.
template <bool floating_alone = false, class Entries>
void add_maps(ImplementationTable& table, Entries entries) {
  functions::for_each(entries, [&]<class Entry>(Entry) {
    table.add(OpRegistry::get().find(Entry::name.view()),
              {"cuda",
               [](const NodeView& node) {
                 if (!Entry::holds(node.params)) return std::string("another function of the operator");
                 if (floating_alone && !is_floating(node.outputs[0].dtype))
                   return std::string("wants floating numbers");
                 return refuse_elementwise(node);
               },
               [](const NodeView& node) {
                 return build_entry<floating_alone, static_cast<int>(Entry::arity)>(Entry{}, node,
                                                                                    Entry::numbers(node.params));
               }});
  });
}

}  // namespace symbind::cuda_backend
