#include "symbind/ops/dot.h"

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/gemm.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/pointwise.h"

namespace symbind::cpu_backend {
namespace {

// Whole numbers: no library and no user is in a hurry here.
template <class T>
void multiply_whole_numbers(const MatrixProduct& p, const T* a, const T* b, T* out) {
  using C = pointwise::Wide<T>;
  parallel_for(p.rows * p.columns, std::max<int64_t>(1, element_grain / std::max<int64_t>(1, p.inner)),
               [=](int64_t begin, int64_t end) {
                 for (int64_t at = begin; at < end; ++at) {
                   const int64_t row = at / p.columns, column = at % p.columns;
                   C sum = 0;
                   for (int64_t k = 0; k < p.inner; ++k) {
                     const C left = static_cast<C>(p.transpose_a ? a[k * p.rows + row] : a[row * p.inner + k]);
                     const C right =
                         static_cast<C>(p.transpose_b ? b[column * p.inner + k] : b[k * p.columns + column]);
                     sum = pointwise::add(sum, pointwise::multiply(left, right));
                   }
                   out[at] = convert<T>(sum);
                 }
               });
}

std::unique_ptr<Kernel> build_product(const NodeView& node, const MatrixProduct& p) {
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel([p](const Args& args) {
      const T *a = args.in<T>(p.a), *b = args.in<T>(p.b);
      if constexpr (std::is_integral_v<T>) {
        multiply_whole_numbers(p, a, b, args.out<T>());
      } else {
        gemm<T, T>(p.rows, p.columns, p.inner, {a, p.transpose_a ? p.rows : p.inner, p.transpose_a},
                   {b, p.transpose_b ? p.inner : p.columns, p.transpose_b}, {args.out<T>(), p.columns});
      }
    });
  });
}

}  // namespace

void add_dot(ImplementationTable& table) {
  add_plain<Dot>(table, [](const NodeView& node) {
    return build_product(node, product_of_dot(node.as<Dot>(), node.inputs[0].shape, node.inputs[1].shape));
  });
  add_plain<DotLhsGrad>(table, [](const NodeView& node) {
    return build_product(node, product_of_lhs_grad(node.as<DotLhsGrad>(), node.inputs[2].shape, node.inputs[1].shape));
  });
  add_plain<DotRhsGrad>(table, [](const NodeView& node) {
    return build_product(node, product_of_rhs_grad(node.as<DotRhsGrad>(), node.inputs[0].shape, node.inputs[2].shape));
  });
}

}  // namespace symbind::cpu_backend
