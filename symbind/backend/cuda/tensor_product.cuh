// Matrix products on tensor cores with an epilogue that sees each row of the result before it is written, and that adds
// up two numbers per column over all rows: a · b for a of (rows, depth), and b of (columns, depth) or (depth, columns),
// all of them contiguous. Sums are in float32, products of float32 numbers in TF32.
//
// For products of so small a depth that they are limited by memory bandwidth. A block computes tiles of 128 rows in the
// same columns, one after the other. Its columns of b stay in shared memory. Everything else that is read in long rows
// goes through a ring of slices there, each of 128 bytes of 128 rows: the slices of a that make up a tile, then those
// of the arrays that the epilogue reads. They arrive asynchronously, some slices ahead, also while an epilogue runs, so
// that enough loads are always in flight. The columns of b are assigned to the columns of a tensor core's product so
// that a thread gets eight neighbouring columns of the result, without an exchange between threads.
//
// The tiles of a block depend on the shape and on the device alone, and so do the sums per column: the same arrays give
// bitwise the same results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/packed.cuh"
#include "symbind/backend/cuda/shared_memory.h"
#include "symbind/backend/cuda/tensor_core.cuh"

namespace symbind::cuda_backend {

struct ProductShape {
  int rows = 0, columns = 0, depth = 0;
};

inline constexpr int product_rows = 128;   // of a tile
inline constexpr int product_slice = 128;  // bytes of a row of a, and of a column of b, in a slice
inline constexpr int product_width = 8;    // neighbouring columns that a thread passes to the epilogue
inline constexpr int slice_bytes = product_rows * product_slice;

template <class T>
inline constexpr int slice_depth = product_slice / static_cast<int>(sizeof(T));

// The columns of a tile, the threads of a block, and the slices in the ring.
struct ProductSizes {
  int columns, threads, stages;
  // How many blocks a multiprocessor has registers for: it has 65536, and a thread may use 128.
  constexpr int resident_blocks() const { return 65536 / 128 / threads; }
};
template <int columns, int threads, int stages>
struct ProductForm {
  static constexpr ProductSizes sizes{columns, threads, stages};
};

// How the tiles are divided: `groups` blocks for the same columns, each with every groups-th tile of rows.
struct ProductCut {
  int column_tiles = 1, groups = 1, shared_bytes = 0;
  int blocks() const { return column_tiles * groups; }
};

// None: there is not enough shared memory.
inline std::optional<ProductCut> cut_product(const ProductShape& shape, int element_bytes, const ProductSizes& form,
                                             int multiprocessors, const SharedMemory& memory) {
  const int row_tiles = (shape.rows + product_rows - 1) / product_rows;
  const int slices = (shape.depth * element_bytes + product_slice - 1) / product_slice;
  ProductCut cut;
  cut.column_tiles = (shape.columns + form.columns - 1) / form.columns;
  cut.shared_bytes = slices * form.columns * product_slice + form.stages * slice_bytes;
  if (cut.shared_bytes > memory.of_block) return std::nullopt;
  const int blocks = std::clamp(memory.blocks(cut.shared_bytes), 1, form.resident_blocks());
  cut.groups = std::clamp(blocks * multiprocessors / cut.column_tiles, 1, row_tiles);
  return cut;
}

// Vectors of 16 bytes must fill the rows of a and b, and the columns of a thread the rows of the result.
inline bool suits_tensor_product(int64_t rows, int64_t columns, int64_t depth, int element_bytes) {
  constexpr int64_t most_rows = (int64_t{1} << 31) - 2 * product_rows, most_columns = 1 << 20;
  return rows > 0 && rows <= most_rows && columns > 0 && columns <= most_columns && depth > 0 &&
         depth <= most_columns && depth * element_bytes % 16 == 0 && columns % product_width == 0;
}

// The elements of a row that a thread passes to the epilogue.
template <class T>
using RowPart = Packed<T, product_width>;

// What each warp of a block computes of a tile, and where slices are in shared memory.
template <class T, class Form>
struct ProductTile {
  static constexpr ProductSizes form = Form::sizes;
  static constexpr int warp_columns = 32, column_warps = form.columns / warp_columns;
  static constexpr int row_warps = form.threads / 32 / column_warps, warp_rows = product_rows / row_warps;
  static constexpr int row_fragments = warp_rows / 16, column_fragments = warp_columns / 8;
  static constexpr int b_bytes = form.columns * product_slice;  // of a slice
  static constexpr int row_slots = row_fragments * 2;           // rows of a thread, which are 8 rows apart
  static_assert(column_fragments * 2 == product_width);

  // An operand of the epilogue is copied in whole rows of the tile: in one slice or in several, its parts, each with
  // the rows of every warp that the epilogue processes next.
  static constexpr int operand_row = form.columns * static_cast<int>(sizeof(T));  // bytes
  static constexpr int operand_parts = operand_row / product_slice, part_slots = row_slots / operand_parts;
  static constexpr int part_rows = part_slots * 8;  // of a warp
  static_assert(part_slots > 0);

  // Where a chunk of 16 bytes is in a slice. The chunks of a row are permuted, so that eight chunks that are read
  // together are in different banks:
  //   a         the same chunk of eight neighbouring rows
  //   b         the same chunk of eight columns that are neighbours in a tensor core's product: its column 2 · i + e in
  //             fragment n is column 8 · i + 2 · n + e of the warp
  //   operand   four chunks of each of two rows
  __device__ static uint32_t in_a(int row, int chunk) {
    return static_cast<uint32_t>(row * product_slice + ((chunk ^ (row & 7)) * 16));
  }
  __device__ static uint32_t in_b(int column, int chunk) {
    const int spread = (column >> 3 & 3) * 2 + (column & 1);
    return static_cast<uint32_t>(column * product_slice + ((chunk ^ spread) * 16));
  }
  __device__ static uint32_t in_operand(int row, int chunk) {
    constexpr int spread = sizeof(T) == 2 ? 4 : 1;
    return static_cast<uint32_t>(row * operand_row + ((chunk ^ (row & 1) * spread) * 16));
  }
};

// Copies the part of a block of b, (depth, columns), to shared memory as for b of (columns, depth), rounded to TF32.
template <class T, class Form>
__device__ void copy_transposed(unsigned char* to, const ProductShape& shape, const T* b, int first_column,
                                int slices) {
  using Tile = ProductTile<T, Form>;
  constexpr ProductSizes form = Form::sizes;
  constexpr int chunk_elements = 16 / static_cast<int>(sizeof(T)), slice_chunks = product_slice / 16;
  const int column = static_cast<int>(threadIdx.x) % form.columns;
  const bool has_column = first_column + column < shape.columns;
#pragma unroll 2
  for (int chunk = static_cast<int>(threadIdx.x) / form.columns; chunk < slices * slice_chunks;
       chunk += form.threads / form.columns) {
    Pack<T, chunk_elements> elements;
#pragma unroll
    for (int i = 0; i < chunk_elements; ++i) {
      const int depth = chunk * chunk_elements + i;
      T element{};
      if (has_column && depth < shape.depth) element = b[int64_t{depth} * shape.columns + first_column + column];
      if constexpr (sizeof(T) == 4) element = tensor_core::nearest_tf32(element);
      elements.element[i] = element;
    }
    const int slice = chunk / slice_chunks;
    *reinterpret_cast<Pack<T, chunk_elements>*>(to + slice * Tile::b_bytes + Tile::in_b(column, chunk % slice_chunks)) =
        elements;
  }
}

// A thread passes eight neighbouring columns of a row to the epilogue, of which the first is element `index` of the
// result. The epilogue has
//   by_depth                  is b (depth, columns)?
//   sums_by_tile              are the sums of a tile added up first, for precision? Takes 16 registers.
//   operands, operand(i)      the arrays of the result's shape that it reads, which come through the ring
//   load(index, inside)       what else it reads for this part of a row, if that is inside the result. Called
//                             before the products of the tile are computed.
//   write(index, column, inside, parts, loaded, values, sums)
//                             writes what it makes of the products and of its parts of the operands, and adds to the
//                             sums of their columns. Products and parts that are not inside the result are zeros; their
//                             column may be another one.
template <class T, class Form, class Epilogue>
class ProductBlock {
 public:
  __device__ ProductBlock(const ProductShape& shape, const T* a, const T* b, int groups, const Epilogue& epilogue,
                          unsigned char* shared)
      : shape_(shape),
        a_(a),
        b_(b),
        epilogue_(epilogue),
        groups_(groups),
        slices_((shape.depth + slice_depth<T> - 1) / slice_depth<T>),
        row_tiles_((shape.rows + product_rows - 1) / product_rows),
        shared_(shared),
        ring_(tensor_core::shared_address(shared)) {
    const int column_tiles = (shape.columns + form.columns - 1) / form.columns;
    first_column_ = static_cast<int>(blockIdx.x) % column_tiles * form.columns;
    group_ = static_cast<int>(blockIdx.x) / column_tiles;
    own_column_ = first_column_ + warp_column() + lane() % 4 * product_width;
    next_tile_ = group_;
  }

  // partial[group][column] gets the sums of this block.
  __device__ void run(PairOf<float>* partial) {
    copy_b();
#pragma unroll
    for (int i = last_slices; i < form.stages; ++i) copy_next();
    if constexpr (sizeof(T) == 4 && !Epilogue::by_depth) round_b();
    PairOf<float> column_sums[product_width] = {};
    for (int tile = group_; tile < row_tiles_; tile += groups_) compute_tile(tile, column_sums);
    add_up(column_sums, partial);
  }

 private:
  using Tile = ProductTile<T, Form>;
  static constexpr ProductSizes form = Form::sizes;
  using Loaded = decltype(std::declval<const Epilogue&>().load(int64_t{}, bool{}));
  static constexpr int chunk_elements = 16 / static_cast<int>(sizeof(T)), slice_chunks = product_slice / 16;
  static constexpr int rows_at_once =
      form.threads / slice_chunks;  // of a that the block copies with a chunk per thread
  static constexpr int operand_slices = Epilogue::operands * Tile::operand_parts;  // of a tile
  // The slices that are used together at the end of a tile: one of each operand, or else the last one of a.
  static constexpr int last_slices = Epilogue::operands > 0 ? Epilogue::operands : 1;
  static_assert(form.stages >= last_slices);

  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int lane() { return thread() % 32; }
  __device__ static int warp_row() { return thread() / 32 / Tile::column_warps * Tile::warp_rows; }
  __device__ static int warp_column() { return thread() / 32 % Tile::column_warps * Tile::warp_columns; }
  __device__ static int copied_row() { return thread() / slice_chunks; }
  __device__ static int copied_chunk() { return thread() % slice_chunks; }
  __device__ bool has_columns() const { return own_column_ < shape_.columns; }

  // Calls visit(slice, column, address) for the chunks of b that this thread copies; the address is in shared_.
  template <class Visit>
  __device__ void for_chunks_of_b(const Visit& visit) const {
    for (int slice = 0; slice < slices_; ++slice)
#pragma unroll
      for (int column = copied_row(); column < form.columns; column += rows_at_once)
        visit(slice, column,
              static_cast<uint32_t>(form.stages * slice_bytes + slice * Tile::b_bytes) +
                  Tile::in_b(column, copied_chunk()));
  }

  __device__ void copy_b() {
    if constexpr (Epilogue::by_depth)
      copy_transposed<T, Form>(shared_ + form.stages * slice_bytes, shape_, b_, first_column_, slices_);
    else
      for_chunks_of_b([&](int slice, int column, uint32_t at) {
        const int depth = slice * slice_depth<T> + copied_chunk() * chunk_elements;
        const bool inside = first_column_ + column < shape_.columns && depth < shape_.depth;
        tensor_core::copy_chunk(ring_ + at, b_ + int64_t{first_column_ + column} * shape_.depth + depth, inside);
      });
    tensor_core::end_copies();
  }

  // To TF32, once for all tiles, each chunk by the thread that has copied it.
  __device__ void round_b() {
    tensor_core::wait_for_copies<form.stages - last_slices>();
    for_chunks_of_b([&](int, int, uint32_t at) {
      auto* const chunk = reinterpret_cast<float4*>(shared_ + at);
      const float4 given = *chunk;
      using tensor_core::nearest_tf32;
      *chunk = make_float4(nearest_tf32(given.x), nearest_tf32(given.y), nearest_tf32(given.z), nearest_tf32(given.w));
    });
  }

  // Copies the next slice that the tiles of this block need, if there is one more, to the stage after the last one.
  __device__ void copy_next() {
    if (next_tile_ < row_tiles_) {
      const uint32_t to = ring_ + static_cast<uint32_t>(next_stage_ * slice_bytes);
      if (operand_slices == 0 || next_slice_ < slices_)
        copy_of_a(to);
      else if constexpr (operand_slices > 0)
        copy_of_operand(to, next_slice_ - slices_);
      if (++next_slice_ == slices_ + operand_slices) {
        next_slice_ = 0;
        next_tile_ += groups_;
      }
      next_stage_ = after(next_stage_, 1);
    }
    tensor_core::end_copies();
  }
  __device__ void copy_of_a(uint32_t to) const {
    const int depth = next_slice_ * slice_depth<T> + copied_chunk() * chunk_elements;
    const int row = next_tile_ * product_rows + copied_row();
    const int rows_left = depth < shape_.depth ? shape_.rows - row : 0;
    const T* from = a_ + int64_t{row} * shape_.depth + depth;
    const int64_t row_step = int64_t{rows_at_once} * shape_.depth;
    to += Tile::in_a(copied_row(), copied_chunk());
#pragma unroll
    for (int i = 0; i < product_rows / rows_at_once; ++i, from += row_step)
      tensor_core::copy_chunk(to + i * rows_at_once * product_slice, from, i * rows_at_once < rows_left);
  }
  __device__ void copy_of_operand(uint32_t to, int slice) const {
    constexpr int chunks = Tile::operand_row / 16, rows_together = form.threads / chunks;
    const T* const array = epilogue_.operand(slice % Epilogue::operands);
    const int part = slice / Epilogue::operands, chunk = thread() % chunks;
    const int column = first_column_ + chunk * chunk_elements;
    const int rows = column < shape_.columns ? shape_.rows : 0;
#pragma unroll
    for (int i = 0; i < product_rows / Tile::operand_parts; i += rows_together) {
      const int in_slice = thread() / chunks + i;
      const int row = next_tile_ * product_rows + in_slice / Tile::part_rows * Tile::warp_rows +
                      part * Tile::part_rows + in_slice % Tile::part_rows;
      tensor_core::copy_chunk(to + Tile::in_operand(in_slice, chunk), array + int64_t{row} * shape_.columns + column,
                              row < rows);
    }
  }

  __device__ int after(int stage, int count) const {
    const int next = stage + count;
    return next < form.stages ? next : next - form.stages;
  }

  // Waits for the next `count` slices, and starts copies to the stages of the `freed` slices before them, which all
  // threads have used then. If the ring has no room for both, the copies start before the wait.
  template <int count, int freed>
  __device__ void wait_for_slices() {
    constexpr bool has_room = form.stages >= freed + count;
    if constexpr (has_room) tensor_core::wait_for_copies<form.stages - freed - count>();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < freed; ++i) copy_next();
    if constexpr (!has_room) {
      tensor_core::wait_for_copies<form.stages - count>();
      __syncthreads();
    }
  }

  using Sums = float[Tile::row_fragments][Tile::column_fragments][4];

  template <bool first>
  __device__ void multiply_slice(Sums& sums, uint32_t a_slice, uint32_t b_slice) const {
    using namespace tensor_core;
    // Where this lane's rows are in a slice, with the first 32 bytes of depth. The next 32 bytes are at the address
    // with bits 5 and 6 changed.
    const uint32_t a_lane = Tile::in_a(warp_row() + lane() % 16, lane() / 16);
    const int position = lane() % 8;  // of the column in a fragment; a lane's fragment is one of a pair
    const uint32_t b_lane =
        Tile::in_b(warp_column() + position / 2 * 8 + position % 2 + lane() / 16 * 2, lane() / 8 % 2);
#pragma unroll
    for (int k = 0; k < product_slice / 32; ++k) {
      uint32_t b_words[Tile::column_fragments][2];
#pragma unroll
      for (int n = 0; n < Tile::column_fragments; n += 2) {
        uint32_t words[4];
        load_matrices(words, b_slice + (b_lane ^ k * 32u) + n * 2 * product_slice);
        b_words[n][0] = words[0];
        b_words[n][1] = words[1];
        b_words[n + 1][0] = words[2];
        b_words[n + 1][1] = words[3];
      }
#pragma unroll
      for (int m = 0; m < Tile::row_fragments; ++m) {
        uint32_t a_words[4];
        load_matrices(a_words, a_slice + (a_lane ^ k * 32u) + m * 16 * product_slice);
        if constexpr (sizeof(T) == 4) {
#pragma unroll
          for (uint32_t& word : a_words) word = to_be_truncated(word);
        }
#pragma unroll
        for (int n = 0; n < Tile::column_fragments; ++n) {
          if (first && k == 0)
            add_product<T, true>(sums[m][n], a_words, b_words[n]);
          else
            add_product<T, false>(sums[m][n], a_words, b_words[n]);
        }
      }
    }
  }

  __device__ void compute_tile(int tile, PairOf<float> (&column_sums)[product_width]) {
    const int first_row = tile * product_rows + warp_row() + lane() / 4;
    const int rows_left = has_columns() ? shape_.rows - first_row : 0;
    const int64_t index = int64_t{first_row} * shape_.columns + own_column_;
    const int64_t index_step = int64_t{8} * shape_.columns;
    Loaded loaded[Tile::row_slots];
#pragma unroll
    for (int slot = 0; slot < Tile::row_slots; ++slot)
      loaded[slot] = epilogue_.load(index + slot * index_step, slot * 8 < rows_left);

    Sums sums;
    for (int slice = 0; slice < slices_; ++slice) {
      if (slice == 0)
        wait_for_slices<1, last_slices>();
      else
        wait_for_slices<1, 1>();
      const uint32_t a_slice = ring_ + static_cast<uint32_t>(stage_ * slice_bytes);
      const uint32_t b_slice = ring_ + static_cast<uint32_t>(form.stages * slice_bytes + slice * Tile::b_bytes);
      if (slice == 0)
        multiply_slice<true>(sums, a_slice, b_slice);
      else
        multiply_slice<false>(sums, a_slice, b_slice);
      stage_ = after(stage_, 1);
    }

    PairOf<float> tile_sums[product_width] = {};
#pragma unroll
    for (int slot = 0; slot < Tile::row_slots; ++slot) {
      RowPart<T> parts[Epilogue::operands > 0 ? Epilogue::operands : 1];
      if constexpr (Epilogue::operands > 0) {
        if (slot == 0)
          wait_for_slices<last_slices, 1>();
        else if (slot % Tile::part_slots == 0)
          next_part();
#pragma unroll
        for (int i = 0; i < Epilogue::operands; ++i) read_part(parts[i], i, slot % Tile::part_slots);
      }
      float values[product_width];
#pragma unroll
      for (int k = 0; k < product_width; ++k) values[k] = sums[slot / 2][k / 2][slot % 2 * 2 + k % 2];
      epilogue_.write(index + slot * index_step, has_columns() ? own_column_ : 0, slot * 8 < rows_left, parts,
                      loaded[slot], values, Epilogue::sums_by_tile ? tile_sums : column_sums);
    }
    if constexpr (Epilogue::operands > 0) stage_ = after(stage_, last_slices);
    if constexpr (Epilogue::sums_by_tile) {
#pragma unroll
      for (int i = 0; i < product_width; ++i) {
        column_sums[i].first += tile_sums[i].first;
        column_sums[i].second += tile_sums[i].second;
      }
    }
  }

  // Of the operands.
  __device__ void next_part() {
    stage_ = after(stage_, last_slices);
    wait_for_slices<last_slices, last_slices>();
  }

  // What this thread has of a row of an operand. The current part of the first operand is at stage_, those of the
  // others follow.
  __device__ void read_part(RowPart<T>& part, int operand, int slot_of_part) const {
    const int chunk = (warp_column() + lane() % 4 * product_width) * static_cast<int>(sizeof(T)) / 16;
    const int row = warp_row() / Tile::warp_rows * Tile::part_rows + slot_of_part * 8 + lane() / 4;
    const unsigned char* const slice = shared_ + after(stage_, operand) * slice_bytes;
    auto* const to = reinterpret_cast<uint4*>(&part);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(part) / 16); ++i)
      to[i] = *reinterpret_cast<const uint4*>(slice + Tile::in_operand(row, chunk + i));
  }

  // Over the lanes with the same columns, then over the warps.
  __device__ void add_up(const PairOf<float> (&column_sums)[product_width], PairOf<float>* partial) {
    tensor_core::wait_for_copies<0>();
    __syncthreads();
    auto* const of_warps = reinterpret_cast<PairOf<float>*>(shared_);  // [row_warps][form.columns]
    const int warp = thread() / 32;
#pragma unroll
    for (int i = 0; i < product_width; ++i) {
      PairOf<float> sum = column_sums[i];
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2) {
        sum.first += __shfl_xor_sync(0xffffffffu, sum.first, offset);
        sum.second += __shfl_xor_sync(0xffffffffu, sum.second, offset);
      }
      if (lane() < 4)
        of_warps[warp / Tile::column_warps * form.columns + warp_column() + lane() * product_width + i] = sum;
    }
    __syncthreads();
    if (thread() >= form.columns || first_column_ + thread() >= shape_.columns) return;
    PairOf<float> total = of_warps[thread()];
#pragma unroll
    for (int of_warp = 1; of_warp < Tile::row_warps; ++of_warp) {
      total.first += of_warps[of_warp * form.columns + thread()].first;
      total.second += of_warps[of_warp * form.columns + thread()].second;
    }
    partial[int64_t{group_} * shape_.columns + first_column_ + thread()] = total;
  }

  const ProductShape& shape_;
  const T* const a_;
  const T* const b_;
  const Epilogue& epilogue_;
  const int groups_, slices_, row_tiles_;
  unsigned char* const shared_;  // the ring, then the slices of b
  const uint32_t ring_;          // its address
  int first_column_, group_, own_column_;
  int next_tile_, next_slice_ = 0, next_stage_ = 0;  // the next slice to copy
  int stage_ = 0;                                    // of the next slice to use
};

template <class T, class Form, class Epilogue>
__global__ void __launch_bounds__(Form::sizes.threads, Form::sizes.resident_blocks())
    multiply_tiles(const __grid_constant__ ProductShape shape, const T* a, const T* b, const int groups,
                   const __grid_constant__ Epilogue epilogue, PairOf<float>* partial) {
  extern __shared__ __align__(1024) unsigned char product_shared[];
  let_next_start();
  ProductBlock<T, Form, Epilogue>(shape, a, b, groups, epilogue, product_shared).run(partial);
}

}  // namespace symbind::cuda_backend
