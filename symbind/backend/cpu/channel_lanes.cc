#include "symbind/backend/cpu/channel_lanes.h"

#include <algorithm>

namespace symbind::cpu_backend {

// With channels last a slab is a few vectors wide, so that its rows use whole cache lines, and narrow enough that there
// are slabs for several threads.
Slabs::Slabs(int64_t outer, int64_t channels, int64_t inner, int64_t block)
    : outer_(outer), channels_(channels), inner_(inner), block_(block) {
  width_ = block > 1 ? block : channels >= 128 ? 64 : channels >= 64 ? 32 : 16;
  count_ = (channels + width_ - 1) / width_;
}

Slab Slabs::at(int64_t index) const {
  const int64_t first = index * width_, width = std::min(width_, channels_ - first);
  if (block_ > 1) return {first, width, first * inner_, outer_, inner_, channels_ * inner_, block_};
  return {first, width, first, 1, outer_ * inner_, 0, channels_};
}

}  // namespace symbind::cpu_backend
