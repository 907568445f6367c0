#include "symbind/train/monitor.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <regex>
#include <utility>

#include "symbind/core/array_text.h"
#include "symbind/core/log.h"

namespace symbind {
namespace {

double root_mean_square(const NDArray& array) {
  double sum = 0;
  for (const double value : array.to_vector<double>()) sum += value * value;
  return std::sqrt(sum) / std::sqrt(static_cast<double>(array.size()));
}

// The shortest digits that round-trip, as Python writes them: 2.17677, 3.0, 1e-05.
template <class Number>
std::string shortest(Number value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const double size = std::abs(static_cast<double>(value));
  const bool plain = value == 0 || (size >= 1e-4 && size < 1e16);
  char digits[64];
  char* const end = std::to_chars(digits, digits + sizeof(digits), value,
                                  plain ? std::chars_format::fixed : std::chars_format::scientific)
                        .ptr;
  std::string text(digits, end);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

// A single number is without brackets.
std::string text_of(const NDArray& value) {
  if (value.size() != 1 || value.rank() > 1) return values_text(value);
  if (!is_floating(value.dtype())) return std::to_string(value.to_vector<int64_t>()[0]);
  return value.dtype() == DType::float64 ? shortest(value.item()) : shortest(static_cast<float>(value.item()));
}

std::string text_of(const Statistic& statistic) {
  std::string text;
  for (const NDArray& value : statistic.values) text += text_of(value) + '\t';
  return text;
}

std::regex compiled(const std::string& pattern) {
  try {
    return std::regex(pattern);
  } catch (const std::regex_error& error) {
    fail("[Monitor] pattern must be a regular expression: '", pattern, "' (", error.what(), ")");
  }
}

}  // namespace

Statistic::Statistic(double value) : values{array({value})} {}

namespace {

struct Settings {
  Settings(const MonitorOptions& options)
      : stat_func(options.stat_func),
        pattern(compiled(options.pattern)),
        sort(options.sort),
        monitor_all(options.monitor_all) {
    if (!stat_func) stat_func = [](const NDArray& array) { return Statistic(root_mean_square(array)); };
  }
  bool matches(const std::string& name) const {
    return std::regex_search(name, pattern, std::regex_constants::match_continuous);
  }

  StatFunc stat_func;
  std::regex pattern;
  bool sort;
  bool monitor_all;
  mutable std::mutex mutex;  // a user's statistic need not be thread-safe
};

}  // namespace

// The entries of one executor, owned by the callback installed in it. Its entries are written by the thread that runs
// it, and read between batches: the order of entries does not depend on that of the executors.
struct Monitor::Installed {
  std::weak_ptr<const Settings> settings;  // the monitor's: an executor does not keep the statistic of a destroyed one
  std::weak_ptr<Executor> executor = {};
  std::vector<std::pair<std::string, NDArray>> parameters = {};
  std::atomic<bool> listening = false;
  bool ran = false;
  std::vector<std::pair<std::string, std::string>> seen = {};

  void see(const std::string& name, const NDArray& array) {
    const auto living = settings.lock();
    if (!living || !living->matches(name)) return;
    const std::lock_guard lock(living->mutex);
    seen.emplace_back(name, text_of(living->stat_func(array)));
  }
};

struct Monitor::State {
  Monitor* monitor;
  std::shared_ptr<const Settings> settings;
  int64_t interval;
  int64_t step = 0;
  bool activated = false;
  std::vector<std::weak_ptr<Installed>> installed = {};

  void install(Executor& executor);
  std::vector<std::shared_ptr<Installed>> living() const {
    std::vector<std::shared_ptr<Installed>> result;
    for (const auto& entry : installed)
      if (auto record = entry.lock()) result.push_back(std::move(record));
    return result;
  }
};

void Monitor::State::install(Executor& executor) {
  auto record = std::make_shared<Installed>();
  record->settings = settings;
  record->executor = executor.weak_from_this();
  record->listening = activated;
  const auto remember = [&](const std::vector<std::string>& names, const std::vector<NDArray>& arrays) {
    for (size_t i = 0; i < names.size(); ++i) record->parameters.emplace_back(names[i], arrays[i]);
  };
  remember(executor.symbol().list_arguments(), executor.arg_arrays());
  remember(executor.symbol().list_auxiliary_states(), executor.aux_arrays());
  executor.set_monitor_callback(
      [record](const std::string& name, const NDArray& array) {
        if (!record->listening) return;
        record->ran = true;
        record->see(name, array);
      },
      settings->monitor_all);
  std::erase_if(installed, [](const auto& entry) { return entry.expired(); });
  installed.push_back(record);
}

namespace {

int64_t checked_interval(int64_t interval) {
  require(interval >= 1, "[Monitor] interval must be at least 1: ", interval);
  return interval;
}

}  // namespace

Monitor::Monitor(int64_t interval, const MonitorOptions& options) {
  checked_interval(interval);
  state_ = std::make_shared<State>(State{this, std::make_shared<Settings>(options), interval});
}

// Executors that outlive the monitor continue without it.
Monitor::~Monitor() {
  for (const auto& record : state_->living()) record->listening = false;
}

void Monitor::install(Executor& executor) { state_->install(executor); }

std::function<void(Executor&)> Monitor::installer() const {
  return [state = std::weak_ptr<State>(state_)](Executor& executor) {
    if (const auto living = state.lock()) living->monitor->install(executor);
  };
}

std::vector<ExecutorPtr> Monitor::executors() const {
  std::vector<ExecutorPtr> result;
  for (const auto& record : state_->living())
    if (ExecutorPtr executor = record->executor.lock()) result.push_back(std::move(executor));
  return result;
}

int64_t Monitor::interval() const { return state_->interval; }
int64_t Monitor::step() const { return state_->step; }
bool Monitor::activated() const { return state_->activated; }

void Monitor::set_interval(int64_t interval) { state_->interval = checked_interval(interval); }
void Monitor::set_step(int64_t step) { state_->step = step; }

void Monitor::set_activated(bool activated) {
  for (const auto& record : state_->living()) {
    record->seen.clear();
    record->ran = false;
    record->listening = activated;
  }
  state_->activated = activated;
}

void Monitor::tic() {
  if (state_->step % state_->interval == 0) set_activated(true);
  ++state_->step;
}

std::vector<Monitor::Entry> Monitor::toc() {
  if (!std::exchange(state_->activated, false)) return {};
  std::vector<std::shared_ptr<Installed>> ran;
  for (const auto& record : state_->living()) {
    record->listening = false;
    if (record->ran) ran.push_back(record);
  }
  std::vector<Entry> entries;
  const auto collect = [&](Installed& record) {
    for (auto& [name, value] : record.seen) entries.push_back({state_->step, std::move(name), std::move(value)});
    record.seen.clear();
  };
  for (const auto& record : ran) collect(*record);
  for (const auto& record : ran) {
    for (const auto& [name, array] : record->parameters) record->see(name, array);
    collect(*record);
  }
  if (state_->settings->sort)
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

void Monitor::toc_print() { print(toc()); }

void Monitor::print(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    char head[32];
    std::snprintf(head, sizeof(head), "Batch: %7lld ", static_cast<long long>(entry.step));
    const size_t width = 30;
    const std::string blanks(entry.name.size() < width ? width - entry.name.size() : 0, ' ');
    log_info(head, entry.name, blanks, " ", entry.value);
  }
}

}  // namespace symbind
