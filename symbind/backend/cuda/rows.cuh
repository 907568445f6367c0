// Kernels that work on the rows along an axis: a body is called for each row by a team of threads, which is a warp, a
// block, or one thread if the elements of a row are not adjacent and neighbouring threads have neighbouring rows.
//
// A body is an object with
//   template <class Team, int width> __device__ void operator()(int64_t row, int64_t start) const;
// whose threads take packs of `width` elements: for (k = Team::lane() * width; k < length; k += Team::size() * width),
// by read_row and write_row. Each reads and writes the same elements, so that a result may overwrite an input.
#pragma once

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/core/axis_view.h"

namespace symbind::cuda_backend {

struct WarpTeam {
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int size() { return 32; }
  __device__ static void sync() { __syncwarp(); }
  __device__ static int64_t first_row() { return first_element() / 32; }
  __device__ static int64_t row_step() { return element_step() / 32; }
  template <template <class> class Operation, class C>
  __device__ static C combined(C value) {
    for (int offset = 16; offset > 0; offset /= 2)
      value = Operation<C>::combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
    return value;
  }
};
struct BlockTeam {
  __device__ static int lane() { return static_cast<int>(threadIdx.x); }
  __device__ static int size() { return static_cast<int>(blockDim.x); }
  __device__ static void sync() { __syncthreads(); }
  __device__ static int64_t first_row() { return blockIdx.x; }
  __device__ static int64_t row_step() { return gridDim.x; }
  template <template <class> class Operation, class C>
  __device__ static C combined(C value) {
    return combine_block<Operation>(value);
  }
};
struct ThreadTeam {
  __device__ static int lane() { return 0; }
  __device__ static int size() { return 1; }
  __device__ static void sync() {}
  __device__ static int64_t first_row() { return first_element(); }
  __device__ static int64_t row_step() { return element_step(); }
  template <template <class> class Operation, class C>
  __device__ static C combined(C value) {
    return value;
  }
};

// `width` elements of a row from element k on; `inner` is the step from one to the next, 1 above a width of 1.
template <int width, class T>
__device__ Pack<T, width> read_row(const T* row, int64_t k, int64_t inner) {
  if constexpr (width == 1)
    return {row[k * inner]};
  else
    return *reinterpret_cast<const Pack<T, width>*>(row + k);
}
template <int width, class T>
__device__ void write_row(T* row, int64_t k, int64_t inner, const Pack<T, width>& pack) {
  if constexpr (width == 1)
    row[k * inner] = pack.element[0];
  else
    *reinterpret_cast<Pack<T, width>*>(row + k) = pack;
}

inline constexpr int most_row_threads = 512;

template <class Team, int width, class Body>
__global__ void __launch_bounds__(most_row_threads) run_rows(AxisView rows, Body body) {
  for (int64_t row = Team::first_row(); row < rows.row_count(); row += Team::row_step())
    body.template operator()<Team, width>(row, rows.row_start(row));
}

// Are there so few rows that a warp for each would leave most of the current GPU idle?
inline bool are_few(int64_t rows) { return rows < current_multiprocessors() * 4; }

// The number of threads that a long row keeps busy.
inline unsigned threads_for_row(int64_t packs) { return packs >= 1024 ? most_row_threads : block_size; }

template <int width, class Body>
void queue_packed_rows(cudaStream_t stream, const AxisView& rows, const Body& body) {
  const int64_t packs = rows.length / width;
  if (packs <= (are_few(rows.outer) ? 64 : 256))
    run_rows<WarpTeam, width><<<blocks_for(rows.outer, block_size / 32), block_size, 0, stream>>>(rows, body);
  else
    run_rows<BlockTeam, width><<<blocks_for(rows.outer, 1), threads_for_row(packs), 0, stream>>>(rows, body);
}

// Calls the body for every row: by packs of `widest_pack` elements if rows consist of whole packs and `aligned`: all
// arrays start at multiples of 16 bytes.
template <int widest_pack, class Body>
void queue_rows(cudaStream_t stream, const AxisView& rows, bool aligned, const Body& body) {
  if (rows.row_count() == 0) return;
  if (rows.inner > 1)
    run_rows<ThreadTeam, 1><<<blocks_for(rows.row_count()), block_size, 0, stream>>>(rows, body);
  else if (widest_pack > 1 && aligned && rows.length % widest_pack == 0)
    queue_packed_rows<widest_pack>(stream, rows, body);
  else
    queue_packed_rows<1>(stream, rows, body);
}

}  // namespace symbind::cuda_backend
