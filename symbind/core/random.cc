#include "symbind/core/random.h"

#include "symbind/core/device.h"

namespace symbind {

void RandomState::seed(uint64_t value) {
  // The device's number goes through the generator itself, so that neighbouring seeds and devices are unrelated.
  const PhiloxBlock block = philox(value, static_cast<uint64_t>(device_id_), 0);
  restore({(uint64_t{block.words[0]} << 32) | block.words[1], 0});
}

RandomCursor RandomState::take(uint64_t count) {
  const std::lock_guard lock(mutex_);
  const RandomCursor taken = cursor_;
  cursor_.draw += count;
  return taken;
}

RandomCursor RandomState::peek() const {
  const std::lock_guard lock(mutex_);
  return cursor_;
}

void RandomState::restore(RandomCursor cursor) {
  const std::lock_guard lock(mutex_);
  cursor_ = cursor;
}

RandomState& host_random() {
  // Separate from every device's stream: initializing a network does not change what its dropout draws.
  static RandomState state(-1);
  return state;
}

}  // namespace symbind
