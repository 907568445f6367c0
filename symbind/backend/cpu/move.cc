// Rows along the last axis are copied, broadcast or gathered one by one. Where the other array is contiguous along
// another axis, square tiles are transposed, which keeps reads and writes within the cache.
#include "symbind/backend/cpu/move.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/units.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Axes that are iterated over, with the step along each in both arrays.
struct OuterAxes {
  static constexpr size_t most = 2 * Shape::max_rank + 1;
  size_t rank = 0;
  int64_t count = 1;
  std::array<int64_t, most> extents{}, dense_steps{}, other_steps{};

  void add(int64_t extent, int64_t dense_step, int64_t other_step) {
    extents[rank] = extent;
    dense_steps[rank] = dense_step;
    other_steps[rank] = other_step;
    ++rank;
    count *= extent;
  }

  // Calls body(offset in the dense array, offset in the other) for the indices in [begin, end), the last axis first.
  template <class Body>
  void for_indices(int64_t begin, int64_t end, const Body& body) const {
    std::array<int64_t, most> index{};
    int64_t dense = 0, other = 0, rest = begin;
    for (size_t axis = rank; axis-- > 0; rest /= extents[axis]) {
      index[axis] = rest % extents[axis];
      dense += index[axis] * dense_steps[axis];
      other += index[axis] * other_steps[axis];
    }
    for (int64_t i = begin; i < end; ++i) {
      body(dense, other);
      for (size_t axis = rank; axis-- > 0;) {
        dense += dense_steps[axis];
        other += other_steps[axis];
        if (++index[axis] < extents[axis]) break;
        dense -= extents[axis] * dense_steps[axis];
        other -= extents[axis] * other_steps[axis];
        index[axis] = 0;
      }
    }
  }
};

// All axes except the last, and except one more if given.
OuterAxes outer_axes(const Movement& movement, std::optional<size_t> without = std::nullopt) {
  OuterAxes outer;
  int64_t dense_step = 1;
  for (const int64_t extent : movement.extents) dense_step *= extent;
  for (size_t axis = 0; axis + 1 < movement.extents.size(); ++axis) {
    dense_step /= movement.extents[axis];
    if (axis != without) outer.add(movement.extents[axis], dense_step, movement.steps[axis]);
  }
  return outer;
}

// Calls row(offset in the dense array, offset in the other) for each row of the last axis, on all cores.
template <class Row>
void for_rows(const Movement& movement, const Row& row) {
  const OuterAxes outer = outer_axes(movement);
  const int64_t grain = std::max<int64_t>(1, element_grain / movement.extents.back());
  const auto rows = [&](int64_t begin, int64_t end) {
    outer.for_indices(begin, end, [&](int64_t dense, int64_t other) { row(dense, movement.start + other); });
  };
  for_elements<InstructionSet::avx2>(outer.count, rows, grain);
}

// From the front to the end. memcpy() may copy from the end where both rows are at the same place of a page, and then
// the processor does not fetch the next row in advance.
template <class Unit>
[[gnu::always_inline]] inline void copy_row(Unit* to, const Unit* from, int64_t length) {
  using Vector [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = unsigned char;
  constexpr int64_t vector = sizeof(Vector) / sizeof(Unit), step = 4 * vector;
  int64_t i = 0;
  for (; i + step <= length; i += step) {
    Vector part[4];
#pragma GCC unroll 4
    for (int64_t k = 0; k < 4; ++k) part[k] = *reinterpret_cast<const Vector*>(from + i + k * vector);
#pragma GCC unroll 4
    for (int64_t k = 0; k < 4; ++k) *reinterpret_cast<Vector*>(to + i + k * vector) = part[k];
  }
  std::memcpy(to + i, from + i, static_cast<size_t>(length - i) * sizeof(Unit));
}

// dense[row · row_step + column] = from[row + column · column_step]. A square is staged in a local buffer: both arrays
// are then accessed by whole cache lines, even if these map to the same cache set.
template <class Unit>
void turn(const Unit* from, Unit* dense, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step) {
  constexpr int64_t side = 32;
  Unit square[side][side];
  for (int64_t r = 0; r < rows; r += side)
    for (int64_t c = 0; c < columns; c += side) {
      const int64_t height = std::min(rows - r, side), width = std::min(columns - c, side);
      for (int64_t j = 0; j < width; ++j) {
        const Unit* const column = from + r + (c + j) * column_step;
        for (int64_t i = 0; i < height; ++i) square[i][j] = column[i];
      }
      for (int64_t i = 0; i < height; ++i)
        std::memcpy(dense + (r + i) * row_step + c, square[i], static_cast<size_t>(width) * sizeof(Unit));
    }
}

// The same where a row, or a column, has few elements: one loop runs over the other axis.
template <class Unit, int64_t columns>
void turn_narrow(const Unit* from, Unit* dense, int64_t rows, int64_t row_step, int64_t column_step) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) dense[i * row_step + j] = from[i + j * column_step];
}
template <class Unit, int64_t column_step>
void turn_low(const Unit* from, Unit* dense, int64_t rows, int64_t columns, int64_t row_step) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) dense[i * row_step + j] = from[i + j * column_step];
}
template <class Unit>
void turn_any(const Unit* from, Unit* dense, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step) {
  if (columns == 2 && row_step == 2) return turn_narrow<Unit, 2>(from, dense, rows, 2, column_step);
  if (columns == 3 && row_step == 3) return turn_narrow<Unit, 3>(from, dense, rows, 3, column_step);
  if (columns == 4 && row_step == 4) return turn_narrow<Unit, 4>(from, dense, rows, 4, column_step);
  if (column_step == 2) return turn_low<Unit, 2>(from, dense, rows, columns, row_step);
  if (column_step == 3) return turn_low<Unit, 3>(from, dense, rows, columns, row_step);
  if (column_step == 4) return turn_low<Unit, 4>(from, dense, rows, columns, row_step);
  turn(from, dense, rows, columns, row_step, column_step);
}

template <class Unit>
void take_turned(const Movement& movement, size_t unit, const Unit* from, Unit* dense) {
  const OuterAxes outer = outer_axes(movement, unit);
  const int64_t rows = movement.extents[unit], columns = movement.extents.back();
  int64_t row_step = 1;
  for (size_t axis = unit + 1; axis < movement.extents.size(); ++axis) row_step *= movement.extents[axis];
  // One large matrix is split along its rows instead.
  const int64_t pieces = outer.count > 1 ? 1 : std::max<int64_t>(1, rows / 64);
  const int64_t grain = std::max<int64_t>(1, element_grain / std::max<int64_t>(1, rows / pieces * columns));
  parallel_for(outer.count * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t piece = task % pieces, at = task / pieces;
      const int64_t first = rows * piece / pieces, last = rows * (piece + 1) / pieces;
      outer.for_indices(at, at + 1, [&](int64_t to, int64_t other) {
        turn_any(from + movement.start + other + first, dense + to + first * row_step, last - first, columns, row_step,
                 movement.steps.back());
      });
    }
  });
}

template <class Unit>
void take_units(const Movement& movement, const Unit* from, Unit* dense) {
  const int64_t length = movement.extents.back(), step = movement.steps.back();
  if (step == 1) return for_rows(movement, [=](int64_t to, int64_t at) { copy_row(dense + to, from + at, length); });
  if (step == 0) return for_rows(movement, [&](int64_t to, int64_t at) { std::fill_n(dense + to, length, from[at]); });
  const auto unit = std::find(movement.steps.begin(), movement.steps.end(), 1);
  if (unit != movement.steps.end())
    return take_turned(movement, static_cast<size_t>(unit - movement.steps.begin()), from, dense);
  for_rows(movement, [&](int64_t to, int64_t at) {
    for (int64_t i = 0; i < length; ++i) dense[to + i] = from[at + i * step];
  });
}

template <class Unit>
void put_units(const Movement& movement, Unit* to, const Unit* dense) {
  const int64_t length = movement.extents.back(), step = movement.steps.back();
  if (step == 1) return for_rows(movement, [=](int64_t from, int64_t at) { copy_row(to + at, dense + from, length); });
  for_rows(movement, [&](int64_t from, int64_t at) {
    for (int64_t i = 0; i < length; ++i) to[at + i * step] = dense[from + i];
  });
}

template <class Unit>
void fill_units(const Movement& movement, Unit* to, Unit element) {
  const int64_t length = movement.extents.back(), step = movement.steps.back();
  for_rows(movement, [&](int64_t, int64_t at) {
    for (int64_t i = 0; i < length; ++i) to[at + i * step] = element;
  });
}

bool is_empty(const Movement& movement) {
  return std::find(movement.extents.begin(), movement.extents.end(), 0) != movement.extents.end();
}

}  // namespace

Mover::Mover(const Movement& movement, DType dtype) : movement_(merged(movement)), element_(size_of(dtype)) {}

void Mover::take(const void* from, void* dense) const {
  if (is_empty(movement_)) return;
  visit_unit(element_, [&]<class Unit>(Unit) {
    take_units(movement_, static_cast<const Unit*>(from), static_cast<Unit*>(dense));
  });
}

void Mover::put(void* to, const void* dense) const {
  if (is_empty(movement_)) return;
  visit_unit(element_,
             [&]<class Unit>(Unit) { put_units(movement_, static_cast<Unit*>(to), static_cast<const Unit*>(dense)); });
}

void Mover::fill(void* to, const void* element) const {
  if (is_empty(movement_)) return;
  visit_unit(element_, [&]<class Unit>(Unit unit) {
    std::memcpy(&unit, element, sizeof unit);
    fill_units(movement_, static_cast<Unit*>(to), unit);
  });
}

std::unique_ptr<Kernel> build_take(const NodeView& node, const Movement& given) {
  const Movement movement = merged(given);
  if (movement.extents.size() == 1 && movement.steps[0] == 1 && node.inputs[0].bytes() == node.outputs[0].bytes())
    return build_copy(node);
  return make_kernel([mover = Mover(movement, node.outputs[0].dtype)](const Args& args) {
    mover.take(args.inputs[0], args.outputs[0]);
  });
}

std::unique_ptr<Kernel> build_put(const NodeView& node, const Movement& movement) {
  return make_kernel(
      [mover = Mover(movement, node.outputs[0].dtype), bytes = node.outputs[0].bytes()](const Args& args) {
        auto* const to = args.out<std::byte>();
        parallel_for(static_cast<int64_t>(bytes), element_grain * 4,
                     [=](int64_t begin, int64_t end) { std::memset(to + begin, 0, static_cast<size_t>(end - begin)); });
        mover.put(to, args.inputs[0]);
      });
}

void add_move(ImplementationTable& table) {
  for (const auto& [op, movement] : taking_operators())
    add_plain(table, *op, [movement = movement](const NodeView& node) { return build_take(node, movement(node)); });
  for (const auto& [op, movement] : putting_operators())
    add_plain(table, *op, [movement = movement](const NodeView& node) { return build_put(node, movement(node)); });
}

}  // namespace symbind::cpu_backend
