// Pearson's correlation of numbers, and its counterpart for classes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "symbind/train/metric_arrays.h"
#include "symbind/train/metrics.h"

namespace symbind::metric {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Comoments comoments_of(const std::vector<double>& xs, const std::vector<double>& ys) {
  Comoments result;
  result.count = static_cast<int64_t>(xs.size());
  if (xs.empty()) return result;
  const auto count = static_cast<double>(xs.size());
  for (size_t i = 0; i < xs.size(); ++i) {
    result.mean_x += xs[i] / count;
    result.mean_y += ys[i] / count;
  }
  for (size_t i = 0; i < xs.size(); ++i) {
    const double x = xs[i] - result.mean_x, y = ys[i] - result.mean_y;
    result.xx += x * x;
    result.yy += y * y;
    result.xy += x * y;
  }
  return result;
}

}  // namespace

// Sums around the common mean: those of each part, plus a term for the distance between the two means.
void Comoments::add(const Comoments& more) {
  if (more.count == 0) return;
  const auto here = static_cast<double>(count), there = static_cast<double>(more.count), both = here + there;
  const double dx = more.mean_x - mean_x, dy = more.mean_y - mean_y;
  xx += more.xx + dx * dx * here * there / both;
  yy += more.yy + dy * dy * here * there / both;
  xy += more.xy + dx * dy * here * there / both;
  mean_x += dx * there / both;
  mean_y += dy * there / both;
  count += more.count;
}

double Comoments::correlation() const {
  return xx > 0 && yy > 0 ? std::clamp(xy / std::sqrt(xx) / std::sqrt(yy), -1.0, 1.0) : nan;
}

PearsonCorrelation::PearsonCorrelation(std::string average, Options options)
    : EvalMetric(std::move(options)), micro_(average == "micro") {
  require(micro_ || average == "macro", "[", name(), "] average must be macro or micro: ", average);
}

void PearsonCorrelation::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  const InUse use = in_use("update");
  check_counts(name(), labels, preds);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].shape() != preds[i].shape())
      fail_shapes(name(), "label and prediction must have one shape", labels[i], preds[i]);
    const Comoments moments = comoments_of(labels[i].to_vector<double>(), preds[i].to_vector<double>());
    if (micro_) {
      moments_.add(moments);
      global_moments_.add(moments);
    } else {
      count(moments.correlation(), 1);
    }
  }
}

void PearsonCorrelation::reset() {
  EvalMetric::reset();
  moments_ = global_moments_ = {};
}

void PearsonCorrelation::reset_local() {
  EvalMetric::reset_local();
  moments_ = {};
}

EvalMetric::NameValues PearsonCorrelation::get() const {
  finish_updates();
  return micro_ ? NameValues{{name(), moments_.correlation()}} : EvalMetric::get();
}

EvalMetric::NameValues PearsonCorrelation::get_global() const {
  finish_updates();
  return micro_ ? NameValues{{name(), global_moments_.correlation()}} : EvalMetric::get_global();
}

std::vector<double> PearsonCorrelation::state() const {
  std::vector<double> state = EvalMetric::state();
  for (const Comoments& sums : {moments_, global_moments_})
    state.insert(state.end(), {static_cast<double>(sums.count), sums.mean_x, sums.mean_y, sums.xx, sums.yy, sums.xy});
  return state;
}

void PearsonCorrelation::set_state(const std::vector<double>& state) {
  require(state.size() == sums_in_state + 12, "[", name(), "] a state has ", sums_in_state + 12, " numbers, this one ",
          state.size());
  EvalMetric::set_state(state);
  const double* next = state.data() + sums_in_state;
  for (Comoments* sums : {&moments_, &global_moments_}) {
    *sums = {static_cast<int64_t>(next[0]), next[1], next[2], next[3], next[4], next[5]};
    next += 6;
  }
}

void PCC::Table::count(int64_t predicted, int64_t label) {
  const int64_t needed = std::max(predicted, label) + 1;
  if (needed > classes_) {
    std::vector<int64_t> larger(static_cast<size_t>(needed * needed));
    for (int64_t i = 0; i < classes_; ++i)
      for (int64_t k = 0; k < classes_; ++k)
        larger[static_cast<size_t>(i * needed + k)] = cells_[static_cast<size_t>(i * classes_ + k)];
    classes_ = needed;
    cells_ = std::move(larger);
  }
  ++cells_[static_cast<size_t>(predicted * classes_ + label)];
}

double PCC::Table::correlation() const {
  std::vector<double> predicted(static_cast<size_t>(classes_)), wanted(static_cast<size_t>(classes_));
  double total = 0, agreed = 0;
  for (int64_t i = 0; i < classes_; ++i)
    for (int64_t k = 0; k < classes_; ++k) {
      const auto cell = static_cast<double>(cells_[static_cast<size_t>(i * classes_ + k)]);
      predicted[static_cast<size_t>(i)] += cell;
      wanted[static_cast<size_t>(k)] += cell;
      total += cell;
      if (i == k) agreed += cell;
    }
  double xx = 0, yy = 0, xy = agreed * total;
  for (size_t i = 0; i < predicted.size(); ++i) {
    xx += predicted[i] * (total - predicted[i]);
    yy += wanted[i] * (total - wanted[i]);
    xy -= predicted[i] * wanted[i];
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : nan;
}

void PCC::update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  const InUse use = in_use("update");
  check_counts(name(), labels, preds);
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool classes_given = preds[i].shape() == labels[i].shape();
    if (!classes_given && preds[i].rank() < 2)
      fail_shapes(name(), "predictions must be classes, or have a row of scores per sample", labels[i], preds[i]);
    const std::vector<int64_t> predicted = classes_given ? classes_of(preds[i]) : argmax(preds[i], 1, name());
    const std::vector<int64_t> wanted = classes_of(labels[i]);
    if (predicted.size() != wanted.size())
      fail_shapes(name(), "there must be a label per row of scores", labels[i], preds[i]);
    constexpr int64_t most_classes = 1 << 14;  // a table of more would not fit into memory
    const auto check = [&](const std::vector<int64_t>& classes, const char* what) {
      for (const int64_t each : classes)
        require(each >= 0 && each < most_classes, "[", name(), "] ", what, " must be classes from 0 to ",
                most_classes - 1, ": ", class_text(each));
    };
    check(wanted, "labels");
    if (classes_given) check(predicted, "predictions");
    for (size_t k = 0; k < wanted.size(); ++k) {
      // A row without a class counts as a class that is not the label, as it does for two classes (MCC).
      const int64_t wrong = wanted[k] == 0 ? 1 : 0, given = predicted[k] == no_class ? wrong : predicted[k];
      table_.count(given, wanted[k]);
      global_table_.count(given, wanted[k]);
    }
  }
}

void PCC::reset() {
  EvalMetric::reset();
  table_ = global_table_ = {};
}

void PCC::reset_local() {
  EvalMetric::reset_local();
  table_ = {};
}

void PCC::Table::append_to(std::vector<double>& state) const {
  state.push_back(static_cast<double>(classes_));
  for (const int64_t cell : cells_) state.push_back(static_cast<double>(cell));
}

size_t PCC::Table::take_from(const std::vector<double>& state, size_t begin) {
  require(begin < state.size(), "[pcc] a state has two tables: this one ends early");
  constexpr double most_classes = 1 << 16;
  require(state[begin] >= 0 && state[begin] <= most_classes, "[pcc] a table has 0 to ", int64_t{1} << 16,
          " classes: this one has ", state[begin]);
  const auto classes = static_cast<size_t>(state[begin]);
  const size_t end = begin + 1 + classes * classes;
  require(end <= state.size(), "[pcc] a table of ", classes, " classes has ", classes * classes,
          " numbers: this state ends early");
  classes_ = static_cast<int64_t>(classes);
  cells_.clear();
  for (size_t i = begin + 1; i < end; ++i) cells_.push_back(static_cast<int64_t>(state[i]));
  return end;
}

std::vector<double> PCC::state() const {
  std::vector<double> state = EvalMetric::state();
  table_.append_to(state);
  global_table_.append_to(state);
  return state;
}

void PCC::set_state(const std::vector<double>& state) {
  EvalMetric::set_state(state);
  global_table_.take_from(state, table_.take_from(state, sums_in_state));
}

EvalMetric::NameValues PCC::get() const {
  finish_updates();
  return {{name(), table_.correlation()}};
}
EvalMetric::NameValues PCC::get_global() const {
  finish_updates();
  return {{name(), global_table_.correlation()}};
}

}  // namespace symbind::metric
