// IdentityAttachKLSparseReg: the moving average of each channel's activity, and the gradient that keeps it low.
#include "symbind/ops/sparse_reg.h"

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

ChannelShape channels_of(const Shape& data) {
  const AxisView view = view_along(data, 1);
  return {view.outer, view.length, view.inner};
}

template <class C>
struct MoveAverages {
  C *average, *kept;  // kept may be null
  double momentum, count;

  __device__ void operator()(int64_t channel, double sum, double) const {
    average[channel] =
        static_cast<C>(momentum * static_cast<double>(average[channel]) + (1 - momentum) * (sum / count));
    if (kept) kept[channel] = average[channel];
  }
};

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const ChannelShape shape = channels_of(node.inputs[0].shape);
  // MXNet's momentum is a float.
  const double momentum = static_cast<double>(static_cast<float>(node.as<IdentityAttachKLSparseReg>().momentum));
  const bool moves = node.is_train && shape.size() > 0;
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    return make_step(node,
                     [=, bytes = node.outputs[0].bytes()](const Args& args) {
                       const cudaStream_t stream = stream_of(args);
                       const T* const x = args.in<T>(0);
                       C *const average = args.state<C>(1), *const kept = args.out<C>(1);
                       if (moves)
                         queue_channel_sums<T>(
                             stream, shape, aligned_for_packs(x), ElementSums<T>{{x}}, args.scratch,
                             MoveAverages<C>{average, kept, momentum, static_cast<double>(shape.per_channel())});
                       else if (kept && shape.channels > 0)
                         cudaMemcpyAsync(kept, average, static_cast<size_t>(shape.channels) * sizeof(C),
                                         cudaMemcpyDeviceToDevice, stream);
                       if (bytes > 0 && args.out<T>(0) != x)
                         cudaMemcpyAsync(args.out<T>(0), x, bytes, cudaMemcpyDeviceToDevice, stream);
                     },
                     {.in_place = {{0, 0}}, .scratch_bytes = moves ? piece_bytes(shape, sizeof(C)) : 0});
  });
}

// dy + penalty · (-target / average + (1 - target) / (1 - average))
template <class T>
struct PenaltyMap {
  static constexpr int rows_at_once = 4;
  using Element = T;
  using OfChannel = compute_type<T>;
  const T* dy;
  T* out;
  const OfChannel* averages;
  double target, penalty;

  __device__ OfChannel at(int64_t channel) const {
    const auto average = static_cast<double>(averages[channel]);
    return static_cast<OfChannel>(penalty * ((1 - target) / (1 - average) - target / average));
  }
  template <int width>
  __device__ Packed<T, width> load(int64_t index) const {
    return load_packed<width>(dy + index);
  }
  template <int width>
  __device__ OfChannel operator()(OfChannel more, const Packed<T, width>& values, int k) const {
    return values[k] + more;
  }
};

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto& p = node.as<IdentityAttachKLSparseRegGrad>();
  const ChannelShape shape = channels_of(node.inputs[0].shape);
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(
        node,
        [shape, target = p.sparseness_target, penalty = p.penalty](const Args& args) {
          if (shape.size() == 0) return;
          const PenaltyMap<T> map{args.in<T>(0), args.out<T>(), args.in<compute_type<T>>(1), target, penalty};
          queue_channel_map(stream_of(args), shape, aligned_for_packs(map.dy) && aligned_for_packs(map.out), map);
        },
        {.in_place = {{0, 0}}});
  });
}

std::string refuse(const NodeView& node) {
  if (node.inputs[0].shape.size() >= int64_t{1} << 32) return "2^32 elements or more";
  return node.inputs[0].layout == Layout::plain ? "" : "wants plain arrays";
}

}  // namespace

void add_sparse_reg(ImplementationTable& table) {
  table.add<IdentityAttachKLSparseReg>({"cuda", refuse, build_forward});
  table.add<IdentityAttachKLSparseRegGrad>({"cuda", refuse, build_backward});
}

}  // namespace symbind::cuda_backend
