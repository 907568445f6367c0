// The terms of ops/metric_sums.h and how their sum becomes part of the totals, shared by all backends. Each kind of
// term is a struct with
//   int64_t count;                                                          // of rows or elements
//   template <class Team> constexpr void add(int64_t row, MetricPart&) const;
// over readers of the arrays: pred(i) is an element in the type it is computed in, label.at<C>(i) one converted to C. A
// team of threads, or one, adds a row; its lane 0 has the result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "symbind/backend/functions.h"
#include "symbind/core/axis_view.h"
#include "symbind/ops/metric_sums.h"
#include "symbind/passes/target.h"

namespace symbind {

// Sums of some of the terms of a pair.
struct MetricPart {
  static constexpr int64_t none = std::numeric_limits<int64_t>::max();

  double sum = 0;
  int64_t counted = 0;
  int64_t failed_row = none;  // the first one whose label is no class

  constexpr void add(double term) {
    sum += term;
    ++counted;
  }
  constexpr void fail_at(int64_t row) { failed_row = row < failed_row ? row : failed_row; }
};
static_assert(sizeof(MetricPart) == MetricSums::part_size * sizeof(double));

// How many of the classes begin, begin + step, … come before `label` when all are ordered by descending score, ties by
// index. With a NaN a row predicts no class: then a number beyond all ranks; such numbers may be added up.
inline constexpr int64_t beyond_all_ranks = int64_t{1} << 48;
template <class Score>
constexpr int64_t classes_before(const Score& score, int64_t classes, int64_t label, int64_t begin, int64_t step) {
  const auto own = score(label);
  int64_t before = 0;
  bool is_unordered = false;
  const auto compare = [&](int64_t k, const auto& other) {
    before += k < label ? other >= own : other > own;
    is_unordered |= other != other;
  };
  int64_t k = begin;
  constexpr int at_a_time = 4;  // loads in flight
  for (; k + (at_a_time - 1) * step < classes; k += at_a_time * step) {
    const decltype(score(k)) others[at_a_time] = {score(k), score(k + step), score(k + 2 * step), score(k + 3 * step)};
    for (int i = 0; i < at_a_time; ++i) compare(k + i * step, others[i]);
  }
  for (; k < classes; k += step) compare(k, score(k));
  return is_unordered ? beyond_all_ranks : before;
}

template <class Pred, class Label>
struct TopTerms {
  int64_t count;
  Pred pred;
  Label label;
  AxisView rows;
  int64_t top_k;  // at most the number of classes

  template <class Team>
  constexpr void add(int64_t row, MetricPart& part) const {
    const auto wanted = label.template at<int64_t>(row);
    bool is_right = false;
    if (wanted >= 0 && wanted < rows.length) {
      const int64_t start = rows.row_start(row);
      const auto score = [&](int64_t k) { return pred(start + k * rows.inner); };
      is_right = Team::sum(classes_before(score, rows.length, wanted, Team::lane(), Team::size())) < top_k;
    }
    if (Team::lane() == 0) part.add(is_right ? 1 : 0);
  }
};

template <class Pred, class Label>
struct SameClassTerms {
  int64_t count;
  Pred pred;
  Label label;

  template <class Team>
  constexpr void add(int64_t i, MetricPart& part) const {
    const auto given = pred(i);
    const bool is_right = given == given && functions::truncate<int64_t>(given) == label.template at<int64_t>(i);
    part.add(is_right ? 1 : 0);
  }
};

// A negative label counts from the end.
template <class P, class Pred, class Label>
struct CrossEntropyTerms {
  int64_t count;
  Pred pred;
  Label label;
  AxisView rows;
  P eps;

  template <class Team>
  constexpr void add(int64_t row, MetricPart& part) const {
    const auto wanted = label.template at<int64_t>(row);
    if (wanted >= rows.length || wanted < -rows.length) return part.fail_at(row);
    const int64_t k = wanted < 0 ? wanted + rows.length : wanted;
    const P probability = pred(rows.row_start(row) + k * rows.inner);
    part.add(static_cast<double>(-functions::Log{}(probability + eps)));
  }
};

// A label beyond the classes counts as the nearest one; NaN as a label or a probability makes the sum NaN.
template <class P, class Pred, class Label>
struct PerplexityTerms {
  int64_t count;
  Pred pred;
  Label label;
  AxisView rows;
  bool ignores;
  double ignored;

  template <class Team>
  constexpr void add(int64_t row, MetricPart& part) const {
    const auto given = label.template at<double>(row);
    if (given != given) return part.add(given);
    if (ignores && given == ignored) return;
    const auto wanted = label.template at<int64_t>(row);
    const int64_t k = wanted < 0 ? 0 : wanted < rows.length ? wanted : rows.length - 1;
    const P probability = pred(rows.row_start(row) + k * rows.inner), least = static_cast<P>(1e-10);
    part.add(-static_cast<double>(functions::Log{}(probability < least ? least : probability)));
  }
};

template <class Pred>
struct LossTerms {
  int64_t count;
  Pred pred;

  template <class Team>
  constexpr void add(int64_t i, MetricPart& part) const {
    part.add(static_cast<double>(pred(i)));
  }
};

template <class P, class Pred, class Label>
struct DistanceTerms {
  int64_t count;
  Pred pred;
  Label label;
  bool is_squared;

  template <class Team>
  constexpr void add(int64_t i, MetricPart& part) const {
    const P difference = label.template at<P>(i) - static_cast<P>(pred(i));
    part.add(static_cast<double>(is_squared ? difference * difference : functions::Abs{}(difference)));
  }
};

// What a pair is, apart from the addresses of its arrays.
struct MetricPair {
  MetricSums sums;
  Shape pred;
  DType pred_dtype, label_dtype;  // no label: that of pred

  explicit MetricPair(const NodeView& node)
      : sums(node.as<MetricSums>()),
        pred(node.inputs[node.inputs.size() - 3].shape),
        pred_dtype(node.inputs[node.inputs.size() - 3].dtype),
        label_dtype(node.inputs[0].dtype) {}

  bool has_label() const { return sums.term != metric_term::loss; }
  // In one of these terms both arrays are converted to one type: double if theirs differ.
  bool is_distance() const {
    return sums.term == metric_term::absolute || sums.term == metric_term::square ||
           sums.term == metric_term::root_square;
  }
  AxisView rows() const { return view_along(pred, pred.axis(sums.axis, "[_metric_sums]")); }
};

// Calls visit(terms) with the kind of terms of a pair whose pred has elements of type T.
template <class T, class Pred, class Label, class Visit>
void visit_metric_terms(const MetricPair& pair, const Pred& pred, const Label& label, const Visit& visit) {
  using P = std::conditional_t<std::is_same_v<T, float>, float, double>;  // what MXNet computes in
  const MetricSums& sums = pair.sums;
  const int64_t size = pair.pred.size();
  if (sums.term == metric_term::loss) return visit(LossTerms<Pred>{size, pred});
  if (sums.term == metric_term::same_class) return visit(SameClassTerms<Pred, Label>{size, pred, label});
  if (pair.is_distance()) {
    const bool is_squared = sums.term != metric_term::absolute;
    if (pair.label_dtype == pair.pred_dtype) return visit(DistanceTerms<P, Pred, Label>{size, pred, label, is_squared});
    return visit(DistanceTerms<double, Pred, Label>{size, pred, label, is_squared});
  }
  const AxisView rows = pair.rows();
  const int64_t count = rows.row_count();
  if (sums.term == metric_term::top_k)
    return visit(TopTerms<Pred, Label>{count, pred, label, rows, std::min(sums.top_k, rows.length)});
  if (sums.term == metric_term::cross_entropy)
    return visit(CrossEntropyTerms<P, Pred, Label>{count, pred, label, rows, static_cast<P>(sums.eps)});
  return visit(PerplexityTerms<P, Pred, Label>{count, pred, label, rows, sums.ignore_label.has_value(),
                                               sums.ignore_label.value_or(0)});
}

// Adds the sum of all terms of a pair to the totals.
struct MetricFinish {
  bool is_mean, is_root;
  bool in_float;  // MXNet computes in float32
  int64_t classes;

  static MetricFinish of(const MetricPair& pair) {
    const bool counts = pair.sums.term == metric_term::top_k || pair.sums.term == metric_term::same_class;
    const bool all_float32 =
        pair.pred_dtype == DType::float32 && (!pair.is_distance() || pair.label_dtype == DType::float32);
    return {pair.is_distance(), pair.sums.term == metric_term::root_square, all_float32 && !counts,
            pair.sums.term == metric_term::cross_entropy ? pair.rows().length : 0};
  }

  template <class Label>
  constexpr void operator()(const MetricPart& all, const Label& label, double* totals) const {
    if (all.failed_row != MetricPart::none) {
      if (totals[MetricTotals::failures] == 0) {
        totals[MetricTotals::label] = static_cast<double>(label.template at<int64_t>(all.failed_row));
        totals[MetricTotals::classes] = static_cast<double>(classes);
      }
      totals[MetricTotals::failures] += 1;
      return;
    }
    double value = rounded(all.sum);
    if (is_mean) value = rounded(value / static_cast<double>(all.counted));
    if (is_root) value = rounded(functions::Sqrt{}(value));
    totals[MetricTotals::sum] += value;
    totals[MetricTotals::instances] += is_mean ? 1 : static_cast<double>(all.counted);
  }

 private:
  constexpr double rounded(double value) const { return in_float ? static_cast<float>(value) : value; }
};

constexpr void take_metric_totals(double* totals, double* out) {
  for (int64_t i = 0; i < MetricTotals::count; ++i) {
    out[i] = totals[i];
    totals[i] = 0;
  }
}

}  // namespace symbind
