#include "symbind/ops/convert_arrays.h"

#include "symbind/backend/converted_arrays.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

template <class To, class From>
void convert_array(const Args& args, size_t index, const ConvertedArray& array, const float* scale) {
  using C = std::conditional_t<std::is_same_v<To, double> || std::is_same_v<From, double>, double, float>;
  const From* const in = args.in<From>(index);
  To* const out = args.out<To>(index);
  const C factor = scale ? static_cast<C>(*scale) : C(1);
  const int64_t rows = array.rows, columns = array.columns;
  if (!array.is_transposed()) {
    for_elements(array.count, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = static_cast<To>(static_cast<C>(in[i]) * factor);
    });
    return;
  }
  for_elements(
      array.matrices() * columns,
      [=](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const From* const column = in + line / columns * rows * columns + line % columns;
          for (int64_t i = 0; i < rows; ++i)
            out[line * rows + i] = static_cast<To>(static_cast<C>(column[i * columns]) * factor);
        }
      },
      element_grain / rows + 1);
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  const std::string reason = refuse_layouts_of_arrays(node);
  require(reason.empty(), node.where(), " cannot convert ", reason);
  return make_kernel([arrays = converted_arrays(node), scaled = node.as<ConvertArrays>().scaled](const Args& args) {
    const float* const scale = scaled ? args.in<float>(arrays.size()) : nullptr;
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (!args.outputs[i]) continue;
      visit_floating(arrays[i].from, [&]<class From>(std::type_identity<From>) {
        visit_floating(arrays[i].to,
                       [&]<class To>(std::type_identity<To>) { convert_array<To, From>(args, i, arrays[i], scale); });
      });
    }
  });
}

}  // namespace

void add_convert_arrays(ImplementationTable& table) { add_plain<ConvertArrays>(table, build); }

}  // namespace symbind::cpu_backend
