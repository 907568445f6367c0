#include "symbind/train/device_count.h"

#include <algorithm>
#include <vector>

#include "symbind/exec/invoke.h"
#include "symbind/ops/metric_sums.h"

namespace symbind {

DeviceCount::DeviceCount(Context context)
    : totals_(zeros({MetricTotals::count}, context, DType::float64)),
      parts_({MetricSums::most_parts, MetricSums::part_size}, context, DType::float64) {}

// The flag is cleared before: what another thread adds in between is taken now, or its flag remains.
std::optional<NDArray> DeviceCount::take_totals() {
  if (!added_.exchange(false)) return std::nullopt;
  try {
    return invoke(take_metric_sums, {totals_})[0];
  } catch (...) {
    added_ = true;  // the device had no memory for the result, for instance: the next call takes all
    throw;
  }
}

std::optional<DeviceCount::Taken> DeviceCount::take() {
  const std::optional<NDArray> taken = take_totals();
  if (!taken) return std::nullopt;
  const std::vector<double> totals = taken->to_vector<double>();
  const auto whole = [&](int64_t index) {
    return static_cast<int64_t>(std::clamp(totals[static_cast<size_t>(index)], -0x1p63, 0x1.fffffffffffffp62));
  };
  return Taken{totals[MetricTotals::sum], whole(MetricTotals::instances), whole(MetricTotals::failures) > 0,
               whole(MetricTotals::label), whole(MetricTotals::classes)};
}

void DeviceCount::discard() { take_totals(); }

}  // namespace symbind
