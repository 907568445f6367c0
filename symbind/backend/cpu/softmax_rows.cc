// Softmax and its relatives by the row kernels, along any axis.
#include "symbind/backend/cpu/row_implementations.h"
#include "symbind/backend/cpu/row_kernels.h"
#include "symbind/backend/cpu/rows.h"
#include "symbind/core/error.h"
#include "symbind/ops/loss.h"
#include "symbind/ops/softmax.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t work = 3;  // of a number

std::unique_ptr<Kernel> build_forward(const NodeView& node, const Rows& rows, const SoftmaxSetting& setting) {
  return visit_row_type(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [rows, setting, kernels = row_kernels<T>()->softmax](const Args& args) {
          const T* const x = args.in<T>(0);
          T* const y = args.out<T>();
          rows.for_pieces(
              work, [=](int64_t at, int64_t count) { kernels.rows(x + at, y + at, count, rows.length, setting); },
              [=](int64_t at, int64_t count) {
                kernels.columns(x + at, y + at, count, rows.length, rows.inner, setting);
              });
        },
        {.in_place = {{0, 0}}});
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node, const Rows& rows, const SoftmaxSetting& setting) {
  return visit_row_type(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [rows, setting, kernels = row_kernels<T>()->softmax](const Args& args) {
          const T *const dy = args.in<T>(0), *const y = args.in<T>(1);
          T* const dx = args.out<T>();
          rows.for_pieces(
              work,
              [=](int64_t at, int64_t count) {
                kernels.rows_grad(dy + at, y + at, dx + at, count, rows.length, setting);
              },
              [=](int64_t at, int64_t count) {
                kernels.columns_grad(dy + at, y + at, dx + at, count, rows.length, rows.inner, setting);
              });
        },
        {.in_place = {{0, 0}, {1, 0}}});
  });
}

std::string refuse(const NodeView& node, bool use_length) {
  const DType dtype = node.outputs[0].dtype;
  if (!has_row_kernels(dtype)) return join("element type ", dtype, ", or the processor has no vectors for it");
  if (node.inputs[0].dtype != dtype) return "data of another type than the result";
  return use_length ? "rows of different lengths" : "";
}

using Build = std::unique_ptr<Kernel> (*)(const NodeView&, const Rows&, const SoftmaxSetting&);

template <FixedString name>
void add_one(ImplementationTable& table, int sign, bool logarithm, Build build) {
  using P = SoftmaxLike<name>;
  add_rows<P>(
      table, [](const NodeView& node) { return refuse(node, node.as<P>().use_length.value_or(false)); },
      [=](const NodeView& node) {
        const P& p = node.as<P>();
        const Shape& shape = node.outputs[0].shape;
        const Rows rows = rows_along(shape, shape.axis(p.axis, node.where()));
        return build(node, rows, {static_cast<float>(sign / p.temperature.value_or(1)), logarithm});
      });
}

}  // namespace

void add_softmax_rows(ImplementationTable& table) {
  add_one<"softmax">(table, 1, false, build_forward);
  add_one<"log_softmax">(table, 1, true, build_forward);
  add_one<"softmin">(table, -1, false, build_forward);
  add_one<"_backward_softmax">(table, 1, false, build_backward);
  add_one<"_backward_log_softmax">(table, 1, true, build_backward);
  add_one<"_backward_softmin">(table, -1, false, build_backward);
  add_rows<SoftmaxActivation>(
      table, [](const NodeView& node) { return refuse(node, false); },
      [](const NodeView& node) {
        const Shape& shape = node.outputs[0].shape;
        const bool channels = node.as<SoftmaxActivation>().mode == "channel";
        return build_forward(node, rows_along(shape, channels ? 1 : shape.rank() - 1), {1, false});
      });
  add_rows<SoftmaxOutput>(
      table, [](const NodeView& node) { return refuse(node, false); },
      [](const NodeView& node) {
        return build_forward(node, {size_of(node.as<SoftmaxOutput>(), node.inputs[0].shape)}, {1, false});
      });
}

}  // namespace symbind::cpu_backend
