// Convolutions with few positions of the output on tensor cores, in 16 bits: all arrays with their channels last, sums
// in float32.
//
// The convolution is a matrix product of positions by filters, whose depth is the kernel's elements times the channels.
// It has too few tiles to fill the GPU, and a long depth. So the blocks of a cluster compute the same tile, each over a
// part of the depth, in slices of 64 channels of one element of the kernel. Nearly all slices of a block are requested
// before the first one is used, the weights first: these may be read while the kernel before still runs. The two halves
// of a block's warps multiply the two halves of each slice. Each block of the cluster then receives some rows of the
// tile from all of them, in its shared memory, adds these up and writes the results.
//
// Which products a block computes depends on the shape and on the form alone, and the order of all sums is fixed: the
// same arrays give bitwise the same results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "symbind/backend/cuda/cluster.cuh"
#include "symbind/backend/cuda/launch.cuh"
#include "symbind/backend/cuda/packed.cuh"
#include "symbind/backend/cuda/shared_memory.h"
#include "symbind/backend/cuda/tensor_core.cuh"
#include "symbind/backend/divisor.h"
#include "symbind/backend/functions.h"

namespace symbind::cuda_backend {

inline constexpr int few_rows_slice = 64;        // channels of a slice
inline constexpr int few_rows_most_stages = 16;  // slices in shared memory

struct FewRowsShape {
  int batch = 0, channels = 0, filters = 0;
  int in[2] = {}, out[2] = {}, kernel[2] = {}, stride[2] = {}, pad[2] = {}, dilate[2] = {};

  constexpr int rows() const { return batch * out[0] * out[1]; }
  constexpr int channel_slices() const { return channels / few_rows_slice; }
  constexpr int slices() const { return kernel[0] * kernel[1] * channel_slices(); }
};

// A block's tile: positions by filters, with the warps in two groups.
template <int tile_columns>
struct FewRowsTile {
  static constexpr int rows = 64, columns = tile_columns, threads = 256, groups = 2;
  static constexpr int warp_rows = 32, warp_columns = columns / 2;  // 2 × 2 warps in a group
  static constexpr int row_fragments = warp_rows / 16, column_fragments = warp_columns / 8;
  static constexpr int row_bytes = few_rows_slice * 2;  // of a position or a filter in a slice
  static constexpr int data_bytes = rows * row_bytes, stage_bytes = (rows + columns) * row_bytes;
  // The sums of a group while they are exchanged. The rows of eight lanes that store together are in different banks.
  static constexpr int sums_row = columns + 8, sums_bytes = groups * rows * sums_row * static_cast<int>(sizeof(float));
  static constexpr int row_chunks = columns / 4;                     // of four sums
  static constexpr int thread_chunks = rows * row_chunks / threads;  // of a tile
  static_assert(threads % row_chunks == 0 && column_fragments % 2 == 0);
};

// How the work is divided. And what the kernel needs of the shape's functions, computed once.
struct FewRowsCut {
  int cluster = 1;  // blocks for a tile
  int row_tiles = 1, column_tiles = 1, tile_rows = 1;
  int rank_rows = 1;  // of a tile, that a block writes
  int stages = 1, ring_bytes = 0, shared_bytes = 0;
  int rows = 0, slices = 0, block_slices = 0, longer_blocks = 0;  // that many blocks have one slice more
  Divisor by_rank_rows, by_out[2], by_kernel_columns, by_channel_slices;

  int blocks() const { return row_tiles * column_tiles * cluster; }
  dim3 grid() const {
    return {static_cast<unsigned>(cluster), static_cast<unsigned>(column_tiles), static_cast<unsigned>(row_tiles)};
  }
};

template <class Tile>
FewRowsCut cut_few_rows(const FewRowsShape& shape, int cluster, int multiprocessors, const SharedMemory& shared) {
  constexpr int barrier_bytes = 16;
  const auto divide_up = [](int a, int b) { return (a + b - 1) / b; };
  FewRowsCut cut;
  cut.cluster = cluster;
  cut.rows = shape.rows();
  cut.slices = shape.slices();
  cut.block_slices = cut.slices / cluster;
  cut.longer_blocks = cut.slices % cluster;
  cut.row_tiles = divide_up(cut.rows, Tile::rows);
  cut.column_tiles = divide_up(shape.filters, Tile::columns);
  cut.tile_rows = divide_up(cut.rows, cut.row_tiles);
  cut.rank_rows = divide_up(cut.tile_rows, cluster);
  const int received_bytes = cluster * cut.rank_rows * Tile::columns * static_cast<int>(sizeof(float));
  const int half = shared.of_multiprocessor / 2 - shared.reserved;
  const int most = cut.blocks() > multiprocessors ? std::min(half, shared.of_block) : shared.of_block;
  const int room = (most - received_bytes - barrier_bytes) / Tile::stage_bytes;
  cut.stages = std::clamp(room, 2, std::clamp(divide_up(cut.slices, cluster), 2, few_rows_most_stages));
  cut.ring_bytes = std::max(cut.stages * Tile::stage_bytes, Tile::sums_bytes);
  cut.shared_bytes = cut.ring_bytes + received_bytes + barrier_bytes;
  cut.by_rank_rows = cut.rank_rows;
  cut.by_out[0] = shape.out[0];
  cut.by_out[1] = shape.out[1];
  cut.by_kernel_columns = shape.kernel[1];
  cut.by_channel_slices = shape.channel_slices();
  return cut;
}

// Filters of a tile, and blocks of a cluster.
struct FewRowsForm {
  int columns, cluster;
};

// Those to be tried, the probably fastest one first: with blocks for half of the multiprocessors, if that is possible,
// up to two blocks for each. None: there are enough tiles without clusters.
inline std::vector<FewRowsForm> few_rows_forms_for(const FewRowsShape& shape, int multiprocessors) {
  constexpr int few_slices = 4;  // with these a second block on a multiprocessor is little work
  const int row_tiles = (shape.rows() + FewRowsTile<64>::rows - 1) / FewRowsTile<64>::rows, slices = shape.slices();
  const auto tiles = [&](int columns) { return row_tiles * ((shape.filters + columns - 1) / columns); };
  const auto blocks = [&](const FewRowsForm& form) { return tiles(form.columns) * form.cluster; };
  if (tiles(64) > (slices > few_slices ? 1 : 2) * multiprocessors) return {};
  std::vector<FewRowsForm> forms;
  for (const int columns : {64, 32}) {
    std::vector<FewRowsForm> with_columns;
    int block_slices = 0;
    for (int cluster = 1; cluster <= std::min(slices, most_cluster_blocks); ++cluster) {
      if (blocks({columns, cluster}) > 2 * multiprocessors) break;
      if (std::exchange(block_slices, (slices + cluster - 1) / cluster) != (slices + cluster - 1) / cluster)
        with_columns.push_back({columns, cluster});
    }
    for (const FewRowsForm& form : with_columns)
      if (2 * blocks(form) > multiprocessors || form.cluster == with_columns.back().cluster) forms.push_back(form);
  }
  // The most blocks that all have their own multiprocessor, if there are such.
  std::ranges::stable_sort(forms, {}, [&](const FewRowsForm& form) {
    return blocks(form) <= multiprocessors ? multiprocessors - blocks(form) : blocks(form);
  });
  return forms;
}

template <class T>
struct FewRowsArrays {
  const T *data, *weight;
  T* out;
  const T *residual, *bias;  // or null
  bool relu;
};

#if SYMBIND_BUILT_FOR_9_0
namespace few_rows {

// All but the last `left` groups of this thread's copies have arrived.
__device__ inline void wait_for_copies(int left) {
  using tensor_core::wait_for_copies;
  static_assert(few_rows_most_stages == 16);
  switch (left) {
    case 0:
      return wait_for_copies<0>();
    case 1:
      return wait_for_copies<1>();
    case 2:
      return wait_for_copies<2>();
    case 3:
      return wait_for_copies<3>();
    case 4:
      return wait_for_copies<4>();
    case 5:
      return wait_for_copies<5>();
    case 6:
      return wait_for_copies<6>();
    case 7:
      return wait_for_copies<7>();
    case 8:
      return wait_for_copies<8>();
    case 9:
      return wait_for_copies<9>();
    case 10:
      return wait_for_copies<10>();
    case 11:
      return wait_for_copies<11>();
    case 12:
      return wait_for_copies<12>();
    case 13:
      return wait_for_copies<13>();
    case 14:
      return wait_for_copies<14>();
    default:
      return wait_for_copies<15>();
  }
}

// Chunks of 16 bytes are at positions for which eight neighbouring rows that are read together are in different banks.
__device__ inline uint32_t in_slice(int row, int chunk) {
  return static_cast<uint32_t>(row * few_rows_slice * 2 + ((chunk ^ (row & 7)) * 16));
}

template <class T, class Tile>
class Block {
 public:
  __device__ Block(const FewRowsShape& shape, const FewRowsCut& cut, const FewRowsArrays<T>& arrays,
                   unsigned char* shared)
      : shape_(shape),
        cut_(cut),
        arrays_(arrays),
        shared_(shared),
        ring_(tensor_core::shared_address(shared)),
        received_(ring_ + static_cast<uint32_t>(cut.ring_bytes)),
        barrier_(ring_ + static_cast<uint32_t>(cut.shared_bytes - 16)),
        rank_(cluster::rank()) {
    first_row_ = static_cast<int>(blockIdx.z) * cut.tile_rows;
    rows_ = min(cut.tile_rows, cut.rows - first_row_);
    first_column_ = static_cast<int>(blockIdx.y) * Tile::columns;
    own_rows_ = max(min(cut.rank_rows, rows_ - rank_ * cut.rank_rows), 0);
    first_slice_ = rank_ * cut.block_slices + min(rank_, cut.longer_blocks);
    slices_ = cut.block_slices + (rank_ < cut.longer_blocks ? 1 : 0);
  }

  __device__ void run(bool reads_weight_early) {
    if (thread() == 0 && !is_alone())
      cluster::expect(barrier_, cut_.cluster * own_rows_ * Tile::columns * static_cast<int>(sizeof(float)));
    cluster::arrive();
    if (!reads_weight_early) wait_for_previous();
    const int first_slices = min(slices_, cut_.stages);
    for (int slice = 0; slice < first_slices; ++slice) copy_weight(slice, slice);
    const Positions positions(*this);
    Tap tap(cut_, first_slice_);
    if (reads_weight_early) wait_for_previous();
    for (int slice = 0; slice < first_slices; ++slice, tap.next(shape_)) {
      copy_data(positions, tap, slice);
      tensor_core::end_copies();
    }
    load_operands();

    Sums sums = {};
    int stage = 0, freed_stage = 0;
    for (int slice = 0; slice < slices_; ++slice) {
      const int requested = slice == 0 ? first_slices : min(slices_, slice - 1 + cut_.stages);
      wait_for_copies(requested - slice - 1);
      __syncthreads();
      if (slice > 0) {
        if (requested < slices_) {
          copy_weight(requested, freed_stage);
          copy_data(positions, tap, freed_stage);
          tap.next(shape_);
          tensor_core::end_copies();
        }
        freed_stage = freed_stage + 1 == cut_.stages ? 0 : freed_stage + 1;
      }
      multiply(sums, ring_ + static_cast<uint32_t>(stage * Tile::stage_bytes));
      stage = stage + 1 == cut_.stages ? 0 : stage + 1;
    }
    send(sums);
    write();
  }

 private:
  using Sums = float[Tile::row_fragments][Tile::column_fragments][4];
  // Copies of slices: a thread copies the same chunk of every 32nd row.
  static constexpr int chunk_elements = 8, copied_rows = Tile::threads / 8;
  static constexpr int data_copies = Tile::rows / copied_rows, weight_copies = Tile::columns / copied_rows;

  // A cluster of one block exchanges nothing.
  __device__ bool is_alone() const { return cut_.cluster == 1; }
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int lane() { return thread() % 32; }
  __device__ static int copied_row() { return thread() / 8; }
  __device__ static int copied_chunk() { return thread() % 8; }
  __device__ static int group() { return thread() / (Tile::threads / Tile::groups); }
  __device__ static int warp_row() { return thread() / 32 % 4 / 2 * Tile::warp_rows; }
  __device__ static int warp_column() { return thread() / 32 % 2 * Tile::warp_columns; }

  // The element of the kernel of the next slice to be copied, and its channels.
  struct Tap {
    int row, column, channel_slice;

    __device__ Tap(const FewRowsCut& cut, int slice) {
      const Divided by_channels = cut.by_channel_slices.divide(slice);
      const Divided by_columns = cut.by_kernel_columns.divide(by_channels.quotient);
      row = static_cast<int>(by_columns.quotient);
      column = static_cast<int>(by_columns.rest);
      channel_slice = static_cast<int>(by_channels.rest);
    }
    __device__ void next(const FewRowsShape& shape) {
      if (++channel_slice < shape.channel_slices()) return;
      channel_slice = 0;
      if (++column < shape.kernel[1]) return;
      column = 0;
      ++row;
    }
  };

  // Of the output, those whose data this thread copies: where their kernels begin, also outside of the image.
  struct Positions {
    int64_t first[data_copies];  // element of data
    int y[data_copies], x[data_copies];

    __device__ explicit Positions(const Block& block) {
      const FewRowsShape& shape = block.shape_;
#pragma unroll
      for (int i = 0; i < data_copies; ++i) {
        const int position = block.first_row_ + copied_row() + i * copied_rows;
        const Divided by_columns = block.cut_.by_out[1].divide(position);
        const Divided by_rows = block.cut_.by_out[0].divide(by_columns.quotient);
        y[i] = static_cast<int>(by_rows.rest) * shape.stride[0] - shape.pad[0];
        x[i] = static_cast<int>(by_columns.rest) * shape.stride[1] - shape.pad[1];
        const int64_t pixel = (by_rows.quotient * shape.in[0] + y[i]) * shape.in[1] + x[i];
        first[i] = pixel * shape.channels + copied_chunk() * chunk_elements;
      }
    }
  };

  // Rows and columns that the tile does not have are not copied: what is in their memory is multiplied into sums that
  // are not used.
  __device__ void copy_weight(int slice, int stage) const {
    const int64_t depth = int64_t{cut_.slices} * few_rows_slice;
    const int64_t at = int64_t{first_slice_ + slice} * few_rows_slice + copied_chunk() * chunk_elements;
    const uint32_t to = ring_ + static_cast<uint32_t>(stage * Tile::stage_bytes + Tile::data_bytes);
#pragma unroll
    for (int i = 0; i < weight_copies; ++i) {
      const int row = copied_row() + i * copied_rows, filter = first_column_ + row;
      if (filter < shape_.filters)
        tensor_core::copy_chunk(to + in_slice(row, copied_chunk()), arrays_.weight + filter * depth + at, true);
    }
  }
  __device__ void copy_data(const Positions& positions, const Tap& tap, int stage) const {
    const int y_step = tap.row * shape_.dilate[0], x_step = tap.column * shape_.dilate[1];
    const int64_t step =
        (int64_t{y_step} * shape_.in[1] + x_step) * shape_.channels + tap.channel_slice * few_rows_slice;
    const uint32_t to = ring_ + static_cast<uint32_t>(stage * Tile::stage_bytes);
#pragma unroll
    for (int i = 0; i < data_copies; ++i) {
      const int row = copied_row() + i * copied_rows;
      if (row >= rows_) continue;
      const auto y = static_cast<unsigned>(positions.y[i] + y_step), x = static_cast<unsigned>(positions.x[i] + x_step);
      const bool inside = y < static_cast<unsigned>(shape_.in[0]) && x < static_cast<unsigned>(shape_.in[1]);
      tensor_core::copy_chunk(to + in_slice(row, copied_chunk()),
                              arrays_.data + (inside ? positions.first[i] + step : 0), inside);
    }
  }

  // Adds the products of this warp's half of a slice.
  __device__ void multiply(Sums& sums, uint32_t stage) const {
    using namespace tensor_core;
    constexpr int steps = few_rows_slice / 16 / Tile::groups;
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int chunk = (group() * steps + step) * 2;
      uint32_t a_words[Tile::row_fragments][4], b_words[Tile::column_fragments][2];
#pragma unroll
      for (int m = 0; m < Tile::row_fragments; ++m)
        load_matrices(a_words[m], stage + in_slice(warp_row() + m * 16 + lane() % 16, chunk + lane() / 16));
#pragma unroll
      for (int n = 0; n < Tile::column_fragments; n += 2) {
        uint32_t words[4];
        const int column = warp_column() + n * 8 + lane() / 16 * 8 + lane() % 8;
        load_matrices(words, stage + Tile::data_bytes + in_slice(column, chunk + lane() / 8 % 2));
        b_words[n][0] = words[0];
        b_words[n][1] = words[1];
        b_words[n + 1][0] = words[2];
        b_words[n + 1][1] = words[3];
      }
#pragma unroll
      for (int m = 0; m < Tile::row_fragments; ++m)
#pragma unroll
        for (int n = 0; n < Tile::column_fragments; ++n) add_product<T, false>(sums[m][n], a_words[m], b_words[n]);
    }
  }

  // The sums of the two groups, then those of each row to the block that writes it.
  __device__ void send(const Sums& sums) const {
    auto* const of_groups = reinterpret_cast<float*>(shared_);  // [groups][rows][sums_row]
    __syncthreads();                                            // the ring is not read any more
#pragma unroll
    for (int m = 0; m < Tile::row_fragments; ++m)
#pragma unroll
      for (int n = 0; n < Tile::column_fragments; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = warp_row() + m * 16 + half * 8 + lane() / 4, column = warp_column() + n * 8 + lane() % 4 * 2;
          *reinterpret_cast<float2*>(of_groups + (group() * Tile::rows + row) * Tile::sums_row + column) =
              make_float2(sums[m][n][half * 2], sums[m][n][half * 2 + 1]);
        }
    __syncthreads();
    cluster::wait();  // the other blocks have set up their barriers
#pragma unroll
    for (int i = 0; i < Tile::thread_chunks; ++i) {
      const int row = first_chunk_row() + i * chunk_row_step;
      if (row >= rows_) break;
      const float* const at = of_groups + row * Tile::sums_row + chunk_column();
      const float4 first = *reinterpret_cast<const float4*>(at);
      const float4 second = *reinterpret_cast<const float4*>(at + Tile::rows * Tile::sums_row);
      const float4 sum = make_float4(first.x + second.x, first.y + second.y, first.z + second.z, first.w + second.w);
      if (is_alone()) {  // this thread writes the same row
        *reinterpret_cast<float4*>(shared_ + cut_.ring_bytes + (row * Tile::columns + chunk_column()) * 4) = sum;
        continue;
      }
      const int to = static_cast<int>(cut_.by_rank_rows.divide(row).quotient),
                place = row + (rank_ - to) * cut_.rank_rows;
      const uint32_t address = received_ + static_cast<uint32_t>((place * Tile::columns + chunk_column()) * 4);
      cluster::send(cluster::address_in(address, to), sum, cluster::address_in(barrier_, to));
    }
  }

  // Chunks of four neighbouring sums, of which a thread has the same columns in some rows.
  static constexpr int chunk_row_step = Tile::threads / Tile::row_chunks;
  using Chunk = Packed<T, 4>;
  __device__ static int first_chunk_row() { return thread() / Tile::row_chunks; }
  __device__ static int chunk_column() { return thread() % Tile::row_chunks * 4; }
  __device__ bool writes(int i) const {
    return first_chunk_row() + i * chunk_row_step < own_rows_ && first_column_ + chunk_column() < shape_.filters;
  }
  __device__ int64_t output_index(int i) const {
    const int row = first_row_ + rank_ * cut_.rank_rows + first_chunk_row() + i * chunk_row_step;
    return int64_t{row} * shape_.filters + first_column_ + chunk_column();
  }

  // Of the epilogue.
  __device__ void load_operands() {
#pragma unroll
    for (int i = 0; i < Tile::thread_chunks; ++i)
      if (arrays_.residual && writes(i)) residual_[i] = load_packed<4>(arrays_.residual + output_index(i));
    if (arrays_.bias && writes(0)) bias_ = load_packed<4>(arrays_.bias + first_column_ + chunk_column());
  }

  __device__ void write() const {
    if (!is_alone()) cluster::wait_for_expected(barrier_);
    const auto* const received = reinterpret_cast<const float*>(shared_ + cut_.ring_bytes);
#pragma unroll
    for (int i = 0; i < Tile::thread_chunks; ++i) {
      if (!writes(i)) break;
      const float* const at = received + (first_chunk_row() + i * chunk_row_step) * Tile::columns + chunk_column();
      float values[4] = {};
#pragma unroll 4
      for (int from = 0; from < cut_.cluster; ++from) {
        const float4 sum = *reinterpret_cast<const float4*>(at + from * cut_.rank_rows * Tile::columns);
        values[0] += sum.x;
        values[1] += sum.y;
        values[2] += sum.z;
        values[3] += sum.w;
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (arrays_.residual) values[k] += residual_[i][k];
        if (arrays_.bias) values[k] += bias_[k];
        if (arrays_.relu) values[k] = functions::Relu{}(values[k]);
      }
      store_packed(arrays_.out + output_index(i), Chunk(values));
    }
  }

  const FewRowsShape& shape_;
  const FewRowsCut& cut_;
  const FewRowsArrays<T>& arrays_;
  unsigned char* const shared_;               // the ring of slices, what was received, the barrier
  const uint32_t ring_, received_, barrier_;  // addresses
  const int rank_;                            // of this block in its cluster
  int first_row_, rows_, first_column_;       // of the tile
  int own_rows_;                              // that this block writes
  int first_slice_, slices_;                  // of this block
  Chunk residual_[Tile::thread_chunks] = {}, bias_ = {};
};

}  // namespace few_rows
#endif

// Launched in clusters of cut.cluster blocks. reads_weight_early: before the kernel queued before has ended.
template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads, 2)
    convolve_few_rows(const __grid_constant__ FewRowsShape shape, const __grid_constant__ FewRowsCut cut,
                      const __grid_constant__ FewRowsArrays<T> arrays, const bool reads_weight_early) {
#if SYMBIND_BUILT_FOR_9_0
  extern __shared__ __align__(128) unsigned char few_rows_shared[];
  let_next_start();
  few_rows::Block<T, Tile>(shape, cut, arrays, few_rows_shared).run(reads_weight_early);
#endif
}

}  // namespace symbind::cuda_backend
