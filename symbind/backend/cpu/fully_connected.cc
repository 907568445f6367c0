#include "symbind/ops/fully_connected.h"

#include "symbind/backend/cpu/activation.h"
#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/gemm.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"

namespace symbind::cpu_backend {
namespace {

template <class T>
void affine(const FullyConnectedSize& size, const T* x, const T* weight, const T* bias, T* y) {
  using C = compute_type<T>;
  gemm<T, T>(size.rows, size.hidden, size.inner, {x, size.inner}, {weight, size.inner, true}, {y, size.hidden});
  if (!bias) return;
  for_elements(
      size.rows,
      [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          for (int64_t i = 0; i < size.hidden; ++i) {
            T& element = y[row * size.hidden + i];
            element = static_cast<T>(static_cast<C>(element) + static_cast<C>(bias[i]));
          }
      },
      element_grain / (size.hidden + 1) + 1);
}

template <class T>
std::unique_ptr<Kernel> build_for(const NodeView& node, const FullyConnected& params, const std::string& act_type) {
  const FullyConnectedSize size = size_of(params, node.inputs[0].shape);
  return make_kernel([size, act_type, bias = !params.no_bias](const Args& args) {
    affine(size, args.in<T>(0), args.in<T>(1), bias ? args.in<T>(2) : nullptr, args.out<T>());
    apply_activation(act_type, args.out<T>(), size.rows * size.hidden);
  });
}

}  // namespace

void add_fully_connected(ImplementationTable& table) {
  const auto build = [](const NodeView& node, const FullyConnected& params, const std::string& act_type) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_for<typename decltype(type)::type>(node, params, act_type); });
  };
  add_plain<FullyConnected>(table, [=](const NodeView& node) { return build(node, node.as<FullyConnected>(), ""); });
  add_plain<FullyConnectedActivation>(table, [=](const NodeView& node) {
    const auto& params = node.as<FullyConnectedActivation>();
    return build(node, params, params.act_type);
  });
}

}  // namespace symbind::cpu_backend
