#include "symbind/ops/fully_connected.h"

#include <algorithm>

#include "symbind/backend/cpu/activation.h"
#include "symbind/backend/cpu/gemm.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/row_dots.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// The fused operations and the weight's layout: (hidden, inner), or transposed.
struct Variant {
  std::string act_type;
  bool weight_is_transposed = false;
};

template <class T>
void affine(const FullyConnectedSize& size, const T* x, Matrix<const T> weight, const T* bias, T* y) {
  using C = compute_type<T>;
  gemm<T, T>(size.rows, size.hidden, size.inner, {x, size.inner}, weight, {y, size.hidden});
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
std::unique_ptr<Kernel> build_for(const NodeView& node, const FullyConnected& params, const Variant& variant) {
  const FullyConnectedSize size = size_of(params, node.inputs[0].shape);
  return make_kernel([size, variant, bias = !params.no_bias](const Args& args) {
    const T* const weight = args.in<T>(1);
    affine(
        size, args.in<T>(0),
        variant.weight_is_transposed ? Matrix<const T>{weight, size.hidden} : Matrix<const T>{weight, size.inner, true},
        bias ? args.in<T>(2) : nullptr, args.out<T>());
    apply_activation(variant.act_type, args.out<T>(), size.rows * size.hidden);
  });
}

// On a few rows: dot products with the rows of the weight, which is (hidden, inner).
template <class P>
void add_few_rows(ImplementationTable& table) {
  const auto size_of_node = [](const NodeView& node) { return size_of(node.as<P>(), node.inputs[0].shape); };
  const auto refuse = [=](const NodeView& node) -> std::string {
    const FullyConnectedSize size = size_of_node(node);
    if (suits_row_dots(size.rows, size.inner, node.outputs[0].dtype)) return "";
    return join("not for ", size.rows, " rows of ", size.inner, " in ", node.outputs[0].dtype);
  };
  const auto build = [=](const NodeView& node) {
    const P& params = node.as<P>();
    const FullyConnectedSize size = size_of_node(node);
    std::string act_type;
    if constexpr (std::is_same_v<P, FullyConnectedActivation>) act_type = params.act_type;
    RowDotsInputs at{.vectors = 0, .matrix = 1};
    if (!params.no_bias) at.bias = 2;
    return build_row_dots({size.rows, size.hidden, size.inner, size.hidden, 1}, at, node.outputs[0].dtype, act_type);
  };
  table.add<P>({"row dots", refuse, build, nullptr, false, Tier::specialised});
}

}  // namespace

void add_fully_connected(ImplementationTable& table) {
  const auto build = [](const NodeView& node, const FullyConnected& params, const Variant& variant) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_for<typename decltype(type)::type>(node, params, variant); });
  };
  add_few_rows<FullyConnected>(table);
  add_few_rows<FullyConnectedActivation>(table);
  add_plain<FullyConnected>(table, [=](const NodeView& node) { return build(node, node.as<FullyConnected>(), {}); });
  add_plain<FullyConnectedActivation>(table, [=](const NodeView& node) {
    const auto& params = node.as<FullyConnectedActivation>();
    return build(node, params, {.act_type = params.act_type});
  });
  add_plain<FullyConnectedTransposed>(table, [=](const NodeView& node) {
    return build(node, node.as<FullyConnectedTransposed>(), {.act_type = "", .weight_is_transposed = true});
  });
}

}  // namespace symbind::cpu_backend
