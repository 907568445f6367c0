// Running sums along rows. A thread processes a short row, or a row among many; otherwise a block processes a piece of
// a row: the pieces are summed, their sums are scanned, and each piece continues from its offset. The order of all sums
// depends only on the shape.
#include "symbind/ops/cumsum.h"

#include <cub/block/block_scan.cuh>

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/wide_array.cuh"
#include "symbind/backend/functions.h"
#include "symbind/core/axis_view.h"
#include "symbind/ops/sort.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr int items = 8;  // of a thread
constexpr int64_t piece_length = block_size * items;

// Rows, from the first element to the last or in reverse: the gradient of an element is the sum over itself and all
// later ones.
struct Rows : AxisView {
  bool backwards;
  int64_t pieces;

  __device__ int64_t index(int64_t row, int64_t k) const {
    const Divided at = divided(row, inner);
    return (at.quotient * length + (backwards ? length - 1 - k : k)) * inner + at.rest;
  }
};

template <class C>
__global__ void sum_up_rows(WideArray<C> in, WideArray<C> out, Rows rows) {
  for (int64_t row = first_element(); row < rows.row_count(); row += element_step()) {
    C sum = 0;
    for (int64_t k = 0; k < rows.length; ++k) {
      const int64_t i = rows.index(row, k);
      sum = functions::add(sum, in[i]);
      out.set(i, sum);
    }
  }
}

template <class C>
__global__ void sum_pieces(WideArray<C> in, C* sums, Rows rows) {
  for (int64_t index = blockIdx.x; index < rows.row_count() * rows.pieces; index += gridDim.x) {
    const Divided at = divided(index, rows.pieces);
    C sum = 0;
    for (int i = 0; i < items; ++i) {
      const int64_t k = at.rest * piece_length + threadIdx.x * items + i;
      if (k < rows.length) sum = functions::add(sum, in[rows.index(at.quotient, k)]);
    }
    sum = combine_block<Add>(sum);
    if (threadIdx.x == 0) sums[index] = sum;
  }
}

// The sums of the pieces become, for each piece, the sum of those before it. A block processes a row.
template <class C>
__global__ void sum_up_pieces(C* sums, Rows rows) {
  using Scan = cub::BlockScan<C, block_size>;
  __shared__ typename Scan::TempStorage memory;
  for (int64_t row = blockIdx.x; row < rows.row_count(); row += gridDim.x) {
    C before = 0;
    for (int64_t first = 0; first < rows.pieces; first += block_size) {
      const int64_t piece = first + threadIdx.x;
      const C own = piece < rows.pieces ? sums[row * rows.pieces + piece] : C(0);
      C up_to = 0, all = 0;
      Scan(memory).ExclusiveScan(own, up_to, C(0), functions::Add{}, all);
      if (piece < rows.pieces) sums[row * rows.pieces + piece] = functions::add(before, up_to);
      before = functions::add(before, all);
      __syncthreads();  // the shared memory is reused
    }
  }
}

// `before` holds the sums before each piece; null: rows are of one piece.
template <class C>
__global__ void finish_pieces(WideArray<C> in, WideArray<C> out, const C* before, Rows rows) {
  using Scan = cub::BlockScan<C, block_size>;
  __shared__ typename Scan::TempStorage memory;
  for (int64_t index = blockIdx.x; index < rows.row_count() * rows.pieces; index += gridDim.x) {
    const Divided at = divided(index, rows.pieces);
    const int64_t first = at.rest * piece_length + threadIdx.x * items;
    C value[items];
    for (int i = 0; i < items; ++i) value[i] = first + i < rows.length ? in[rows.index(at.quotient, first + i)] : C(0);
    Scan(memory).InclusiveScan(value, value, functions::Add{});
    const C start = before ? before[index] : C(0);
    for (int i = 0; i < items; ++i)
      if (first + i < rows.length)
        out.set(rows.index(at.quotient, first + i), before ? functions::add(start, value[i]) : value[i]);
    __syncthreads();  // the shared memory is reused
  }
}

// One array for both, if its elements were converted first: a piece is read before it is written.
template <class C>
void queue_sums(const Args& args, WideArray<C> in, WideArray<C> out, const Rows& rows) {
  const cudaStream_t stream = stream_of(args);
  const int64_t count = rows.row_count(), short_row = 64, many = 4096;
  if (rows.length <= short_row || (rows.inner >= 32 && count >= many)) {
    sum_up_rows<<<blocks_for(count), block_size, 0, stream>>>(in, out, rows);
    return;
  }
  auto* const sums = rows.pieces > 1 ? static_cast<C*>(args.scratch) : nullptr;
  const unsigned blocks = blocks_for(count * rows.pieces, 1);
  if (sums) {
    sum_pieces<<<blocks, block_size, 0, stream>>>(in, sums, rows);
    sum_up_pieces<<<blocks_for(count, 1), block_size, 0, stream>>>(sums, rows);
  }
  finish_pieces<<<blocks, block_size, 0, stream>>>(in, out, sums, rows);
}

std::unique_ptr<Kernel> build(const NodeView& node, const AxisView& view, bool backwards) {
  const DType from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  const Rows rows{view, backwards, (view.length + piece_length - 1) / piece_length};
  return functions::visit_wide(to, [&]<class C>(std::type_identity<C>) {
    const size_t scratch = rows.pieces > 1 ? static_cast<size_t>(rows.row_count() * rows.pieces) * sizeof(C) : 0;
    return make_step(node,
                     [rows, from, to](const Args& args) {
                       if (rows.size() == 0) return;
                       if (from != to)
                         queue_cast(stream_of(args), args.outputs[0], to, args.inputs[0], from, rows.size());
                       const void* const in = from == to ? args.inputs[0] : args.outputs[0];
                       queue_sums(args, WideArray<C>(in, to), WideArray<C>(args.outputs[0], to), rows);
                     },
                     {.scratch_bytes = scratch});
  });
}

}  // namespace

void add_cumsum(ImplementationTable& table) {
  table.add<CumSum>({"cuda", refuse_layouts, [](const NodeView& node) {
                       return build(node, sorted_rows(node.as<CumSum>().axis, node.inputs[0].shape, node.where()),
                                    false);
                     }});
  table.add<CumSumGrad>(
      {"cuda", refuse_layouts, [](const NodeView& node) {
         return build(node, sorted_rows(node.as<CumSumGrad>().axis, node.outputs[0].shape, node.where()), true);
       }});
}

}  // namespace symbind::cuda_backend
