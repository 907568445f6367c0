#include "symbind/ops/count_sketch.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op.param(&CountSketch::out_dim, "out_dim", "number of sums of a row", at_least(1))
      .param(&CountSketch::processing_batch_size, "processing_batch_size",
             "rows to work on at a time: accepted for compatibility and ignored", at_least(1));
}

// h and s have an element for each of a row: (d) or (1, d).
void infer_tables(Shapes& s, int64_t length) {
  for (const char* name : {"h", "s"}) {
    auto table = s[name];
    if (!table.rank_known()) {
      if (length != unknown_dim) table.meet({1, length});
      continue;
    }
    require(table.rank() == 1 || (table.rank() == 2 && (table[0] == 1 || table[0] == unknown_dim)), s.where(), " ",
            name, " must be (d) or (1, d): ", name, " ", table.get());
    table.meet_dim(table.rank() - 1, length);
  }
}

OpDef define(Op<CountSketch> op) {
  return with_fields(op)
      .doc(
          "Count sketch of the rows of data (…, d): (…, out_dim). Element i of a row is added to sum h[i] with the "
          "sign s[i]. h holds numbers of sums, 0 to out_dim - 1, s holds 1 and -1; both are (1, d) or (d).")
      .precision(Precision::full)
      .inputs({"data", "h", "s"})
      .infer_shape([](const CountSketch& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        require(data.rank() > 0, s.where(), " data must have an axis");
        infer_tables(s, data[data.rank() - 1]);
        s.output().meet(data.get().with(data.rank() - 1, p.out_dim));
      })
      .infer_type([](const CountSketch&, Types& t) { same_floating_type(t); })
      .gradient([](const CountSketch& p, Grad& g) {
        if (g.wants("data")) g.set("data", count_sketch_grad(g.out_grad(), g.input("h"), g.input("s"), {p}));
      });
}

OpDef define(Op<CountSketchGrad> op) {
  return with_fields(op)
      .inputs({"out_grad", "h", "s"})
      .infer_shape([](const CountSketchGrad& p, Shapes& s) {
        auto dy = s["out_grad"];
        const auto h = s["h"];
        if (!dy.rank_known() || !h.rank_known()) return;
        require(dy.rank() > 0 && h.rank() > 0, s.where(), " out_grad and h must have an axis: out_grad ", dy.get(),
                ", h ", h.get());
        const int64_t length = h[h.rank() - 1];
        infer_tables(s, length);
        dy.meet_dim(dy.rank() - 1, p.out_dim);
        s.output().meet(dy.get().with(dy.rank() - 1, length));
      })
      .infer_type([](const CountSketchGrad&, Types& t) { same_floating_type(t); });
}

}  // namespace

void register_count_sketch(OpRegistry& registry) {
  add<CountSketch>(registry, "_contrib_count_sketch", define);
  add_internal<CountSketchGrad>(registry, "_backward_contrib_count_sketch", define);
}

}  // namespace symbind
