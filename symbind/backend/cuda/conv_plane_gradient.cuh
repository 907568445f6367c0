// The weight gradient of 3 × 3 convolutions in TF32 on tensor cores, from compute capability 9.0 on: all arrays with
// their channels last, sums in float32.
//
// The gradient is a matrix product of filters by channels for each of the nine elements of the kernel (taps), whose
// depth is the positions of the output. A block computes all taps of 64 filters and 64 channels, and sums over pieces
// of the output: some rows of an image, a part of its columns where rows are long, or several small images. In shared
// memory are the gradients of a piece and the window of the data under it, so that each number that arrives is used for
// all taps. Tensor copies (TMA) bring the next piece while one is computed, with zeros for what is outside of the
// arrays: copies by threads would wait for the loads of the products, and these for them. The sums of all blocks are
// added in a fixed order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "symbind/backend/cuda/launch.cuh"
#include "symbind/backend/cuda/tensor_copy.cuh"
#include "symbind/backend/cuda/tensor_core.cuh"

namespace symbind::cuda_backend {

inline constexpr int plane_threads = 256, plane_warps = plane_threads / 32;
inline constexpr int plane_kernel = 3, plane_taps = plane_kernel * plane_kernel;
inline constexpr int plane_filters = 64, plane_channels = 64;  // of a tile
inline constexpr int plane_step = 8;                           // positions of a tensor core's product
// The filters of a position in two halves, whose chunks of 16 bytes are Swizzle::bytes_128; the channels of a pixel in
// slabs, each for one warp. The same channel of four neighbouring pixels is then in four banks that are eight apart.
inline constexpr int half_filters = plane_filters / 2, filter_halves = 2;
inline constexpr int slab_channels = plane_channels / plane_warps, pixel_bytes = slab_channels * int{sizeof(float)};
inline constexpr int position_bytes = half_filters * int{sizeof(float)};
inline constexpr int most_box_extent = 256;
static_assert(slab_channels == 8 && position_bytes == 128);

struct PlaneGradientShape {
  int batch = 0, channels = 0, filters = 0;
  int in[2] = {}, out[2] = {}, kernel[2] = {}, stride[2] = {}, pad[2] = {};
  constexpr int64_t weight_size() const { return int64_t{filters} * plane_taps * channels; }
};

// How the work is divided. The pieces are numbered by image, rows, columns; `groups` blocks for the same filters and
// channels have every groups-th piece each.
struct PlaneGradientCut {
  int images = 1, rows = 1, columns = 1;  // of the output, in a piece; several images only if they are whole
  int row_tiles = 1, column_tiles = 1, pieces = 1;
  int window_rows = 0, window_columns = 0;  // under the rows and columns of an image
  int positions = 0, pixels = 0, steps = 0;
  int filter_tiles = 1, channel_tiles = 1, groups = 1;
  int half_bytes = 0, slab_bytes = 0, piece_bytes = 0, shared_bytes = 0;
  constexpr int tiles() const { return filter_tiles * channel_tiles; }
  int blocks() const { return tiles() * groups; }
};

// Completes a cut whose images, rows and columns are given, except for its groups.
inline void complete_cut(const PlaneGradientShape& shape, PlaneGradientCut& cut) {
  const auto tiles = [](int all, int tile) { return (all + tile - 1) / tile; };
  const auto aligned = [&](int bytes, int alignment) { return tiles(bytes, alignment) * alignment; };
  const auto under = [](int extent, int stride) { return (extent - 1) * stride + plane_kernel; };
  cut.row_tiles = tiles(shape.out[0], cut.rows);
  cut.column_tiles = tiles(shape.out[1], cut.columns);
  cut.pieces = tiles(shape.batch, cut.images) * cut.row_tiles * cut.column_tiles;
  cut.window_rows = under(cut.rows, shape.stride[0]);
  cut.window_columns = under(cut.columns, shape.stride[1]);
  cut.positions = cut.images * cut.rows * cut.columns;
  cut.pixels = cut.images * cut.window_rows * cut.window_columns;
  cut.steps = tiles(cut.positions, plane_step);
  cut.filter_tiles = tiles(shape.filters, plane_filters);
  cut.channel_tiles = tiles(shape.channels, plane_channels);
  constexpr int copy_alignment = 128, chunks_alignment = 1024;
  cut.half_bytes = cut.steps * plane_step * position_bytes;
  cut.slab_bytes = aligned(cut.pixels * pixel_bytes, copy_alignment);
  cut.piece_bytes = aligned(filter_halves * cut.half_bytes + plane_warps * cut.slab_bytes, chunks_alignment);
  constexpr int barriers_bytes = 2 * int{sizeof(uint64_t)};
  cut.shared_bytes = 2 * cut.piece_bytes + barriers_bytes + cut.steps * plane_step * int{sizeof(int)};
}

#if SYMBIND_BUILT_FOR_9_0 && defined(__CUDACC__)

class PlaneGradientBlock {
 public:
  __device__ PlaneGradientBlock(const PlaneGradientShape& shape, const PlaneGradientCut& cut, const CUtensorMap& data,
                                const CUtensorMap& dy, unsigned char* shared)
      : shape_(shape), cut_(cut), data_(data), dy_(dy), shared_(shared) {
    const int tile = static_cast<int>(blockIdx.x) % cut.tiles();
    first_filter_ = tile % cut.filter_tiles * plane_filters;
    first_channel_ = tile / cut.filter_tiles * plane_channels;
    group_ = static_cast<int>(blockIdx.x) / cut.tiles();
  }

  // partial[group] gets the sums of this block, in the order of the weight.
  __device__ void run(float* partial) {
    prepare();
    __syncthreads();
    copy_piece(group_, 0);
    int buffer = 0;
    uint32_t parity = 0;
    for (int piece = group_; piece < cut_.pieces; piece += cut_.groups) {
      copy_piece(piece + cut_.groups, buffer ^ 1);
      barrier::wait(barrier_of(buffer), parity);
      compute(piece, buffer);
      __syncthreads();  // all threads have used the buffer
      buffer ^= 1;
      if (buffer == 0) parity ^= 1;
    }
    store_sums(partial + group_ * shape_.weight_size());
  }

 private:
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int lane() { return thread() % 32; }
  __device__ static int warp() { return thread() / 32; }

  __device__ int column_tile_of(int piece) const { return piece % cut_.column_tiles; }
  __device__ int row_tile_of(int piece) const { return piece / cut_.column_tiles % cut_.row_tiles; }

  // Shared memory: two pieces, each of two halves of the gradients and the slabs of the window; two barriers; where the
  // window of each position is in a slab.
  __device__ uint32_t piece_at(int buffer) const {
    return tensor_core::shared_address(shared_) + static_cast<uint32_t>(buffer * cut_.piece_bytes);
  }
  __device__ uint64_t* barriers() const { return reinterpret_cast<uint64_t*>(shared_ + 2 * cut_.piece_bytes); }
  __device__ uint32_t barrier_of(int buffer) const { return tensor_core::shared_address(barriers() + buffer); }
  __device__ int* offsets() const { return reinterpret_cast<int*>(barriers() + 2); }

  // Gradients of positions that only fill up the last step are zero; no copy writes there.
  __device__ void prepare() const {
    if (thread() < 2) barrier::set_up(barrier_of(thread()));
    const int filled_positions = cut_.steps * plane_step;
    for (int i = thread(); i < filled_positions; i += plane_threads) {
      const int column = i % cut_.columns, row = i / cut_.columns % cut_.rows, image = i / cut_.columns / cut_.rows;
      const int window_row = image * cut_.window_rows + row * shape_.stride[0];
      const int pixel = window_row * cut_.window_columns + column * shape_.stride[1];
      offsets()[i] = i < cut_.positions ? pixel * pixel_bytes : 0;
    }
    const int filled_bytes = (filled_positions - cut_.positions) * position_bytes;
    for (int buffer = 0; buffer < 2; ++buffer)
      for (int half = 0; half < filter_halves; ++half)
        for (int i = thread() * 16; i < filled_bytes; i += plane_threads * 16)
          *reinterpret_cast<uint4*>(shared_ + buffer * cut_.piece_bytes + half * cut_.half_bytes +
                                    cut_.positions * position_bytes + i) = uint4{};
    tensor_copy::release_memory();
  }

  __device__ void copy_piece(int piece, int buffer) const {
    if (thread() != 0 || piece >= cut_.pieces) return;
    const int first_row = row_tile_of(piece) * cut_.rows, first_column = column_tile_of(piece) * cut_.columns;
    const int first_image = piece / (cut_.column_tiles * cut_.row_tiles) * cut_.images;
    const uint32_t bar = barrier_of(buffer);
    barrier::expect_bytes(bar, static_cast<uint32_t>(filter_halves * cut_.positions * position_bytes +
                                                     plane_warps * cut_.pixels * pixel_bytes));
    uint32_t to = piece_at(buffer);
    for (int half = 0; half < filter_halves; ++half, to += static_cast<uint32_t>(cut_.half_bytes))
      tensor_copy::copy_box(to, dy_, {first_filter_ + half * half_filters, first_column, first_row, first_image}, bar);
    for (int slab = 0; slab < plane_warps; ++slab, to += static_cast<uint32_t>(cut_.slab_bytes))
      tensor_copy::copy_box(to, data_,
                            {first_channel_ + slab * slab_channels, first_column * shape_.stride[1] - shape_.pad[1],
                             first_row * shape_.stride[0] - shape_.pad[0], first_image},
                            bar);
  }

  // A lane has two filters of each fragment of 16: its chunk number `pair` of a position has those of two fragments.
  // Chunks of eight lanes that are read together are in different banks.
  static constexpr int fragments = plane_filters / 16;
  __device__ static int half_of_lane() { return lane() / 16; }
  __device__ static int chunk_of_lane(int pair) { return (lane() / 8 & 1) | pair << 1 | (lane() / 4 & 1) << 2; }
  __device__ static int filter(int fragment, int r) {
    return half_of_lane() * half_filters + chunk_of_lane(fragment / 2) * 4 + fragment % 2 * 2 + r;
  }

  // Of a step: the gradients, and where the windows of positions lane % 4 and lane % 4 + 4 begin.
  struct Operands {
    uint32_t gradients[fragments][4];
    uint32_t window[2];
  };
  __device__ void load(Operands& to, int step, uint32_t gradients, uint32_t window) const {
    using namespace tensor_core;
    const uint32_t at = gradients + static_cast<uint32_t>(step * plane_step * position_bytes);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int pair = 0; pair < fragments / 2; ++pair) {
        const uint4 chunk = load_chunk((at ^ static_cast<uint32_t>(half * 64 + pair * 32)) +
                                       static_cast<uint32_t>(half * 4 * position_bytes));
        to.gradients[2 * pair][2 * half] = to_be_truncated(chunk.x);
        to.gradients[2 * pair][2 * half + 1] = to_be_truncated(chunk.y);
        to.gradients[2 * pair + 1][2 * half] = to_be_truncated(chunk.z);
        to.gradients[2 * pair + 1][2 * half + 1] = to_be_truncated(chunk.w);
      }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      to.window[half] = window + static_cast<uint32_t>(offsets()[step * plane_step + half * 4 + lane() % 4]);
  }
  // The data under a row of the kernel.
  using Row = uint32_t[plane_kernel][2];
  template <class Visit>
  __device__ static void for_values(const Visit& visit) {
#pragma unroll
    for (int j = 0; j < plane_kernel; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) visit(j, half);
  }
  __device__ static void load(Row& to, const Operands& of, uint32_t row_bytes) {
    for_values([&](int j, int half) {
      to[j][half] = tensor_core::load_word(of.window[half] + row_bytes + static_cast<uint32_t>(j * pixel_bytes));
    });
  }

  // What is multiplied next is loaded before the products, which hide the time that loads take: a multiprocessor has
  // only these eight warps. Positions that are beyond the output have gradients of zero, but the data there may be
  // infinite: their steps are computed by multiply<true>().
  __device__ void compute(int piece, int buffer) {
    const auto row_bytes = static_cast<uint32_t>(cut_.window_columns * pixel_bytes);
    const uint32_t at = piece_at(buffer);
    const uint32_t window = at + static_cast<uint32_t>(filter_halves * cut_.half_bytes + warp() * cut_.slab_bytes +
                                                       lane() / 4 * int{sizeof(float)});
    const uint32_t gradients =
        at + static_cast<uint32_t>(half_of_lane() * cut_.half_bytes + lane() % 4 * position_bytes +
                                   (chunk_of_lane(0) ^ lane() % 4) * 16);
    const int first_row = row_tile_of(piece) * cut_.rows, first_column = column_tile_of(piece) * cut_.columns;
    positions_ = cut_.images * min(cut_.rows, shape_.out[0] - first_row) * cut_.columns;
    columns_ = shape_.out[1] - first_column;
    const int steps = (positions_ + plane_step - 1) / plane_step;
    const int whole_steps = columns_ < cut_.columns ? 0 : positions_ / plane_step;
    Operands now;
    Row first, second, third;
    load(now, 0, gradients, window);
    load(first, now, 0);
#pragma unroll 2
    for (int step = 0; step < whole_steps; ++step) {
      Operands next;
      Row next_first;
      load(second, now, row_bytes);
      multiply<false>(0, now, first, step);
      load(next, min(step + 1, cut_.steps - 1), gradients, window);
      load(third, now, 2 * row_bytes);
      multiply<false>(1, now, second, step);
      load(next_first, next, 0);
      multiply<false>(2, now, third, step);
      now = next;
      for_values([&](int j, int half) { first[j][half] = next_first[j][half]; });
    }
    for (int step = whole_steps; step < steps; ++step) {
      load(now, step, gradients, window);
#pragma unroll
      for (int i = 0; i < plane_kernel; ++i) {
        load(first, now, i * row_bytes);
        multiply<true>(i, now, first, step);
      }
    }
  }
  // The products with row i of the kernel; some positions of the step are beyond the output if `ends`.
  template <bool ends>
  __device__ void multiply(int i, const Operands& of, const Row& row, int step) {
    using namespace tensor_core;
#pragma unroll
    for (int j = 0; j < plane_kernel; ++j) {
      uint32_t values[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        values[half] = to_be_truncated(row[j][half]);
        if constexpr (ends) {
          const int position = step * plane_step + half * 4 + lane() % 4;
          if (position >= positions_ || position % cut_.columns >= columns_) values[half] = 0;
        }
      }
#pragma unroll
      for (int m = 0; m < fragments; ++m)
        add_product<float, false>(sums_[m][i * plane_kernel + j], of.gradients[m], values);
    }
  }

  __device__ void store_sums(float* to) const {
    const int channel = first_channel_ + warp() * slab_channels + lane() % 4 * 2;
    if (channel >= shape_.channels) return;
#pragma unroll
    for (int m = 0; m < fragments; ++m)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = first_filter_ + filter(m, r);
        if (row >= shape_.filters) continue;
#pragma unroll
        for (int tap = 0; tap < plane_taps; ++tap)
          *reinterpret_cast<float2*>(to + (int64_t{row} * plane_taps + tap) * shape_.channels + channel) =
              make_float2(sums_[m][tap][2 * r], sums_[m][tap][2 * r + 1]);
      }
  }

  const PlaneGradientShape& shape_;
  const PlaneGradientCut& cut_;
  const CUtensorMap &data_, &dy_;
  unsigned char* const shared_;
  int first_filter_, first_channel_, group_;
  int positions_ = 0, columns_ = 0;  // of the current piece, that are not beyond the output
  float sums_[fragments][plane_taps][4] = {};
};

#endif

__global__ void __launch_bounds__(plane_threads, 1)
    sum_plane_gradient(const __grid_constant__ PlaneGradientShape shape, const __grid_constant__ PlaneGradientCut cut,
                       const __grid_constant__ CUtensorMap data, const __grid_constant__ CUtensorMap dy,
                       float* partial) {
#if SYMBIND_BUILT_FOR_9_0
  extern __shared__ __align__(1024) unsigned char plane_shared[];
  let_next_start();
  PlaneGradientBlock(shape, cut, data, dy, plane_shared).run(partial);
#else
  __trap();
#endif
}

// Adds up the sums of all groups in double: blocks of 32 × up to add_groups_lanes threads, 32 vectors of the weight.
inline constexpr int add_groups_lanes = 8, vector_floats = 4;
__global__ void add_plane_groups(const float* partial, int groups, int64_t vectors, float* weight) {
  __shared__ double shared[add_groups_lanes][vector_floats][32];
  wait_for_previous();
  const int64_t i = int64_t{blockIdx.x} * 32 + threadIdx.x;
  double sums[vector_floats] = {};
  if (i < vectors) {
#pragma unroll 4
    for (int group = static_cast<int>(threadIdx.y); group < groups; group += static_cast<int>(blockDim.y)) {
      const float4 part = reinterpret_cast<const float4*>(partial)[group * vectors + i];
      sums[0] += part.x;
      sums[1] += part.y;
      sums[2] += part.z;
      sums[3] += part.w;
    }
  }
#pragma unroll
  for (int k = 0; k < vector_floats; ++k) shared[threadIdx.y][k][threadIdx.x] = sums[k];
  __syncthreads();
  if (threadIdx.y != 0 || i >= vectors) return;
  for (unsigned lane = 1; lane < blockDim.y; ++lane)
#pragma unroll
    for (int k = 0; k < vector_floats; ++k) sums[k] += shared[lane][k][threadIdx.x];
  reinterpret_cast<float4*>(weight)[i] = make_float4(static_cast<float>(sums[0]), static_cast<float>(sums[1]),
                                                     static_cast<float>(sums[2]), static_cast<float>(sums[3]));
}

}  // namespace symbind::cuda_backend
