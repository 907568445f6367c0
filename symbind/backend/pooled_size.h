// The sizes of a GPU memory pool's blocks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace symbind {

// The size of the block for so many bytes, a multiple of 512. Similar sizes share blocks, but from 4 KiB on less than
// an eighth is wasted, and always less than 32 MiB: a plan's arena may have several GiB.
constexpr size_t pooled_size(size_t bytes) {
  constexpr size_t least = 512, most = size_t{32} << 20;
  const size_t step = std::clamp(std::bit_floor(bytes) / 8, least, most);
  return std::max(least, (bytes + step - 1) / step * step);
}

}  // namespace symbind
