// LeakyReLU: functions of elements, slopes of channels that are learned (prelu) and slopes that are drawn (rrelu).
#include "symbind/ops/leaky_relu.h"

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/elementwise.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/core/axis_view.h"
#include "symbind/core/random.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// ---- prelu ----------------------------------------------------------------------------------------------------------

ChannelShape channels_of(const Shape& data) {
  const AxisView view = view_along(data, data.rank() > 1 ? 1 : 0);
  return {view.outer, view.length, view.inner};
}

// One slope for all channels, or one for each.
template <class T>
struct Slopes {
  const T* gamma;
  bool shared;
  __device__ compute_type<T> of(int64_t channel) const { return load(gamma[shared ? 0 : channel]); }
};

template <class T>
struct PreluMap {
  static constexpr int rows_at_once = 4;
  using Element = T;
  using OfChannel = compute_type<T>;
  const T* x;
  T* out;
  Slopes<T> slopes;

  __device__ OfChannel at(int64_t channel) const { return slopes.of(channel); }
  template <int width>
  __device__ Packed<T, width> load(int64_t index) const {
    return load_packed<width>(x + index);
  }
  template <int width>
  __device__ OfChannel operator()(OfChannel slope, const Packed<T, width>& values, int k) const {
    return functions::Leaky{}(values[k], slope);
  }
};

template <class T, int width>
struct PreluPacks {
  Packed<T, width> dy, x;
};
template <class T, int width>
__device__ PreluPacks<T, width> load_both(const T* dy, const T* x, int64_t index) {
  return {load_packed<width>(dy + index), load_packed<width>(x + index)};
}

template <class T>
struct PreluGradientMap {
  static constexpr int rows_at_once = 4;
  using Element = T;
  using OfChannel = compute_type<T>;
  const T *dy, *x;
  T* out;
  Slopes<T> slopes;

  __device__ OfChannel at(int64_t channel) const { return slopes.of(channel); }
  template <int width>
  __device__ PreluPacks<T, width> load(int64_t index) const {
    return load_both<T, width>(dy, x, index);
  }
  template <int width>
  __device__ OfChannel operator()(OfChannel slope, const PreluPacks<T, width>& values, int k) const {
    return functions::LeakyGrad{}(values.dy[k], values.x[k], slope);
  }
};

// The terms of a slope's gradient: dy·x where x is not above zero.
template <class T>
struct SlopeTerms {
  using Compute = compute_type<T>;
  struct OfChannel {};
  const T *dy, *x;

  __device__ OfChannel at(int64_t) const { return {}; }
  template <int width>
  __device__ PreluPacks<T, width> load(int64_t index) const {
    return load_both<T, width>(dy, x, index);
  }
  template <int width>
  __device__ PairOf<Compute> operator()(OfChannel, const PreluPacks<T, width>& values, int k) const {
    const Compute value = values.x[k];
    return {value > Compute(0) ? Compute(0) : values.dy[k] * value, Compute(0)};
  }
};
template <class T>
struct FinishSlopes {
  T* gamma_grad;
  __device__ void operator()(int64_t channel, double sum, double) const {
    gamma_grad[channel] = convert_element<T>(sum);
  }
};

std::unique_ptr<Kernel> build_prelu(const NodeView& node) {
  const ChannelShape shape = channels_of(node.inputs[0].shape);
  const bool shared = node.inputs[1].shape.size() == 1;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [shape, shared](const Args& args) {
                       if (shape.size() == 0) return;
                       const PreluMap<T> map{args.in<T>(0), args.out<T>(), {args.in<T>(1), shared}};
                       const bool wide = aligned_for_packs(map.x) && aligned_for_packs(map.out);
                       queue_channel_map(stream_of(args), shape, wide, map);
                     },
                     {.in_place = {{0, 0}}});
  });
}

// The sums come first: the gradient of the data may overwrite what they read.
std::unique_ptr<Kernel> build_prelu_gradient(const NodeView& node) {
  const ChannelShape shape = channels_of(node.inputs[1].shape);
  const bool shared = node.inputs[2].shape.size() == 1;
  const ChannelShape summed = shared ? ChannelShape{1, 1, shape.size()} : shape;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    return make_step(
        node,
        [=, slopes = node.inputs[2].shape.size()](const Args& args) {
          const cudaStream_t stream = stream_of(args);
          const T *const dy = args.in<T>(0), *const x = args.in<T>(1);
          T *const dx = args.out<T>(0), *const gamma_grad = args.out<T>(1);
          if (shape.size() == 0) {
            if (gamma_grad && slopes > 0) queue_fill(stream, gamma_grad, dtype_of<T>(), slopes, 0);
            return;
          }
          const bool wide = aligned_for_packs(dy) && aligned_for_packs(x);
          if (gamma_grad)
            queue_channel_sums<T>(stream, summed, wide, SlopeTerms<T>{dy, x}, args.scratch,
                                  FinishSlopes<T>{gamma_grad});
          if (dx)
            queue_channel_map(stream, shape, wide && aligned_for_packs(dx),
                              PreluGradientMap<T>{dy, x, dx, {args.in<T>(2), shared}});
        },
        {.in_place = {{0, 0}, {1, 0}}, .scratch_bytes = shape.size() == 0 ? 0 : piece_bytes(summed, sizeof(C))});
  });
}

// ---- rrelu ----------------------------------------------------------------------------------------------------------

// Each thread draws a block of four slopes; in inference all are the mean of the bounds.
template <class T>
__global__ void draw_slopes(const T* x, T* y, T* mask, int64_t count, const RandomCursor* cursor, uint64_t slot,
                            compute_type<T> low, compute_type<T> width) {
  using C = compute_type<T>;
  const uint64_t key = cursor ? cursor->key : 0, draw = cursor ? cursor->draw + slot : 0;
  for (int64_t block = first_element(); block * 4 < count; block += element_step()) {
    const PhiloxBlock random = cursor ? philox(key, draw, static_cast<uint64_t>(block)) : PhiloxBlock{};
    for (int word = 0; word < 4 && block * 4 + word < count; ++word) {
      const int64_t i = block * 4 + word;
      const T slope = store<T>(low + width * (cursor ? static_cast<C>(unit_float(random.words[word])) : C(0.5)));
      if (mask) mask[i] = slope;
      const C value = load(x[i]);
      y[i] = value > C(0) ? x[i] : store<T>(value * load(slope));
    }
  }
}

std::unique_ptr<Kernel> build_rrelu(const NodeView& node) {
  const auto& p = node.as<LeakyReLU>();
  const int64_t count = node.outputs[0].shape.size();
  const auto slot = static_cast<uint64_t>(std::max(node.random_slot, 0));
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    const C low = static_cast<C>(p.lower_bound), width = static_cast<C>(p.upper_bound - p.lower_bound);
    return make_step(node, [=, is_train = node.is_train](const Args& args) {
      if (count == 0) return;
      draw_slopes<<<blocks_for((count + 3) / 4), block_size, 0, stream_of(args)>>>(
          args.in<T>(0), args.out<T>(0), args.out<T>(1), count, is_train ? args.random : nullptr, slot, low, width);
    });
  });
}

// ---- All of them ----------------------------------------------------------------------------------------------------

std::string refuse(const NodeView& node, const std::string& own, const std::string& wanted) {
  if (own != wanted) return "another function of the operator";
  if (!is_floating(node.outputs[0].dtype)) return "wants floating numbers";
  if (node.outputs[0].shape.size() >= int64_t{1} << 32) return "2^32 elements or more";
  for (const Tensor& input : node.inputs) {
    if (input.dtype != node.outputs[0].dtype) return "arrays of different types";
    if (input.layout != Layout::plain) return "wants plain arrays";
  }
  return "";
}

template <class P, class Build>
void add(ImplementationTable& table, const char* act_type, Build build) {
  table.add<P>(
      {"cuda", [act_type](const NodeView& node) { return refuse(node, node.as<P>().act_type, act_type); }, build});
}

}  // namespace

void add_leaky_relu(ImplementationTable& table) {
  add_maps<true>(table, functions::LeakyTable{});
  add_maps<true>(table, functions::LeakyGradTable{});
  add<LeakyReLU>(table, "prelu", build_prelu);
  add<LeakyReLUGrad>(table, "prelu", build_prelu_gradient);
  add<LeakyReLU>(table, "rrelu", build_rrelu);
}

}  // namespace symbind::cuda_backend
