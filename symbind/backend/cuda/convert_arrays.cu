// Many arrays converted in one launch: their addresses are part of its arguments, and every block finds the array, and
// the piece of it, that it converts. The pieces of an array whose order changes are tiles, transposed through shared
// memory so that reads and writes are both contiguous.
#include "symbind/ops/convert_arrays.h"

#include <vector>

#include "symbind/backend/converted_arrays.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr int arrays_per_launch = 80;             // what fits the 4 KB of a launch's arguments
constexpr int width = 4;                          // elements that a thread converts together
constexpr int elements_per_block = 4096;          // of an array whose order stays
constexpr int tile_elements = 4096;               // of a tile in shared memory
constexpr int64_t narrow = 64;                    // matrices with at most so many rows, or columns, are not cut there
constexpr int wide_rows = 64, wide_columns = 32;  // of tiles of other matrices
static_assert(elements_per_block % width == 0);

// Rows in shared memory have an odd length: a column is in different banks.
__host__ __device__ constexpr int64_t row_step(int64_t columns) { return columns | 1; }

// A part of one matrix, or several whole ones.
struct Tile {
  uint16_t matrices = 1, rows = 0, columns = 0;
};

constexpr int64_t pieces(int64_t count, int64_t most) { return (count + most - 1) / most; }

// The length of equal pieces, none longer than `most`.
constexpr int64_t equal_piece(int64_t count, int64_t most) { return pieces(count, pieces(count, most)); }

constexpr Tile tile_of(int64_t matrices, int64_t rows, int64_t columns) {
  const auto tile = [](int64_t m, int64_t r, int64_t c) {
    return Tile{static_cast<uint16_t>(m), static_cast<uint16_t>(r), static_cast<uint16_t>(c)};
  };
  if (rows * row_step(columns) <= tile_elements)
    return tile(std::min(matrices, tile_elements / (rows * row_step(columns))), rows, columns);
  if (columns <= narrow) return tile(1, equal_piece(rows, tile_elements / row_step(columns)), columns);
  if (rows <= narrow) return tile(1, rows, equal_piece(columns, tile_elements / rows - 1));
  return tile(1, wide_rows, wide_columns);
}
static_assert(wide_rows * row_step(wide_columns) <= tile_elements);
static_assert(narrow * row_step(tile_elements / narrow - 1) <= tile_elements);

struct Part {
  const void* in;
  void* out;
  int64_t count;
  int32_t rows, columns;  // of its matrices, if they are transposed
  uint32_t first_block;
  Tile tile;
  DType from, to;

  __host__ __device__ bool is_transposed() const { return tile.rows > 0; }
};
struct Parts {
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

template <class To, class From>
__device__ void convert_piece(const Part& part, uint32_t block, const Converter<To, From>& converted) {
  const int64_t first = int64_t{block} * elements_per_block;
  const int count = static_cast<int>(min(part.count - first, int64_t{elements_per_block}));
  const From* const in = static_cast<const From*>(part.in) + first;
  To* const out = static_cast<To*>(part.out) + first;
  const bool aligned = reinterpret_cast<uintptr_t>(in) % (sizeof(From) * width) == 0 &&
                       reinterpret_cast<uintptr_t>(out) % (sizeof(To) * width) == 0;
  const int packs = aligned ? count / width : 0;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < packs; i += block_size) {
    const auto values = reinterpret_cast<const Pack<From, width>*>(in)[i];
    Pack<To, width> results;
#pragma unroll
    for (int k = 0; k < width; ++k) results.element[k] = converted(values.element[k]);
    reinterpret_cast<Pack<To, width>*>(out)[i] = results;
  }
  for (int i = packs * width + static_cast<int>(threadIdx.x); i < count; i += block_size) out[i] = converted(in[i]);
}

// The indices (outer, inner) of every block_size-th element of an array of `inner` columns.
struct Walk {
  int outer, inner;
  const int inner_count, outer_step, inner_step;

  __device__ Walk(int first, int step, int inner_count_)
      : outer(first / inner_count_),
        inner(first % inner_count_),
        inner_count(inner_count_),
        outer_step(step / inner_count_),
        inner_step(step % inner_count_) {}
  __device__ void advance() {
    outer += outer_step;
    inner += inner_step;
    if (inner >= inner_count) {
      inner -= inner_count;
      ++outer;
    }
  }
};

template <class To, class From>
__device__ void transpose_piece(const Part& part, uint32_t block, const Converter<To, From>& converted, To* tile) {
  constexpr int loads = 4;  // of a thread, before it stores the first
  const int rows = part.rows, columns = part.columns;
  const uint32_t row_tiles = (static_cast<uint32_t>(rows) + part.tile.rows - 1) / part.tile.rows;
  const uint32_t column_tiles = (static_cast<uint32_t>(columns) + part.tile.columns - 1) / part.tile.columns;
  const uint32_t column_tile = block % column_tiles, row_tile = block / column_tiles % row_tiles;
  const int first_row = static_cast<int>(row_tile * part.tile.rows);
  const int first_column = static_cast<int>(column_tile * part.tile.columns);
  const int64_t matrix_size = int64_t{rows} * columns;
  const int64_t first_matrix = int64_t{block / (row_tiles * column_tiles)} * part.tile.matrices;
  const int matrices = static_cast<int>(min(int64_t{part.tile.matrices}, part.count / matrix_size - first_matrix));
  const int height = min(int{part.tile.rows}, rows - first_row);
  const int breadth = min(int{part.tile.columns}, columns - first_column);
  const int step = static_cast<int>(row_step(breadth));
  const From* const in =
      static_cast<const From*>(part.in) + first_matrix * matrix_size + int64_t{first_row} * columns + first_column;
  To* const out = static_cast<To*>(part.out) + first_matrix * matrix_size + int64_t{first_column} * rows + first_row;

  // Whole matrices are one matrix of more rows.
  const int all_rows = matrices * height;
  for (Walk at(static_cast<int>(threadIdx.x), block_size, breadth); at.outer < all_rows;) {
    From values[loads];
    int targets[loads];
#pragma unroll
    for (int k = 0; k < loads; ++k) {
      targets[k] = at.outer < all_rows ? at.outer * step + at.inner : -1;
      if (targets[k] >= 0) values[k] = in[int64_t{at.outer} * columns + at.inner];
      at.advance();
    }
#pragma unroll
    for (int k = 0; k < loads; ++k)
      if (targets[k] >= 0) tile[targets[k]] = converted(values[k]);
  }
  __syncthreads();
  // Results in the order (matrix, column, row).
  const int all_columns = matrices * breadth;
  for (Walk at(static_cast<int>(threadIdx.x), block_size, height); at.outer < all_columns; at.advance()) {
    const int matrix = matrices == 1 ? 0 : at.outer / breadth, column = at.outer - matrix * breadth;
    out[matrix * matrix_size + int64_t{column} * rows + at.inner] = tile[(matrix * height + at.inner) * step + column];
  }
}

template <class Visit>
__device__ void visit_device_floating(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::float32:
      return visit(float{});
    case DType::float64:
      return visit(double{});
    case DType::float16:
      return visit(float16{});
    default:
      return visit(bfloat16{});
  }
}

// The last part that does not begin after the block.
__device__ const Part& part_of(const Parts& parts, int count, uint32_t block) {
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (parts.part[middle].first_block <= block ? low : high) = middle;
  }
  return parts.part[low];
}

__global__ void __launch_bounds__(block_size)
    convert_parts(const __grid_constant__ Parts parts, int count, const float* scale) {
  extern __shared__ double shared[];
  const Part& part = part_of(parts, count, blockIdx.x);
  const uint32_t block = blockIdx.x - part.first_block;
  visit_device_floating(part.from, [&](auto from) {
    visit_device_floating(part.to, [&](auto to) {
      using To = decltype(to);
      const Converter<To, decltype(from)> converted(scale);
      if (part.is_transposed())
        transpose_piece(part, block, converted, reinterpret_cast<To*>(shared));
      else
        convert_piece(part, block, converted);
    });
  });
}

Part part_of(const ConvertedArray& array) {
  Part part{nullptr, nullptr, array.count, 1, 1, 0, {}, array.from, array.to};
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
class Launch {
 public:
  Launch(cudaStream_t stream, const float* scale) : stream_(stream), scale_(scale) {}

  void add(Part part) {
    const int64_t blocks = blocks_of(part);
    if (blocks == 0) return;
    if (count_ == arrays_per_launch || blocks_ + blocks > most_blocks_per_launch) queue();
    part.first_block = static_cast<uint32_t>(blocks_);
    parts_.part[count_++] = part;
    blocks_ += blocks;
    if (part.is_transposed()) shared_bytes_ = std::max(shared_bytes_, tile_elements * size_of(part.to));
  }
  void queue() {
    if (count_ > 0)
      convert_parts<<<static_cast<unsigned>(blocks_), block_size, shared_bytes_, stream_>>>(parts_, count_, scale_);
    count_ = 0;
    blocks_ = 0;
    shared_bytes_ = 0;
  }

 private:
  static constexpr int64_t most_blocks_per_launch = (int64_t{1} << 31) - 1;
  const cudaStream_t stream_;
  const float* const scale_;
  Parts parts_{};
  int count_ = 0;
  int64_t blocks_ = 0;
  size_t shared_bytes_ = 0;
};

std::unique_ptr<Kernel> build(const NodeView& node) {
  std::vector<Part> parts;
  std::vector<std::pair<int, int>> in_place;
  for (const ConvertedArray& array : converted_arrays(node)) {
    const auto index = static_cast<int>(parts.size());
    parts.push_back(part_of(array));
    if (array.from == array.to && !array.is_transposed()) in_place.emplace_back(index, index);
  }
  return make_step(node,
                   [parts, scaled = node.as<ConvertArrays>().scaled](const Args& args) {
                     Launch launch(stream_of(args), scaled ? args.in<float>(parts.size()) : nullptr);
                     for (size_t i = 0; i < parts.size(); ++i) {
                       Part part = parts[i];
                       part.in = args.inputs[i];
                       part.out = args.outputs[i];
                       if (part.out) launch.add(part);  // else nobody reads it
                     }
                     launch.queue();
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
