// Reorders between plain and channels-last arrays (each image is a matrix of channels × space, transposed), and copies
// from other devices.
#include "symbind/ops/system.h"

#include "symbind/backend/cross_device_copy.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/transpose.h"
#include "symbind/backend/units.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Through tiles in shared memory, so that reads and writes are both contiguous.
constexpr int tile = 32, tile_lanes = 8;
template <class Bits>
__global__ void transpose_tiles(const Bits* in, Bits* out, int64_t rows, int64_t columns, int64_t row_tiles,
                                int64_t column_tiles, int64_t tiles) {
  __shared__ Bits shared[tile][tile + 1];
  for (int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const int64_t matrix = index / (row_tiles * column_tiles), in_matrix = index % (row_tiles * column_tiles);
    const int64_t first_row = in_matrix / column_tiles * tile, first_column = in_matrix % column_tiles * tile;
    const Bits* const source = in + matrix * rows * columns;
    Bits* const target = out + matrix * rows * columns;
    const int64_t column = first_column + threadIdx.x, row = first_row + threadIdx.x;
    for (int i = static_cast<int>(threadIdx.y); i < tile; i += tile_lanes)
      if (first_row + i < rows && column < columns) shared[i][threadIdx.x] = source[(first_row + i) * columns + column];
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.y); i < tile; i += tile_lanes)
      if (first_column + i < columns && row < rows) target[(first_column + i) * rows + row] = shared[threadIdx.x][i];
    __syncthreads();
  }
}

// With few rows or columns tiles would be mostly empty, and the cache coalesces neighbouring accesses anyway.
constexpr int64_t narrow = 16;
template <class Bits>
__global__ void transpose_narrow(const Bits* in, Bits* out, int64_t rows, int64_t columns, int64_t count) {
  const auto short_rows = static_cast<uint32_t>(rows), matrix_size = static_cast<uint32_t>(rows * columns);
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const int64_t matrix = i / matrix_size;
    const auto in_matrix = static_cast<uint32_t>(i % matrix_size);
    const uint32_t row = in_matrix % short_rows, column = in_matrix / short_rows;
    out[i] = in[matrix * matrix_size + int64_t{row} * columns + column];
  }
}

template <class Bits>
void queue(cudaStream_t stream, const void* in, void* out, const Matrices& size) {
  const auto* const source = static_cast<const Bits*>(in);
  auto* const target = static_cast<Bits*>(out);
  const auto [batch, rows, columns] = size;
  if (std::min(rows, columns) <= narrow && rows * columns < (int64_t{1} << 32)) {
    const int64_t count = batch * rows * columns;
    transpose_narrow<<<blocks_for(count), block_size, 0, stream>>>(source, target, rows, columns, count);
    return;
  }
  const int64_t row_tiles = (rows + tile - 1) / tile, column_tiles = (columns + tile - 1) / tile;
  const int64_t tiles = batch * row_tiles * column_tiles;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(tiles, most_blocks));
  transpose_tiles<<<blocks, dim3(tile, tile_lanes), 0, stream>>>(source, target, rows, columns, row_tiles, column_tiles,
                                                                 tiles);
}

std::string accept(const NodeView&) { return ""; }

std::unique_ptr<Kernel> build_reorder(const NodeView& node) {
  const Tensor &from = node.inputs[0], &to = node.outputs[0];
  const int64_t channels = from.shape[1], space = from.shape.size(2, from.shape.rank());
  Matrices size{from.shape[0], channels, space};
  if (from.layout == Layout::channels_last && to.layout == Layout::plain)
    std::swap(size.rows, size.columns);
  else
    require(from.layout == Layout::plain && to.layout == Layout::channels_last, node.where(), " cannot go from ",
            name_of(from.layout), " to ", name_of(to.layout), " on ", node.context);
  return make_step(node, [size, bytes = size_of(from.dtype)](const Args& args) {
    queue_transpose(stream_of(args), args.inputs[0], args.outputs[0], bytes, size);
  });
}

}  // namespace

void queue_transpose(cudaStream_t stream, const void* in, void* out, size_t element_bytes, const Matrices& size) {
  const int64_t count = size.batch * size.rows * size.columns;
  if (count == 0) return;
  if (size.trivial()) {
    cudaMemcpyAsync(out, in, static_cast<size_t>(count) * element_bytes, cudaMemcpyDeviceToDevice, stream);
    return;
  }
  visit_unit(element_bytes, [&]<class Unit>(Unit) { queue<Unit>(stream, in, out, size); });
}

void add_system(ImplementationTable& table) {
  table.add<Reorder>({"cuda", accept, build_reorder});
  table.add<CrossDeviceCopy>({"copy", accept, build_cross_device_copy});
}

}  // namespace symbind::cuda_backend
