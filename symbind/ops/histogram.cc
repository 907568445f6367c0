#include "symbind/ops/histogram.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

OpDef define(Op<Histogram> op) {
  return op
      .doc(
          "Counts the elements of data in each bin: outputs are the counts, as int64, and the edges of the bins. Bins "
          "are bin_cnt equal intervals of range, or lie between neighbours in the input bins, which are in ascending "
          "order. A bin has its lower edge, and the last one both; elements outside and NaN count nowhere.")
      .precision(Precision::full)
      .param(&Histogram::bin_cnt, "bin_cnt", "number of equal bins; None: bins is an input")
      .param(&Histogram::range, "range", "lower and upper end of the equal bins; required with bin_cnt")
      .check([](Histogram& p) {
        require(p.bin_cnt.has_value() == !p.range.empty(), "bin_cnt and range must both be given, or neither");
        if (p.range.empty()) return;
        require(*p.bin_cnt >= 1 && *p.bin_cnt <= 1 << 24, "bin_cnt must be from 1 to ", 1 << 24, ": ", *p.bin_cnt);
        require(p.range.size() == 2, "range must be two numbers: ", print(p.range));
        require(p.range[0] < p.range[1], "range must be ascending: ", print(p.range));
      })
      .inputs([](const Histogram& p) {
        return p.bin_cnt ? Names{"data"} : Names{"data", "bins"};
      })
      .outputs({"output0", "output1"})
      .infer_shape([](const Histogram& p, Shapes& s) {
        auto counts = s.output(0), edges = s.output(1);
        counts.meet(Shape::of_rank(1));
        edges.meet(Shape::of_rank(1));
        if (p.bin_cnt) {
          counts.meet(Shape{*p.bin_cnt});
          edges.meet(Shape{*p.bin_cnt + 1});
          return;
        }
        edges.meet(s["bins"]);
        if (counts[0] != unknown_dim) edges.meet_dim(0, counts[0] + 1);
        edges.meet(s["bins"]);
        if (edges[0] == unknown_dim) return;
        require(edges[0] >= 2, s.where(), " bins must have two edges at least: bins ", edges.get());
        counts.meet_dim(0, edges[0] - 1);
      })
      .infer_type([](const Histogram& p, Types& t) {
        t.output(0).meet(DType::int64);
        auto edges = t.output(1);
        for (int round = 0; round < 2; ++round) {
          edges.meet(t["data"]);
          t["data"].meet(edges);
          if (p.bin_cnt) continue;
          edges.meet(t["bins"]);
          t["bins"].meet(edges);
        }
      })
      .gradient([](const Histogram&, Grad&) {});
}

}  // namespace

void register_histogram(OpRegistry& registry) { add<Histogram>(registry, "_histogram", define); }

}  // namespace symbind
