// Gradients as they are finished. While a watch lives, a backward run of the calling thread reports gradient arrays
// after the last step that writes them, so that they can be sent while the run continues. On a GPU they are reported
// when that step is queued, or is a part of a captured plan that has been launched, with the event that the GPU reaches
// after it. Not reported are: runs that are monitored, timed or on several contexts, and gradients that are converted
// to another type at the end.
#pragma once

#include <functional>
#include <span>

#include "symbind/core/device_event.h"
#include "symbind/core/ndarray.h"

namespace symbind {

class GradientWatch {
 public:
  // Gradients are reported together once they have as many bytes: an event takes time in a captured plan.
  static constexpr size_t bytes_each = size_t{1} << 20;

  // The gradients are complete when the event is reached; null: they are complete.
  using Report = std::function<void(std::span<const NDArray> gradients, const DeviceEventPtr& complete)>;
  explicit GradientWatch(Report report);
  ~GradientWatch();
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

  static const Report* current();  // of the calling thread; null: there is no watch

 private:
  const Report report_;
  const Report* const before_;
};

}  // namespace symbind
