#include "symbind/train/callback.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "symbind/core/log.h"
#include "symbind/core/text.h"
#include "symbind/files/checkpoint.h"

namespace symbind {

std::string with_digits(double value, int digits) {
  return std::isnan(value) ? "nan" : fixed_text(value, digits);  // NaN without its sign, which has no meaning
}

namespace {

std::string metric_text(const EvalMetric& metric, const char* separator) {
  std::string text;
  for (const auto& [name, value] : metric.get_name_value()) text += join(separator, name, "=", with_digits(value, 6));
  return text;
}

}  // namespace

Speedometer::Speedometer(int64_t batch_size, int64_t frequent, bool auto_reset)
    : batch_size_(batch_size), frequent_(frequent), auto_reset_(auto_reset) {
  require(frequent >= 1, "[Speedometer] frequent must be at least 1: ", frequent);
}

void Speedometer::operator()(const BatchEndParam& param) {
  const int64_t count = param.nbatch;
  const bool new_epoch = count < last_count_;
  last_count_ = count;
  if (!started_ || new_epoch) {
    started_ = true;
    since_ = std::chrono::steady_clock::now();
    return;
  }
  if (count % frequent_ != 0) return;
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - since_).count();
  const double speed =
      seconds > 0 ? static_cast<double>(frequent_ * batch_size_) / seconds : std::numeric_limits<double>::infinity();
  const std::string speed_text = join("\tSpeed: ", with_digits(speed, 2), " samples/sec");
  if (!param.eval_metric) {
    log_info("Iter[", param.epoch, "] Batch [", count, "]", speed_text);
  } else {
    const std::string values = metric_text(*param.eval_metric, "\t");
    const int64_t first = auto_reset_ ? count - frequent_ : 0;
    if (auto_reset_) param.eval_metric->reset_local();
    log_info("Epoch[", param.epoch, "] Batch [", first, "-", count, "]", speed_text, values);
  }
  since_ = std::chrono::steady_clock::now();
}

ProgressBar::ProgressBar(int64_t total, int64_t length) : total_(total), length_(length) {
  require(total >= 1, "[ProgressBar] total must be at least 1: ", total);
  require(length >= 1, "[ProgressBar] length must be at least 1: ", length);
}

void ProgressBar::operator()(const BatchEndParam& param) {
  const int64_t done = std::clamp<int64_t>(param.nbatch + 1, 0, total_);
  if (done < last_done_) last_done_ = 0;  // another epoch
  const double part = static_cast<double>(done) / static_cast<double>(total_);
  const auto filled = static_cast<size_t>(std::lround(static_cast<double>(length_) * part));
  const std::string bar = join("[", std::string(filled, '='), std::string(static_cast<size_t>(length_) - filled, '-'),
                               "] ", static_cast<int>(std::ceil(100 * part)), "%",
                               param.eval_metric ? metric_text(*param.eval_metric, "  ") : "");
  const bool new_tenth = done * 10 / total_ > last_done_ * 10 / total_;
  if (!write_status(bar, done == total_) && new_tenth) log_info(bar);
  last_done_ = done;
}

BatchEndCallback log_train_metric(int64_t period, bool auto_reset) {
  require(period >= 1, "[log_train_metric] period must be at least 1: ", period);
  return [period, auto_reset](const BatchEndParam& param) {
    if (param.nbatch % period != 0 || !param.eval_metric) return;
    for (const auto& [name, value] : param.eval_metric->get_name_value())
      log_info("Iter[", param.epoch, "] Batch[", param.nbatch, "] Train-", name, "=", with_digits(value, 6));
    if (auto_reset) param.eval_metric->reset_local();
  };
}

void LogValidationMetricsCallback::operator()(const BatchEndParam& param) const {
  if (!param.eval_metric) return;
  for (const auto& [name, value] : param.eval_metric->get_name_value())
    log_info("Epoch[", param.epoch, "] Validation-", name, "=", with_digits(value, 6));
}

// ---- driven by validation -------------------------------------------------------------------------------------------

namespace {

// Whether greater values of a metric are better, if its name determines it.
std::optional<bool> greater_is_better(std::string_view name) {
  const std::string metric = lower_case(name);
  const auto has = [&](std::string_view part) { return metric.find(part) != std::string::npos; };
  for (const char* part : {"loss", "entropy", "perplexity", "mae", "mse", "error"})
    if (has(part)) return false;
  for (const char* part : {"acc", "auc", "f1", "mcc", "pcc", "pearson", "precision", "recall"})
    if (has(part)) return true;
  return std::nullopt;
}

}  // namespace

BestValue::BestValue(BestOf options) : options_(std::move(options)) {
  require(options_.mode == "auto" || options_.mode == "min" || options_.mode == "max",
          "[callback] mode must be auto, min or max: ", options_.mode);
  require(options_.min_delta >= 0, "[callback] min_delta must be at least 0: ", options_.min_delta);
}

bool BestValue::improved(const BatchEndParam& param) {
  require(param.eval_metric != nullptr, "[callback] there is no metric to find the best value of");
  const EvalMetric::NameValues values = param.eval_metric->get_global_name_value();
  require(!values.empty(), "[callback] the metric has no values");
  if (options_.metric.empty()) options_.metric = values.front().first;
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  const auto found = std::find(names.begin(), names.end(), options_.metric);
  require(found != names.end(), "[callback] unknown metric '", options_.metric, "'; the values are those of ",
          comma_separated(names));
  const double now = values[static_cast<size_t>(found - names.begin())].second;

  const std::optional<bool> greater =
      options_.mode == "auto" ? greater_is_better(options_.metric) : std::optional(options_.mode == "max");
  require(greater.has_value(), "[callback] it is unknown whether a greater '", options_.metric,
          "' is better: give mode \"max\" or \"min\"");
  if (std::isnan(now)) return false;
  if (value_ && !(*greater ? now > *value_ + options_.min_delta : now < *value_ - options_.min_delta)) return false;
  value_ = now;
  epoch_ = param.epoch;
  return true;
}

EarlyStopping::EarlyStopping(int patience, const BestOf& options) : patience_(patience), best_(options) {
  require(patience >= 1, "[EarlyStopping] patience must be at least 1: ", patience);
}

void EarlyStopping::operator()(const BatchEndParam& param) {
  waited_ = best_.improved(param) ? 0 : waited_ + 1;
  if (waited_ < patience_) return;
  const std::string best =
      best_.value() ? join(best_.metric(), " was best, ", with_digits(*best_.value(), 6), ", in epoch ", best_.epoch())
                    : join(best_.metric(), " was never a number");
  throw StopTraining(join("early stopping: ", best));
}

SaveBest::SaveBest(std::function<void()> save, std::string prefix, const BestOf& options)
    : save_(std::move(save)), prefix_(std::move(prefix)), best_(options) {
  require(save_ != nullptr, "[SaveBest] needs a function that saves");
}

void SaveBest::operator()(const BatchEndParam& param) {
  if (!best_.improved(param)) return;
  save_();
  log_info("Epoch[", param.epoch, "] Saved the best so far to \"", prefix_, "\": ", best_.metric(), "=",
           with_digits(*best_.value(), 6));
}

// ---- checkpoints ----------------------------------------------------------------------------------------------------

const Symbol& no_symbol() {
  static const Symbol none = Symbol::variable("no_symbol");
  return none;
}

EpochEndCallback do_checkpoint(std::string prefix, int period) {
  period = std::max(1, period);
  return [prefix = std::move(prefix), period](int epoch, const Symbol& symbol, const NamedArrays& arg_params,
                                              const NamedArrays& aux_params) {
    if ((epoch + 1) % period != 0) return;
    const auto network = &symbol == &no_symbol() ? std::nullopt : std::optional(symbol);
    save_checkpoint(prefix, epoch + 1, network, arg_params, aux_params);
  };
}

}  // namespace symbind
