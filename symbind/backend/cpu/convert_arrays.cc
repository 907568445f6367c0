#include "symbind/ops/convert_arrays.h"

#include "symbind/backend/array_casts.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

template <class To, class From>
void convert_scaled(const Args& args, size_t index, int64_t count, const float* scale) {
  using C = std::conditional_t<std::is_same_v<To, double> || std::is_same_v<From, double>, double, float>;
  const From* const in = args.in<From>(index);
  To* const out = args.out<To>(index);
  const C factor = scale ? static_cast<C>(*scale) : C(1);
  for_elements(count, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = static_cast<To>(static_cast<C>(in[i]) * factor);
  });
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  return make_kernel([casts = array_casts(node), scaled = node.as<ConvertArrays>().scaled](const Args& args) {
    const float* const scale = scaled ? args.in<float>(casts.size()) : nullptr;
    for (size_t i = 0; i < casts.size(); ++i) {
      if (!args.outputs[i]) continue;
      visit_floating(casts[i].from, [&]<class From>(std::type_identity<From>) {
        visit_floating(casts[i].to, [&]<class To>(std::type_identity<To>) {
          convert_scaled<To, From>(args, i, casts[i].count, scale);
        });
      });
    }
  });
}

}  // namespace

void add_convert_arrays(ImplementationTable& table) { add_plain<ConvertArrays>(table, build); }

}  // namespace symbind::cpu_backend
