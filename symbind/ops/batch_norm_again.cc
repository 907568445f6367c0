#include "symbind/ops/batch_norm_again.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

OpDef define(Op<BatchNormAgain> op) {
  return op.doc("BatchNorm with given statistics: (data - mean) · var · gamma + beta along the channel axis.")
      .param(&BatchNormAgain::fix_gamma, "fix_gamma", "take gamma as one")
      .param(&BatchNormAgain::axis, "axis", "the channel axis")
      .param(&BatchNormAgain::relu, "relu", "set what is below zero to zero")
      .inputs({"data", "gamma", "beta", "mean", "var"})
      .infer_shape([](const BatchNormAgain& p, Shapes& s) {
        auto data = s["data"];
        data.meet(s.output());
        if (!data.rank_known()) return;
        const int axis = data.get().axis(p.axis, join(s.where(), " axis"));
        for (const char* input : {"gamma", "beta", "mean", "var"}) s[input].meet({data[axis]});
        s.output().meet(data.get());
      })
      .infer_type([](const BatchNormAgain&, Types& t) {
        t["data"].meet(t.output());
        t.output().meet(t["data"]);
        require_floating(t, "data", t["data"]);
        require_floating(t, "gamma", t["gamma"]);
        for (const char* input : {"beta", "mean", "var"}) t[input].meet(t["gamma"]);
      });
}

}  // namespace

void register_batch_norm_again(OpRegistry& registry) {
  add_internal<BatchNormAgain>(registry, "_BatchNorm_again", define);
}

}  // namespace symbind
