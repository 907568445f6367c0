#include "symbind/backend/cpu/activation.h"

#include "symbind/backend/activation.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/map.h"
#include "symbind/ops/activation.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

std::optional<MapLoop> activation_loop(const NodeView& node) {
  return pointwise::visit_activation(node.as<Activation>().act_type, [&](auto function, auto) {
    return map_loop_for<1>(node.outputs[0].dtype, [=](auto) { return function; });
  });
}

std::optional<MapLoop> activation_grad_loop(const NodeView& node) {
  return pointwise::visit_activation(node.as<ActivationGrad>().act_type, [&](auto, auto gradient) {
    return map_loop_for<2>(node.outputs[0].dtype, [=](auto) { return gradient; });
  });
}

}  // namespace

template <class T>
void apply_activation(const std::string& act_type, T* data, int64_t count) {
  if (act_type.empty()) return;
  pointwise::visit_activation(act_type, [&](auto function, auto) {
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
  add_map<Activation>(table, activation_loop);
  add_map<ActivationGrad>(table, activation_grad_loop);
}

}  // namespace symbind::cpu_backend
