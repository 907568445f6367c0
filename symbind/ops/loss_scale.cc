#include "symbind/ops/loss_scale.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

OpDef define(Op<AdaptLossScale> op) {
  return op
      .doc(
          "The scale of a loss and its inverse after a step: halved if finite is 0, doubled after a number of steps "
          "for "
          "which it was not. state is the scale and the count of such steps.")
      .inputs({"finite"})
      .aux({"state"})
      .outputs({"scale", "inverse"})
      .infer_shape([](const AdaptLossScale&, Shapes& s) {
        s["finite"].meet(Shape{1});
        s["state"].meet(Shape{2});
        for (size_t i = 0; i < s.outputs(); ++i) s.output(i).meet(Shape{1});
      })
      .infer_type([](const AdaptLossScale&, Types& t) {
        t["finite"].meet(DType::float32);
        t["state"].meet(DType::float64);
        for (size_t i = 0; i < t.outputs(); ++i) t.output(i).meet(DType::float32);
      });
}

}  // namespace

void register_loss_scale(OpRegistry& registry) { add_internal<AdaptLossScale>(registry, "_adapt_loss_scale", define); }

}  // namespace symbind
