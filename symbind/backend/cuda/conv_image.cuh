// Convolutions over the few channels of an image on tensor cores, in 16 bits or, for float32, in TF32: all arrays with
// their channels last, sums in float32.
//
// For a position of the output and a row of the kernel, the elements of the image that are multiplied are a run of
// neighbours, as are the weights. The convolution is a matrix product of positions by filters, whose depth is these
// runs, each filled up to whole chunks of 8 elements. A block computes tiles of some rows of the output, one after the
// other. The rows of the image under a tile are in shared memory, with zeros around them, and a thread reads the pairs
// of elements that it gives to the tensor core from there. Elements that are in a chunk and not in the run are replaced
// by zeros, since the product of a zero weight with infinity is not zero. The rows of the next tile arrive while a tile
// is computed; the weights stay.
//
// The tiles of a block depend on the shape and on the device alone, and so do the sums per filter: the same arrays give
// bitwise the same results.
#pragma once

#include <algorithm>
#include <cstdint>

#include "symbind/backend/cuda/launch.cuh"
#include "symbind/backend/cuda/tensor_product.cuh"
#include "symbind/backend/functions.h"

namespace symbind::cuda_backend {

inline constexpr int image_threads = 256, image_blocks = 2;  // of a block; of a multiprocessor
inline constexpr int image_columns = 64;                     // filters of a tile
inline constexpr int image_fragments = 2;                    // of 16 positions, that a warp computes together
inline constexpr int chunk_elements = 8;

// A tensor core's product has a depth of 32 bytes, a step: two chunks in 16 bits, one of float32.
constexpr int step_chunks(int element_bytes) { return 4 / element_bytes; }

// The convolution, and where the rows of the image are in shared memory. Elements are counted unless bytes are named.
struct ImageShape {
  int batch = 0, channels = 0, filters = 0, element_bytes = 2;
  int in[2] = {}, out[2] = {}, kernel[2] = {}, stride[2] = {}, pad[2] = {};

  constexpr int run() const { return kernel[1] * channels; }
  constexpr int image_row() const { return in[1] * channels; }
  constexpr int position_step() const { return stride[1] * channels; }
  // Pairs of elements are read. Do all of them begin at even elements? Otherwise a pair takes two reads.
  constexpr bool even() const { return position_step() % 2 == 0; }
  // The image begins where a chunk does. If the runs begin at odd elements, one element more is read before them.
  constexpr int image_at() const { return (pad[1] * channels + chunk_elements - 1) / chunk_elements * chunk_elements; }
  constexpr int lead() const { return even() ? (image_at() - pad[1] * channels) % 2 : 0; }
  constexpr int first_run() const { return image_at() - pad[1] * channels - lead(); }
  constexpr int shared_row() const {
    const int image_end = image_at() + image_row();
    const int runs_end = first_run() + lead() + (out[1] - 1) * position_step() + run();
    return ((image_end > runs_end ? image_end : runs_end) + chunk_elements - 1) / chunk_elements * chunk_elements;
  }
  constexpr int run_chunks() const { return (lead() + run() + chunk_elements - 1) / chunk_elements; }
  constexpr int chunks() const { return kernel[0] * run_chunks(); }
  constexpr int steps() const { return (chunks() + step_chunks(element_bytes) - 1) / step_chunks(element_bytes); }
  // An odd multiple of 16, so that the same 16 bytes of eight filters are in different banks.
  constexpr int filter_bytes() const { return (2 * steps() + 1) * 16; }
  constexpr int row_fragments() const { return (out[1] + 15) / 16; }
  constexpr int rows_under(int output_rows) const { return (output_rows - 1) * stride[0] + kernel[0]; }
};

// How the work is divided: `groups` blocks for the same filters, each with every groups-th tile of `tile_rows` rows.
// And what the kernel needs of the shape's functions, computed once.
struct ImageCut {
  int tile_rows = 1, image_tiles = 1, tiles = 1, column_tiles = 1, groups = 1, shared_bytes = 0;
  int rows = 0, shared_row = 0, image_at = 0, first_run = 0, filter_bytes = 0, row_fragments = 0;
  int blocks() const { return column_tiles * groups; }
};

inline ImageCut cut_image(const ImageShape& shape, int tile_rows, int multiprocessors) {
  constexpr int read_beyond = 64;  // a chunk of the last row may end after it
  constexpr int warp_sums = image_threads / 32 * 2 * image_columns * static_cast<int>(sizeof(float));
  ImageCut cut;
  cut.tile_rows = tile_rows;
  cut.image_tiles = (shape.out[0] + tile_rows - 1) / tile_rows;
  cut.tiles = shape.batch * cut.image_tiles;
  cut.column_tiles = (shape.filters + image_columns - 1) / image_columns;
  cut.groups = std::clamp(image_blocks * multiprocessors / cut.column_tiles, 1, cut.tiles);
  cut.rows = shape.rows_under(tile_rows);
  cut.shared_row = shape.shared_row();
  cut.image_at = shape.image_at();
  cut.first_run = shape.first_run();
  cut.filter_bytes = shape.filter_bytes();
  cut.row_fragments = shape.row_fragments();
  constexpr int buffers = 2;
  const int tiles_bytes = buffers * cut.rows * cut.shared_row * shape.element_bytes;
  cut.shared_bytes = std::max(image_columns * cut.filter_bytes + tiles_bytes + read_beyond, warp_sums);
  return cut;
}

// What is done with the products.
template <class T>
struct ImageEpilogue {
  T* out;
  const T* bias;  // or null
  bool relu;
};

namespace image_tile {

// The filters of a thread are in parts, each of 16 bytes of neighbours; the parts of the four threads that have the
// same positions follow one another.
template <class T>
constexpr int part_filters = widest<T>;
template <class T>
constexpr int part_step = 4 * part_filters<T>;

// Which filter of a tile is column `slot % 8` of fragment `slot / 8`.
template <class T>
__device__ int filter_of_slot(int slot) {
  constexpr int part_fragments = part_filters<T> / 2;
  const int fragment = slot / 8, column = slot % 8;
  return fragment / part_fragments * part_step<T> + column / 2 * part_filters<T> + fragment % part_fragments * 2 +
         column % 2;
}
// Filter number `of_thread` of a thread, in its tile.
template <class T>
__device__ int filter_of_thread(int of_thread) {
  const int member = static_cast<int>(threadIdx.x) % 4;
  return of_thread / part_filters<T> * part_step<T> + member * part_filters<T> + of_thread % part_filters<T>;
}

// Where element k of a chunk of weights is. A thread gives pairs of neighbouring elements of the image to the tensor
// core: in float32, as numbers i and i + 4 of the depth.
template <class T>
__device__ int in_chunk(int k) {
  return sizeof(T) == 2 ? k : k % 2 * 4 + k / 2;
}

// Chunks of the weights of a tile: (slot, chunk), with zeros where a chunk is not of a run; float32 rounded to
// TF32.
template <class T>
__device__ void load_weights(const ImageShape& shape, const T* weight, int first_filter, unsigned char* shared) {
  constexpr int packs = chunk_elements / widest<T>;
  const int chunks = step_chunks(sizeof(T)) * shape.steps(), run_chunks = shape.run_chunks();
  const int run = shape.run(), lead = shape.lead();
  for (int i = static_cast<int>(threadIdx.x); i < image_columns * chunks; i += static_cast<int>(blockDim.x)) {
    const int slot = i / chunks, chunk = i - slot * chunks, row = chunk / run_chunks;
    const int filter = first_filter + filter_of_slot<T>(slot);
    const int first = (chunk - row * run_chunks) * chunk_elements - lead;
    const bool exists = filter < shape.filters && row < shape.kernel[0];
    const T* const from = weight + (int64_t{filter} * shape.kernel[0] + row) * run + first;
    Pack<T, widest<T>> elements[packs];
#pragma unroll
    for (int k = 0; k < chunk_elements; ++k) {
      T& element = elements[in_chunk<T>(k) / widest<T>].element[in_chunk<T>(k) % widest<T>];
      element = T{};
      if (exists && first + k >= 0 && first + k < run) element = from[k];
      if constexpr (sizeof(T) == 4) element = tensor_core::nearest_tf32(element);
    }
    auto* const to = reinterpret_cast<Pack<T, widest<T>>*>(shared + slot * shape.filter_bytes()) + chunk * packs;
#pragma unroll
    for (int pack = 0; pack < packs; ++pack) to[pack] = elements[pack];
  }
}

// Zeros before and after the rows of the image. They stay: copies of rows do not reach them.
template <class T>
__device__ void clear_borders(const ImageShape& shape, int rows, unsigned char* shared) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int before = shape.image_at(), after = before + shape.image_row();
  for (int row = warp; row < rows; row += static_cast<int>(blockDim.x) / 32) {
    T* const elements = reinterpret_cast<T*>(shared) + row * shape.shared_row();
    for (int i = lane; i < before; i += 32) elements[i] = T{};
    for (int i = after + lane; i < shape.shared_row(); i += 32) elements[i] = T{};
  }
}

// Copies rows of an image to shared memory, `step` elements from one to the next, asynchronously if they are aligned to
// at least four bytes; zeros for rows outside of the image.
template <class T>
__device__ void copy_rows(const ImageShape& shape, const T* image, int first_row, int rows, int step, T* shared) {
  using namespace tensor_core;
  constexpr int word_elements = 4 / static_cast<int>(sizeof(T));
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int image_row = shape.image_row();
  for (int i = warp; i < rows; i += static_cast<int>(blockDim.x) / 32) {
    const int row = first_row + i;
    const bool inside = row >= 0 && row < shape.in[0];
    const T* const from = image + int64_t{inside ? row : 0} * image_row;
    T* const to = shared + i * step;
    if (image_row % widest<T> == 0) {
      for (int k = lane * widest<T>; k < image_row; k += 32 * widest<T>)
        copy_chunk(shared_address(to + k), from + k, inside);
    } else if (image_row % word_elements == 0) {
      for (int k = lane * word_elements; k < image_row; k += 32 * word_elements)
        copy_word(shared_address(to + k), from + k, inside);
    } else {
#pragma unroll 4
      for (int k = lane; k < image_row; k += 32) to[k] = inside ? from[k] : T{};
    }
  }
}

// Adds values[i] over the eight lanes with the same lane % 4: each of them gets the sums of count / 8 values, the first
// of which is number lane / 4 · count / 8.
template <int count>
__device__ void add_lanes(float (&values)[count]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int left = count / 2;
#pragma unroll
  for (int offset = 16; offset >= 4; offset /= 2, left /= 2) {
    const bool upper = lane & offset;
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      if (i >= left) break;
      const float own = upper ? values[i + left] : values[i], other = upper ? values[i] : values[i + left];
      values[i] = own + __shfl_xor_sync(0xffffffffu, other, offset);
    }
  }
}

constexpr int column_fragments = image_columns / 8;  // of 8 filters
constexpr int thread_filters = image_columns / 4;
// Two sums for each filter of a thread; and those of them that a lane has after add_lanes().
constexpr int thread_sums = 2 * thread_filters, lane_sums = thread_sums / 8;

// The products of a thread: rows `lane / 4` and `lane / 4 + 8` of each fragment of positions by its filters.
using Products = float[image_fragments][column_fragments][4];
// That of row `slot` of the thread and its filter number `filter`.
__device__ inline float& product_at(Products& products, int slot, int filter) {
  return products[slot / 2][filter / 2][slot % 2 * 2 + filter % 2];
}

// Where the runs of a thread's positions are; positions outside of the output have the runs of others.
template <class T>
struct Positions {
  const unsigned char* runs[image_fragments][2];
  int shift[image_fragments][2];  // of elements of 16 bits: by one if a run begins at an odd element
  int position[image_fragments];  // of the first row, from the first one of the tile
  uint32_t outside = 0;           // a bit for each row: those outside of the output

  // From fragment `first` of the tile on, whose rows of the image are at `rows`.
  __device__ Positions(const ImageShape& shape, const ImageCut& cut, int first, int tile_fragments,
                       const unsigned char* rows) {
    const int lane = static_cast<int>(threadIdx.x) % 32, quad = lane / 4, member = lane % 4;
    int row = first / cut.row_fragments, column = (first - row * cut.row_fragments) * 16;
#pragma unroll
    for (int m = 0; m < image_fragments; ++m) {
      position[m] = row * shape.out[1] + column + quad;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int at = column + quad + 8 * r;
        if (first + m >= tile_fragments || at >= shape.out[1]) outside |= 1u << (2 * m + r);
        const int element = cut.first_run + min(at, shape.out[1] - 1) * shape.position_step();
        const int odd = sizeof(T) == 2 ? element % 2 : 0;  // pairs of these are words, read from whole words
        runs[m][r] = rows + (row * shape.stride[0] * cut.shared_row + element - odd + 2 * member) * int{sizeof(T)};
        shift[m][r] = odd * 16;
      }
      if (first + m + 1 >= tile_fragments) continue;
      column += 16;
      if (column >= shape.out[1]) {
        column = 0;
        ++row;
      }
    }
  }
  __device__ bool is_outside(int slot) const { return outside >> slot & 1u; }
};

// Products of the runs of positions with the weights of a tile. run_chunks and even: those of the shape.
template <class T, int run_chunks, bool even>
class Multiplication {
 public:
  __device__ Multiplication(const ImageShape& shape, const ImageCut& cut, const unsigned char* weights)
      : row_bytes_(cut.shared_row * int{sizeof(T)}) {
    const int lane = static_cast<int>(threadIdx.x) % 32, member = lane % 4;
    const int last_pair = (run_chunks - 1) * chunk_elements + 2 * member, run_end = shape.lead() + shape.run();
    set_mask(in_first_, shape.lead() == 0 || member > 0, true);
    set_mask(in_last_, last_pair < run_end, last_pair + 1 < run_end);
#pragma unroll
    for (int n = 0; n < column_fragments / 2; ++n)
      weights_at_[n] =
          tensor_core::shared_address(weights) +
          static_cast<uint32_t>((n * 16 + lane / 16 * 8 + lane % 8) * cut.filter_bytes + lane / 8 % 2 * 16);
  }

  // Adds those of all rows of the kernel.
  __device__ void add(Products& products, const Positions<T>& at, int kernel_rows) const {
    // Whole steps of a tensor core's depth; the last row may end in half of one.
    constexpr int at_once = run_chunks % step_chunks(sizeof(T)) == 0 ? 1 : 2;
    int row = 0;
#pragma unroll 1
    for (; row + at_once <= kernel_rows; row += at_once) add_rows<at_once>(products, at, row);
    if (row < kernel_rows) add_rows<1>(products, at, row);
  }

 private:
  static constexpr int chunk_bytes = chunk_elements * int{sizeof(T)};
  static constexpr int pair_words = int{sizeof(T)} / 2;  // of a pair of elements
  using Pair = uint32_t[pair_words];

  __device__ static void set_mask(Pair& mask, bool has_first, bool has_second) {
    const uint32_t first = has_first ? 0xffffffffu : 0u, second = has_second ? 0xffffffffu : 0u;
    if constexpr (pair_words == 1) {
      mask[0] = __byte_perm(first, second, 0x5410);
    } else {
      mask[0] = first;
      mask[1] = second;
    }
  }

  // Float32 is rounded to TF32.
  __device__ static void load_pair(Pair& pair, const unsigned char* from, int shift) {
    const auto* const words = reinterpret_cast<const uint32_t*>(from);
    if constexpr (pair_words == 1) {
      pair[0] = even ? words[0] : __funnelshift_r(words[0], words[1], shift);
    } else {
      const uint2 both = even ? *reinterpret_cast<const uint2*>(from) : make_uint2(words[0], words[1]);
      pair[0] = tensor_core::to_be_truncated(both.x);
      pair[1] = tensor_core::to_be_truncated(both.y);
    }
  }

  template <int at_once>
  __device__ void add_rows(Products& products, const Positions<T>& at, int row) const {
    constexpr int chunks = at_once * run_chunks, of_step = step_chunks(sizeof(T));
    const int runs_at = row * row_bytes_;
    const uint32_t chunks_at = static_cast<uint32_t>(row * run_chunks * chunk_bytes);
#pragma unroll
    for (int step = 0; step < (chunks + of_step - 1) / of_step; ++step) {
      uint32_t a_words[image_fragments][4];
#pragma unroll
      for (int in_step = 0; in_step < of_step; ++in_step) {
        const int chunk = of_step * step + in_step, of_run = chunk % run_chunks;
#pragma unroll
        for (int m = 0; m < image_fragments; ++m)
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            Pair pair = {};
            if (chunk < chunks)
              load_pair(pair, at.runs[m][r] + (runs_at + of_run * chunk_bytes) + chunk / run_chunks * row_bytes_,
                        at.shift[m][r]);
#pragma unroll
            for (int w = 0; w < pair_words; ++w) {
              if (even && of_run == 0) pair[w] &= in_first_[w];
              if (of_run == run_chunks - 1) pair[w] &= in_last_[w];
              a_words[m][2 * (in_step * pair_words + w) + r] = pair[w];
            }
          }
      }
#pragma unroll
      for (int n = 0; n < column_fragments; n += 2) {
        uint32_t words[4];
        tensor_core::load_matrices(words, weights_at_[n / 2] + chunks_at + step * 32);
        const uint32_t b_words[2][2] = {{words[0], words[1]}, {words[2], words[3]}};
#pragma unroll
        for (int m = 0; m < image_fragments; ++m)
#pragma unroll
          for (int k = 0; k < 2; ++k) tensor_core::add_product<T, false>(products[m][n + k], a_words[m], b_words[k]);
      }
    }
  }

  int row_bytes_;
  // Of the pairs of elements of this thread in the first and the last chunk of a run, the bits that are of the run.
  Pair in_first_, in_last_;
  // Lanes give the addresses of the chunks of two fragments, which ldmatrix reads together.
  uint32_t weights_at_[column_fragments / 2];
};

// Adds the products and their squares over the positions of a warp to the sums of each lane. Rows outside of the output
// become 0.
template <class T>
__device__ void add_to_sums(Products& products, const Positions<T>& at, float (&sums)[lane_sums]) {
  if (at.outside != 0) {
#pragma unroll
    for (int slot = 0; slot < 2 * image_fragments; ++slot)
#pragma unroll
      for (int i = 0; i < thread_filters; ++i)
        if (at.is_outside(slot)) product_at(products, slot, i) = 0;
  }
  float totals[thread_sums];  // of the products, then of their squares
#pragma unroll
  for (int i = 0; i < thread_filters; ++i) {
    float sum = 0, squares = 0;
#pragma unroll
    for (int slot = 0; slot < 2 * image_fragments; ++slot) {
      const float value = product_at(products, slot, i);
      sum += value;
      squares += value * value;
    }
    totals[i] = sum;
    totals[thread_filters + i] = squares;
  }
  add_lanes(totals);
#pragma unroll
  for (int i = 0; i < lane_sums; ++i) sums[i] += totals[i];
}

// Adds the sums of a block's warps, and stores them: to[filter].
template <class T>
__device__ void store_sums(const float (&sums)[lane_sums], float* of_warps, int filters, PairOf<float>* to) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
#pragma unroll
  for (int i = 0; i < lane_sums; ++i) {
    const int number = lane / 4 * lane_sums + i, column = filter_of_thread<T>(number % thread_filters);
    of_warps[(warp * 2 + number / thread_filters) * image_columns + column] = sums[i];
  }
  __syncthreads();
  if (thread >= image_columns || thread >= filters) return;
  PairOf<float> total = {0, 0};
  for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) {
    total.first += of_warps[2 * w * image_columns + thread];
    total.second += of_warps[(2 * w + 1) * image_columns + thread];
  }
  to[thread] = total;
}

// Writes the positions of a tile that begins at `tile_position`, with bias and ReLU if there are any.
template <class T>
__device__ void write_products(const ImageEpilogue<T>& epilogue, Products& products, const Positions<T>& at,
                               int64_t tile_position, int first_filter, int filters) {
  constexpr int width = part_filters<T>;
#pragma unroll
  for (int first = 0; first < thread_filters; first += width) {
    const int filter = first_filter + filter_of_thread<T>(first);
    if (filter >= filters) break;
    if (epilogue.bias || epilogue.relu) {
      Packed<T, width> bias = {};
      if (epilogue.bias) bias = load_packed<width>(epilogue.bias + filter);
#pragma unroll
      for (int slot = 0; slot < 2 * image_fragments; ++slot)
#pragma unroll
        for (int k = 0; k < width; ++k) {
          float& value = product_at(products, slot, first + k);
          value += bias[k];
          if (epilogue.relu) value = functions::Relu{}(value);
        }
    }
#pragma unroll
    for (int slot = 0; slot < 2 * image_fragments; ++slot) {
      float values[width];
#pragma unroll
      for (int k = 0; k < width; ++k) values[k] = product_at(products, slot, first + k);
      const int64_t position = tile_position + at.position[slot / 2] + slot % 2 * 8;
      if (!at.is_outside(slot)) store_packed(epilogue.out + position * filters + filter, Packed<T, width>(values));
    }
  }
}

}  // namespace image_tile

// run_chunks and even: those of the shape. If `partial` is not null, partial[group][filter] gets the sums of the
// products of this block and of their squares, before they are rounded; there is then no bias and no ReLU.
template <class T, int run_chunks, bool even>
__global__ void __launch_bounds__(image_threads, image_blocks)
    convolve_image(const __grid_constant__ ImageShape shape, const __grid_constant__ ImageCut cut, const T* data,
                   const T* weight, const ImageEpilogue<T> epilogue, PairOf<float>* partial) {
  using namespace tensor_core;
  extern __shared__ __align__(128) unsigned char image_shared[];
  let_next_start();
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = static_cast<int>(blockDim.x) / 32;
  const int first_filter = static_cast<int>(blockIdx.x) % cut.column_tiles * image_columns;
  const int group = static_cast<int>(blockIdx.x) / cut.column_tiles;
  const int tile_bytes = cut.rows * cut.shared_row * int{sizeof(T)};
  unsigned char* const shared_rows = image_shared + image_columns * cut.filter_bytes;

  const auto copy_tile = [&](int tile, int buffer) {
    if (tile < cut.tiles) {
      const int image = tile / cut.image_tiles, first_row = (tile - image * cut.image_tiles) * cut.tile_rows;
      image_tile::copy_rows(shape, data + int64_t{image} * shape.in[0] * shape.image_row(),
                            first_row * shape.stride[0] - shape.pad[0], cut.rows, cut.shared_row,
                            reinterpret_cast<T*>(shared_rows + buffer * tile_bytes) + cut.image_at);
    }
    end_copies();
  };
  copy_tile(group, 0);
  image_tile::clear_borders<T>(shape, 2 * cut.rows, shared_rows);
  image_tile::load_weights(shape, weight, first_filter, image_shared);

  const image_tile::Multiplication<T, run_chunks, even> multiplication(shape, cut, image_shared);
  float sums[image_tile::lane_sums] = {};
  int buffer = 0;
  for (int tile = group; tile < cut.tiles; tile += cut.groups, buffer ^= 1) {
    copy_tile(tile + cut.groups, buffer ^ 1);
    wait_for_copies<1>();
    __syncthreads();
    const int image = tile / cut.image_tiles, first_row = (tile - image * cut.image_tiles) * cut.tile_rows;
    const int64_t tile_position = (int64_t{image} * shape.out[0] + first_row) * shape.out[1];
    const int tile_fragments = min(cut.tile_rows, shape.out[0] - first_row) * cut.row_fragments;
    for (int first = warp * image_fragments; first < tile_fragments; first += warps * image_fragments) {
      const image_tile::Positions<T> at(shape, cut, first, tile_fragments, shared_rows + buffer * tile_bytes);
      image_tile::Products products = {};
      multiplication.add(products, at, shape.kernel[0]);
      if (partial) image_tile::add_to_sums(products, at, sums);
      image_tile::write_products(epilogue, products, at, tile_position, first_filter, shape.filters);
    }
    __syncthreads();  // all warps have read the rows: the next copy overwrites them
  }
  if (partial)
    image_tile::store_sums<T>(sums, reinterpret_cast<float*>(image_shared), shape.filters - first_filter,
                              partial + int64_t{group} * shape.filters + first_filter);
}

}  // namespace symbind::cuda_backend
