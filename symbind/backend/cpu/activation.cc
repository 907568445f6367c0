#include "symbind/backend/cpu/activation.h"

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/map.h"
#include "symbind/ops/activation.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

template <class T>
void apply_activation(const std::string& act_type, T* data, int64_t count) {
  if (act_type.empty()) return;
  functions::visit_activation(functions::ActivationTable{}, act_type, [&](auto function) {
    for_elements(count, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = static_cast<T>(function(static_cast<compute_type<T>>(data[i])));
    });
  });
}
template void apply_activation(const std::string&, float*, int64_t);
template void apply_activation(const std::string&, double*, int64_t);
template void apply_activation(const std::string&, float16*, int64_t);
template void apply_activation(const std::string&, bfloat16*, int64_t);

void add_activation(ImplementationTable& table) {
  add_maps(table, functions::ActivationTable{});
  add_maps(table, functions::ActivationGradTable{});
}

}  // namespace symbind::cpu_backend
