#include "symbind/backend/cpu/strided.h"

#include <algorithm>

#include "symbind/backend/cpu/convert_array.h"

namespace symbind::cpu_backend {

BroadcastPlan plan_broadcast(const Shape& out, std::span<const Shape> operands) {
  BroadcastPlan plan;
  Steps size{1, 1};
  for (int axis = out.rank() - 1; axis >= 0; --axis) {
    Steps step{};
    for (size_t k = 0; k < operands.size(); ++k) {
      const int own = axis - (out.rank() - operands[k].rank());
      const int64_t extent = own < 0 ? 1 : operands[k][own];
      step[k] = extent == 1 ? 0 : size[k];
      size[k] *= extent;
    }
    if (out[axis] == 1) continue;
    bool merges = !plan.extents.empty();
    for (size_t k = 0; k < operands.size() && merges; ++k)
      merges = step[k] == plan.steps.back()[k] * plan.extents.back();
    if (merges) {
      plan.extents.back() *= out[axis];
    } else {
      plan.extents.push_back(out[axis]);
      plan.steps.push_back(step);
    }
  }
  if (plan.extents.empty()) {
    plan.extents.push_back(1);
    plan.steps.push_back({1, 1});
  }
  for (size_t i = 1; i < plan.extents.size(); ++i) plan.rows *= plan.extents[i];
  return plan;
}

namespace {

// The rows, or a single row, are divided among threads.
void run_parallel(const BroadcastLoop& loop, void* out, const void* const* in, const BroadcastPlan& plan) {
  const int64_t length = plan.extents[0];
  const bool one_row = plan.rows == 1;
  parallel_for(
      one_row ? length : plan.rows, one_row ? element_grain : std::max<int64_t>(1, element_grain / length),
      [&](int64_t begin, int64_t end) {
        const Range some{begin, end};
        loop.run(loop.function, out, in, plan, one_row ? Range{0, 1} : some, one_row ? some : Range{0, length});
      });
}

}  // namespace

std::unique_ptr<Kernel> build_broadcast(const NodeView& node, const std::vector<Shape>& shapes,
                                        const BroadcastLoop& loop) {
  const DType type = node.outputs[0].dtype;
  const int64_t count = node.outputs[0].shape.size();
  if (count == 0) return make_kernel([](const Args&) {});
  const auto plan = plan_broadcast(node.outputs[0].shape, shapes);
  std::vector<int64_t> sizes;
  KernelTraits traits;
  for (const Shape& shape : shapes) {
    if (shape.size() == count) traits.in_place.emplace_back(static_cast<int>(sizes.size()), 0);
    sizes.push_back(shape.size());
  }
  if (type == loop.type)
    return make_kernel([loop, plan](const Args& args) { run_parallel(loop, args.outputs[0], args.inputs, plan); },
                       traits);
  int64_t elements = count;
  for (int64_t size : sizes) elements += size;
  traits.scratch_bytes = static_cast<size_t>(elements) * size_of(loop.type);
  return make_kernel(
      [loop, plan, sizes, type, count](const Args& args) {
        auto* next = static_cast<std::byte*>(args.scratch);
        const auto take = [&](int64_t size) {
          return std::exchange(next, next + static_cast<size_t>(size) * size_of(loop.type));
        };
        void* const out = take(count);
        std::array<const void*, max_arity> in{};
        for (size_t k = 0; k < sizes.size(); ++k) {
          void* const widened = take(sizes[k]);
          convert_array(widened, loop.type, args.inputs[k], type, sizes[k]);
          in[k] = widened;
        }
        run_parallel(loop, out, in.data(), plan);
        convert_array(args.outputs[0], type, out, loop.type, count);
      },
      traits);
}

}  // namespace symbind::cpu_backend
