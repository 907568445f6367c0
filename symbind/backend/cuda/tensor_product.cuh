// Matrix products on tensor cores with an epilogue that sees each row of the result before it is written, and that adds
// up two numbers per column over all rows: a · b for a of (rows, depth), and b of (columns, depth) or (depth, columns),
// all of them contiguous. Sums are in float32, products of float32 numbers in TF32.
//
// For products of so small a depth that they are limited by memory bandwidth. A block computes tiles of 128 rows in the
// same columns, one after the other. Its columns of b stay in shared memory; slices of a arrive there asynchronously,
// some steps ahead, also while the epilogue of a tile runs. Which columns of b are a column of a tensor core's product
// is chosen so that a thread gets eight neighbouring columns of the result, without an exchange between threads.
//
// The tiles of a block depend on the shape and on the device alone, and so do the sums per column: the same arrays give
// bitwise the same results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/cuda/kernels.cuh"

namespace symbind::cuda_backend {

struct ProductShape {
  int rows = 0, columns = 0, depth = 0;
};

inline constexpr int product_rows = 128;     // of a tile
inline constexpr int product_threads = 256;  // of a block
inline constexpr int product_blocks = 2;     // of a multiprocessor
inline constexpr int product_stages = 3;     // slices of a in shared memory
inline constexpr int product_slice = 128;    // bytes of a row of a, and of a column of b, in a slice
inline constexpr int product_width = 8;      // neighbouring columns that a thread passes to the epilogue

template <class T>
inline constexpr int slice_depth = product_slice / static_cast<int>(sizeof(T));

// How the tiles are divided: `groups` blocks for the same columns, each with every groups-th tile of rows.
struct ProductCut {
  int column_tiles = 1, groups = 1, shared_bytes = 0;
  int blocks() const { return column_tiles * groups; }
};

inline ProductCut cut_product(const ProductShape& shape, int element_bytes, int tile_columns, int multiprocessors) {
  const int row_tiles = (shape.rows + product_rows - 1) / product_rows;
  const int slices = (shape.depth * element_bytes + product_slice - 1) / product_slice;
  ProductCut cut;
  cut.column_tiles = (shape.columns + tile_columns - 1) / tile_columns;
  cut.groups = std::clamp(product_blocks * multiprocessors / cut.column_tiles, 1, row_tiles);
  cut.shared_bytes = (slices * tile_columns + product_stages * product_rows) * product_slice;
  return cut;
}

// Vectors of 16 bytes must fill the rows of a and b, and the columns of a thread the rows of the result.
inline bool suits_tensor_product(int64_t rows, int64_t columns, int64_t depth, int element_bytes) {
  constexpr int64_t most_rows = (int64_t{1} << 31) - 2 * product_rows, most_columns = 1 << 20;
  return rows > 0 && rows <= most_rows && columns > 0 && columns <= most_columns && depth > 0 &&
         depth <= most_columns && depth * element_bytes % 16 == 0 && columns % product_width == 0;
}

namespace tensor_core {

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
// Copies 16 bytes to shared memory asynchronously; zeros if they are not inside the array, which is then not read.
__device__ inline void copy_chunk(uint32_t to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// All but the last `left` groups of this thread's copies have arrived.
template <int left>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

// Four matrices of 8 rows of 16 bytes, whose rows are at the addresses of 8 lanes each: a lane gets four bytes of each.
__device__ inline void load_matrices(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// TF32 numbers have 10 bits of mantissa; tensor cores ignore the others.
__device__ inline float nearest_tf32(float value) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return __uint_as_float(bits);
}
// Rounds in one instruction instead of three: before the bits are ignored, 0.35 to 0.7 of the last bit that is not is
// added, in the mean a half. Numbers that need no rounding stay as they are, and so do infinity and NaN.
__device__ inline uint32_t to_be_truncated(uint32_t bits) {
  return __float_as_uint(__uint_as_float(bits) * (1.0f + 0.7f / 2048));
}

// sums = a · b, plus sums unless `first`: 16 rows by 8 columns, a depth of 32 bytes.
template <class T, bool first>
__device__ void add_product(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const float c0 = first ? 0.0f : sums[0], c1 = first ? 0.0f : sums[1];
  const float c2 = first ? 0.0f : sums[2], c3 = first ? 0.0f : sums[3];
  if constexpr (std::is_same_v<T, float16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c0), "f"(c1), "f"(c2), "f"(c3));
  else if constexpr (std::is_same_v<T, bfloat16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c0), "f"(c1), "f"(c2), "f"(c3));
  else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c0), "f"(c1), "f"(c2), "f"(c3));
}

// Two neighbouring elements of 16 bits.
template <class T>
__device__ uint32_t pair_of(float first, float second) {
  uint32_t pair;
  if constexpr (std::is_same_v<T, float16>)
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
  else
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
  return pair;
}

}  // namespace tensor_core

// Eight neighbouring elements.
template <class T>
struct alignas(16) RowPart {
  uint32_t words[product_width * sizeof(T) / 4];

  RowPart() = default;
  // Rounded to their type.
  __device__ explicit RowPart(const float (&values)[product_width]) {
#pragma unroll
    for (int i = 0; i < product_width; i += 4 / static_cast<int>(sizeof(T))) {
      if constexpr (sizeof(T) == 2)
        words[i / 2] = tensor_core::pair_of<T>(values[i], values[i + 1]);
      else
        words[i] = __float_as_uint(values[i]);
    }
  }
  __device__ float operator[](int i) const {
    if constexpr (sizeof(T) == 4) {
      return __uint_as_float(words[i]);
    } else {
      T element;
      element.bits = static_cast<uint16_t>(words[i / 2] >> i % 2 * 16);
      return load(element);
    }
  }
};

// What each warp of a block computes of a tile, and where slices are in shared memory.
template <class T, int tile_columns>
struct ProductTile {
  static constexpr int warp_columns = 32, column_warps = tile_columns / warp_columns;
  static constexpr int row_warps = product_threads / 32 / column_warps, warp_rows = product_rows / row_warps;
  static constexpr int row_fragments = warp_rows / 16, column_fragments = warp_columns / 8;
  static constexpr int a_bytes = product_rows * product_slice, b_bytes = tile_columns * product_slice;  // of a slice
  static_assert(column_fragments * 2 == product_width);

  // Chunks of 16 bytes are at positions for which eight rows that are read together are in different banks: of a eight
  // neighbouring ones, of b those that are neighbouring columns of a tensor core's product. Its column 2 · i + e in
  // fragment n is column 8 · i + 2 · n + e of the warp.
  __device__ static uint32_t in_a(int row, int chunk) {
    return static_cast<uint32_t>(row * product_slice + ((chunk ^ (row & 7)) * 16));
  }
  __device__ static uint32_t in_b(int column, int chunk) {
    const int spread = (column >> 3 & 3) * 2 + (column & 1);
    return static_cast<uint32_t>(column * product_slice + ((chunk ^ spread) * 16));
  }
};

// Copies the part of a block of b, (depth, columns), to shared memory as for b of (columns, depth), rounded to TF32.
template <class T, int tile_columns>
__device__ void copy_transposed(unsigned char* to, const ProductShape& shape, const T* b, int first_column,
                                int slices) {
  using Tile = ProductTile<T, tile_columns>;
  constexpr int chunk_elements = 16 / static_cast<int>(sizeof(T)), slice_chunks = product_slice / 16;
  const int column = static_cast<int>(threadIdx.x) % tile_columns;
  const bool has_column = first_column + column < shape.columns;
#pragma unroll 2
  for (int chunk = static_cast<int>(threadIdx.x) / tile_columns; chunk < slices * slice_chunks;
       chunk += product_threads / tile_columns) {
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
//   rows_at_once              rows for which load() is called before the first of them is written
//   load(index, inside)       what it reads for this part of a row, if that is inside the result
//   write(index, column, inside, operands, values, sums)
//                             writes what it makes of the products and adds to the sums of their columns. Products that
//                             are not inside the result are zeros; their column may be another one.
// partial[group][column] gets the sums of this block.
template <class T, int tile_columns, class Epilogue>
__global__ void __launch_bounds__(product_threads, product_blocks)
    multiply_tiles(const ProductShape shape, const T* a, const T* b, const int groups, const Epilogue epilogue,
                   PairOf<float>* partial) {
  using namespace tensor_core;
  using Tile = ProductTile<T, tile_columns>;
  constexpr int chunk_elements = 16 / static_cast<int>(sizeof(T)), slice_chunks = product_slice / 16;
  constexpr int rows_at_once = product_threads / slice_chunks;  // that the block copies with a chunk per thread
  extern __shared__ __align__(1024) unsigned char product_shared[];
  let_next_start();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int warp_row = warp / Tile::column_warps * Tile::warp_rows;
  const int warp_column = warp % Tile::column_warps * Tile::warp_columns;
  const int column_tiles = (shape.columns + tile_columns - 1) / tile_columns;
  const int first_column = static_cast<int>(blockIdx.x) % column_tiles * tile_columns;
  const int group = static_cast<int>(blockIdx.x) / column_tiles;
  const int row_tiles = (shape.rows + product_rows - 1) / product_rows;
  const int slices = (shape.depth + slice_depth<T> - 1) / slice_depth<T>;
  const uint32_t a_shared = shared_address(product_shared);
  const uint32_t b_shared = a_shared + product_stages * Tile::a_bytes;
  const int copied_row = thread / slice_chunks, copied_chunk = thread % slice_chunks;

  // Calls visit(slice, column, address) for the chunks of b that this thread copies.
  const auto for_chunks_of_b = [&](const auto& visit) {
    for (int slice = 0; slice < slices; ++slice)
#pragma unroll
      for (int column = copied_row; column < tile_columns; column += rows_at_once)
        visit(slice, column,
              static_cast<uint32_t>(product_stages * Tile::a_bytes + slice * Tile::b_bytes) +
                  Tile::in_b(column, copied_chunk));
  };
  if constexpr (Epilogue::by_depth)
    copy_transposed<T, tile_columns>(product_shared + product_stages * Tile::a_bytes, shape, b, first_column, slices);
  else
    for_chunks_of_b([&](int slice, int column, uint32_t at) {
      const int depth = slice * slice_depth<T> + copied_chunk * chunk_elements;
      const bool inside = first_column + column < shape.columns && depth < shape.depth;
      copy_chunk(a_shared + at, b + int64_t{first_column + column} * shape.depth + depth, inside);
    });
  end_copies();

  // The next slice of a to copy.
  int next_tile = group, next_slice = 0, next_stage = 0;
  const int64_t row_step = int64_t{rows_at_once} * shape.depth;
  const uint32_t copied_to = a_shared + Tile::in_a(copied_row, copied_chunk);
  const auto copy_slice = [&] {
    if (next_tile < row_tiles) {
      const int row = next_tile * product_rows + copied_row;
      const int depth = next_slice * slice_depth<T> + copied_chunk * chunk_elements;
      const int rows_left = depth < shape.depth ? shape.rows - row : 0;
      const T* from = a + int64_t{row} * shape.depth + depth;
      const uint32_t to = copied_to + static_cast<uint32_t>(next_stage * Tile::a_bytes);
#pragma unroll
      for (int i = 0; i < product_rows / rows_at_once; ++i, from += row_step)
        copy_chunk(to + i * rows_at_once * product_slice, from, i * rows_at_once < rows_left);
      if (++next_slice == slices) {
        next_slice = 0;
        next_tile += groups;
      }
      next_stage = next_stage + 1 == product_stages ? 0 : next_stage + 1;
    }
    end_copies();
  };
#pragma unroll
  for (int i = 0; i < product_stages - 1; ++i) copy_slice();

  // Rounded once for all tiles, each chunk by the thread that has copied it.
  if constexpr (sizeof(T) == 4 && !Epilogue::by_depth) {
    wait_for_copies<product_stages - 1>();
    for_chunks_of_b([&](int, int, uint32_t at) {
      auto* const chunk = reinterpret_cast<float4*>(product_shared + at);
      const float4 given = *chunk;
      *chunk = make_float4(nearest_tf32(given.x), nearest_tf32(given.y), nearest_tf32(given.z), nearest_tf32(given.w));
    });
  }

  float sums[Tile::row_fragments][Tile::column_fragments][4];
  // Where this lane's rows are in a slice, with the first 32 bytes of depth. The next 32 bytes are at the address with
  // bits 5 and 6 changed.
  const uint32_t a_lane = Tile::in_a(warp_row + lane % 16, lane / 16);
  const int position = lane % 8;  // of the column in a fragment; a lane's fragment is the first or second of a pair
  const uint32_t b_lane = Tile::in_b(warp_column + position / 2 * 8 + position % 2 + lane / 16 * 2, lane / 8 % 2);
  const auto multiply_slice = [&]<bool first>(std::bool_constant<first>, uint32_t a_slice, uint32_t b_slice) {
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
  };

  const int quad = lane / 4, own_column = first_column + warp_column + lane % 4 * product_width;
  const bool has_columns = own_column < shape.columns;
  const int64_t index_step = int64_t{8} * shape.columns;  // from a row of a fragment's upper half to the lower one's
  PairOf<float> column_sums[product_width] = {};
  int stage = 0;
  for (int tile = group; tile < row_tiles; tile += groups) {
    for (int slice = 0; slice < slices; ++slice) {
      wait_for_copies<product_stages - 2>();
      __syncthreads();
      copy_slice();  // to the stage that all warps have read in the step before
      const uint32_t a_slice = a_shared + static_cast<uint32_t>(stage * Tile::a_bytes);
      const uint32_t b_slice = b_shared + static_cast<uint32_t>(slice * Tile::b_bytes);
      if (slice == 0)
        multiply_slice(std::true_type{}, a_slice, b_slice);
      else
        multiply_slice(std::false_type{}, a_slice, b_slice);
      stage = stage + 1 == product_stages ? 0 : stage + 1;
    }
    const int first_row = tile * product_rows + warp_row + quad;
    const int rows_left = has_columns ? shape.rows - first_row : 0;
    int64_t index = int64_t{first_row} * shape.columns + own_column;
    PairOf<float> tile_sums[product_width] = {};
    constexpr int at_once = Epilogue::rows_at_once;
#pragma unroll
    for (int first = 0; first < Tile::row_fragments * 2; first += at_once, index += at_once * index_step) {
      typename Epilogue::Operands operands[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i)
        operands[i] = epilogue.load(index + i * index_step, (first + i) * 8 < rows_left);
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        const int slot = first + i;
        float values[product_width];
#pragma unroll
        for (int k = 0; k < product_width; ++k) values[k] = sums[slot / 2][k / 2][slot % 2 * 2 + k % 2];
        epilogue.write(index + i * index_step, has_columns ? own_column : 0, slot * 8 < rows_left, operands[i], values,
                       Epilogue::sums_by_tile ? tile_sums : column_sums);
      }
    }
    if constexpr (Epilogue::sums_by_tile) {
#pragma unroll
      for (int i = 0; i < product_width; ++i) {
        column_sums[i].first += tile_sums[i].first;
        column_sums[i].second += tile_sums[i].second;
      }
    }
  }

  // Over the lanes with the same columns, then over the warps.
  wait_for_copies<0>();
  __syncthreads();
  auto* const of_warps = reinterpret_cast<PairOf<float>*>(product_shared);  // [row_warps][tile_columns]
#pragma unroll
  for (int i = 0; i < product_width; ++i) {
    PairOf<float> sum = column_sums[i];
#pragma unroll
    for (int offset = 4; offset < 32; offset *= 2) {
      sum.first += __shfl_xor_sync(0xffffffffu, sum.first, offset);
      sum.second += __shfl_xor_sync(0xffffffffu, sum.second, offset);
    }
    if (quad == 0)
      of_warps[warp / Tile::column_warps * tile_columns + warp_column + lane % 4 * product_width + i] = sum;
  }
  __syncthreads();
  if (thread >= tile_columns || first_column + thread >= shape.columns) return;
  PairOf<float> total = of_warps[thread];
#pragma unroll
  for (int of_warp = 1; of_warp < Tile::row_warps; ++of_warp) {
    total.first += of_warps[of_warp * tile_columns + thread].first;
    total.second += of_warps[of_warp * tile_columns + thread].second;
  }
  partial[int64_t{group} * shape.columns + first_column + thread] = total;
}

}  // namespace symbind::cuda_backend
