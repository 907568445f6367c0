// An array of activations as rows of adjacent channels: blocked layouts (16 or 8 channels a row) and channels-last ones
// (all channels a row). Loops over BatchNorm's and similar operators' channels become vector instructions this way, and
// a slab of a few channels stays in the cache between two passes over it.
#pragma once

#include <cstdint>
#include <cstring>

#include "symbind/backend/cpu/loops.h"
#include "symbind/core/shape.h"
#include "symbind/passes/tensor.h"

namespace symbind::cpu_backend {

// Sixteen floats, eight, or one, loaded and stored without alignment requirements.
template <int lanes>
struct LanesOf {
  using Vector [[gnu::vector_size(lanes * sizeof(float))]] = float;
};
template <>
struct LanesOf<1> {
  using Vector = float;
};
template <int lanes>
using Lanes = typename LanesOf<lanes>::Vector;

template <class Vector>
[[gnu::always_inline]] inline Vector load(const float* from) {
  Vector value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
template <class Vector>
[[gnu::always_inline]] inline void store(float* to, Vector value) {
  std::memcpy(to, &value, sizeof(value));
}

// Channels [first, first + width) of all images: `images` times `rows` rows.
struct Slab {
  int64_t first, width;  // channels
  int64_t start;         // offset of the first row of the first image, in elements
  int64_t images, rows;
  int64_t image_step, row_step;
};

// How many pieces of so many elements are worth a thread, in a loop that reads them twice.
inline int64_t twice_read_grain(int64_t elements) { return element_grain / 2 / (elements + 1) + 1; }

// The slabs of an array; every element is in exactly one.
class Slabs {
 public:
  // `outer` images of `channels` channels with `inner` positions each. Channels are in blocks of `block`, or, with a
  // block of 1, last.
  Slabs(int64_t outer, int64_t channels, int64_t inner, int64_t block);
  int64_t count() const { return count_; }
  int64_t grain() const { return twice_read_grain(outer_ * inner_ * width_); }
  Slab at(int64_t index) const;

 private:
  int64_t outer_, channels_, inner_, block_, width_, count_;
};

}  // namespace symbind::cpu_backend
