// Operators that only move elements, by their movements (backend/movements.h): a thread per element, or per 16 bytes
// where rows allow it. A transposition of matrices goes through shared memory instead.
#include "symbind/backend/cuda/move.h"

#include <optional>

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/transpose.h"
#include "symbind/backend/cuda/units.cuh"
#include "symbind/backend/movements.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// The offsets of the elements of a movement, in 32-bit numbers, whose division is several times faster.
struct Offsets {
  static constexpr int most = Shape::max_rank;
  int rank = 0;
  uint32_t count = 1;
  uint32_t extent[most] = {};
  int32_t step[most] = {};
  int32_t start = 0;

  // Counts `unit` elements as one; requires divides(movement, unit).
  Offsets(const Movement& movement, int64_t unit)
      : rank(static_cast<int>(movement.extents.size())), start(static_cast<int32_t>(movement.start / unit)) {
    for (int axis = 0; axis < rank; ++axis) {
      const auto i = static_cast<size_t>(axis);
      const bool is_row = axis == rank - 1;
      extent[axis] = static_cast<uint32_t>(is_row ? movement.extents[i] / unit : movement.extents[i]);
      step[axis] = static_cast<int32_t>(is_row ? movement.steps[i] : movement.steps[i] / unit);
      count *= extent[axis];
    }
  }

  static bool divides(const Movement& movement, int64_t unit) {
    const size_t last = movement.extents.size() - 1;
    if (unit == 1) return true;
    if (movement.steps[last] != 1 || movement.extents[last] % unit != 0 || movement.start % unit != 0) return false;
    for (size_t axis = 0; axis < last; ++axis)
      if (movement.steps[axis] % unit != 0) return false;
    return true;
  }

  __device__ int32_t of(uint32_t index) const {
    int32_t offset = start;
    for (int axis = rank - 1; axis > 0; --axis) {
      const uint32_t rest = index / extent[axis];
      offset += static_cast<int32_t>(index - rest * extent[axis]) * step[axis];
      index = rest;
    }
    return offset + static_cast<int32_t>(index) * step[0];
  }
};

template <class Unit>
__global__ void take(const Unit* from, Unit* dense, Offsets offsets) {
  for (int64_t i = first_element(); i < offsets.count; i += element_step())
    dense[i] = from[offsets.of(static_cast<uint32_t>(i))];
}

template <class Unit>
__global__ void fill_elements(Unit* to, Unit value, Offsets offsets) {
  for (int64_t i = first_element(); i < offsets.count; i += element_step())
    to[offsets.of(static_cast<uint32_t>(i))] = value;
}

template <class Unit>
__global__ void put(Unit* to, const Unit* dense, Offsets offsets) {
  for (int64_t i = first_element(); i < offsets.count; i += element_step())
    to[offsets.of(static_cast<uint32_t>(i))] = dense[i];
}

// Calls queue(a unit, offsets counted in it) with the largest unit that the movement and both addresses allow.
template <class Queue>
void queue_units(const Movement& movement, size_t element, const void* a, const void* b, const Queue& queue) {
  const int64_t wide = static_cast<int64_t>(widest_unit / element);
  const bool is_wide = aligned_for_packs(a) && aligned_for_packs(b) && Offsets::divides(movement, wide);
  const Offsets offsets(movement, is_wide ? wide : 1);
  visit_wide_unit(is_wide ? widest_unit : element, [&]<class Unit>(Unit unit) { queue(unit, offsets); });
}

// The matrices that a movement transposes, if it is the transposition of a batch of whole matrices.
std::optional<Matrices> matrices_of(const Movement& movement) {
  const auto& [extents, steps, start] = movement;
  const size_t rank = extents.size();
  if (start != 0 || rank < 2 || rank > 3) return std::nullopt;
  const int64_t columns = extents[rank - 2], rows = extents[rank - 1];
  if (steps[rank - 2] != 1 || steps[rank - 1] != columns || (rank == 3 && steps[0] != rows * columns))
    return std::nullopt;
  return Matrices{rank == 3 ? extents[0] : 1, rows, columns};
}

}  // namespace

std::unique_ptr<Kernel> build_take(const NodeView& node, const Movement& given) {
  const int64_t count = node.outputs[0].shape.size();
  const size_t element = size_of(node.outputs[0].dtype);
  const Movement movement = merged(given);
  if (const auto matrices = matrices_of(movement))
    return make_step(node, [element, size = *matrices](const Args& args) {
      queue_transpose(stream_of(args), args.inputs[0], args.outputs[0], element, size);
    });
  return make_step(node, [movement, count, element](const Args& args) {
    if (count == 0) return;
    queue_units(movement, element, args.inputs[0], args.outputs[0], [&]<class Unit>(Unit, const Offsets& offsets) {
      take<<<blocks_for(offsets.count), block_size, 0, stream_of(args)>>>(args.in<Unit>(0), args.out<Unit>(), offsets);
    });
  });
}

void queue_put(cudaStream_t stream, const Movement& movement, size_t element, void* to, const void* dense) {
  queue_units(movement, element, dense, to, [&]<class Unit>(Unit, const Offsets& offsets) {
    if (offsets.count > 0)
      put<<<blocks_for(offsets.count), block_size, 0, stream>>>(static_cast<Unit*>(to), static_cast<const Unit*>(dense),
                                                                offsets);
  });
}

void queue_fill_elements(cudaStream_t stream, const Movement& movement, size_t element, void* to, uint64_t bits) {
  const Offsets offsets(movement, 1);
  if (offsets.count == 0) return;
  visit_unit(element, [&]<class Unit>(Unit) {
    fill_elements<<<blocks_for(offsets.count), block_size, 0, stream>>>(static_cast<Unit*>(to), static_cast<Unit>(bits),
                                                                        offsets);
  });
}

std::unique_ptr<Kernel> build_put(const NodeView& node, const Movement& given) {
  const size_t element = size_of(node.outputs[0].dtype), bytes = node.outputs[0].bytes();
  return make_step(node, [movement = merged(given), element, bytes](const Args& args) {
    if (bytes == 0) return;
    cudaMemsetAsync(args.outputs[0], 0, bytes, stream_of(args));
    queue_put(stream_of(args), movement, element, args.outputs[0], args.inputs[0]);
  });
}

std::string refuse_movement(const NodeView& node, const Movement& movement) {
  for (const Tensor& tensor : {node.inputs[0], node.outputs[0]}) {
    if (tensor.layout != Layout::plain) return "wants plain arrays";
    if (tensor.shape.size() >= int64_t{1} << 31) return "2^31 elements or more";
  }
  return merged(movement).extents.size() > Offsets::most ? "too many axes" : "";
}

void add_move(ImplementationTable& table) {
  const auto add = [&](const MovingOperator& moving, auto build) {
    const auto movement = moving.movement;
    table.add(*moving.op, {"cuda", [=](const NodeView& node) { return refuse_movement(node, movement(node)); },
                           [=](const NodeView& node) { return build(node, movement(node)); }});
  };
  for (const auto& moving : taking_operators()) add(moving, build_take);
  for (const auto& moving : putting_operators()) add(moving, build_put);
}

}  // namespace symbind::cuda_backend
