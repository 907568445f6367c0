// Many arrays converted in one launch: their addresses are part of its arguments, and every block finds the array, and
// the piece of it, that it converts. The pieces of an array whose order changes are tiles, transposed through shared
// memory so that reads and writes are both contiguous. A thread has all its reads in flight before it writes.
#include "symbind/ops/convert_arrays.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "symbind/backend/converted_arrays.h"
#include "symbind/backend/cuda/array_blocks.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr int arrays_per_launch = 80;  // what fits the 4 KB of a launch's arguments
constexpr int width = 4;               // elements that a thread converts together
constexpr int loads = 4;               // packs of them that a thread reads before it writes the first
constexpr int elements_per_block = block_size * width * loads;  // of an array whose order stays

// A tile's elements are in shared memory with one in `width` next to each other, so that threads which write packs use
// different banks. The distance between those parts is 24 modulo the 32 banks.
constexpr int tile_part = 1176;
constexpr int tile_elements = tile_part * width;  // 9 rows of 512 columns, with the distance between rows
constexpr int tile_loads = (tile_elements + block_size * width - 1) / (block_size * width);
constexpr int64_t narrow = 64;     // matrices with at most so many rows, or columns, are not cut there
constexpr int64_t wide_tile = 64;  // rows and columns of tiles of other matrices

// The distance of a tile's rows. A column is in different banks: within a part, rows have an odd distance.
__host__ __device__ constexpr int64_t row_step(int64_t columns) {
  return columns % 2 == 1 ? columns : ((columns + width - 1) / width | 1) * width;
}

// A part of one matrix, or several whole ones.
struct Tile {
  uint16_t matrices = 1, rows = 0, columns = 0;
};

constexpr int64_t pieces(int64_t count, int64_t most) { return (count + most - 1) / most; }

// The length of about equal pieces, none longer than `most`. Pieces begin where packs do.
constexpr int64_t equal_piece(int64_t count, int64_t most) {
  constexpr int64_t unit = 8;
  const int64_t piece = pieces(count, pieces(count, most));
  return std::min(pieces(piece, unit) * unit, most / unit * unit);
}

constexpr Tile tile_of(int64_t matrices, int64_t rows, int64_t columns) {
  const auto tile = [](int64_t m, int64_t r, int64_t c) {
    return Tile{static_cast<uint16_t>(m), static_cast<uint16_t>(r), static_cast<uint16_t>(c)};
  };
  if (rows * row_step(columns) <= tile_elements)
    return tile(std::min(matrices, tile_elements / (rows * row_step(columns))), rows, columns);
  if (columns <= narrow) return tile(1, equal_piece(rows, tile_elements / row_step(columns)), columns);
  if (rows <= narrow) return tile(1, rows, equal_piece(columns, tile_elements / rows - width));
  return tile(1, wide_tile, wide_tile);
}
static_assert(wide_tile * row_step(wide_tile) <= tile_elements);
static_assert(tile_of(1, 512, 9).rows == 512 && tile_of(1, 9, 512).columns == 512);

struct Part {
  const void* in;
  void* out;
  int64_t count;
  int32_t rows, columns;  // of its matrices, if they are transposed
  Tile tile;

  __host__ __device__ bool is_transposed() const { return tile.rows > 0; }
};
struct Parts {
  ArrayBlocks<arrays_per_launch> blocks;
  Part part[arrays_per_launch];
};
static_assert(sizeof(Parts) <= 4000);

template <class To, class From>
struct Converter {
  using C = std::conditional_t<std::is_same_v<To, double> || std::is_same_v<From, double>, double, float>;
  const bool scaled;
  const C factor;

  __device__ explicit Converter(const float* scale)
      : scaled(scale != nullptr), factor(scale ? static_cast<C>(*scale) : C(1)) {}
  __device__ To operator()(const From& value) const {
    if constexpr (std::is_same_v<To, From>)
      if (!scaled) return value;
    return store<To>(static_cast<compute_type<To>>(static_cast<C>(load(value)) * factor));
  }
};

template <class T>
__device__ bool is_pack(const T* address) {
  return reinterpret_cast<uintptr_t>(address) % (sizeof(T) * width) == 0;
}

template <class To, class From>
__device__ void convert_piece(const Part& part, uint32_t block, const Converter<To, From>& converted) {
  const int64_t first = int64_t{block} * elements_per_block;
  const int count = static_cast<int>(min(part.count - first, int64_t{elements_per_block}));
  const int thread = static_cast<int>(threadIdx.x);
  const From* const in = static_cast<const From*>(part.in) + first;
  To* const out = static_cast<To*>(part.out) + first;
  const int packs = is_pack(in) && is_pack(out) ? count / width : 0;
  Pack<From, width> values[loads];
#pragma unroll
  for (int k = 0; k < loads; ++k)
    if (const int i = thread + k * block_size; i < packs) values[k] = reinterpret_cast<const Pack<From, width>*>(in)[i];
#pragma unroll
  for (int k = 0; k < loads; ++k) {
    const int i = thread + k * block_size;
    if (i >= packs) break;
    Pack<To, width> results;
#pragma unroll
    for (int j = 0; j < width; ++j) results.element[j] = converted(values[k].element[j]);
    reinterpret_cast<Pack<To, width>*>(out)[i] = results;
  }
  for (int i = packs * width + thread; i < count; i += block_size) out[i] = converted(in[i]);
}

// Quotients of numbers up to tile_elements, by a multiplication.
class Divisor {
 public:
  __device__ explicit Divisor(uint32_t divisor) : reciprocal_(((1u << 31) + divisor - 1) / divisor) {}
  __device__ uint32_t quotient(uint32_t number) const { return __umulhi(number * 2, reciprocal_); }

 private:
  uint32_t reciprocal_;
};

// An order of a tile's elements: runs of `length` of them, whose beginnings are `distance` elements apart in memory.
class Runs {
 public:
  __device__ Runs(uint32_t length, uint32_t distance) : length_(length), distance_(distance), by_length_(length) {}

  // Are they in packs, in memory that begins at `address`? The last of them may be incomplete if the runs adjoin.
  template <class T>
  __device__ bool in_packs(const T* address) const {
    return is_pack(address) && (length_ == distance_ || (length_ % width == 0 && distance_ % width == 0));
  }

  struct Place {
    uint32_t run, index;
  };
  __device__ Place place_of(uint32_t number) const {
    const uint32_t run = by_length_.quotient(number);
    return {run, number - run * length_};
  }
  __device__ int64_t offset(const Place& place) const { return int64_t{place.run} * distance_ + place.index; }
  __device__ void advance(Place& place) const {
    if (++place.index == length_) {
      place.index = 0;
      ++place.run;
    }
  }

 private:
  uint32_t length_, distance_;
  Divisor by_length_;
};

// The place of an element in shared memory from its row, in those of all the tile's matrices, and its column.
class TilePlaces {
 public:
  __device__ explicit TilePlaces(int columns) : step_(static_cast<uint32_t>(row_step(columns))) {}
  __device__ uint32_t operator()(uint32_t row, uint32_t column) const {
    const uint32_t number = row * step_ + column;
    return number % width * tile_part + number / width;
  }

 private:
  uint32_t step_;
};

// Reads the elements [begin, end) of a tile, `width` at a time.
template <int width, class To, class From>
__device__ void read_tile(const From* in, const Runs& rows, int begin, int end, const TilePlaces& place,
                          const Converter<To, From>& converted, To* tile) {
  constexpr int step = block_size * width;
  for (int first = begin + static_cast<int>(threadIdx.x) * width; first < end; first += tile_loads * step) {
    Pack<From, width> values[tile_loads];
#pragma unroll
    for (int k = 0; k < tile_loads; ++k)
      if (const int i = first + k * step; i < end)
        values[k] = *reinterpret_cast<const Pack<From, width>*>(in + rows.offset(rows.place_of(i)));
#pragma unroll
    for (int k = 0; k < tile_loads; ++k) {
      const int i = first + k * step;
      if (i >= end) break;
      typename Runs::Place at = rows.place_of(i);
#pragma unroll
      for (int j = 0; j < width; ++j) {
        tile[place(at.run, at.index)] = converted(values[k].element[j]);
        rows.advance(at);
      }
    }
  }
}

// Writes the elements [begin, end) of a tile of matrices of height × breadth in the order (matrix, column, row).
template <int width, class To>
__device__ void write_tile(To* out, const Runs& columns, int begin, int end, const TilePlaces& place, uint32_t height,
                           uint32_t breadth, const To* tile) {
  const Divisor by_breadth(breadth);
  for (int i = begin + static_cast<int>(threadIdx.x) * width; i < end; i += block_size * width) {
    typename Runs::Place at = columns.place_of(i);
    To* const target = out + columns.offset(at);
    Pack<To, width> values;
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const uint32_t matrix = by_breadth.quotient(at.run);
      values.element[j] = tile[place(matrix * height + at.index, at.run - matrix * breadth)];
      columns.advance(at);
    }
    *reinterpret_cast<Pack<To, width>*>(target) = values;
  }
}

template <class To, class From>
__device__ void transpose_piece(const Part& part, uint32_t block, const Converter<To, From>& converted, To* tile) {
  const int rows = part.rows, columns = part.columns;
  const uint32_t row_tiles = (static_cast<uint32_t>(rows) + part.tile.rows - 1) / part.tile.rows;
  const uint32_t column_tiles = (static_cast<uint32_t>(columns) + part.tile.columns - 1) / part.tile.columns;
  const uint32_t matrix_tile = block / (row_tiles * column_tiles);
  const uint32_t within = block - matrix_tile * (row_tiles * column_tiles);
  const uint32_t row_tile = within / column_tiles, column_tile = within - row_tile * column_tiles;
  const int first_row = static_cast<int>(row_tile * part.tile.rows);
  const int first_column = static_cast<int>(column_tile * part.tile.columns);
  const int64_t matrix_size = int64_t{rows} * columns;
  const int64_t first = matrix_tile * (part.tile.matrices * matrix_size);
  const int height = min(int{part.tile.rows}, rows - first_row);
  const int breadth = min(int{part.tile.columns}, columns - first_column);
  // Several matrices are whole ones.
  const int count = part.tile.matrices == 1
                        ? height * breadth
                        : static_cast<int>(min(part.tile.matrices * matrix_size, part.count - first));
  const From* const in = static_cast<const From*>(part.in) + first + int64_t{first_row} * columns + first_column;
  To* const out = static_cast<To*>(part.out) + first + int64_t{first_column} * rows + first_row;
  const TilePlaces place(breadth);

  const Runs of_rows(breadth, columns), of_columns(height, rows);
  const int read = of_rows.in_packs(in) ? count / width * width : 0;
  read_tile<width>(in, of_rows, 0, read, place, converted, tile);
  read_tile<1>(in, of_rows, read, count, place, converted, tile);
  __syncthreads();
  const int written = of_columns.in_packs(out) ? count / width * width : 0;
  write_tile<width>(out, of_columns, 0, written, place, height, breadth, tile);
  write_tile<1>(out, of_columns, written, count, place, height, breadth, tile);
}

template <class To, class From>
__global__ void __launch_bounds__(block_size) convert_parts(const __grid_constant__ Parts parts, const float* scale) {
  __shared__ To tile[tile_elements];
  const auto own = parts.blocks.find(blockIdx.x);
  const Part& part = parts.part[own.array];
  const Converter<To, From> converted(scale);
  if (part.is_transposed())
    transpose_piece(part, own.block, converted, tile);
  else
    convert_piece(part, own.block, converted);
}

Part part_of(const ConvertedArray& array) {
  Part part{nullptr, nullptr, array.count, 1, 1, {}};
  if (!array.is_transposed()) return part;
  part.rows = static_cast<int32_t>(array.rows);
  part.columns = static_cast<int32_t>(array.columns);
  part.tile = tile_of(array.matrices(), array.rows, array.columns);
  return part;
}

int64_t blocks_of(const Part& part) {
  if (!part.is_transposed()) return pieces(part.count, elements_per_block);
  const int64_t matrices = part.count / (int64_t{part.rows} * part.columns);
  return pieces(matrices, part.tile.matrices) * pieces(part.rows, part.tile.rows) *
         pieces(part.columns, part.tile.columns);
}

// Collects the parts of a launch, and queues it when it is full.
template <class To, class From>
class Launch {
 public:
  Launch(cudaStream_t stream, const float* scale) : stream_(stream), scale_(scale) {}

  void add(const Part& part) {
    const int64_t blocks = blocks_of(part);
    if (blocks == 0) return;
    if (!parts_.blocks.has_room(blocks)) queue();
    parts_.part[parts_.blocks.count()] = part;
    parts_.blocks.add(blocks);
  }
  void queue() {
    if (parts_.blocks.count() > 0)
      convert_parts<To, From><<<parts_.blocks.blocks(), block_size, 0, stream_>>>(parts_, scale_);
    parts_.blocks = {};
  }

 private:
  const cudaStream_t stream_;
  const float* const scale_;
  Parts parts_{};
};

// The arrays of an operator that have one pair of types.
struct Conversions {
  DType from, to;
  std::vector<std::pair<size_t, Part>> parts;  // with the array's index

  void queue(const Args& args, const float* scale) const {
    visit_floating(from, [&]<class From>(std::type_identity<From>) {
      visit_floating(to, [&]<class To>(std::type_identity<To>) {
        Launch<To, From> launch(stream_of(args), scale);
        for (auto [index, part] : parts) {
          part.in = args.inputs[index];
          part.out = args.outputs[index];
          if (part.out) launch.add(part);  // else nobody reads it
        }
        launch.queue();
      });
    });
  }
};

std::unique_ptr<Kernel> build(const NodeView& node) {
  const auto arrays = converted_arrays(node);
  std::vector<Conversions> all;
  std::vector<std::pair<int, int>> in_place;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const ConvertedArray& array = arrays[i];
    const auto same_types = [&](const Conversions& some) { return some.from == array.from && some.to == array.to; };
    auto group = std::ranges::find_if(all, same_types);
    if (group == all.end()) group = all.insert(all.end(), {array.from, array.to, {}});
    group->parts.emplace_back(i, part_of(array));
    if (array.from == array.to && !array.is_transposed())
      in_place.emplace_back(static_cast<int>(i), static_cast<int>(i));
  }
  return make_step(
      node,
      [all, scale = node.as<ConvertArrays>().scaled ? std::optional(arrays.size()) : std::nullopt](const Args& args) {
        for (const Conversions& some : all) some.queue(args, scale ? args.in<float>(*scale) : nullptr);
      },
      {.in_place = std::move(in_place)});
}

std::string refuse(const NodeView& node) {
  if (std::string reason = refuse_layouts_of_arrays(node); !reason.empty()) return reason;
  for (const Tensor& input : node.inputs)
    if (!is_floating(input.dtype)) return "needs floating types";
  for (const ConvertedArray& array : converted_arrays(node))
    if (std::max(array.rows, array.columns) >= int64_t{1} << 31 || array.count >= int64_t{1} << 38)
      return "too many elements";
  return "";
}

}  // namespace

void add_convert_arrays(ImplementationTable& table) {
  table.add<ConvertArrays>({"cuda", refuse, build, nullptr, false, Tier::specialised});
}

}  // namespace symbind::cuda_backend
