// How many blocks a kernel is launched with.
#pragma once

#include <algorithm>
#include <cstdint>

namespace symbind::cuda_backend {

inline constexpr int block_size = 256;

// A bound for kernels that stride over their elements: their results do not depend on the number of blocks. At most 8
// blocks of block_size threads are resident on a multiprocessor, so that this many fill GPUs with up to 264 of them.
inline constexpr int64_t most_blocks = 8 * 264;

inline unsigned blocks_for(int64_t count, int64_t per_block = block_size) {
  return static_cast<unsigned>(std::clamp<int64_t>((count + per_block - 1) / per_block, 1, most_blocks));
}

}  // namespace symbind::cuda_backend
