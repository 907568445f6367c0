#include "symbind/backend/cpu/fully_connected.h"

#include <algorithm>

#include "symbind/backend/cpu/activation.h"
#include "symbind/backend/cpu/gemm.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// What there is beside the matrices. The weight is (hidden, inner), or the other way round.
struct Variant {
  std::string act_type;
  bool weight_is_transposed = false;
};

// y = x·Wᵀ + b with `rows` rows: one dot product per element, several rows with one reading of the weight.
template <int64_t rows>
void dot_rows(const FullyConnectedSize& size, const float* x, const float* weight, const float* bias, float* y) {
  using Vector [[gnu::vector_size(64)]] = float;
  constexpr int64_t lanes = 16;
  constexpr int64_t chains = rows <= 2 ? 4 / rows : 1;  // sums that do not wait for each other
  const int64_t inner = size.inner;
  const auto columns = [=](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column) {
      const float* const w = weight + column * inner;
      Vector sums[rows][chains] = {};
      int64_t k = 0;
      const auto step = [&](int64_t at, int64_t chain) {
        Vector factor, element;
        __builtin_memcpy(&factor, w + at, sizeof(factor));
        for (int64_t row = 0; row < rows; ++row) {
          __builtin_memcpy(&element, x + row * inner + at, sizeof(element));
          sums[row][chain] += factor * element;
        }
      };
      for (; k + chains * lanes <= inner; k += chains * lanes)
        for (int64_t chain = 0; chain < chains; ++chain) step(k + chain * lanes, chain);
      for (; k + lanes <= inner; k += lanes) step(k, 0);
      for (int64_t row = 0; row < rows; ++row) {
        Vector vector = sums[row][0];
        for (int64_t chain = 1; chain < chains; ++chain) vector += sums[row][chain];
        float sum = bias ? bias[column] : 0.0f;
        for (int64_t lane = 0; lane < lanes; ++lane) sum += vector[lane];
        for (int64_t rest = k; rest < inner; ++rest) sum += w[rest] * x[row * inner + rest];
        y[row * size.hidden + column] = sum;
      }
    }
  };
  constexpr int64_t products_worth_a_thread = 1 << 18;
  for_elements(size.hidden, columns, std::max<int64_t>(1, products_worth_a_thread / (rows * inner + 1)));
}

void dot_few_rows(const FullyConnectedSize& size, const float* x, const float* weight, const float* bias, float* y) {
  switch (size.rows) {
    case 1:
      return dot_rows<1>(size, x, weight, bias, y);
    case 2:
      return dot_rows<2>(size, x, weight, bias, y);
    case 3:
      return dot_rows<3>(size, x, weight, bias, y);
    default:
      return dot_rows<4>(size, x, weight, bias, y);
  }
}

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
  if constexpr (std::is_same_v<T, float>)
    if (has_few_rows(size, DType::float32) && !variant.weight_is_transposed)
      return make_kernel([size, variant, bias = !params.no_bias](const Args& args) {
        dot_few_rows(size, args.in<T>(0), args.in<T>(1), bias ? args.in<T>(2) : nullptr, args.out<T>());
        apply_activation(variant.act_type, args.out<T>(), size.rows * size.hidden);
      });
  return make_kernel([size, variant, bias = !params.no_bias](const Args& args) {
    const T* const weight = args.in<T>(1);
    affine(
        size, args.in<T>(0),
        variant.weight_is_transposed ? Matrix<const T>{weight, size.hidden} : Matrix<const T>{weight, size.inner, true},
        bias ? args.in<T>(2) : nullptr, args.out<T>());
    apply_activation(variant.act_type, args.out<T>(), size.rows * size.hidden);
  });
}

}  // namespace

void add_fully_connected(ImplementationTable& table) {
  const auto build = [](const NodeView& node, const FullyConnected& params, const Variant& variant) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_for<typename decltype(type)::type>(node, params, variant); });
  };
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
