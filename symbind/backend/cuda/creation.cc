// Arrays of zeros and ones.
#include "symbind/ops/creation.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/ops/elementwise.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

Implementation filled_with(double value) {
  return {"cuda", [](const NodeView&) { return std::string(); },
          [value](const NodeView& node) {
            const Tensor& out = node.outputs[0];
            return make_step(node, [value, dtype = out.dtype, count = out.shape.size()](const Args& args) {
              if (count > 0) queue_fill(stream_of(args), args.outputs[0], dtype, count, value);
            });
          }};
}

}  // namespace

void add_creation(ImplementationTable& table) {
  table.add<Zeros>(filled_with(0));
  table.add<Ones>(filled_with(1));
  table.add<Unary<"zeros_like">>(filled_with(0));
  table.add<Unary<"ones_like">>(filled_with(1));
}

}  // namespace symbind::cuda_backend
