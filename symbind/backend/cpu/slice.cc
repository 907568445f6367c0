// Assignment to a slice of an array; the rest does not change. Reading slices is in movements.cc.
#include "symbind/ops/slice.h"

#include <cstring>

#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/move.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Calls write(mover, args) after output 0 is a copy of input 0.
template <class P, class Write>
std::unique_ptr<Kernel> build_assign(const NodeView& node, Write write) {
  const Tensor& whole = node.outputs[0];
  if (whole.shape.size() == 0) return make_kernel([](const Args&) {});
  return make_kernel(
      [mover = Mover(assigned_part<P>(node), whole.dtype), bytes = whole.bytes(), write](const Args& args) {
        if (args.outputs[0] != args.inputs[0]) std::memcpy(args.outputs[0], args.inputs[0], bytes);
        write(mover, args);
      },
      {.in_place = {{0, 0}}});
}

std::unique_ptr<Kernel> build_slice_assign(const NodeView& node) {
  return build_assign<SliceAssign>(
      node, [](const Mover& mover, const Args& args) { mover.put(args.outputs[0], args.inputs[1]); });
}

std::unique_ptr<Kernel> build_slice_assign_scalar(const NodeView& node) {
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return build_assign<SliceAssignScalar>(
        node, [value = convert<T>(node.as<SliceAssignScalar>().scalar)](const Mover& mover, const Args& args) {
          mover.fill(args.outputs[0], &value);
        });
  });
}

}  // namespace

void add_slice(ImplementationTable& table) {
  add_plain<SliceAssign>(table, build_slice_assign);
  add_plain<SliceAssignScalar>(table, build_slice_assign_scalar);
}

}  // namespace symbind::cpu_backend
