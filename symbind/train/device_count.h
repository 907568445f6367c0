// The sums of a metric in the memory of a device, which counts there.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "symbind/core/ndarray.h"

namespace symbind {

// The operator _metric_sums adds to the totals, on the device's queue; any thread may take them meanwhile.
class DeviceCount {
 public:
  explicit DeviceCount(Context context);  // allocates

  const NDArray& totals() const { return totals_; }
  const NDArray& parts() const { return parts_; }
  // Call it after work that adds to the totals was queued.
  void note_added() { added_ = true; }

  struct Taken {
    double sum = 0;
    int64_t instances = 0;
    bool failed = false;  // updates with a label that is no class
    int64_t label = 0, classes = 0;
  };
  bool has_added() const { return added_; }  // since the last take() or discard()
  // What was added since the last call; none: nothing was. Waits for the device.
  std::optional<Taken> take();
  void discard();

 private:
  std::optional<NDArray> take_totals();  // a copy of them, and sets them to zero; none: nothing was added

  const NDArray totals_, parts_;
  std::atomic<bool> added_ = false;
};

}  // namespace symbind
