#include "symbind/backend/cpu/move.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {
namespace {

// Axes of extent 1 are dropped, and neighbours along which the input goes on evenly merged.
Movement merged(const Movement& given) {
  Movement made{{}, {}, given.start};
  for (size_t axis = 0; axis < given.extents.size(); ++axis) {
    const int64_t extent = given.extents[axis], step = given.steps[axis];
    if (extent == 1) continue;
    if (!made.extents.empty() && made.steps.back() == step * extent) {
      made.extents.back() *= extent;
      made.steps.back() = step;
    } else {
      made.extents.push_back(extent);
      made.steps.push_back(step);
    }
  }
  if (made.extents.empty()) {
    made.extents.push_back(1);
    made.steps.push_back(1);
  }
  return made;
}

template <class Unit>
std::unique_ptr<Kernel> kernel_of(const Movement& movement) {
  const int64_t length = movement.extents.back(), step = movement.steps.back();
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < movement.extents.size(); ++axis) rows *= movement.extents[axis];
  return make_kernel([=](const Args& args) {
    const Unit* const in = args.in<Unit>(0);
    Unit* const out = args.out<Unit>();
    parallel_for(rows, std::max<int64_t>(1, element_grain / length), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t at = movement.start, rest = row;
        for (size_t axis = movement.extents.size() - 1; axis-- > 0; rest /= movement.extents[axis])
          at += rest % movement.extents[axis] * movement.steps[axis];
        Unit* const to = out + row * length;
        if (step == 1) {
          std::memcpy(to, in + at, static_cast<size_t>(length) * sizeof(Unit));
        } else if (step == 0) {
          std::fill_n(to, length, in[at]);
        } else {
          for (int64_t i = 0; i < length; ++i) to[i] = in[at + i * step];
        }
      }
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> build_movement(const NodeView& node, Movement movement) {
  if (node.outputs[0].shape.size() == 0) return make_kernel([](const Args&) {});
  movement = merged(movement);
  switch (size_of(node.outputs[0].dtype)) {
    case 1:
      return kernel_of<uint8_t>(movement);
    case 2:
      return kernel_of<uint16_t>(movement);
    case 4:
      return kernel_of<uint32_t>(movement);
    default:
      return kernel_of<uint64_t>(movement);
  }
}

}  // namespace symbind::cpu_backend
