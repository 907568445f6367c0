// L2Normalization by the row kernels.
#include "symbind/backend/cpu/row_implementations.h"
#include "symbind/backend/cpu/row_kernels.h"
#include "symbind/backend/cpu/rows.h"
#include "symbind/core/error.h"
#include "symbind/ops/normalize.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

Rows rows_of(const L2Normalization& p, const Shape& shape) {
  if (p.mode == "channel") return rows_along(shape, 1);
  const int split = p.mode == "instance" ? 1 : 2;
  return {{shape.size(0, split), shape.size(split, shape.rank()), 1}};
}

namespace {

constexpr int64_t work = 2;  // of a number

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& p = node.as<L2Normalization>();
  return visit_row_type(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [rows = rows_of(p, node.inputs[0].shape), eps = p.eps, kernels = row_kernels<T>()->l2](const Args& args) {
          const T* const x = args.in<T>(0);
          T* const y = args.out<T>();
          rows.for_pieces(
              work, [=](int64_t at, int64_t count) { kernels.rows(x + at, y + at, count, rows.length, eps); },
              [=](int64_t at, int64_t count) { kernels.columns(x + at, y + at, count, rows.length, rows.inner, eps); });
        },
        {.in_place = {{0, 0}}});
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto& p = node.as<L2NormalizationGrad>();
  return visit_row_type(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [rows = rows_of(p, node.inputs[1].shape), eps = p.eps, kernels = row_kernels<T>()->l2](const Args& args) {
          const T *const dy = args.in<T>(0), *const x = args.in<T>(1);
          T* const dx = args.out<T>();
          rows.for_pieces(
              work,
              [=](int64_t at, int64_t count) { kernels.rows_grad(dy + at, x + at, dx + at, count, rows.length, eps); },
              [=](int64_t at, int64_t count) {
                kernels.columns_grad(dy + at, x + at, dx + at, count, rows.length, rows.inner, eps);
              });
        },
        {.in_place = {{0, 0}, {1, 0}}});
  });
}

std::string refuse(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  return has_row_kernels(dtype) ? "" : join("element type ", dtype, ", or the processor has no vectors for it");
}

}  // namespace

void add_l2_rows(ImplementationTable& table) {
  add_rows<L2Normalization>(table, refuse, build_forward);
  add_rows<L2NormalizationGrad>(table, refuse, build_backward);
}

}  // namespace symbind::cpu_backend
