// The operators that only compute or only read signs; those of BatchNorm are in batch_norm.cu.
#include "symbind/ops/relu_signs.h"

#include "symbind/backend/cuda/relu_signs.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/functions.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

template <class T>
__global__ void relu_gradient(const T* out_grad, SignReader signs, T* data_grad, int64_t count) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step())
    data_grad[i] = store<T>(functions::ReluGrad{}(load(out_grad[i]), SignReader::number<C>(signs.load<1>(i), 0)));
}

std::string refuse(const NodeView& node) {
  if (node.inputs[0].layout != Layout::plain) return "needs plain layouts";
  return is_floating(node.inputs[0].dtype) ? "" : "wants floating numbers";
}

ChannelShape channel_shape(const NodeView& node) {
  const Shape& shape = node.inputs[0].shape;
  const AxisView view = view_along(shape, shape.axis(node.as<ReluSigns>().axis, node.where()));
  return {view.outer, view.length, view.inner};
}

std::unique_ptr<Kernel> build_signs(const NodeView& node) {
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [shape = channel_shape(node)](const Args& args) {
      queue_signs(stream_of(args), shape, args.in<T>(0), args.out<uint8_t>());
    });
  });
}

std::unique_ptr<Kernel> build_grad(const NodeView& node) {
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [shape = channel_shape(node)](const Args& args) {
                       const int64_t count = shape.size();
                       if (count == 0) return;
                       relu_gradient<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
                           args.in<T>(0), SignReader{args.in<uint8_t>(1), shape}, args.out<T>(), count);
                     },
                     {.in_place = {{0, 0}}});
  });
}

}  // namespace

void add_relu_signs(ImplementationTable& table) {
  table.add<ReluSigns>({"cuda", refuse, build_signs});
  table.add<ReluSignsGrad>({"cuda", refuse, build_grad});
}

}  // namespace symbind::cuda_backend
