#include "symbind/train/metric.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "symbind/train/counting_work.h"
#include "symbind/train/later_updates.h"
#include "symbind/train/metric_arrays.h"
#include "symbind/train/metrics.h"

namespace symbind {
namespace {

EvalMetric::NameValues mean_of(const std::string& name, double sum, int64_t instances) {
  return {{name, instances == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(instances)}};
}

}  // namespace

EvalMetric::EvalMetric(Options options) : options_(std::move(options)) {}
EvalMetric::~EvalMetric() = default;

EvalMetric::EvalMetric(const EvalMetric& other) : EvalMetric(other.options_) { *this = other; }

EvalMetric& EvalMetric::operator=(const EvalMetric& other) {
  if (this == &other) return *this;
  other.finish_updates();
  if (later_) later_->discard(*this);
  options_ = other.options_;
  set_sums({other.sum_metric_, other.num_inst_});
  set_global_sums({other.global_sum_metric_, other.global_num_inst_});
  return *this;
}

void EvalMetric::update_dict(const NamedList& labels, const NamedList& preds) {
  const InUse use = in_use("update_dict");
  update(metric::chosen(name(), "label", labels, options_.label_names),
         metric::chosen(name(), "output", preds, options_.output_names));
}

void EvalMetric::update_dict_later(const NamedList& labels, const NamedList& preds) {
  const std::vector<FollowingWorkPtr> work = counting_work(*this, labels, preds, {});
  for (const FollowingWorkPtr& piece : work) piece->queue();
  if (!work.empty()) return;
  const auto is_on_device = [](const auto& entry) { return !entry.second.storage().device().is_host(); };
  if (std::ranges::none_of(preds, is_on_device) || !LaterUpdates::allowed_for(*this)) return update_dict(labels, preds);
  const auto arriving = [](const std::vector<NDArray>& arrays) {
    return std::vector<ArrivingArray>(arrays.begin(), arrays.end());
  };
  LaterUpdates::add(*this, {arriving(metric::chosen(name(), "label", labels, options_.label_names)),
                            arriving(metric::chosen(name(), "output", preds, options_.output_names))});
}

// Only a metric that was updated, and so is not const, has any.
void EvalMetric::count_later_updates() const { later_->finish(const_cast<EvalMetric&>(*this)); }

void EvalMetric::reset() {
  if (later_) later_->discard(*this);
  const InUse use = changing("reset");
  reset_local();
  global_sum_metric_ = 0;
  global_num_inst_ = 0;
}

void EvalMetric::reset_local() {
  const InUse use = in_use("reset_local");
  sum_metric_ = 0;
  num_inst_ = 0;
}

EvalMetric::NameValues EvalMetric::get() const {
  const auto [sum, instances] = sums();
  return mean_of(name(), sum, instances);
}
EvalMetric::NameValues EvalMetric::get_global() const {
  const auto [sum, instances] = global_sums();
  return mean_of(name(), sum, instances);
}

std::string EvalMetric::str() const {
  std::string text = "EvalMetric: {";
  const char* separator = "";
  for (const auto& [value_name, value] : get()) {
    text += join(separator, "'", value_name, "': ", value);
    separator = ", ";
  }
  return text + "}";
}

std::vector<double> EvalMetric::state() const {
  finish_updates();
  return {sum_metric_, static_cast<double>(num_inst_), global_sum_metric_, static_cast<double>(global_num_inst_)};
}

void EvalMetric::set_state(const std::vector<double>& state) {
  require(state.size() >= sums_in_state, "[", name(), "] a state begins with ", sums_in_state, " sums, this one has ",
          state.size(), " numbers");
  set_sums({state[0], static_cast<int64_t>(state[1])});
  set_global_sums({state[2], static_cast<int64_t>(state[3])});
}

void EvalMetric::count(double sum, int64_t instances) {
  const InUse use = in_use("update");
  sum_metric_ += sum;
  global_sum_metric_ += sum;
  num_inst_ += instances;
  global_num_inst_ += instances;
}

namespace metric {

CustomMetric::CustomMetric(Feval feval, const std::string& name, bool allow_extra_outputs,
                           std::vector<std::string> output_names, std::vector<std::string> label_names)
    : EvalMetric({name.empty() ? "custom" : name, std::move(output_names), std::move(label_names)}),
      feval_(std::move(feval)),
      allow_extra_outputs_(allow_extra_outputs) {
  require(feval_ != nullptr, "[", this->name(), "] needs a function");
}

void CustomMetric::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  if (!allow_extra_outputs_) check_counts(name(), labels, preds);
  for (size_t i = 0; i < std::min(labels.size(), preds.size()); ++i) {
    const Score score = feval_(on_host(labels[i]), on_host(preds[i]));
    count(score.sum, score.instances);
  }
}

EvalMetricPtr np(NumbersFeval feval, const std::string& name, bool allow_extra_outputs) {
  require(feval != nullptr, "[", name, "] needs a function");
  const auto on_arrays = [feval = std::move(feval)](const NDArray& label, const NDArray& pred) {
    return feval(label.to_vector<double>(), pred.to_vector<double>());
  };
  return std::make_shared<CustomMetric>(on_arrays, name, allow_extra_outputs);
}

Composite::Composite(std::vector<EvalMetricPtr> metrics, Options options) : EvalMetric(std::move(options)) {
  for (EvalMetricPtr& metric : metrics) add(std::move(metric));
}

void Composite::add(EvalMetricPtr metric) {
  require(metric != nullptr, "[", name(), "] a metric must be there: none was given");
  metrics_.push_back(std::move(metric));
}

const EvalMetricPtr& Composite::get_metric(size_t index) const {
  require(index < metrics_.size(), "[", name(), "] holds ", metrics_.size(), " metrics, not one at ", index);
  return metrics_[index];
}

void Composite::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  for (const EvalMetricPtr& metric : metrics_) metric->update(labels, preds);
}

// Its own names restrict what its parts see.
void Composite::update_dict(const NamedList& labels, const NamedList& preds) {
  const NamedList seen_labels = visible(labels, options_.label_names);
  const NamedList seen_preds = visible(preds, options_.output_names);
  for (const EvalMetricPtr& metric : metrics_) metric->update_dict(seen_labels, seen_preds);
}

void Composite::update_dict_later(const NamedList& labels, const NamedList& preds) {
  const NamedList seen_labels = visible(labels, options_.label_names);
  const NamedList seen_preds = visible(preds, options_.output_names);
  for (const EvalMetricPtr& metric : metrics_) metric->update_dict_later(seen_labels, seen_preds);
}

void Composite::reset() {
  for (const EvalMetricPtr& metric : metrics_) metric->reset();
}

void Composite::reset_local() {
  for (const EvalMetricPtr& metric : metrics_) metric->reset_local();
}

EvalMetric::NameValues Composite::get() const {
  NameValues all;
  for (const EvalMetricPtr& metric : metrics_)
    for (auto& value : metric->get()) all.push_back(std::move(value));
  return all;
}

EvalMetric::NameValues Composite::get_global() const {
  NameValues all;
  for (const EvalMetricPtr& metric : metrics_)
    for (auto& value : metric->get_global()) all.push_back(std::move(value));
  return all;
}

}  // namespace metric
}  // namespace symbind
