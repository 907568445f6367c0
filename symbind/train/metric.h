// The quality of predictions: sums over samples, and their mean.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "symbind/core/busy.h"
#include "symbind/core/ndarray.h"

namespace SYMBIND_API symbind {

// Arrays with their names, in the order a network lists them.
using NamedList = std::vector<std::pair<std::string, NDArray>>;

class LaterUpdates;

// A metric is updated and reset by one thread at a time: a call that finds it in use by another thread fails.
class EvalMetric {
 public:
  struct Options {
    std::string name;
    std::vector<std::string> output_names = {};  // which outputs and labels it reads; empty: all
    std::vector<std::string> label_names = {};
  };
  explicit EvalMetric(Options options);
  EvalMetric(const EvalMetric& other);
  EvalMetric& operator=(const EvalMetric& other);
  virtual ~EvalMetric();

  // By name ("acc", "accuracy", "top_k_accuracy", "ce", …), with arguments by MXNet's names. An unknown name or
  // argument fails, listing the known ones.
  static std::shared_ptr<EvalMetric> create(const std::string& name,
                                            const std::map<std::string, std::string>& arguments = {});
  static std::shared_ptr<EvalMetric> create(const std::vector<std::string>& names);  // a composite

  virtual void update(const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) = 0;
  // By name, as a module passes them; selects those it reads. Labels and outputs are paired in their order.
  virtual void update_dict(const NamedList& labels, const NamedList& preds);
  // The same without waiting for a GPU, for the built-in metrics; others are updated immediately. The arrays may be
  // overwritten when this returns. Where all are on one GPU, it counts accuracies, likelihoods, losses and distances
  // itself, and the next call that reads or changes the metric fetches the sums: counts are the same, and other sums
  // differ by the rounding of float32, as the GPU adds in float64. Otherwise the arrays are copied to the host
  // meanwhile, and counted by a later update or by that call, with the same values. An error of an update is thrown by
  // the call that fetches or counts it; of several on a GPU it is that of the first.
  virtual void update_dict_later(const NamedList& labels, const NamedList& preds);

  virtual void reset();        // everything
  virtual void reset_local();  // since the last reset_local; the global sums stay
  using NameValues = std::vector<std::pair<std::string, double>>;
  virtual NameValues get() const;  // NaN where nothing was counted
  virtual NameValues get_global() const;
  NameValues get_name_value() const { return get(); }
  NameValues get_global_name_value() const { return get_global(); }
  const std::string& name() const { return options_.name; }
  std::string str() const;  // "EvalMetric: {'accuracy': 0.5}"

  const Options& options() const { return options_; }
  void set_options(Options options) {
    finish_updates();
    options_ = std::move(options);
  }
  // The accumulated sums, readable and writable: since the last reset_local, and since the last reset.
  struct Sums {
    double sum = 0;
    int64_t instances = 0;
  };
  Sums sums() const {
    finish_updates();
    return {sum_metric_, num_inst_};
  }
  Sums global_sums() const {
    finish_updates();
    return {global_sum_metric_, global_num_inst_};
  }
  void set_sums(Sums sums) {
    finish_updates();
    sum_metric_ = sums.sum;
    num_inst_ = sums.instances;
  }
  void set_global_sums(Sums sums) {
    finish_updates();
    global_sum_metric_ = sums.sum;
    global_num_inst_ = sums.instances;
  }
  // The whole state as numbers, from which a metric of the same kind can continue.
  virtual std::vector<double> state() const;
  virtual void set_state(const std::vector<double>& state);

 protected:
  void count(double sum, int64_t instances);
  // Counts the updates that update_dict_later() left for later. Everything that reads or changes the sums begins so.
  void finish_updates() const {
    if (later_) count_later_updates();
  }
  // update() takes it in a metric that stores more than the sums of count().
  InUse in_use(std::string_view call) const {
    finish_updates();
    return changing(call);
  }
  static constexpr size_t sums_in_state = 4;  // the first numbers of a state
  Options options_;
  double sum_metric_ = 0, global_sum_metric_ = 0;
  int64_t num_inst_ = 0, global_num_inst_ = 0;

 private:
  friend class LaterUpdates;
  void count_later_updates() const;
  // in_use(), but later updates stay as they are.
  InUse changing(std::string_view call) const {
    return InUse(busy_, call, "this metric", "give each thread a metric of its own and add their sums");
  }

  mutable BusyFlag busy_;
  std::unique_ptr<LaterUpdates> later_;  // none: there were none
};
using EvalMetricPtr = std::shared_ptr<EvalMetric>;

// Registers a user-defined metric with EvalMetric::create, under a name in any case. The factory receives the arguments
// as text and must reject those it does not know.
using MetricFactory = std::function<EvalMetricPtr(const std::map<std::string, std::string>& arguments)>;
void register_metric(const std::string& name, MetricFactory factory);

}  // namespace symbind
