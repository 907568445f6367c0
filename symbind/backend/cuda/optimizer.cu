// Steps of stochastic gradient descent. The new weight is usually written over the old one.
#include "symbind/ops/optimizer.h"

#include "symbind/backend/cuda/families.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/sgd.h"

namespace symbind::cuda_backend {
namespace {

std::string refuse(const NodeView& node) {
  if (!is_floating(node.outputs[0].dtype)) return "wants floating numbers";
  for (const auto& input : node.inputs)
    if (input.dtype != node.outputs[0].dtype) return "arrays of different types";
  return one_layout(node) ? "" : "arrays of different layouts";
}

template <class T>
__global__ void step_plain(const T* weight, const T* gradient, T* out, int64_t count, sgd::Step<compute_type<T>> step) {
  for (int64_t i = first_element(); i < count; i += element_step())
    out[i] = store<T>(step(load(weight[i]), load(gradient[i])));
}

template <class T>
__global__ void step_with_momentum(const T* weight, const T* gradient, T* momentum, T* out, int64_t count,
                                   sgd::MomentumStep<compute_type<T>> step) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const auto old = load(weight[i]);
    const auto next = step(load(momentum[i]), old, load(gradient[i]));
    momentum[i] = store<T>(next);
    out[i] = store<T>(old + next);
  }
}

std::unique_ptr<Kernel> build_sgd(const NodeView& node) {
  const auto& p = node.as<SgdUpdate>();
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    const sgd::Step<compute_type<T>> step(p.lr, p.wd, p.rescale_grad, p.clip_gradient);
    return make_step(node,
                     [step, count = node.outputs[0].shape.size()](const Args& args) {
                       if (count == 0) return;
                       step_plain<<<blocks_for(count), block_size, 0, stream_of(args)>>>(args.in<T>(0), args.in<T>(1),
                                                                                         args.out<T>(), count, step);
                     },
                     {.in_place = {{0, 0}, {1, 0}}});
  });
}

std::unique_ptr<Kernel> build_sgd_momentum(const NodeView& node) {
  const auto& p = node.as<SgdMomUpdate>();
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    const sgd::MomentumStep<compute_type<T>> step(p.lr, p.momentum, p.wd, p.rescale_grad, p.clip_gradient);
    return make_step(node,
                     [step, count = node.outputs[0].shape.size()](const Args& args) {
                       if (count == 0) return;
                       step_with_momentum<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
                           args.in<T>(0), args.in<T>(1), args.state<T>(2), args.out<T>(), count, step);
                     },
                     {.in_place = {{0, 0}, {1, 0}}});
  });
}

}  // namespace

void add_optimizer(ImplementationTable& table) {
  table.add<SgdUpdate>({"cuda", refuse, build_sgd});
  table.add<SgdMomUpdate>({"cuda", refuse, build_sgd_momentum});
}

}  // namespace symbind::cuda_backend
