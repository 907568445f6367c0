#include "symbind/backend/cuda/integer_product.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/functions.h"
#include "symbind/backend/wide.h"

namespace symbind::cuda_backend {
namespace {

constexpr int tile = 16;

// A block computes tiles of the result, from tiles of both matrices in shared memory.
template <class T>
__global__ void multiply_tiles(const T* a, const T* b, T* out, MatmulProblem p, int64_t row_tiles,
                               int64_t column_tiles) {
  using C = functions::Wide<T>;
  __shared__ C of_a[tile][tile + 1], of_b[tile][tile + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  for (int64_t index = blockIdx.x; index < p.batch * row_tiles * column_tiles; index += gridDim.x) {
    const int64_t matrix = index / (row_tiles * column_tiles), rest = index % (row_tiles * column_tiles);
    const int64_t row = rest / column_tiles * tile + y, column = rest % column_tiles * tile + x;
    const T *const left = a + matrix * p.rows * p.inner, *const right = b + matrix * p.inner * p.columns;
    C sum = 0;
    for (int64_t first = 0; first < p.inner; first += tile) {
      const int64_t at_a = first + x, at_b = first + y;
      of_a[y][x] = row < p.rows && at_a < p.inner
                       ? static_cast<C>(left[p.transpose_a ? at_a * p.rows + row : row * p.inner + at_a])
                       : C(0);
      of_b[y][x] = column < p.columns && at_b < p.inner
                       ? static_cast<C>(right[p.transpose_b ? column * p.inner + at_b : at_b * p.columns + column])
                       : C(0);
      __syncthreads();
      for (int k = 0; k < tile; ++k) sum = functions::add(sum, functions::multiply(of_a[y][k], of_b[k][x]));
      __syncthreads();
    }
    if (row < p.rows && column < p.columns) out[(matrix * p.rows + row) * p.columns + column] = convert_element<T>(sum);
  }
}

}  // namespace

void queue_integer_product(cudaStream_t stream, const MatmulProblem& problem, const void* a, const void* b, void* out) {
  const int64_t row_tiles = (problem.rows + tile - 1) / tile, column_tiles = (problem.columns + tile - 1) / tile;
  const int64_t tiles = problem.batch * row_tiles * column_tiles;
  if (tiles == 0) return;
  visit_types<int8_t, uint8_t, int32_t, int64_t, bool>(problem.dtype, [&]<class T>(std::type_identity<T>) {
    multiply_tiles<<<blocks_for(tiles, 1), dim3(tile, tile), 0, stream>>>(
        static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out), problem, row_tiles, column_tiles);
  });
}

}  // namespace symbind::cuda_backend
