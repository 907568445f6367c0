// Assignment to a slice of an array; the rest does not change. Reading slices is in backend/movements.h.
#include "symbind/ops/slice.h"

#include <cstring>

#include "symbind/backend/convert.h"
#include "symbind/backend/cuda/move.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Calls write(stream, movement, bytes of an element, args) after output 0 is a copy of input 0.
template <class P, class Write>
std::unique_ptr<Kernel> build_assign(const NodeView& node, Write write) {
  const Tensor& whole = node.outputs[0];
  return make_step(node,
                   [movement = merged(assigned_part<P>(node)), bytes = whole.bytes(), element = size_of(whole.dtype),
                    write](const Args& args) {
                     if (bytes == 0) return;
                     const cudaStream_t stream = stream_of(args);
                     if (args.outputs[0] != args.inputs[0])
                       cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream);
                     write(stream, movement, element, args);
                   },
                   {.in_place = {{0, 0}}});
}

std::unique_ptr<Kernel> build_slice_assign(const NodeView& node) {
  return build_assign<SliceAssign>(node,
                                   [](cudaStream_t stream, const Movement& movement, size_t element, const Args& args) {
                                     queue_put(stream, movement, element, args.outputs[0], args.inputs[1]);
                                   });
}

std::unique_ptr<Kernel> build_slice_assign_scalar(const NodeView& node) {
  uint64_t bits = 0;
  visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T value = convert<T>(node.as<SliceAssignScalar>().scalar);
    std::memcpy(&bits, &value, sizeof(T));
  });
  return build_assign<SliceAssignScalar>(
      node, [bits](cudaStream_t stream, const Movement& movement, size_t element, const Args& args) {
        queue_fill_elements(stream, movement, element, args.outputs[0], bits);
      });
}

template <class P>
std::string refuse(const NodeView& node) {
  return refuse_movement(node, assigned_part<P>(node));
}

}  // namespace

void add_slice(ImplementationTable& table) {
  table.add<SliceAssign>({"cuda", refuse<SliceAssign>, build_slice_assign});
  table.add<SliceAssignScalar>({"cuda", refuse<SliceAssignScalar>, build_slice_assign_scalar});
}

}  // namespace symbind::cuda_backend
