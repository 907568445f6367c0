#include "symbind/ops/batch_norm_recompute.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

OpDef define(Op<BatchNormRecompute> op) {
  return op.doc("BatchNorm with given statistics: (data - mean) · var · gamma + beta along the channel axis.")
      .param(&BatchNormRecompute::fix_gamma, "fix_gamma", "take gamma as one")
      .param(&BatchNormRecompute::axis, "axis", "axis of the channels; negative ones count from the end")
      .param(&BatchNormRecompute::relu, "relu", "set what is below zero to zero")
      .inputs({"data", "gamma", "beta", "mean", "var"})
      .infer_shape([](const BatchNormRecompute& p, Shapes& s) {
        auto data = s["data"];
        data.meet(s.output());
        if (!data.rank_known()) return;
        const int axis = data.get().axis(p.axis, join(s.where(), " axis"));
        for (const char* input : {"gamma", "beta", "mean", "var"}) s[input].meet({data[axis]});
        s.output().meet(data.get());
      })
      .infer_type([](const BatchNormRecompute&, Types& t) {
        t["data"].meet(t.output());
        t.output().meet(t["data"]);
        require_floating(t, "data", t["data"]);
        require_floating(t, "gamma", t["gamma"]);
        for (const char* input : {"beta", "mean", "var"}) t[input].meet(t["gamma"]);
      });
}

}  // namespace

void register_batch_norm_recompute(OpRegistry& registry) {
  add_internal<BatchNormRecompute>(registry, "_BatchNorm_recompute", define);
}

}  // namespace symbind
