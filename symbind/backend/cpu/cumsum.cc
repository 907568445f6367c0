#include "symbind/ops/cumsum.h"

#include <algorithm>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/functions.h"
#include "symbind/backend/wide.h"
#include "symbind/core/axis_view.h"
#include "symbind/ops/sort.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// From the first to the last, or in reverse: the gradient of an element is the sum over itself and all later ones.
std::unique_ptr<Kernel> build(const NodeView& node, const AxisView& rows, bool backwards) {
  return visit_dtype(node.inputs[0].dtype, [&](auto from) -> std::unique_ptr<Kernel> {
    using From = typename decltype(from)::type;
    return visit_dtype(node.outputs[0].dtype, [&](auto to) -> std::unique_ptr<Kernel> {
      using To = typename decltype(to)::type;
      using C = functions::Wide<To>;
      return make_kernel([=](const Args& args) {
        const int64_t grain = element_grain / std::max<int64_t>(1, rows.length) + 1;
        parallel_for(rows.row_count(), grain,
                     [=, in = args.in<From>(0), out = args.out<To>()](int64_t begin, int64_t end) {
                       for (int64_t row = begin; row < end; ++row) {
                         const int64_t start = rows.row_start(row);
                         C sum = 0;
                         for (int64_t k = 0; k < rows.length; ++k) {
                           const int64_t i = start + (backwards ? rows.length - 1 - k : k) * rows.inner;
                           sum = functions::add(sum, static_cast<C>(convert<To>(in[i])));
                           out[i] = convert<To>(sum);
                         }
                       }
                     });
      });
    });
  });
}

}  // namespace

void add_cumsum(ImplementationTable& table) {
  add_plain<CumSum>(table, [](const NodeView& node) {
    return build(node, sorted_rows(node.as<CumSum>().axis, node.inputs[0].shape, node.where()), false);
  });
  add_plain<CumSumGrad>(table, [](const NodeView& node) {
    return build(node, sorted_rows(node.as<CumSumGrad>().axis, node.outputs[0].shape, node.where()), true);
  });
}

}  // namespace symbind::cpu_backend
