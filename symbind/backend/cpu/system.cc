#include "symbind/ops/system.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/transpose.h"
#include "symbind/backend/cross_device_copy.h"
#include "symbind/backend/units.h"

namespace symbind::cpu_backend {
namespace {

// Matrices of rows × columns pieces, each `piece` elements long.
struct Matrices {
  int64_t batch, rows, columns, piece;
};

// out[n][j][i] = in[n][i][j], in blocks that fit the cache. T is an unsigned type of the elements' size.
template <class T>
void transpose(const T* in, T* out, const Matrices& size) {
  constexpr int64_t block = 32;
  const int64_t rows = size.rows, columns = size.columns, piece = size.piece;
  const int64_t row_blocks = (rows + block - 1) / block;
  const int64_t work_per_block = std::min(rows, block) * columns * piece;
  const auto items = [=](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const T* const source = in + item / row_blocks * rows * columns * piece;
      T* const target = out + item / row_blocks * rows * columns * piece;
      const int64_t first = item % row_blocks * block, height = std::min(rows - first, block);
      if (piece == 1) {
        transpose_block(source + first * columns, columns, target + first, rows, height, columns);
        continue;
      }
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = first; i < first + height; ++i)
          std::copy_n(source + (i * columns + j) * piece, piece, target + (j * rows + i) * piece);
    }
  };
  for_elements<InstructionSet::avx2>(size.batch * row_blocks, items,
                                     (1 << 15) / std::max<int64_t>(1, work_per_block) + 1);
}

// Every pair of layouts but the two blocked ones is one transposition.
Matrices transposition(const Shape& shape, Layout from, Layout to, std::string_view where) {
  const int64_t batch = shape[0], channels = shape[1], space = shape.size(2, shape.rank());
  const int64_t block = std::max(block_of(from), block_of(to)), blocks = channels / block;
  if (from == Layout::plain && to == Layout::channels_last) return {batch, channels, space, 1};
  if (from == Layout::channels_last && to == Layout::plain) return {batch, space, channels, 1};
  if (from == Layout::plain && block > 1) return {batch * blocks, block, space, 1};
  if (to == Layout::plain && block > 1) return {batch * blocks, space, block, 1};
  if (from == Layout::channels_last && block > 1) return {batch, space, blocks, block};
  if (to == Layout::channels_last && block > 1) return {batch, blocks, space, block};
  fail(where, " cannot go from ", name_of(from), " to ", name_of(to));
}

std::unique_ptr<Kernel> build_reorder(const NodeView& node) {
  const Tensor& input = node.inputs[0];
  const Matrices size = transposition(input.shape, input.layout, node.outputs[0].layout, node.where());
  return visit_unit(size_of(input.dtype), [&]<class Unit>(Unit) -> std::unique_ptr<Kernel> {
    return make_kernel([=](const Args& args) { transpose(args.in<Unit>(0), args.out<Unit>(), size); });
  });
}

}  // namespace

void add_system(ImplementationTable& table) {
  table.add<CrossDeviceCopy>({.name = "copy", .refuse = {}, .build = build_cross_device_copy, .preferred_layouts = {}});
  table.add<Reorder>({.name = "plain", .refuse = {}, .build = build_reorder, .preferred_layouts = {}});
  table.add<Relabel>({.name = "plain", .refuse = {}, .build = build_copy, .preferred_layouts = {}});
}

}  // namespace symbind::cpu_backend
