// The weight gradient of convolutions over the few channels of an image on tensor cores, in 16 bits or, for float32, in
// TF32: all arrays with their channels last, sums in float32.
//
// The gradient is a matrix product of filters by taps (elements of the kernel), whose depth is the positions of the
// output. A block sums over tiles of some rows of the output. In shared memory are the gradients of the rows, and the
// rows of the image under them. The sums of all blocks are added in a fixed order.
//
// In 16 bits the channels are filled up to four: a position of the output is then a multiple of 16 bytes away from the
// next one where the stride is even, and tensor cores can be given the taps of eight positions with one load, two
// pixels at a time. There are no such loads of float32, whose rows stay as they are: threads read the elements.
#pragma once

#include <algorithm>
#include <cstdint>

#include "symbind/backend/cuda/conv_image.cuh"

namespace symbind::cuda_backend {

inline constexpr int gradient_filters = 64;  // of a tile
inline constexpr int pixel_bytes = 8;        // four channels of 16 bits
inline constexpr int tap_chunk = 8;          // taps: the columns of a tensor core's product

// The chunks of taps of a warp, the warps of a block, at most, and the blocks of a multiprocessor.
struct ImageGradientForm {
  int chunks, warps, blocks;
};
template <class T>
inline constexpr ImageGradientForm image_gradient_form = sizeof(T) == 2 ? ImageGradientForm{7, 4, image_blocks}
                                                                        : ImageGradientForm{5, 8, image_blocks};

// The convolution, and where the image is in shared memory.
struct ImageGradientShape : ImageShape {
  constexpr bool widens_pixels() const { return element_bytes == 2; }
  constexpr int step_positions() const { return 32 / element_bytes; }  // of the output: see step_chunks()
  constexpr int row_steps() const { return (out[1] + step_positions() - 1) / step_positions(); }
  constexpr int gradient_row_bytes() const { return gradient_filters * element_bytes; }  // of one position

  // Two widened pixels are a chunk. If the runs begin at an odd pixel, one more is read before them.
  constexpr int pixel_lead() const { return pad[1] % 2; }
  constexpr int first_pixel() const { return pad[1] + pixel_lead(); }  // of the image, in a row in shared memory
  constexpr int pixel_run_chunks() const { return (pixel_lead() + kernel[1] + 1) / 2; }
  // Rows of the image as they are, before they are widened, in elements.
  constexpr int staged_row() const { return (image_row() + chunk_elements - 1) / chunk_elements * chunk_elements; }

  constexpr int tap_chunks() const {
    return widens_pixels() ? kernel[0] * pixel_run_chunks() : (kernel[0] * run() + tap_chunk - 1) / tap_chunk;
  }
  // The number of element `in_run` of row `row` of the kernel among the taps of all chunks.
  constexpr int tap_of(int row, int in_run) const {
    if (!widens_pixels()) return row * run() + in_run;
    const int pixel = pixel_lead() + in_run / channels;
    return row * pixel_run_chunks() * tap_chunk + pixel * 4 + in_run % channels;
  }
  // Of a row of the image whose taps are read, with the positions that fill up a step.
  constexpr int row_bytes() const {
    if (widens_pixels()) {
      const int image_end = first_pixel() + in[1], runs_end = (out[1] - 1) * stride[1] + 2 * pixel_run_chunks();
      return ((image_end > runs_end ? image_end : runs_end) + 1) / 2 * 2 * pixel_bytes;
    }
    const int image_end = image_at() + image_row();
    const int runs_end =
        image_at() - pad[1] * channels + (row_steps() * step_positions() - 1) * position_step() + run();
    return ((image_end > runs_end ? image_end : runs_end) * element_bytes + 15) / 16 * 16;
  }
};

// How the work is divided. `groups` blocks for the same filters, each with every groups-th tile of `tile_rows` rows; in
// a block, warps for different taps, of which `depth_parts` have the same taps and different positions.
struct ImageGradientCut {
  int tile_rows = 1, image_tiles = 1, tiles = 1, filter_tiles = 1, groups = 1, tap_warps = 1, depth_parts = 1;
  int shared_bytes = 0, rows = 0, gradient_bytes = 0, image_bytes = 0;  // of the gradients and of the image of a tile
  int threads() const { return 32 * tap_warps * depth_parts; }
  int blocks() const { return filter_tiles * groups; }
  // Of the sums of one group.
  constexpr int stored_filters() const { return filter_tiles * gradient_filters; }
  constexpr int stored_taps(int warp_chunks) const { return tap_warps * warp_chunks * tap_chunk; }
};

// Of the sums that a thread passes on to another one in shared memory: an odd multiple of 16 bytes, so that those of
// eight threads are in different banks.
constexpr int passed_sums_bytes(int chunks) { return gradient_filters / 16 * chunks * 16 + 16; }

inline ImageGradientCut cut_image_gradient(const ImageGradientShape& shape, const ImageGradientForm& form,
                                           int tile_rows, int multiprocessors) {
  ImageGradientCut cut;
  cut.tile_rows = tile_rows;
  cut.image_tiles = (shape.out[0] + tile_rows - 1) / tile_rows;
  cut.tiles = shape.batch * cut.image_tiles;
  cut.filter_tiles = (shape.filters + gradient_filters - 1) / gradient_filters;
  cut.groups = std::clamp(form.blocks * multiprocessors / cut.filter_tiles, 1, cut.tiles);
  cut.tap_warps = (shape.tap_chunks() + form.chunks - 1) / form.chunks;
  cut.depth_parts = std::max(form.warps / cut.tap_warps, 1);
  cut.rows = shape.rows_under(tile_rows);
  cut.gradient_bytes = tile_rows * shape.row_steps() * shape.step_positions() * shape.gradient_row_bytes();
  cut.image_bytes = cut.rows * shape.row_bytes();
  // The other half of the image is widened from staged rows, with a chunk of zeros after them, or arrives as the first.
  const int more_bytes = shape.widens_pixels() ? cut.rows * shape.staged_row() * 2 + 16 : cut.image_bytes;
  const int passed_bytes = cut.depth_parts > 1 ? cut.tap_warps * 32 * passed_sums_bytes(form.chunks) : 0;
  cut.shared_bytes = std::max(2 * cut.gradient_bytes + cut.image_bytes + more_bytes, passed_bytes);
  return cut;
}

namespace image_tile {

// Where 16 bytes of the filters of a position are, so that those that are read together are in different banks: in 16
// bits the same ones of eight positions, of float32 every other one of four positions.
template <class T>
__device__ int gradient_at(int position, int chunk) {
  constexpr int row_bytes = gradient_filters * int{sizeof(T)};
  const int spread = sizeof(T) == 2 ? position & 7 : (position & 1) | (position & 2) << 1;
  return position * row_bytes + (chunk ^ spread) * 16;
}

// The gradients of some rows of the output, asynchronously: (row, position filled up to whole steps, filter). Positions
// that fill a row up are not written.
template <class T>
__device__ void copy_gradients(const ImageGradientShape& shape, const T* dy, int rows, int first_filter,
                               unsigned char* shared) {
  using namespace tensor_core;
  constexpr int row_chunks = gradient_filters / widest<T>;
  const int step = static_cast<int>(blockDim.x) / row_chunks, chunk = static_cast<int>(threadIdx.x) % row_chunks;
  const bool inside = first_filter + chunk * widest<T> < shape.filters;
  for (int row = 0; row < rows; ++row) {
    const T* const from = dy + int64_t{row} * shape.out[1] * shape.filters + (inside ? first_filter : 0) +
                          (inside ? chunk * widest<T> : 0);
    const int first = row * shape.row_steps() * shape.step_positions();
#pragma unroll 4
    for (int at = static_cast<int>(threadIdx.x) / row_chunks; at < shape.out[1]; at += step)
      copy_chunk(shared_address(shared + gradient_at<T>(first + at, chunk)), from + int64_t{at} * shape.filters,
                 inside);
  }
}

// Fills the channels of the rows of an image up to four.
template <class T>
__device__ void widen_pixels(const ImageGradientShape& shape, int rows, const unsigned char* staged,
                             unsigned char* pixels) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int row = warp; row < rows; row += static_cast<int>(blockDim.x) / 32) {
    const T* const from = reinterpret_cast<const T*>(staged) + row * shape.staged_row();
    unsigned char* const to = pixels + row * shape.row_bytes() + shape.first_pixel() * pixel_bytes;
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

// The filters that a warp gives to tensor cores, in fragments of 16.
template <class T>
class GradientFragments {
 public:
  static constexpr int count = gradient_filters / 16;
  // A lane has two rows of each fragment: the filter of row r. In float32 its filters are neighbours.
  __device__ static int filter(int fragment, int r) {
    const int quad = static_cast<int>(threadIdx.x) % 32 / 4;
    return sizeof(T) == 2 ? fragment * 16 + r * 8 + quad : quad * 8 + fragment * 2 + r;
  }

  __device__ GradientFragments() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < offsets; ++i)
      at_[i] = static_cast<uint32_t>(sizeof(T) == 2 ? gradient_at<T>(lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2)
                                                    : gradient_at<T>(lane % 4, lane / 4 * 2));
  }
  // Fragments `first` and first + 1 of a step whose gradients are at `step`; float32 rounded to TF32.
  __device__ void load(uint32_t (&words)[2][4], uint32_t step, int first) const {
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (int m = 0; m < 2; ++m) tensor_core::load_transposed(words[m], step + at_[first + m]);
    } else {
      const uint32_t address = (step + at_[0]) ^ static_cast<uint32_t>(first / 2 * 16);
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // positions lane % 4 and lane % 4 + 4
        const uint4 filters = tensor_core::load_chunk(address + static_cast<uint32_t>(half * gradient_at<T>(4, 0)));
        words[0][2 * half] = tensor_core::to_be_truncated(filters.x);
        words[0][2 * half + 1] = tensor_core::to_be_truncated(filters.y);
        words[1][2 * half] = tensor_core::to_be_truncated(filters.z);
        words[1][2 * half + 1] = tensor_core::to_be_truncated(filters.w);
      }
    }
  }

 private:
  // In float32 the second chunk of a lane is beside its first one, in an order that only depends on the position.
  static constexpr int offsets = sizeof(T) == 2 ? count : 1;
  uint32_t at_[offsets];
};

// The taps of a warp that it gives to tensor cores, in chunks; chunks and taps that fill up a warp are the first one.
template <class T, int chunks>
class GradientTaps {
 public:
  // zeros: 16 bytes of them, if pixels are widened.
  __device__ GradientTaps(const ImageGradientShape& shape, int tap_warp, const unsigned char* zeros)
      : positions_(shape.out[1]),
        position_bytes_(sizeof(T) == 2 ? shape.stride[1] * pixel_bytes : shape.position_step() * int{sizeof(T)}),
        zeros_(tensor_core::shared_address(zeros)) {
    const int lane = static_cast<int>(threadIdx.x) % 32, row_bytes = shape.row_bytes();
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      int at = 0;
      if constexpr (sizeof(T) == 2) {
        const int chunk = tap_warp * chunks + 2 * i + (2 * i + 1 < chunks ? lane / 16 : 0);
        const int row = chunk / shape.pixel_run_chunks(), of_run = chunk - row * shape.pixel_run_chunks();
        if (chunk < shape.tap_chunks()) at = row * row_bytes + of_run * 2 * pixel_bytes;
      } else {
        const int tap = (tap_warp * chunks + i) * tap_chunk + lane / 4, row = tap / shape.run();
        const int element = shape.image_at() - shape.pad[1] * shape.channels + tap - row * shape.run();
        if (row < shape.kernel[0]) at = row * row_bytes + element * int{sizeof(T)};
        at += lane % 4 * position_bytes_;
      }
      at_[i] = static_cast<uint32_t>(at);
    }
  }

  // Those of step `step` of a row of the output, whose first row of the image is at `row`; float32 rounded to TF32.
  // Those of positions outside of the output are 0.
  __device__ void load(uint32_t (&words)[chunks][2], uint32_t row, int step) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (sizeof(T) == 2) {
      const int position = step * step_positions + lane % 8 + lane / 8 % 2 * 8;  // whose taps this lane's address is of
      const bool inside = position < positions_;
      const uint32_t taps = inside ? row + static_cast<uint32_t>(position * position_bytes_) : zeros_;
#pragma unroll
      for (int i = 0; i < chunks / 2; ++i) {
        uint32_t both[4];
        tensor_core::load_transposed(both, taps + (inside ? at_[i] : 0));
        words[2 * i][0] = both[0];
        words[2 * i][1] = both[1];
        words[2 * i + 1][0] = both[2];
        words[2 * i + 1][1] = both[3];
      }
      if constexpr (chunks % 2 == 1)
        tensor_core::load_transposed(words[chunks - 1], taps + (inside ? at_[chunks / 2] : 0));
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // positions lane % 4 and lane % 4 + 4
        const uint32_t taps = row + static_cast<uint32_t>((step * step_positions + half * 4) * position_bytes_);
#pragma unroll
        for (int n = 0; n < chunks; ++n)
          words[n][half] = tensor_core::to_be_truncated(tensor_core::load_word(taps + at_[n]));
      }
      if ((step + 1) * step_positions <= positions_) return;
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int n = 0; n < chunks; ++n)
          if (step * step_positions + half * 4 + lane % 4 >= positions_) words[n][half] = 0;
    }
  }

 private:
  static constexpr int step_positions = 32 / int{sizeof(T)};
  static constexpr int loads = sizeof(T) == 2 ? (chunks + 1) / 2 : chunks;
  int positions_, position_bytes_;
  uint32_t zeros_;
  uint32_t at_[loads];  // from a row and a position on
};

}  // namespace image_tile

// chunks, warps, blocks: the form. partial[group][filter][tap], with the filters of all tiles and the taps of the
// chunks of all warps.
template <class T, int chunks, int warps, int blocks>
__global__ void __launch_bounds__(32 * warps, blocks)
    sum_image_gradient(const __grid_constant__ ImageGradientShape shape, const __grid_constant__ ImageGradientCut cut,
                       const T* data, const T* dy, float* partial) {
  using namespace tensor_core;
  using Fragments = image_tile::GradientFragments<T>;
  constexpr bool widens = sizeof(T) == 2;
  constexpr int step_bytes = 32 / int{sizeof(T)} * gradient_filters * int{sizeof(T)};  // of the gradients
  extern __shared__ __align__(128) unsigned char gradient_shared[];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int tap_warp = warp % cut.tap_warps, depth_part = warp / cut.tap_warps;
  const int filter_tile = static_cast<int>(blockIdx.x) % cut.filter_tiles;
  const int group = static_cast<int>(blockIdx.x) / cut.filter_tiles, first_filter = filter_tile * gradient_filters;
  unsigned char* const images = gradient_shared + 2 * cut.gradient_bytes;
  unsigned char* const staged = images + cut.image_bytes;  // or the second buffer of the image
  unsigned char* const zeros = staged + cut.rows * shape.staged_row() * 2;

  // Zeros where no copy writes: the borders of the image, and the positions that fill up a row of the output.
  const int cleared = 2 * cut.gradient_bytes + (widens ? 1 : 2) * cut.image_bytes;
  for (int i = thread * 16; i < cleared; i += static_cast<int>(blockDim.x) * 16)
    *reinterpret_cast<uint4*>(gradient_shared + i) = uint4{};
  if (widens && thread == 0) *reinterpret_cast<uint4*>(zeros) = uint4{};
  __syncthreads();

  const auto copy_tile = [&](int tile, int buffer) {
    if (tile < cut.tiles) {
      const int image = tile / cut.image_tiles, first_row = (tile - image * cut.image_tiles) * cut.tile_rows;
      T* const rows = reinterpret_cast<T*>(widens ? staged : images + buffer * cut.image_bytes);
      image_tile::copy_rows(shape, data + int64_t{image} * shape.in[0] * shape.image_row(),
                            first_row * shape.stride[0] - shape.pad[0], cut.rows,
                            widens ? shape.staged_row() : shape.row_bytes() / int{sizeof(T)},
                            rows + (widens ? 0 : shape.image_at()));
      image_tile::copy_gradients(shape, dy + (int64_t{image} * shape.out[0] + first_row) * shape.out[1] * shape.filters,
                                 min(cut.tile_rows, shape.out[0] - first_row), first_filter,
                                 gradient_shared + buffer * cut.gradient_bytes);
    }
    end_copies();
  };
  copy_tile(group, 0);

  const image_tile::GradientTaps<T, chunks> taps(shape, tap_warp, zeros);
  const Fragments fragments;
  const int row_steps = shape.row_steps();
  float sums[Fragments::count][chunks][4] = {};
  int buffer = 0;
  for (int tile = group; tile < cut.tiles; tile += cut.groups, buffer ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if constexpr (widens) {
      image_tile::widen_pixels<T>(shape, cut.rows, staged, images);
      __syncthreads();
    }
    copy_tile(tile + cut.groups, buffer ^ 1);
    const int first_row = tile % cut.image_tiles * cut.tile_rows, rows = min(cut.tile_rows, shape.out[0] - first_row);
    uint32_t gradients = shared_address(gradient_shared + buffer * cut.gradient_bytes);
    uint32_t image_row = shared_address(images + (widens ? 0 : buffer * cut.image_bytes));
    int step = depth_part;  // of a row; the next row continues after the last one of this depth part
    for (int row = 0; row < rows; ++row, step -= row_steps) {
      for (; step < row_steps; step += cut.depth_parts) {
        uint32_t b_words[chunks][2];
        taps.load(b_words, image_row, step);
#pragma unroll
        for (int m = 0; m < Fragments::count; m += 2) {
          uint32_t a_words[2][4];
          fragments.load(a_words, gradients + static_cast<uint32_t>(step * step_bytes), m);
#pragma unroll
          for (int k = 0; k < 2; ++k)
#pragma unroll
            for (int n = 0; n < chunks; ++n) add_product<T, false>(sums[m + k][n], a_words[k], b_words[n]);
        }
      }
      gradients += static_cast<uint32_t>(row_steps * step_bytes);
      image_row += static_cast<uint32_t>(shape.stride[0] * shape.row_bytes());
    }
  }

  // Every depth part but the first passes its sums on to the one before it.
  auto* const passed = reinterpret_cast<float4*>(gradient_shared) +
                       (tap_warp * 32 + thread % 32) * (passed_sums_bytes(chunks) / static_cast<int>(sizeof(float4)));
  const auto for_sums = [&](auto visit) {
#pragma unroll
    for (int m = 0; m < Fragments::count; ++m)
#pragma unroll
      for (int n = 0; n < chunks; ++n) visit(sums[m][n], passed[m * chunks + n]);
  };
  for (int part = cut.depth_parts - 1; part > 0; --part) {
    __syncthreads();
    if (depth_part == part)
      for_sums([](const float(&own)[4], float4& other) { other = make_float4(own[0], own[1], own[2], own[3]); });
    __syncthreads();
    if (depth_part == part - 1)
      for_sums([](float(&own)[4], const float4& other) {
        own[0] += other.x;
        own[1] += other.y;
        own[2] += other.z;
        own[3] += other.w;
      });
  }
  if (depth_part > 0) return;
  const int stored_taps = cut.stored_taps(chunks);
  float* const own = partial + (int64_t{group} * cut.stored_filters() + first_filter) * stored_taps;
#pragma unroll
  for (int m = 0; m < Fragments::count; ++m)
#pragma unroll
    for (int n = 0; n < chunks; ++n)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int tap = (tap_warp * chunks + n) * tap_chunk + thread % 4 * 2;
        *reinterpret_cast<float2*>(own + Fragments::filter(m, r) * stored_taps + tap) =
            make_float2(sums[m][n][2 * r], sums[m][n][2 * r + 1]);
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
  double sum = 0;
  if (filter < shape.filters) {
    const float* const from = partial + int64_t{filter} * stored_taps + shape.tap_of(row, in_run);
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
