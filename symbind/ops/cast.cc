#include "symbind/ops/cast.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

OpDef define(Op<Cast> op) {
  return op
      .doc(
          "Converts data to another type. To an integer type, fractions are truncated towards zero; to bool, every "
          "value other than zero becomes true.")
      .aliases({"cast"})
      .param(&Cast::dtype, "dtype", "type of the result")
      .infer_type([](const Cast& p, Types& t) { t.output().meet(p.dtype); })
      .gradient([](const auto&, Grad& g) { g.set("data", cast_like(g.out_grad(), g.input("data"))); });
}

OpDef define(Op<CastLike> op) {
  return op.inputs({"data", "like"})
      .shape_only({"like"})
      .infer_type([](const auto&, Types& t) { t.output().meet(t["like"]), t["like"].meet(t.output()); })
      .gradient([](const auto&, Grad& g) { g.set("data", cast_like(g.out_grad(), g.input("data"))); });
}

}  // namespace

void register_cast(OpRegistry& registry) {
  add<Cast>(registry, "Cast", define);
  add_internal<CastLike>(registry, "_cast_like", define);
}

}  // namespace symbind
