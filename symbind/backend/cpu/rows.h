// How the loops of norms and softmax run over the rows along an axis.
#pragma once

#include <algorithm>
#include <cstdint>

#include "symbind/backend/cpu/loops.h"
#include "symbind/core/axis_view.h"

namespace symbind::cpu_backend {

// Adjacent rows that are computed together, so that memory is read sequentially.
constexpr int64_t rows_together = 64;

// `work` is the cost of an element in simple operations: the higher, the fewer elements are worth a thread.
struct Rows : AxisView {
  // Calls body(row, offset of its first number) for every row.
  template <class Body>
  void for_each(int64_t work, const Body& body) const {
    for_elements(
        row_count(),
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) body(row, row_start(row));
        },
        element_grain / work / std::max<int64_t>(1, length) + 1);
  }

  // Calls body(offset of the first number, rows) for blocks of adjacent rows.
  template <class Body>
  void for_each_block(int64_t work, const Body& body) const {
    const int64_t blocks = (inner + rows_together - 1) / rows_together;
    for_elements(
        outer * blocks,
        [&](int64_t begin, int64_t end) {
          for (int64_t block = begin; block < end; ++block) {
            const int64_t first = block % blocks * rows_together;
            body(block / blocks * length * inner + first, std::min(rows_together, inner - first));
          }
        },
        element_grain / work / std::max<int64_t>(1, length * std::min(inner, rows_together)) + 1);
  }

  // Calls along_rows(offset of the first number, rows) for pieces of an array whose rows are adjacent numbers, else
  // along_columns(offset, columns) as for_each_block() does.
  template <class AlongRows, class AlongColumns>
  void for_pieces(int64_t work, const AlongRows& along_rows, const AlongColumns& along_columns) const {
    if (length == 0) return;
    if (inner != 1) return for_each_block(work, along_columns);
    parallel_for(outer, element_grain / work / length + 1,
                 [&](int64_t begin, int64_t end) { along_rows(begin * length, end - begin); });
  }
};

inline Rows rows_along(const Shape& shape, int axis) { return {view_along(shape, axis)}; }

}  // namespace symbind::cpu_backend
