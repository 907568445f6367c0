// Counter-based random numbers (Philox 4x32-10): the value at a position is a function of key, draw and position alone,
// so it does not depend on threads or on the device. A draw is one execution of one random operator.
#pragma once

#include <cstdint>
#include <mutex>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

// What a random operator reads: in device memory on a GPU, so that a captured plan sees new draws at each replay.
struct RandomCursor {
  uint64_t key = 0;
  uint64_t draw = 0;
};

struct PhiloxBlock {
  uint32_t words[4];
};

constexpr PhiloxBlock philox(uint64_t key, uint64_t draw, uint64_t position) {
  uint32_t c0 = static_cast<uint32_t>(position), c1 = static_cast<uint32_t>(position >> 32);
  uint32_t c2 = static_cast<uint32_t>(draw), c3 = static_cast<uint32_t>(draw >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// A float in [0, 1) from the upper 24 bits, and a double from 53 bits of two words.
constexpr float unit_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
constexpr double unit_double(uint32_t high, uint32_t low) {
  return static_cast<double>(((uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

// The random state of a device. seed(n) restarts it; contexts with the same id on different kinds of device draw the
// same numbers, contexts with different ids draw different ones. Several threads may take draws from one state.
class RandomState {
 public:
  explicit RandomState(int device_id) : device_id_(device_id) { seed(0); }
  void seed(uint64_t value);
  // Takes the next `count` draws and returns the cursor of the first.
  RandomCursor take(uint64_t count);
  RandomCursor peek() const;
  void restore(RandomCursor cursor);

 private:
  const int device_id_;
  mutable std::mutex mutex_;
  RandomCursor cursor_;
};

// Seeds every present and future device, and the host generator used by shuffles and initializers.
void seed(uint64_t value);
RandomState& host_random();

}  // namespace symbind
