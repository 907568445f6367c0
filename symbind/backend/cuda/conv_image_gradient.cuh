// The weight gradient of convolutions over the few channels of an image on tensor cores, in 16 bits: all arrays with
// their channels last, sums in float32.
//
// The gradient is a matrix product of filters by taps (elements of the kernel), whose depth is the positions of the
// output. A block sums over tiles of some rows of the output. In shared memory are the gradients of the rows, and the
// rows of the image under them, with their channels filled up to four: a position of the output is then a multiple of
// 16 bytes away from the next one where the stride is even, and tensor cores can be given the taps of eight positions
// with one load, two pixels at a time. The sums of all blocks are added in a fixed order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "symbind/backend/cuda/conv_image.cuh"

namespace symbind::cuda_backend {

inline constexpr int gradient_filters = 64;     // of a tile
inline constexpr int gradient_row_bytes = 128;  // of the gradients of one position
inline constexpr int pixel_bytes = 8;           // four channels
inline constexpr int step_positions = 16;       // of the output: the depth of a tensor core's product
inline constexpr int gradient_warps = 4;        // of a block, at most

// The convolution, and where the image is in shared memory. Pixels are counted unless bytes are named.
struct ImageGradientShape : ImageShape {
  // Two pixels are a chunk. If the runs begin at an odd pixel, one more is read before them.
  constexpr int pixel_lead() const { return pad[1] % 2; }
  constexpr int first_pixel() const { return pad[1] + pixel_lead(); }  // of the image, in a row in shared memory
  constexpr int pixel_run_chunks() const { return (pixel_lead() + kernel[1] + 1) / 2; }
  constexpr int pixel_chunks() const { return kernel[0] * pixel_run_chunks(); }
  constexpr int pixel_row_bytes() const {
    const int image_end = first_pixel() + in[1], runs_end = (out[1] - 1) * stride[1] + 2 * pixel_run_chunks();
    return ((image_end > runs_end ? image_end : runs_end) + 1) / 2 * 2 * pixel_bytes;
  }
  constexpr int row_steps() const { return (out[1] + step_positions - 1) / step_positions; }
  // Rows of the image as they are, before they are filled up.
  constexpr int staged_row() const { return (image_row() + chunk_elements - 1) / chunk_elements * chunk_elements; }
};

// How the work is divided. `groups` blocks for the same filters, each with every groups-th tile of `tile_rows` rows; in
// a block, warps for different taps, of which `depth_parts` have the same taps and different positions.
struct ImageGradientCut {
  int tile_rows = 1, image_tiles = 1, tiles = 1, filter_tiles = 1, groups = 1, tap_warps = 1, depth_parts = 1;
  int shared_bytes = 0, rows = 0;
  int threads() const { return 32 * tap_warps * depth_parts; }
  int blocks() const { return filter_tiles * groups; }
  int sums() const { return groups * depth_parts; }  // that are added for each element of the gradient
  // Of the sums of one part.
  constexpr int stored_filters() const { return filter_tiles * gradient_filters; }
  constexpr int stored_taps(int warp_chunks) const { return tap_warps * warp_chunks * 8; }
};

inline ImageGradientCut cut_image_gradient(const ImageGradientShape& shape, int warp_chunks, int tile_rows,
                                           int blocks) {
  ImageGradientCut cut;
  cut.tile_rows = tile_rows;
  cut.image_tiles = (shape.out[0] + tile_rows - 1) / tile_rows;
  cut.tiles = shape.batch * cut.image_tiles;
  cut.filter_tiles = (shape.filters + gradient_filters - 1) / gradient_filters;
  cut.groups = std::clamp(blocks / cut.filter_tiles, 1, cut.tiles);
  cut.tap_warps = (shape.pixel_chunks() + warp_chunks - 1) / warp_chunks;
  cut.depth_parts = std::max(gradient_warps / cut.tap_warps, 1);
  cut.rows = shape.rows_under(tile_rows);
  cut.shared_bytes = 2 * tile_rows * shape.row_steps() * step_positions * gradient_row_bytes +
                     cut.rows * (shape.pixel_row_bytes() + shape.staged_row() * 2) + 16;  // and a chunk of zeros
  return cut;
}

namespace image_tile {

// Chunk of eight filters `chunk` of a position: eight positions that are read together are in different banks.
__device__ inline int gradient_at(int position, int chunk) {
  return position * gradient_row_bytes + (chunk ^ (position & 7)) * 16;
}

// The gradients of some rows of the output, asynchronously: (row, position filled up to whole steps, filter). Positions
// that fill a row up are not written.
template <class T>
__device__ void copy_gradients(const ImageGradientShape& shape, const T* dy, int rows, int first_filter,
                               unsigned char* shared) {
  using namespace tensor_core;
  constexpr int row_chunks = gradient_row_bytes / 16;
  const int step = static_cast<int>(blockDim.x) / row_chunks, chunk = static_cast<int>(threadIdx.x) % row_chunks;
  const bool inside = first_filter + chunk * chunk_elements < shape.filters;
  for (int row = 0; row < rows; ++row) {
    const T* const from = dy + int64_t{row} * shape.out[1] * shape.filters + (inside ? first_filter : 0) +
                          (inside ? chunk * chunk_elements : 0);
    const int first = row * shape.row_steps() * step_positions;
#pragma unroll 4
    for (int at = static_cast<int>(threadIdx.x) / row_chunks; at < shape.out[1]; at += step)
      copy_chunk(shared_address(shared + gradient_at(first + at, chunk)), from + int64_t{at} * shape.filters, inside);
  }
}

// Fills the channels of the rows of an image up to four.
template <class T>
__device__ void widen_pixels(const ImageGradientShape& shape, int rows, const unsigned char* staged,
                             unsigned char* pixels) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int row = warp; row < rows; row += static_cast<int>(blockDim.x) / 32) {
    const T* const from = reinterpret_cast<const T*>(staged) + row * shape.staged_row();
    unsigned char* const to = pixels + row * shape.pixel_row_bytes() + shape.first_pixel() * pixel_bytes;
#pragma unroll 4
    for (int x = lane; x < shape.in[1]; x += 32) {
      Pack<T, 4> pixel;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        pixel.element[c] = T{};
        if (c < shape.channels) pixel.element[c] = from[x * shape.channels + c];
      }
      *reinterpret_cast<Pack<T, 4>*>(to + x * pixel_bytes) = pixel;
    }
  }
}

}  // namespace image_tile

// warp_chunks: chunks of two pixels of the kernel whose taps a warp has. partial[part of the sums][filter][tap], with
// the filters of all tiles and eight taps for every chunk of all warps.
template <class T, int warp_chunks, int blocks>
__global__ void __launch_bounds__(32 * gradient_warps, blocks)
    sum_image_gradient(const __grid_constant__ ImageGradientShape shape, const __grid_constant__ ImageGradientCut cut,
                       const T* data, const T* dy, float* partial) {
  using namespace tensor_core;
  constexpr int filter_fragments = gradient_filters / 16;
  extern __shared__ __align__(128) unsigned char gradient_shared[];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int tap_warp = warp % cut.tap_warps, depth_part = warp / cut.tap_warps;
  const int filter_tile = static_cast<int>(blockIdx.x) % cut.filter_tiles;
  const int group = static_cast<int>(blockIdx.x) / cut.filter_tiles, first_filter = filter_tile * gradient_filters;
  const int rows = cut.rows, row_bytes = shape.pixel_row_bytes();
  const int gradient_bytes = cut.tile_rows * shape.row_steps() * step_positions * gradient_row_bytes;
  unsigned char* const pixels = gradient_shared + 2 * gradient_bytes;
  unsigned char* const staged = pixels + rows * row_bytes;
  unsigned char* const zeros = staged + rows * shape.staged_row() * 2;

  // Zeros where no copy writes: the borders of the image, and the positions that fill up a row of the output.
  for (int i = thread * 16; i < 2 * gradient_bytes + rows * row_bytes; i += static_cast<int>(blockDim.x) * 16)
    *reinterpret_cast<uint4*>(gradient_shared + i) = uint4{};
  if (thread == 0) *reinterpret_cast<uint4*>(zeros) = uint4{};
  __syncthreads();

  const auto copy_tile = [&](int tile, int buffer) {
    if (tile < cut.tiles) {
      const int image = tile / cut.image_tiles, first_row = (tile - image * cut.image_tiles) * cut.tile_rows;
      image_tile::copy_rows(shape, data + int64_t{image} * shape.in[0] * shape.image_row(),
                            first_row * shape.stride[0] - shape.pad[0], rows, shape.staged_row(),
                            reinterpret_cast<T*>(staged));
      image_tile::copy_gradients(shape, dy + (int64_t{image} * shape.out[0] + first_row) * shape.out[1] * shape.filters,
                                 min(cut.tile_rows, shape.out[0] - first_row), first_filter,
                                 gradient_shared + buffer * gradient_bytes);
    }
    end_copies();
  };
  copy_tile(group, 0);

  // Where this lane's chunks of taps are, from a position on; chunks that fill up a warp are the first one.
  int chunk_at[(warp_chunks + 1) / 2];
#pragma unroll
  for (int i = 0; i < (warp_chunks + 1) / 2; ++i) {
    const int in_pair = 2 * i + 1 < warp_chunks ? lane / 16 : 0;
    const int chunk = tap_warp * warp_chunks + 2 * i + in_pair, row = chunk / shape.pixel_run_chunks();
    chunk_at[i] =
        chunk < shape.pixel_chunks() ? row * row_bytes + (chunk - row * shape.pixel_run_chunks()) * 2 * pixel_bytes : 0;
  }
  const int lane_position = lane % 8 + lane / 8 % 2 * 8;  // in a step, of the taps that this lane has the address of
  const int position_bytes = shape.stride[1] * pixel_bytes;
  uint32_t filters_at[filter_fragments];
#pragma unroll
  for (int m = 0; m < filter_fragments; ++m)
    filters_at[m] = static_cast<uint32_t>(image_tile::gradient_at(lane / 16 * 8 + lane % 8, m * 2 + lane / 8 % 2));

  float sums[filter_fragments][warp_chunks][4] = {};
  int buffer = 0;
  for (int tile = group; tile < cut.tiles; tile += cut.groups, buffer ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    image_tile::widen_pixels<T>(shape, rows, staged, pixels);
    __syncthreads();
    copy_tile(tile + cut.groups, buffer ^ 1);
    const int first_row = tile % cut.image_tiles * cut.tile_rows, row_steps = shape.row_steps();
    const int tile_steps = min(cut.tile_rows, shape.out[0] - first_row) * row_steps;
    const uint32_t gradients = shared_address(gradient_shared + buffer * gradient_bytes);
    int row = 0, row_step = depth_part;
    for (int step = depth_part; step < tile_steps; step += cut.depth_parts, row_step += cut.depth_parts) {
      for (; row_step >= row_steps; row_step -= row_steps) ++row;
      const int position = row_step * step_positions + lane_position;
      const bool inside = position < shape.out[1];
      const uint32_t taps =
          shared_address(inside ? pixels + row * shape.stride[0] * row_bytes + position * position_bytes : zeros);
      uint32_t b_words[warp_chunks][2];
#pragma unroll
      for (int i = 0; i < warp_chunks / 2; ++i) {
        uint32_t words[4];
        load_transposed(words, taps + (inside ? chunk_at[i] : 0));
        b_words[2 * i][0] = words[0];
        b_words[2 * i][1] = words[1];
        b_words[2 * i + 1][0] = words[2];
        b_words[2 * i + 1][1] = words[3];
      }
      if constexpr (warp_chunks % 2 == 1)
        load_transposed(b_words[warp_chunks - 1], taps + (inside ? chunk_at[warp_chunks / 2] : 0));
#pragma unroll
      for (int m = 0; m < filter_fragments; ++m) {
        uint32_t a_words[4];
        load_transposed(a_words,
                        gradients + static_cast<uint32_t>(step * step_positions * gradient_row_bytes) + filters_at[m]);
#pragma unroll
        for (int n = 0; n < warp_chunks; ++n) add_product<T, false>(sums[m][n], a_words, b_words[n]);
      }
    }
  }

  const int taps = cut.stored_taps(warp_chunks);
  float* const own =
      partial + (int64_t{group * cut.depth_parts + depth_part} * cut.stored_filters() + first_filter) * taps;
#pragma unroll
  for (int m = 0; m < filter_fragments; ++m)
#pragma unroll
    for (int n = 0; n < warp_chunks; ++n)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int filter = m * 16 + r * 8 + lane / 4, tap = (tap_warp * warp_chunks + n) * 8 + lane % 4 * 2;
        *reinterpret_cast<float2*>(own + filter * taps + tap) = make_float2(sums[m][n][2 * r], sums[m][n][2 * r + 1]);
      }
}

// Adds up the parts in double: 32 neighbouring elements of the weight, (filters, kernel, channels), by a block of
// 32 × add_parts_lanes threads, each of which adds some of the parts.
inline constexpr int add_parts_lanes = 8;
template <class T>
__global__ void add_gradient_parts(const __grid_constant__ ImageGradientShape shape, const float* partial, int parts,
                                   int stored_filters, int stored_taps, T* weight) {
  __shared__ double shared[add_parts_lanes][32];
  const int of_filter = shape.kernel[0] * shape.run();
  const int i = static_cast<int>(blockIdx.x * 32 + threadIdx.x), filter = i / of_filter;
  const int in_filter = i - filter * of_filter, row = in_filter / shape.run(), in_run = in_filter - row * shape.run();
  const int pixel = shape.pixel_lead() + in_run / shape.channels, channel = in_run % shape.channels;
  const int tap = row * shape.pixel_run_chunks() * 8 + pixel * 4 + channel;
  double sum = 0;
  if (filter < shape.filters) {
    const float* const from = partial + int64_t{filter} * stored_taps + tap;
    const int64_t part_step = int64_t{stored_filters} * stored_taps;
#pragma unroll 8
    for (int part = static_cast<int>(threadIdx.y); part < parts; part += add_parts_lanes) sum += from[part * part_step];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || filter >= shape.filters) return;
  for (int lane = 1; lane < add_parts_lanes; ++lane) sum += shared[lane][threadIdx.x];
  weight[i] = store<T>(static_cast<float>(sum));
}

}  // namespace symbind::cuda_backend
