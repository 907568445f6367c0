#include "symbind/backend/cpu/dot.h"

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/gemm.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/functions.h"
#include "symbind/backend/wide.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Integers: rare, so simple loops suffice.
template <class T>
void multiply_whole_numbers(const MatrixProduct& p, const T* a, const T* b, T* out) {
  using C = functions::Wide<T>;
  parallel_for(p.rows * p.columns, std::max<int64_t>(1, element_grain / std::max<int64_t>(1, p.inner)),
               [=](int64_t begin, int64_t end) {
                 for (int64_t at = begin; at < end; ++at) {
                   const int64_t row = at / p.columns, column = at % p.columns;
                   C sum = 0;
                   for (int64_t k = 0; k < p.inner; ++k) {
                     const C left = static_cast<C>(p.transpose_a ? a[k * p.rows + row] : a[row * p.inner + k]);
                     const C right =
                         static_cast<C>(p.transpose_b ? b[column * p.inner + k] : b[k * p.columns + column]);
                     sum = functions::add(sum, functions::multiply(left, right));
                   }
                   out[at] = convert<T>(sum);
                 }
               });
}

template <class T>
void multiply(const MatrixProduct& p, const T* a, const T* b, T* out) {
  if constexpr (std::is_same_v<T, float>)
    if (const std::optional<DotsOf> dots = as_row_dots(p, DType::float32))
      return row_dots(dots->size, dots->vectors_are_a ? a : b, dots->vectors_are_a ? b : a, nullptr, out);
  if constexpr (std::is_integral_v<T>)
    multiply_whole_numbers(p, a, b, out);
  else
    gemm<T, T>(p.rows, p.columns, p.inner, {a, p.transpose_a ? p.rows : p.inner, p.transpose_a},
               {b, p.transpose_b ? p.inner : p.columns, p.transpose_b}, {out, p.columns});
}

std::unique_ptr<Kernel> build_product(const NodeView& node, const MatrixProduct& p) {
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel([p](const Args& args) { multiply(p, args.in<T>(p.a), args.in<T>(p.b), args.out<T>()); });
  });
}

using ProductOf = MatrixProduct (*)(const NodeView&);

template <class P>
void add_products(ImplementationTable& table, ProductOf product_of) {
  const auto refuse = [=](const NodeView& node) -> std::string {
    return as_row_dots(product_of(node), node.outputs[0].dtype) ? "" : "no dot products of a few vectors along rows";
  };
  const auto build = [=](const NodeView& node) {
    const MatrixProduct p = product_of(node);
    const DotsOf dots = *as_row_dots(p, node.outputs[0].dtype);
    return build_row_dots(dots.size, {dots.vectors_are_a ? p.a : p.b, dots.vectors_are_a ? p.b : p.a},
                          node.outputs[0].dtype);
  };
  table.add<P>({"row dots", refuse, build, nullptr, false, Tier::specialised});
  add_plain<P>(table, [=](const NodeView& node) { return build_product(node, product_of(node)); });
}

// Small products are divided among the cores; large ones run one after the other on all cores.
std::unique_ptr<Kernel> build_batch_dot(const NodeView& node) {
  const auto& p = node.as<BatchDot>();
  const Shape &lhs = node.inputs[0].shape, &out = node.outputs[0].shape;
  const int rank = lhs.rank();
  const MatrixProduct product{.transpose_a = p.transpose_a,
                              .transpose_b = p.transpose_b,
                              .rows = out[rank - 2],
                              .inner = lhs[p.transpose_a ? rank - 2 : rank - 1],
                              .columns = out[rank - 1]};
  const int64_t batch = out.size(0, rank - 2), work = product.rows * product.inner * product.columns;
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel([=](const Args& args) {
      const auto some = [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          multiply(product, args.in<T>(0) + i * product.rows * product.inner,
                   args.in<T>(1) + i * product.inner * product.columns,
                   args.out<T>() + i * product.rows * product.columns);
      };
      if (work > (1 << 21))
        some(0, batch);
      else
        parallel_for(batch, std::max<int64_t>(1, element_grain / std::max<int64_t>(1, work)), some);
    });
  });
}

}  // namespace

std::optional<DotsOf> as_row_dots(const MatrixProduct& p, DType dtype) {
  // Rows of both operands must be contiguous along the sum; a single vector always is.
  const bool a_in_rows = !p.transpose_a || p.rows == 1, b_in_rows = p.transpose_b || p.columns == 1;
  if (!a_in_rows || !b_in_rows) return std::nullopt;
  if (suits_row_dots(p.rows, p.inner, dtype)) return DotsOf{{p.rows, p.columns, p.inner, p.columns, 1}, true};
  if (suits_row_dots(p.columns, p.inner, dtype)) return DotsOf{{p.columns, p.rows, p.inner, 1, p.columns}, false};
  return std::nullopt;
}

void add_dot(ImplementationTable& table) {
  add_products<Dot>(table, [](const NodeView& node) {
    return product_of_dot(node.as<Dot>(), node.inputs[0].shape, node.inputs[1].shape);
  });
  add_products<DotLhsGrad>(table, [](const NodeView& node) {
    return product_of_lhs_grad(node.as<DotLhsGrad>(), node.inputs[2].shape, node.inputs[1].shape);
  });
  add_products<DotRhsGrad>(table, [](const NodeView& node) {
    return product_of_rhs_grad(node.as<DotRhsGrad>(), node.inputs[0].shape, node.inputs[2].shape);
  });
  add_plain<BatchDot>(table, build_batch_dot);
}

}  // namespace symbind::cpu_backend
