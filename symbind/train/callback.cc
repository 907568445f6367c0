#include "symbind/train/callback.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "symbind/core/log.h"
#include "symbind/files/checkpoint.h"

namespace symbind {

std::string with_digits(double value, int digits) {
  return std::isnan(value) ? "nan" : fixed_text(value, digits);  // NaN without a sign, which says nothing
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

EpochEndCallback do_checkpoint(std::string prefix, int period) {
  period = std::max(1, period);
  return [prefix = std::move(prefix), period](int epoch, const Symbol& symbol, const NamedArrays& arg_params,
                                              const NamedArrays& aux_params) {
    if ((epoch + 1) % period == 0) save_checkpoint(prefix, epoch + 1, symbol, arg_params, aux_params);
  };
}

}  // namespace symbind
