// Non-maximum suppression of boxes that are in the order of their scores, a block for each row of boxes. Boxes are
// processed in tiles: a tile is compared with the boxes that remain so far, then with itself, and one warp resolves it
// sequentially. The work is proportional to the remaining boxes, and no matrix of all pairs is stored.
#pragma once

#include <cstdint>

#include "symbind/backend/cuda/kernels.cuh"

namespace symbind::cuda_backend {

inline constexpr int suppress_threads = 1024;

// left[row · stride …] are the indices of the boxes that no better remaining one overlaps, in order, at most `most`;
// left_counts[row] is their number. rule.count(row) is the number of boxes, at most stride; rule.drops(row, a, b): does
// box a suppress box b, which comes after it?
template <class Rule>
__global__ void __launch_bounds__(suppress_threads)
    suppress_rows(Rule rule, int64_t rows, int64_t stride, int32_t most, int32_t* left, int32_t* left_counts) {
  constexpr int tile = suppress_threads / 4, words = tile / 32;
  constexpr unsigned everyone = 0xffffffffu;
  __shared__ uint32_t drops[tile][words];  // which later boxes of the tile a box drops
  __shared__ bool dropped[tile];
  __shared__ int32_t kept;
  const int thread = static_cast<int>(threadIdx.x), box = thread / 4, lane = thread % 32;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int32_t* const own = left + row * stride;
    const int32_t count = rule.count(row);
    if (thread == 0) kept = 0;
    __syncthreads();
    for (int32_t begin = 0; begin < count && kept < most; begin += tile) {
      const int in_tile = count - begin < tile ? count - begin : tile;
      // Four threads to a box, among those that remain so far.
      int drop = 0;
      if (box < in_tile)
        for (int32_t k = thread % 4; k < kept && !drop; k += 4) drop = rule.drops(row, own[k], begin + box);
      drop |= __shfl_xor_sync(everyone, drop, 1);
      drop |= __shfl_xor_sync(everyone, drop, 2);
      if (thread % 4 == 0) dropped[box] = drop != 0;
      for (int i = thread; i < tile * words; i += suppress_threads) {
        const int a = i / words, first = i % words * 32;
        uint32_t bits = 0;
        for (int bit = 0; bit < 32; ++bit) {
          const int b = first + bit;
          if (b > a && b < in_tile && rule.drops(row, begin + a, begin + b)) bits |= 1u << bit;
        }
        drops[a][i % words] = bits;
      }
      __syncthreads();
      if (thread < 32) {
        uint32_t removed = 0;  // of boxes 32 · lane …
        if (lane < words)
          for (int bit = 0; bit < 32; ++bit)
            if (dropped[lane * 32 + bit]) removed |= 1u << bit;
        int32_t count_left = kept;
        for (int a = 0; a < in_tile && count_left < most; ++a) {
          const uint32_t word = __shfl_sync(everyone, removed, a / 32);
          if (word >> (a % 32) & 1u) continue;
          if (lane == 0) own[count_left] = begin + a;
          ++count_left;
          if (lane < words) removed |= drops[a][lane];
        }
        __syncwarp();
        if (lane == 0) kept = count_left;
      }
      __syncthreads();
    }
    if (thread == 0) left_counts[row] = kept;
    __syncthreads();  // before the next row sets it
  }
}

template <class Rule>
void queue_suppress(cudaStream_t stream, const Rule& rule, int64_t rows, int64_t stride, int64_t most, int32_t* left,
                    int32_t* left_counts) {
  suppress_rows<<<blocks_for(rows, 1), suppress_threads, 0, stream>>>(
      rule, rows, stride, static_cast<int32_t>(most < stride ? most : stride), left, left_counts);
}

}  // namespace symbind::cuda_backend
