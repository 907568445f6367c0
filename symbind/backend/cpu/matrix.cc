// Reshapes hand on their bytes. A transposition moves elements whatever they mean, so it knows only their size: axes
// that stay neighbours are merged, whole rows are copied where the last axis stays last, and elsewhere squares of 32 by
// 32 are turned, which keeps both reads and writes within the cache.
#include "symbind/ops/matrix.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/cpu/convert.h"
#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/transposition.h"

namespace symbind::cpu_backend {
namespace {

struct TransposePlan {
  std::vector<int64_t> extents;  // of the merged axes of the result
  std::vector<int64_t> steps;    // in the input, along each of them
};

TransposePlan plan_transpose(const Shape& data, Tuple axes) {
  if (axes.empty())
    for (int axis = data.rank() - 1; axis >= 0; --axis) axes.push_back(axis);
  const auto strides = data.strides();
  TransposePlan plan;
  for (int64_t given : axes) {
    const int axis = data.axis(given, "[transpose]");
    const int64_t extent = data[axis], step = strides[static_cast<size_t>(axis)];
    if (extent == 1) continue;
    if (!plan.extents.empty() && plan.steps.back() == step * extent) {
      plan.extents.back() *= extent;
      plan.steps.back() = step;
    } else {
      plan.extents.push_back(extent);
      plan.steps.push_back(step);
    }
  }
  return plan;
}

// Calls body(out offset, in offset) for every index of the given axes in [begin, end), counted in row-major order.
template <class Body>
void for_offsets(const std::vector<int64_t>& extents, const std::vector<int64_t>& out_steps,
                 const std::vector<int64_t>& in_steps, int64_t begin, int64_t end, Body body) {
  for (int64_t at = begin; at < end; ++at) {
    int64_t rest = at, out = 0, in = 0;
    for (size_t axis = extents.size(); axis-- > 0;) {
      const int64_t index = rest % extents[axis];
      rest /= extents[axis];
      out += index * out_steps[axis];
      in += index * in_steps[axis];
    }
    body(out, in);
  }
}

// out (rows, columns), each row `out_step` apart, from in[row + column · in_step].
template <class Unit>
void turn(Unit* out, const Unit* in, int64_t rows, int64_t columns, int64_t out_step, int64_t in_step) {
  constexpr int64_t side = 32;
  for (int64_t r = 0; r < rows; r += side)
    for (int64_t c = 0; c < columns; c += side) {
      const int64_t last_row = std::min(rows, r + side), last_column = std::min(columns, c + side);
      for (int64_t i = r; i < last_row; ++i)
        for (int64_t j = c; j < last_column; ++j) out[i * out_step + j] = in[i + j * in_step];
    }
}

template <class Unit>
std::unique_ptr<Kernel> transpose_kernel(TransposePlan plan) {
  const size_t rank = plan.extents.size();
  std::vector<int64_t> out_steps(rank, 1);
  for (size_t axis = rank - 1; axis-- > 0;) out_steps[axis] = out_steps[axis + 1] * plan.extents[axis + 1];
  // The axis of the result along which the input advances by one element; it leaves the outer loop with the last.
  size_t unit = 0;
  while (plan.steps[unit] != 1) ++unit;
  const int64_t columns = plan.extents[rank - 1], column_step = plan.steps[rank - 1];
  const bool copies_rows = unit == rank - 1;
  const int64_t rows = copies_rows ? 1 : plan.extents[unit], row_step = copies_rows ? 0 : out_steps[unit];
  std::vector<int64_t> extents, outs, ins;
  int64_t count = 1;
  for (size_t axis = 0; axis + 1 < rank; ++axis) {
    if (axis == unit) continue;
    extents.push_back(plan.extents[axis]);
    outs.push_back(out_steps[axis]);
    ins.push_back(plan.steps[axis]);
    count *= plan.extents[axis];
  }
  // One large matrix is split along its rows instead.
  const int64_t pieces = copies_rows || count > 1 ? 1 : std::max<int64_t>(1, rows / 64);
  return make_kernel([=](const Args& args) {
    Unit* const out = args.out<Unit>();
    const Unit* const in = args.in<Unit>(0);
    const int64_t grain = std::max<int64_t>(1, element_grain / std::max<int64_t>(1, rows / pieces * columns));
    parallel_for(count * pieces, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t piece = task % pieces, at = task / pieces;
        const int64_t first = rows * piece / pieces, last = rows * (piece + 1) / pieces;
        for_offsets(extents, outs, ins, at, at + 1, [&](int64_t to, int64_t from) {
          if (copies_rows)
            std::memcpy(out + to, in + from, static_cast<size_t>(columns) * sizeof(Unit));
          else
            turn(out + to + first * row_step, in + from + first, last - first, columns, row_step, column_step);
        });
      }
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> build_transposition(const NodeView& node, const Shape& data, const Tuple& axes) {
  auto plan = plan_transpose(data, axes);
  if (plan.extents.size() < 2 || node.outputs[0].shape.size() == 0) return build_copy(node);
  switch (size_of(node.outputs[0].dtype)) {
    case 1:
      return transpose_kernel<uint8_t>(std::move(plan));
    case 2:
      return transpose_kernel<uint16_t>(std::move(plan));
    case 4:
      return transpose_kernel<uint32_t>(std::move(plan));
    default:
      return transpose_kernel<uint64_t>(std::move(plan));
  }
}

namespace {

std::unique_ptr<Kernel> build_cast(const NodeView& node) {
  const DType from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  if (from == to) return build_copy(node);
  return make_kernel([from, to, count = node.outputs[0].shape.size()](const Args& args) {
    convert_array(args.outputs[0], to, args.inputs[0], from, count);
  });
}

}  // namespace

void add_matrix(ImplementationTable& table) {
  add_plain<Flatten>(table, build_copy);
  add_plain<Reshape>(table, build_copy);
  add_plain<ReshapeLike>(table, build_copy);
  add_plain<Transpose>(table, [](const NodeView& node) {
    return build_transposition(node, node.inputs[0].shape, node.as<Transpose>().axes);
  });
  add_plain<Cast>(table, build_cast);
  add_plain<CastLike>(table, build_cast);
}

}  // namespace symbind::cpu_backend
