#include "symbind/train/counting_work.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "symbind/exec/ready_op.h"
#include "symbind/ops/metric_sums.h"
#include "symbind/train/device_count.h"
#include "symbind/train/later_updates.h"
#include "symbind/train/metric_arrays.h"
#include "symbind/train/metrics.h"

namespace symbind {
namespace {

using metric::chosen;
using metric::visible;

struct Pair {
  MetricSums sums;
  std::vector<NDArray> arrays;  // label, unless the term has none, and prediction
};

bool same_pair(const Pair& a, const Pair& b) {
  return a.sums == b.sums && std::ranges::equal(a.arrays, b.arrays, &NDArray::same_array);
}

class MetricCount final : public FollowingWork {
 public:
  MetricCount(std::shared_ptr<DeviceCount> count, std::vector<Pair> pairs)
      : count_(std::move(count)), pairs_(std::move(pairs)) {
    const OpDef& op = op_of<MetricSums>();
    for (const Pair& pair : pairs_) {
      const std::vector<NDArray> inputs = inputs_of(pair);
      ops_.emplace_back(op, inputs, op.checked_params(&pair.sums, ""));
    }
  }

  void queue() const override {
    for (size_t i = 0; i < pairs_.size(); ++i) ops_[i].run(inputs_of(pairs_[i]));
    count_->note_added();
  }
  void mark_written() const override {
    count_->totals().storage().bump();
    count_->parts().storage().bump();
    count_->note_added();
  }

  bool follows_forward() const override { return true; }

  bool is(const DeviceCount& count, const std::vector<Pair>& pairs) const {
    return &count == count_.get() && std::ranges::equal(pairs, pairs_, same_pair);
  }

 private:
  std::vector<NDArray> inputs_of(const Pair& pair) const {
    std::vector<NDArray> inputs = pair.arrays;
    inputs.push_back(count_->totals());
    inputs.push_back(count_->parts());
    return inputs;
  }

  const std::shared_ptr<DeviceCount> count_;
  const std::vector<Pair> pairs_;
  std::vector<ReadyOp> ops_;  // of the pairs
};

// ---- What the operator can count ------------------------------------------------------------------------------------

bool has_label_per_row(const NDArray& label, const NDArray& pred, int64_t axis) {
  const int rank = pred.rank();
  return axis >= -rank && axis < rank &&
         view_along(pred.shape(), pred.shape().axis(axis, "")).row_count() == label.size();
}

// None: update() of the metric counts it, or says what is wrong. `label` is none for Loss.
std::optional<MetricSums> sums_of(const EvalMetric& metric, const NDArray& label, const NDArray& pred) {
  using namespace symbind::metric;
  if (dynamic_cast<const Loss*>(&metric)) return MetricSums{.term = metric_term::loss};
  const bool has_rows = has_label_per_row(label, pred, 1) && pred.rank() == 2;
  if (const auto* const accuracy = dynamic_cast<const Accuracy*>(&metric)) {
    if (label.shape() == pred.shape()) return MetricSums{.term = metric_term::same_class};
    if (!has_label_per_row(label, pred, accuracy->axis())) return std::nullopt;
    return MetricSums{.term = metric_term::top_k, .axis = accuracy->axis()};
  }
  if (const auto* const top = dynamic_cast<const TopKAccuracy*>(&metric); top && has_rows)
    return MetricSums{.term = metric_term::top_k, .axis = 1, .top_k = top->top_k()};
  if (const auto* const entropy = dynamic_cast<const CrossEntropy*>(&metric); entropy && has_rows)
    return MetricSums{.term = metric_term::cross_entropy, .axis = 1, .eps = entropy->eps()};
  if (const auto* const perplexity = dynamic_cast<const Perplexity*>(&metric);
      perplexity && has_label_per_row(label, pred, perplexity->axis()))
    return MetricSums{
        .term = metric_term::perplexity, .axis = perplexity->axis(), .ignore_label = perplexity->ignore_label()};
  if (with_columns(label.shape()) != with_columns(pred.shape())) return std::nullopt;
  if (dynamic_cast<const MAE*>(&metric)) return MetricSums{.term = metric_term::absolute};
  if (dynamic_cast<const MSE*>(&metric)) return MetricSums{.term = metric_term::square};
  if (dynamic_cast<const RMSE*>(&metric)) return MetricSums{.term = metric_term::root_square};
  return std::nullopt;
}

// None unless all of them can be counted on this context.
std::optional<std::vector<Pair>> pairs_of(Context context, const EvalMetric& metric, const std::vector<NDArray>& labels,
                                          const std::vector<NDArray>& preds) {
  const bool needs_labels = !dynamic_cast<const metric::Loss*>(&metric);
  if (preds.empty() || (needs_labels && labels.size() != preds.size())) return std::nullopt;
  const auto fits = [&](const NDArray& array) { return array && array.size() > 0 && array.context() == context; };
  std::vector<Pair> pairs;
  for (size_t i = 0; i < preds.size(); ++i) {
    const NDArray label = needs_labels ? labels[i] : NDArray();
    if (!fits(preds[i]) || !is_floating(preds[i].dtype()) || (needs_labels && !fits(label))) return std::nullopt;
    std::optional<MetricSums> sums = sums_of(metric, label, preds[i]);
    if (!sums) return std::nullopt;
    pairs.push_back({std::move(*sums), needs_labels ? std::vector{label, preds[i]} : std::vector{preds[i]}});
  }
  return pairs;
}

bool has_all(const NamedList& arrays, const std::vector<std::string>& names) {
  return std::ranges::all_of(names, [&](const std::string& name) {
    return std::ranges::any_of(arrays, [&](const auto& entry) { return entry.first == name; });
  });
}

struct Counted {
  EvalMetric* metric;
  std::vector<Pair> pairs;
};

// Adds the metric, or the parts of a Composite. False: not all of it can be counted on this context.
bool collect(Context context, EvalMetric& metric, const NamedList& labels, const NamedList& preds,
             std::vector<Counted>& counted) {
  const auto& [name, output_names, label_names] = metric.options();
  if (const auto* const composite = dynamic_cast<const metric::Composite*>(&metric)) {
    const NamedList seen_labels = visible(labels, label_names), seen_preds = visible(preds, output_names);
    return std::ranges::all_of(composite->metrics(), [&](const EvalMetricPtr& part) {
      return collect(context, *part, seen_labels, seen_preds, counted);
    });
  }
  if (!LaterUpdates::allowed_for(metric) || !has_all(labels, label_names) || !has_all(preds, output_names))
    return false;
  std::optional<std::vector<Pair>> pairs = pairs_of(context, metric, chosen(name, "label", labels, label_names),
                                                    chosen(name, "output", preds, output_names));
  if (pairs) counted.push_back({&metric, std::move(*pairs)});
  return pairs.has_value();
}

}  // namespace

std::vector<FollowingWorkPtr> counting_work_on(Context context, EvalMetric& metric, const NamedList& labels,
                                               const NamedList& preds, const std::vector<FollowingWorkPtr>& last) {
  std::vector<Counted> counted;
  if (!collect(context, metric, labels, preds, counted)) return {};
  std::vector<FollowingWorkPtr> all;
  for (Counted& each : counted) {
    std::shared_ptr<DeviceCount> count = LaterUpdates::count_on(*each.metric, context);
    const auto same = std::ranges::find_if(last, [&](const FollowingWorkPtr& piece) {
      const auto* const before = dynamic_cast<const MetricCount*>(piece.get());
      return before && before->is(*count, each.pairs);
    });
    all.push_back(same != last.end() ? *same
                                     : std::make_shared<const MetricCount>(std::move(count), std::move(each.pairs)));
  }
  return all;
}

std::vector<FollowingWorkPtr> counting_work(EvalMetric& metric, const NamedList& labels, const NamedList& preds,
                                            const std::vector<FollowingWorkPtr>& last) {
  const auto on_gpu =
      std::ranges::find_if(preds, [](const auto& entry) { return entry.second && entry.second.context().is_gpu(); });
  if (on_gpu == preds.end()) return {};
  return counting_work_on(on_gpu->second.context(), metric, labels, preds, last);
}

void update_on_device(EvalMetric& metric, const NamedList& labels, const NamedList& device_labels,
                      const NamedList& preds) {
  if (const auto* const composite = dynamic_cast<const metric::Composite*>(&metric)) {
    const auto& [name, output_names, label_names] = metric.options();
    const NamedList seen_preds = visible(preds, output_names);
    for (const EvalMetricPtr& part : composite->metrics())
      update_on_device(*part, visible(labels, label_names), visible(device_labels, label_names), seen_preds);
    return;
  }
  const std::vector<FollowingWorkPtr> work = counting_work(metric, device_labels, preds, {});
  if (work.empty()) return metric.update_dict_later(labels, preds);
  for (const FollowingWorkPtr& piece : work) piece->queue();
}

}  // namespace symbind
