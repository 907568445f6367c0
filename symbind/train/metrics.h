// The built-in metrics, with MXNet 1.9.1's arithmetic. Each compares pairs of a label and a prediction; update() does
// so on host copies where the arrays are on another device. Names and arguments for EvalMetric::create are beside the
// classes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "symbind/train/metric.h"

namespace SYMBIND_API symbind {
namespace metric {

// ---- Classes ----------------------------------------------------------------------------------------------------

// A row of scores with a NaN predicts no class: it counts as wrong in each of these, and in PCC. In the metrics of
// likelihoods and numbers a NaN makes the mean NaN.

// "acc", "accuracy": how often the class with the greatest score along `axis` is the label; of equal scores the first
// counts. A prediction shaped like its label holds classes instead of scores.
class Accuracy final : public EvalMetric {
 public:
  explicit Accuracy(int64_t axis = 1, Options options = {"accuracy"}) : EvalMetric(std::move(options)), axis_(axis) {}
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
  int64_t axis() const { return axis_; }

 private:
  int64_t axis_;
};

// "top_k_accuracy", "top_k_acc", "topkaccuracy": how often the label is among the top_k greatest scores of a row. The
// name becomes top_k_accuracy_5.
class TopKAccuracy final : public EvalMetric {
 public:
  explicit TopKAccuracy(int64_t top_k, Options options = {"top_k_accuracy"});
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
  int64_t top_k() const { return top_k_; }

 private:
  int64_t top_k_;
};

// Confusion counts of two classes; class 1 is the positive one.
struct BinaryCounts {
  int64_t true_positives = 0, false_positives = 0, true_negatives = 0, false_negatives = 0;
  int64_t total() const { return true_positives + false_positives + true_negatives + false_negatives; }
  double f1() const;
  double mcc() const;
  void add(const BinaryCounts& more);
};

// A score of binary counts. average "macro": the mean of the scores of the updates; "micro": the score of all counts.
class BinaryMetric : public EvalMetric {
 public:
  BinaryMetric(std::string average, Options options);
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
  void reset() override;
  void reset_local() override;
  std::vector<double> state() const override;
  void set_state(const std::vector<double>& state) override;

 private:
  virtual double score(const BinaryCounts& counts) const = 0;
  bool micro_;
  BinaryCounts counts_, global_counts_;
};

// "f1": the harmonic mean of precision and recall.
class F1 final : public BinaryMetric {
 public:
  explicit F1(std::string average = "macro", Options options = {"f1"})
      : BinaryMetric(std::move(average), std::move(options)) {}

 private:
  double score(const BinaryCounts& counts) const override { return counts.f1(); }
};

// "mcc": Matthews' correlation of two classes.
class MCC final : public BinaryMetric {
 public:
  explicit MCC(std::string average = "macro", Options options = {"mcc"})
      : BinaryMetric(std::move(average), std::move(options)) {}

 private:
  double score(const BinaryCounts& counts) const override { return counts.mcc(); }
};

// ---- Likelihoods ------------------------------------------------------------------------------------------------

// "ce", "crossentropy", "cross-entropy": the mean of -log(probability of the label + eps) over rows.
class CrossEntropy : public EvalMetric {
 public:
  explicit CrossEntropy(double eps = 1e-12, Options options = {"cross-entropy"})
      : EvalMetric(std::move(options)), eps_(eps) {}
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
  double eps() const { return eps_; }

 private:
  double eps_;
};

// "nll_loss", "negativeloglikelihood": the same under its other name.
class NegativeLogLikelihood final : public CrossEntropy {
 public:
  explicit NegativeLogLikelihood(double eps = 1e-12, Options options = {"nll-loss"})
      : CrossEntropy(eps, std::move(options)) {}
};

// "perplexity": exp of the mean of -log(probability of the label) along `axis`, leaving out rows labelled ignore_label.
// Labels beyond the classes count as the nearest one, as they do in MXNet.
class Perplexity final : public EvalMetric {
 public:
  explicit Perplexity(std::optional<double> ignore_label, int64_t axis = -1, Options options = {"perplexity"})
      : EvalMetric(std::move(options)), ignore_label_(ignore_label), axis_(axis) {}
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
  NameValues get() const override;
  NameValues get_global() const override;
  std::optional<double> ignore_label() const { return ignore_label_; }
  int64_t axis() const { return axis_; }

 private:
  std::optional<double> ignore_label_;
  int64_t axis_;
};

// ---- Numbers ----------------------------------------------------------------------------------------------------

// The mean over the elements of each pair, averaged over pairs. A label of one axis counts as a column: it is compared
// with every column of its prediction.
// "mae": |label - prediction|
class MAE final : public EvalMetric {
 public:
  explicit MAE(Options options = {"mae"}) : EvalMetric(std::move(options)) {}
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
};

// "mse": (label - prediction)²
class MSE final : public EvalMetric {
 public:
  explicit MSE(Options options = {"mse"}) : EvalMetric(std::move(options)) {}
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
};

// "rmse": the root of each pair's mse
class RMSE final : public EvalMetric {
 public:
  explicit RMSE(Options options = {"rmse"}) : EvalMetric(std::move(options)) {}
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
};

// "loss": the mean over all elements of all outputs; labels are ignored.
class Loss : public EvalMetric {
 public:
  explicit Loss(Options options = {"loss"}) : EvalMetric(std::move(options)) {}
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
};

// "torch", "caffe": the same for losses of those frameworks' layers.
class Torch final : public Loss {
 public:
  explicit Torch(Options options = {"torch"}) : Loss(std::move(options)) {}
};
class Caffe final : public Loss {
 public:
  explicit Caffe(Options options = {"caffe"}) : Loss(std::move(options)) {}
};

// ---- Correlations -----------------------------------------------------------------------------------------------

// Sums for Pearson's correlation, numerically stable when added to in parts.
struct Comoments {
  int64_t count = 0;
  double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  void add(const Comoments& more);
  double correlation() const;  // NaN where one side does not vary
};

// "pearsonr", "pearsoncorrelation": macro: the mean over pairs of their correlations; micro: that of all elements.
class PearsonCorrelation final : public EvalMetric {
 public:
  explicit PearsonCorrelation(std::string average = "macro", Options options = {"pearsonr"});
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
  void reset() override;
  void reset_local() override;
  NameValues get() const override;
  NameValues get_global() const override;
  std::vector<double> state() const override;
  void set_state(const std::vector<double>& state) override;

 private:
  bool micro_;
  Comoments moments_, global_moments_;
};

// "pcc": the correlation of any number of classes, from the table of predicted and true ones.
class PCC final : public EvalMetric {
 public:
  explicit PCC(Options options = {"pcc"}) : EvalMetric(std::move(options)) {}
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
  void reset() override;
  void reset_local() override;
  NameValues get() const override;
  NameValues get_global() const override;
  std::vector<double> state() const override;
  void set_state(const std::vector<double>& state) override;

 private:
  class Table {
   public:
    void count(int64_t predicted, int64_t label);
    double correlation() const;
    void append_to(std::vector<double>& state) const;
    size_t take_from(const std::vector<double>& state, size_t begin);  // returns the offset where it ends

   private:
    int64_t classes_ = 0;
    std::vector<int64_t> cells_;  // [predicted][label]
  };
  Table table_, global_table_;
};

// ---- Others -----------------------------------------------------------------------------------------------------

// The result of a user-defined function for a pair: a value, or a sum over a number of instances.
struct Score {
  double sum;
  int64_t instances;
  Score(double value) : sum(value), instances(1) {}
  Score(double sum_of, int64_t count) : sum(sum_of), instances(count) {}
};
// Receives arrays on the CPU.
using Feval = std::function<Score(const NDArray& label, const NDArray& pred)>;

class CustomMetric final : public EvalMetric {
 public:
  // allow_extra_outputs: outputs beyond the labels are ignored; else their numbers must agree.
  explicit CustomMetric(Feval feval, const std::string& name = "custom", bool allow_extra_outputs = false,
                        std::vector<std::string> output_names = {}, std::vector<std::string> label_names = {});
  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;

 private:
  Feval feval_;
  bool allow_extra_outputs_;
};

// metric::np(f, "mine") makes a metric from a function of two lists of numbers.
using NumbersFeval = std::function<Score(const std::vector<double>& label, const std::vector<double>& pred)>;
EvalMetricPtr np(NumbersFeval feval, const std::string& name = "custom", bool allow_extra_outputs = false);

// "composite", "compositeevalmetric": several metrics as one.
class Composite final : public EvalMetric {
 public:
  explicit Composite(std::vector<EvalMetricPtr> metrics = {}, Options options = {"composite"});
  void add(EvalMetricPtr metric);
  const EvalMetricPtr& get_metric(size_t index) const;
  const std::vector<EvalMetricPtr>& metrics() const { return metrics_; }

  void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) override;
  void update_dict(const NamedList& labels, const NamedList& preds) override;
  void update_dict_later(const NamedList& labels, const NamedList& preds) override;
  void reset() override;
  void reset_local() override;
  NameValues get() const override;
  NameValues get_global() const override;

 private:
  std::vector<EvalMetricPtr> metrics_;
};

}  // namespace metric
}  // namespace symbind
