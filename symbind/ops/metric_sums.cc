#include "symbind/ops/metric_sums.h"

#include "symbind/core/axis_view.h"
#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

bool has_rows(const MetricSums& p) {
  return p.term == metric_term::top_k || p.term == metric_term::cross_entropy || p.term == metric_term::perplexity;
}

OpDef define(Op<MetricSums> op) {
  return op
      .doc(
          "Adds what a label and a prediction contribute to the sums of a metric to totals: sum, instances, labels "
          "that are no class, the first of these, and the number of classes there. There is no output.")
      .param(&MetricSums::term, "term", "what is added", one_of(metric_term::all))
      .param(&MetricSums::axis, "axis", "axis of the classes")
      .param(&MetricSums::top_k, "top_k", "how many of the greatest scores count", at_least(1))
      .param(&MetricSums::eps, "eps", "added to probabilities")
      .param(&MetricSums::ignore_label, "ignore_label", "label of rows that are not counted; None: all are")
      .inputs([](const MetricSums& p) {
        return p.term == metric_term::loss ? Names{"pred"} : Names{"label", "pred"};
      })
      .aux({"totals", "parts"})
      .outputs(Names{})
      .infer_shape([](const MetricSums& p, Shapes& s) {
        s["totals"].meet(Shape{MetricTotals::count});
        s["parts"].meet(Shape{MetricSums::most_parts, MetricSums::part_size});
        const auto pred = s["pred"];
        if (!pred.known() || p.term == metric_term::loss) return;
        const auto label = s["label"];
        int64_t wanted = pred.get().size();
        if (has_rows(p)) {
          const AxisView rows = view_along(pred, pred.get().axis(p.axis, s.where()));
          wanted = rows.row_count();
          require(rows.length > 0 || wanted == 0, s.where(), " pred has no classes: ", pred.get());
        }
        require(!label.known() || label.get().size() == wanted, s.where(), " wants ", wanted, " labels for pred ",
                pred.get(), ": label ", label.get());
      })
      .infer_type([](const MetricSums& p, Types& t) {
        t["totals"].meet(DType::float64);
        t["parts"].meet(DType::float64);
        if (t["pred"].known()) require_floating(t, "pred", t["pred"]);
        if (p.term != metric_term::loss && !t["label"].known()) t["label"].meet(DType::float32);
      });
}

OpDef define(Op<TakeMetricSums> op) {
  return op.doc("The totals of a metric, which are 0 afterwards.")
      .inputs(Names{})
      .aux({"totals"})
      .infer_shape([](const TakeMetricSums&, Shapes& s) {
        s["totals"].meet(Shape{MetricTotals::count});
        s.output().meet(s["totals"]);
      })
      .infer_type([](const TakeMetricSums&, Types& t) {
        t["totals"].meet(DType::float64);
        t.output().meet(DType::float64);
      });
}

}  // namespace

void register_metric_sums(OpRegistry& registry) {
  add_internal<MetricSums>(registry, "_metric_sums", define);
  add_internal<TakeMetricSums>(registry, "_take_metric_sums", define);
}

}  // namespace symbind
