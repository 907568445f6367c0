// Updates beyond an elementwise rule of backend/update_rules.h: one rate for each row, and LAMB's phases. Weights may
// be updated in place.
#include "symbind/ops/adaptive_optimizer.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/rows.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/update_rules.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// ---- A history for each row -----------------------------------------------------------------------------------------

// The history accumulates the mean of the row's squared gradients.
template <class T>
struct GroupAdagradRows {
  using C = compute_type<T>;
  const T *weight, *grad;
  T *history, *out;
  int64_t columns;
  update_rules::Scaled<C> scaled;
  C lr, epsilon;

  template <class Team, int width>
  __device__ void operator()(int64_t row, int64_t start) const {
    C squares = 0;
    for (int64_t k = Team::lane() * width; k < columns; k += Team::size() * width) {
      const auto pack = read_row<width>(grad + start, k, 1);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const C g = scaled(load(pack.element[i]));
        squares += g * g;
      }
    }
    squares = Team::template combined<Add>(squares);
    const C next = load(history[row]) + (columns > 0 ? squares / static_cast<C>(columns) : C(0));
    Team::sync();  // all threads have read the history
    if (Team::lane() == 0) history[row] = store<T>(next);
    const C divisor = libm::sqrt(next + epsilon);
    for (int64_t k = Team::lane() * width; k < columns; k += Team::size() * width) {
      auto of_weight = read_row<width>(weight + start, k, 1);
      const auto of_grad = read_row<width>(grad + start, k, 1);
#pragma unroll
      for (int i = 0; i < width; ++i)
        of_weight.element[i] = store<T>(load(of_weight.element[i]) - lr * (scaled(load(of_grad.element[i])) / divisor));
      write_row<width>(out + start, k, 1, of_weight);
    }
  }
};

std::unique_ptr<Kernel> build_group_adagrad(const NodeView& node) {
  const auto& p = node.as<GroupAdagradUpdate>();
  const AxisView rows{node.inputs[0].shape[0], node.inputs[0].shape[1], 1};
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    const update_rules::Scaled<C> scaled(p.rescale_grad, p.clip_gradient);
    return make_step(
        node,
        [rows, scaled, lr = static_cast<C>(p.lr), epsilon = static_cast<C>(p.epsilon)](const Args& args) {
          const GroupAdagradRows<T> body{
              args.in<T>(0), args.in<T>(1), args.state<T>(2), args.out<T>(), rows.length, scaled, lr, epsilon};
          const bool aligned =
              aligned_for_packs(body.weight) && aligned_for_packs(body.grad) && aligned_for_packs(body.out);
          queue_rows<widest<T>>(stream_of(args), rows, aligned, body);
        },
        {.in_place = {{0, 0}}});
  });
}

// ---- LAMB -----------------------------------------------------------------------------------------------------------

// The direction, in float32 where the weight has a copy in it.
template <class T>
__global__ void find_direction(const float* weight, const T* grad, float* mean, float* var, float* out, int64_t count,
                               update_rules::LambDirection<float> rule) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    float own_mean = mean[i], own_var = var[i];
    out[i] = rule(weight[i], static_cast<float>(load(grad[i])), own_mean, own_var);
    mean[i] = own_mean;
    var[i] = own_var;
  }
}

std::unique_ptr<Kernel> build_mp_phase1(const NodeView& node) {
  return visit_floating(node.inputs[1].dtype, [&]<class T>(std::type_identity<T>) {
    const update_rules::LambDirection<float> rule(node.as<MpLambUpdatePhase1>());
    return make_step(node, [rule, count = node.outputs[0].shape.size()](const Args& args) {
      if (count == 0) return;
      find_direction<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
          args.in<float>(4), args.in<T>(1), args.state<float>(2), args.state<float>(3), args.out<float>(), count, rule);
    });
  });
}

// weight - rate · direction, where the weight is `W`, written if it is the master, and the result is rounded to `T`.
template <bool master, class T, class D, class W>
__global__ void step_along(W* weight, const D* direction, const D* weight_norm, const D* direction_norm, T* out,
                           int64_t count, update_rules::LambRate<compute_type<W>> rate_of) {
  using C = compute_type<W>;
  const C rate = rate_of(static_cast<C>(load(*weight_norm)), static_cast<C>(load(*direction_norm)));
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const C next = load(weight[i]) - rate * static_cast<C>(load(direction[i]));
    if constexpr (master) weight[i] = store<W>(next);
    out[i] = store<T>(static_cast<compute_type<T>>(next));
  }
}

template <bool master, class T, class D, class W>
std::unique_ptr<Kernel> build_phase2(const NodeView& node, const LambUpdatePhase2& p,
                                     std::vector<std::pair<int, int>> in_place) {
  const update_rules::LambRate<compute_type<W>> rate(p);
  return make_step(node,
                   [rate, count = node.outputs[0].shape.size()](const Args& args) {
                     if (count == 0) return;
                     step_along<master><<<blocks_for(count), block_size, 0, stream_of(args)>>>(
                         args.state<W>(master ? 4 : 0), args.in<D>(1), args.in<D>(2), args.in<D>(3), args.out<T>(),
                         count, rate);
                   },
                   {.in_place = std::move(in_place)});
}

std::unique_ptr<Kernel> build_plain_phase2(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build_phase2<false, T, T, T>(node, node.as<LambUpdatePhase2>(), {{0, 0}, {1, 0}});
  });
}
std::unique_ptr<Kernel> build_mp_phase2(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build_phase2<true, T, float, float>(node, node.as<MpLambUpdatePhase2>(), {{0, 0}});
  });
}

// ---- All of them ----------------------------------------------------------------------------------------------------

// All arrays of the output's type; or weight and gradient alone, and float32 the others.
std::string refuse_plain(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  if (!is_floating(dtype)) return "wants floating numbers";
  for (const Tensor& input : node.inputs)
    if (input.dtype != dtype) return "arrays of different types";
  return one_layout(node) ? "" : "arrays of different layouts";
}
std::string refuse_with_master(const NodeView& node, size_t narrow) {
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (i < narrow ? !is_floating(node.inputs[i].dtype) : node.inputs[i].dtype != DType::float32)
      return "arrays of unexpected types";
  return one_layout(node) ? "" : "arrays of different layouts";
}

}  // namespace

void add_adaptive_optimizer(ImplementationTable& table) {
  table.add<GroupAdagradUpdate>({"cuda", refuse_plain, build_group_adagrad});
  table.add<LambUpdatePhase2>({"cuda", refuse_plain, build_plain_phase2});
  table.add<MpLambUpdatePhase1>(
      {"cuda", [](const NodeView& node) { return refuse_with_master(node, 2); }, build_mp_phase1});
  table.add<MpLambUpdatePhase2>(
      {"cuda", [](const NodeView& node) { return refuse_with_master(node, 1); }, build_mp_phase2});
}

}  // namespace symbind::cuda_backend
