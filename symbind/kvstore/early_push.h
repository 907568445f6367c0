// A store that may start to exchange gradients before the update of a step, while other gradients are still computed.
#pragma once

#include "symbind/core/device_event.h"
#include "symbind/kvstore/kvstore.h"

namespace symbind {

class EarlyPush {
 public:
  virtual ~EarlyPush() = default;
  // Not where the optimizer needs all gradients of a step in one call.
  virtual bool may_push_early() const = 0;
  // Does pushpull() return sums, the same on all workers, that are infinite or NaN where a pushed number is? Not where
  // the store updates or compresses.
  virtual bool returns_sums() const = 0;
  // The next pushpull() of these keys waits for this instead of pushing them again. The arrays must not change until
  // then. They are on one GPU and not read before it reaches `complete`; null: they are complete. A store that only
  // sums may write the sums into the arrays: that pushpull() must return them there.
  virtual void push_early(const KVStore::Keys& keys, const KVStore::Values& values, int priority,
                          const DeviceEventPtr& complete = nullptr) = 0;
};

}  // namespace symbind
