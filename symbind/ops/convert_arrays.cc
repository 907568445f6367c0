#include "symbind/ops/convert_arrays.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

size_t arrays_of(const ConvertArrays& p) { return count_of(p.num_arrays); }

OpDef define(Op<ConvertArrays> op) {
  return op.doc("Each array in another type or layout, and with scaled multiplied by the number in scale.")
      .memory_bound()
      .param(&ConvertArrays::num_arrays, "num_arrays", "number of arrays", at_least(1))
      .param(&ConvertArrays::dtype, "dtype", "the new type, a floating one; by default each array keeps its own")
      .param(&ConvertArrays::scaled, "scaled", "multiply every element by the number in scale")
      .check([](ConvertArrays& p) {
        require(!p.dtype || is_floating(*p.dtype), "dtype must be a floating type: dtype ",
                p.dtype.value_or(DType::none));
      })
      .inputs([](const ConvertArrays& p) { return arrays_of(p) + (p.scaled ? 1 : 0); },
              [](const ConvertArrays& p, size_t index) {
                return index < arrays_of(p) ? "data_" + std::to_string(index) : "scale";
              })
      .outputs(&ConvertArrays::num_arrays, numbered("output"))
      .infer_shape([](const ConvertArrays& p, Shapes& s) {
        for (size_t i = 0; i < arrays_of(p); ++i) {
          s.output(i).meet(s.input(i));
          s.input(i).meet(s.output(i));
        }
        if (p.scaled) s["scale"].meet({1});
      })
      .infer_type([](const ConvertArrays& p, Types& t) {
        for (size_t i = 0; i < arrays_of(p); ++i) {
          if (t.input(i).known()) require_floating(t, t.input_name(i), t.input(i));
          t.output(i).meet(p.dtype ? *p.dtype : t.input(i).get());
        }
        if (p.scaled) t["scale"].meet(DType::float32);
      });
}

}  // namespace

void register_convert_arrays(OpRegistry& registry) { add_internal<ConvertArrays>(registry, "_convert_arrays", define); }

}  // namespace symbind
