#include "symbind/ops/dropout.h"

#include "symbind/graph/define.h"
#include "symbind/ops/broadcast.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

OpDef define_dropout(Op<Dropout> op) {
  return op.memory_bound()
      .doc(
          "Dropout: in training sets each element to 0 with probability p and divides the others by 1 - p; in "
          "inference the identity. The output has the shape of data.")
      .param(&Dropout::p, "p", "probability that an element is set to 0, in [0, 1)", between(0, 1))
      .param(&Dropout::mode, "mode", "when to drop: 'training': in training only; 'always': in inference as well",
             one_of(dropout_mode::all))
      .param(&Dropout::axes, "axes",
             "axes along which all elements share one random decision; (): every element has its own", each_at_least(0))
      .param(&Dropout::cudnn_off, "cudnn_off", "accepted for compatibility and ignored")
      .check([](Dropout& p) { require(p.p < 1, "p must be below 1: ", p.p); })
      .outputs({"output", "mask"})
      .visible_outputs([](const Dropout&) { return 1; })
      .random(drops)
      .infer_shape([](const Dropout& p, Shapes& s) {
        s["data"].meet(s.output(0));
        if (!s["data"].rank_known()) return;
        Shape mask = s["data"];
        for (int64_t axis : p.axes) mask[mask.axis(axis, s.where())] = 1;
        s.output(1).meet(mask);
      })
      .infer_type([](const Dropout&, Types& t) { same_floating_type(t); })
      .gradient([](const Dropout& p, Grad& g) {
        if (p.p == 0)
          g.set("data", g.out_grad());
        else if (p.axes.empty())
          g.set("data", elemwise_mul(g.out_grad(), g.output(1)));
        else
          g.set("data", broadcast_mul(g.out_grad(), g.output(1)));
      });
}

}  // namespace

void register_dropout(OpRegistry& registry) { add(registry, "Dropout", define_dropout); }

}  // namespace symbind
