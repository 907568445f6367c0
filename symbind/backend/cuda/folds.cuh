// Reductions along axes by any fold (backend/folds.h). The marked axes are reduced one after the other, the innermost
// first: the first stage takes elements, the others combine partial results. A stage reduces rows (the axis is the
// last) or columns; few long ones are split into pieces, whose partial results another stage combines. There are no
// atomic operations, so the order depends only on the shape and the GPU's multiprocessors.
//
// A fold on the device is an object with the type Part and the functions start(), take(part, element, index along the
// axis), join(part, part), and finish(part, out, i), which assigns result i.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/reduced_axes.h"

namespace symbind::cuda_backend {

struct FoldStage : AxisView {
  int64_t pieces = 1, piece_length = 1;
  int64_t results() const { return row_count() * pieces; }
};

// How an array is folded on the current GPU, decided when the kernel is built.
struct FoldPlan {
  std::vector<FoldStage> stages;

  FoldPlan(const Shape& shape, const std::vector<bool>& folded) {
    for (const AxisView& axis : reduced_one_by_one(shape, folded)) add(axis);
    if (stages.empty()) add({shape.size(), 1, 1});  // each element is a result
  }
  explicit FoldPlan(const AxisView& axis) { add(axis); }

  // The partial results of all stages but the last, which alternate between two buffers.
  int64_t parts() const {
    int64_t most = 0;
    for (size_t i = 0; i + 1 < stages.size(); ++i) most = std::max(most, stages[i].results());
    return most;
  }
  template <class Part>
  size_t scratch_bytes() const {
    return static_cast<size_t>(2 * parts()) * sizeof(Part);
  }

 private:
  void add(const AxisView& axis) {
    const bool rows = axis.inner == 1;
    const int64_t columns = axis.inner % 4 == 0 ? 128 : 32;  // of a block, by packs or without
    const int64_t blocks = rows ? axis.outer : axis.outer * ((axis.inner + columns - 1) / columns);
    const int64_t least = rows ? 4096 : 256;  // no piece is shorter
    const int64_t wanted_blocks = current_multiprocessors() * 4;
    FoldStage stage{axis};
    const int64_t pieces =
        std::clamp<int64_t>(wanted_blocks / std::max<int64_t>(blocks, 1), 1, std::max<int64_t>(axis.length / least, 1));
    stage.piece_length = (axis.length + pieces - 1) / pieces;
    if (pieces > 1) stage.piece_length = (stage.piece_length + 15) / 16 * 16;  // pieces begin where packs do
    stage.piece_length = std::max<int64_t>(stage.piece_length, 1);
    stage.pieces = std::max<int64_t>((axis.length + stage.piece_length - 1) / stage.piece_length, 1);
    stages.push_back(stage);
    if (stage.pieces == 1) return;
    // Parts of a row are neighbours; parts of columns are rows of all columns.
    const AxisView joined = rows ? AxisView{axis.outer, stage.pieces, 1} : AxisView{1, stage.pieces, axis.row_count()};
    stages.push_back(FoldStage{joined, 1, stage.pieces});
  }
};

// The value of another thread of the warp, of any type that can be copied.
template <class T>
__device__ T shuffle_xor(const T& value, int offset) {
  static_assert(sizeof(T) % 4 == 0);
  uint32_t words[sizeof(T) / 4];
  std::memcpy(words, &value, sizeof(T));
  for (uint32_t& word : words) word = __shfl_xor_sync(0xffffffffu, word, offset);
  T result;
  std::memcpy(&result, words, sizeof(T));
  return result;
}

// Where a stage stores its results: partial, or finished.
template <class Fold, class Out>
struct FoldResults {
  typename Fold::Part* parts;
  Out* out;
  bool finished;
  __device__ void set(const Fold& fold, int64_t i, const typename Fold::Part& part) const {
    if (finished)
      fold.finish(part, out, i);
    else
      parts[i] = part;
  }
};

// The partial results of one thread; several are computed independently for neighbouring elements.
template <int width, class Fold>
struct FoldParts {
  static constexpr int count = width < 4 ? width : 4;
  typename Fold::Part part[count];

  __device__ explicit FoldParts(const Fold& fold) {
#pragma unroll
    for (int i = 0; i < count; ++i) part[i] = fold.start();
  }
  template <class In>
  __device__ void take(const Fold& fold, const Pack<In, width>& pack, int64_t index) {
#pragma unroll
    for (int i = 0; i < width; ++i) part[i % count] = fold.take(part[i % count], load(pack.element[i]), index + i);
  }
  __device__ typename Fold::Part joined(const Fold& fold) const {
    typename Fold::Part result = part[0];
#pragma unroll
    for (int i = 1; i < count; ++i) result = fold.join(result, part[i]);
    return result;
  }
};

// The share of thread `lane` of `lanes` in row[begin, end). With packs, row + begin must be aligned to a pack.
template <int width, class In, class Fold>
__device__ typename Fold::Part fold_lane(const In* row, int64_t begin, int64_t end, int lane, int lanes,
                                         const Fold& fold) {
  FoldParts<width, Fold> parts(fold);
  const int64_t whole = begin + (end - begin) / width * width;
#pragma unroll 4
  for (int64_t k = begin + lane * width; k < whole; k += lanes * width)
    parts.take(fold, *reinterpret_cast<const Pack<In, width>*>(row + k), k);
  typename Fold::Part part = parts.joined(fold);
  for (int64_t k = whole + lane; k < end; k += lanes) part = fold.take(part, load(row[k]), k);
  return part;
}

// A team of `lanes` threads (a power of two up to 32, or the block) for each piece of each row.
template <int width, class In, class Fold, class Out>
__global__ void __launch_bounds__(block_size)
    fold_rows(const In* in, FoldResults<Fold, Out> results, FoldStage stage, int lanes, Fold fold) {
  using Part = typename Fold::Part;
  __shared__ Part of_warp[block_size / 32];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % lanes;
  const int64_t teams = block_size / lanes, count = stage.outer * stage.pieces;
  for (int64_t first = int64_t{blockIdx.x} * teams; first < count; first += int64_t{gridDim.x} * teams) {
    const int64_t index = first + thread / lanes;
    Part part = fold.start();
    if (index < count) {
      const int64_t row = index / stage.pieces, begin = index % stage.pieces * stage.piece_length;
      const int64_t end = begin + stage.piece_length < stage.length ? begin + stage.piece_length : stage.length;
      part = fold_lane<width>(in + row * stage.length, begin, end, lane, lanes, fold);
    }
    for (int offset = (lanes < 32 ? lanes : 32) / 2; offset > 0; offset /= 2)
      part = fold.join(part, shuffle_xor(part, offset));
    if (lanes > 32) {
      __syncthreads();  // the partial results of the previous row have been read
      if (thread % 32 == 0) of_warp[thread / 32] = part;
      __syncthreads();
      if (lane == 0)
        for (int warp = 1; warp < block_size / 32; ++warp) part = fold.join(part, of_warp[warp]);
    }
    if (lane == 0 && index < count) results.set(fold, index, part);
  }
}

// A thread for each result: for columns of a few terms.
inline constexpr int64_t few_terms = 32;
template <class In, class Fold, class Out>
__global__ void fold_short_columns(const In* in, FoldResults<Fold, Out> results, FoldStage stage, Fold fold) {
  for (int64_t i = first_element(); i < stage.row_count(); i += element_step()) {
    const In* const from = in + stage.row_start(i);
    typename Fold::Part part = fold.start();
#pragma unroll 4
    for (int64_t term = 0; term < stage.length; ++term) part = fold.take(part, load(from[term * stage.inner]), term);
    results.set(fold, i, part);
  }
}

// Blocks of x × y threads: `width` neighbouring columns for each thread, the terms of a piece divided along y.
template <int width, class In, class Fold, class Out>
__global__ void __launch_bounds__(block_size)
    fold_columns(const In* in, FoldResults<Fold, Out> results, FoldStage stage, Fold fold) {
  using Part = typename Fold::Part;
  __shared__ Part shared[block_size * width];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int columns = static_cast<int>(blockDim.x) * width, lanes = static_cast<int>(blockDim.y);
  const int64_t tiles = (stage.inner + columns - 1) / columns, count = stage.outer * tiles * stage.pieces;
  for (int64_t index = blockIdx.x; index < count; index += gridDim.x) {
    const int64_t piece = index % stage.pieces, tile = index / stage.pieces % tiles;
    const int64_t outer = index / stage.pieces / tiles, column = tile * columns + x * width;
    const int64_t begin = piece * stage.piece_length;
    const int64_t end = begin + stage.piece_length < stage.length ? begin + stage.piece_length : stage.length;
    Part part[width];
#pragma unroll
    for (int j = 0; j < width; ++j) part[j] = fold.start();
    if (column < stage.inner) {
      const In* const from = in + outer * stage.length * stage.inner + column;
#pragma unroll 4
      for (int64_t term = begin + y; term < end; term += lanes) {
        const auto pack = *reinterpret_cast<const Pack<In, width>*>(from + term * stage.inner);
#pragma unroll
        for (int j = 0; j < width; ++j) part[j] = fold.take(part[j], load(pack.element[j]), term);
      }
    }
    __syncthreads();  // the partial results of the previous tile have been read
#pragma unroll
    for (int j = 0; j < width; ++j) shared[y * columns + x * width + j] = part[j];
    for (int half = lanes / 2; half > 0; half /= 2) {
      __syncthreads();
      if (y < half)
        for (int j = 0; j < width; ++j) {
          Part& own = shared[y * columns + x * width + j];
          own = fold.join(own, shared[(y + half) * columns + x * width + j]);
        }
    }
    if (y == 0 && column < stage.inner)
      for (int j = 0; j < width; ++j)
        results.set(fold, (piece * stage.outer + outer) * stage.inner + column + j, shared[x * width + j]);
  }
}

// Rows are read by packs if every row is aligned to a pack.
template <int width, class In, class Fold, class Out>
void queue_fold_rows(cudaStream_t stream, const FoldStage& stage, const In* in, const FoldResults<Fold, Out>& results,
                     const Fold& fold) {
  const int64_t packs = (stage.piece_length + width - 1) / width;
  int lanes = 1;
  while (lanes < 32 && lanes * 4 < packs) lanes *= 2;
  if (packs > 256) lanes = block_size;
  fold_rows<width><<<blocks_for(stage.outer * stage.pieces, block_size / lanes), block_size, 0, stream>>>(
      in, results, stage, lanes, fold);
}

template <int width, class In, class Fold, class Out>
void queue_fold_columns(cudaStream_t stream, const FoldStage& stage, const In* in,
                        const FoldResults<Fold, Out>& results, const Fold& fold) {
  const int64_t packs = (stage.inner + width - 1) / width;
  unsigned x = 1;
  while (x < 32 && x < packs) x *= 2;
  const int64_t blocks = stage.outer * ((packs + x - 1) / x) * stage.pieces;
  fold_columns<width><<<blocks_for(blocks, 1), dim3(x, block_size / x), 0, stream>>>(in, results, stage, fold);
}

template <bool packed, class In, class Fold, class Out>
void queue_fold_stage(cudaStream_t stream, const FoldStage& stage, const In* in, const FoldResults<Fold, Out>& results,
                      const Fold& fold) {
  if (stage.row_count() == 0) return;
  if (stage.inner > 1 && stage.length <= few_terms) {
    fold_short_columns<<<blocks_for(stage.row_count()), block_size, 0, stream>>>(in, results, stage, fold);
    return;
  }
  if constexpr (packed) {
    constexpr int row_width = widest<In>, column_width = std::min(widest<In>, 4);
    const bool aligned = aligned_for_packs(in);
    if (stage.inner == 1 && aligned && (stage.outer == 1 || stage.length % row_width == 0) && stage.length >= row_width)
      return queue_fold_rows<row_width>(stream, stage, in, results, fold);
    if (stage.inner > 1 && aligned && stage.inner % column_width == 0)
      return queue_fold_columns<column_width>(stream, stage, in, results, fold);
  }
  if (stage.inner == 1)
    queue_fold_rows<1>(stream, stage, in, results, fold);
  else
    queue_fold_columns<1>(stream, stage, in, results, fold);
}

// The fold of later stages: elements are partial results.
template <class Fold>
struct Joining : Fold {
  using Part = typename Fold::Part;
  __device__ Part take(const Part& part, const Part& other, int64_t) const { return Fold::join(part, other); }
};

// Assigns all results. `scratch` has plan.scratch_bytes<Fold::Part>().
template <class Fold, class In, class Out>
void queue_fold(cudaStream_t stream, const FoldPlan& plan, const In* in, Out* out, void* scratch, const Fold& fold) {
  using Part = typename Fold::Part;
  Part* const turn[2] = {static_cast<Part*>(scratch), static_cast<Part*>(scratch) + plan.parts()};
  const size_t last = plan.stages.size() - 1;
  queue_fold_stage<true>(stream, plan.stages[0], in, FoldResults<Fold, Out>{turn[0], out, last == 0}, fold);
  const Joining<Fold> joining{fold};
  for (size_t i = 1; i <= last; ++i)
    queue_fold_stage<false>(stream, plan.stages[i], static_cast<const Part*>(turn[(i - 1) % 2]),
                            FoldResults<Joining<Fold>, Out>{turn[i % 2], out, i == last}, joining);
}

}  // namespace symbind::cuda_backend
