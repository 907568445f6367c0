#include "symbind/ops/amp.h"

#include "symbind/graph/define.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/convert_arrays.h"

namespace symbind {
namespace {

bool is_cast(DType type) { return is_floating(type) && type != DType::float64; }

OpDef define(Op<AmpCast> op) {
  return op
      .doc(
          "An array of float32 or of a floating type of 16 bits in another type; any other array passes through. "
          "Networks that were converted to mixed precision have it before the operators that compute in another type.")
      .memory_bound()
      .param(&AmpCast::dtype, "dtype", "the new type")
      .infer_type([](const AmpCast& p, Types& t) {
        const DType out = t.output();
        if (out != DType::none && out != p.dtype && !is_cast(out)) t["data"].meet(out);  // it passed through
        const DType given = t["data"];
        t.output().meet(given == DType::none || is_cast(given) ? DType(p.dtype) : given);
      })
      .gradient([](const AmpCast&, Grad& g) { g.set("data", cast_like(g.out_grad(), g.input("data"))); });
}

// The type that inputs are cast to; none where there is nothing to cast, or an input's type is not known yet.
DType common_type(Types& t, bool narrow) {
  DType common = DType::none;
  for (size_t i = 0; i < t.inputs(); ++i) {
    const DType type = t.input(i);
    if (type == DType::none) return DType::none;
    if (!is_cast(type)) continue;
    const bool better =
        common == DType::none || (narrow ? size_of(type) < size_of(common) : size_of(type) > size_of(common));
    if (better) common = type;
  }
  return common;
}

OpDef define(Op<AmpMulticast> op) {
  return op
      .doc(
          "Every input of float32 or of a type of 16 bits in the widest of these types among them, or with cast_narrow "
          "in the narrowest; other inputs pass through. Output i has the shape of input i.")
      .memory_bound()
      .param(&AmpMulticast::num_outputs, "num_outputs", "number of inputs, and of outputs", at_least(1))
      .param(&AmpMulticast::cast_narrow, "cast_narrow", "cast to the narrowest type instead of the widest")
      .variadic(&AmpMulticast::num_outputs, "num_outputs")
      .inputs(&AmpMulticast::num_outputs, numbered("data_"))
      .outputs(&AmpMulticast::num_outputs, numbered("output"))
      .infer_shape([](const AmpMulticast&, Shapes& s) {
        for (size_t i = 0; i < s.inputs(); ++i) s.output(i).meet(s.input(i));
      })
      .infer_type([](const AmpMulticast& p, Types& t) {
        for (size_t i = 0; i < t.inputs(); ++i)
          if (t.output(i).known() && !is_cast(t.output(i))) t.input(i).meet(t.output(i));
        const DType common = common_type(t, p.cast_narrow);
        for (size_t i = 0; i < t.inputs(); ++i) t.output(i).meet(is_cast(t.input(i)) ? common : t.input(i).get());
      })
      .gradient([](const AmpMulticast&, Grad& g) {
        for (size_t i = 0; i < g.inputs(); ++i)
          if (g.has_out_grad(i)) g.set(i, cast_like(g.out_grad(i), g.input(i)));
      });
}

OpDef define(Op<ScaleGradient> op) {
  return op.doc("The identity of data; in backward its gradient is multiplied by scale.")
      .inputs({"data", "scale"})
      .shape_only({"scale"})
      .view()
      .infer_shape([](const ScaleGradient&, Shapes& s) {
        s.output().meet(s["data"]);
        s["data"].meet(s.output());
        s["scale"].meet({1});
      })
      .infer_type([](const ScaleGradient&, Types& t) {
        t.output().meet(t["data"]);
        t["data"].meet(t.output());
        t["scale"].meet(DType::float32);
      })
      .gradient([](const ScaleGradient&, Grad& g) {
        g.set("data", convert_arrays({g.out_grad(), g.input("scale")}, {.num_arrays = 1, .scaled = true}));
      });
}

}  // namespace

void register_amp(OpRegistry& registry) {
  add<AmpCast>(registry, "amp_cast", define);
  add<AmpMulticast>(registry, "amp_multicast", define);
  add_internal<ScaleGradient>(registry, "_scale_gradient", define);
}

}  // namespace symbind
