// A thread reads several packs of 16 bytes before it writes the first.
#include "symbind/backend/cuda/copy_arrays.h"

#include "symbind/backend/cuda/array_blocks.cuh"
#include "symbind/backend/cuda/kernels.cuh"

namespace symbind::cuda_backend {
namespace {

using Bytes = uint4;

constexpr int arrays_per_launch = 32;
constexpr int loads = 4;
constexpr int packs_per_block = block_size * loads;
constexpr size_t bytes_per_block = packs_per_block * sizeof(Bytes);

struct Copies {
  ArrayBlocks<arrays_per_launch> blocks;
  CopiedBytes array[arrays_per_launch];
};

__global__ void __launch_bounds__(block_size) copy_arrays(const __grid_constant__ Copies copies) {
  const auto own = copies.blocks.find(blockIdx.x);
  const CopiedBytes& array = copies.array[own.array];
  const size_t first = own.block * bytes_per_block, left = array.bytes - first;
  const int count = static_cast<int>(left < bytes_per_block ? left : bytes_per_block);
  const auto* const from = static_cast<const uint8_t*>(array.from) + first;
  auto* const to = static_cast<uint8_t*>(array.to) + first;
  const bool aligned = (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % sizeof(Bytes) == 0;
  const int packs = aligned ? count / static_cast<int>(sizeof(Bytes)) : 0, thread = static_cast<int>(threadIdx.x);
  Bytes values[loads];
#pragma unroll
  for (int k = 0; k < loads; ++k)
    if (const int i = thread + k * block_size; i < packs) values[k] = reinterpret_cast<const Bytes*>(from)[i];
#pragma unroll
  for (int k = 0; k < loads; ++k)
    if (const int i = thread + k * block_size; i < packs) reinterpret_cast<Bytes*>(to)[i] = values[k];
  for (int i = packs * static_cast<int>(sizeof(Bytes)) + thread; i < count; i += block_size) to[i] = from[i];
}

}  // namespace

void queue_copies(cudaStream_t stream, std::span<const CopiedBytes> arrays) {
  Copies copies{};
  const auto queue = [&] {
    if (copies.blocks.count() > 0) copy_arrays<<<copies.blocks.blocks(), block_size, 0, stream>>>(copies);
    copies.blocks = {};
  };
  for (const CopiedBytes& array : arrays) {
    if (array.bytes == 0) continue;
    const auto blocks = static_cast<int64_t>((array.bytes + bytes_per_block - 1) / bytes_per_block);
    if (!copies.blocks.has_room(blocks)) queue();
    copies.array[copies.blocks.count()] = array;
    copies.blocks.add(blocks);
  }
  queue();
}

}  // namespace symbind::cuda_backend
