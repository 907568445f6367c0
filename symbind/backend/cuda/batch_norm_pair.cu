// The sum of two BatchNorms with ReLU, and its gradient. The statistics and the sums of each norm are computed as of
// one alone (batch_norm.cuh); one map over the elements then reads the data of both, so that neither norm is stored,
// and the gradient that arrives is read once for both.
#include "symbind/ops/batch_norm_pair.h"

#include "symbind/backend/cuda/batch_norm.cuh"
#include "symbind/backend/cuda/relu_signs.cuh"
#include "symbind/backend/cuda/scratch_layout.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/ops/batch_norm_recompute.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// ---- Maps -----------------------------------------------------------------------------------------------------------

// The numbers of both norms.
template <int width, class Source, class OfChannel>
__device__ void read_both(const Source& source, const Source& other_source, int64_t channel, OfChannel (&to)[width]) {
  decltype(OfChannel::first) first[width], second[width];
  source.template read<width>(channel, first);
  other_source.template read<width>(channel, second);
#pragma unroll
  for (int k = 0; k < width; ++k) to[k] = {first[k], second[k]};
}

template <class T, class Source>
struct NormalizePairRelu {
  static constexpr int rows_at_once = 2, blocks_at_once = sizeof(T) == 2 ? 2 : 4;
  using Element = T;
  using Compute = compute_type<T>;
  struct OfChannel {
    Affine<Compute> first, second;
  };
  template <int width>
  struct Packs {
    Packed<T, width> x, other;
  };
  const T *x, *other;
  T* out;
  Source affines, other_affines;

  template <int width>
  __device__ void read(int64_t channel, OfChannel (&to)[width]) const {
    read_both(affines, other_affines, channel, to);
  }
  template <int width>
  __device__ Packs<width> load(int64_t index) const {
    return {load_packed<width>(x + index), load_packed<width>(other + index)};
  }
  template <class AnyPacks>
  __device__ Compute operator()(const OfChannel& maps, const AnyPacks& packs, int k) const {
    const Compute value = maps.first(packs.x[k]) + maps.second(packs.other[k]);
    return value < Compute(0) ? Compute(0) : value;
  }
};

// The gradients of the data of both.
template <class T>
struct PairDataGradient {
  static constexpr int pack_width = 4, rows_at_once = sizeof(T) == 2 ? 4 : 2, blocks_at_once = 2;
  using Element = T;
  using Compute = compute_type<T>;
  struct OfChannel {
    GradientOfChannel<Compute> first, second;
  };
  template <int width>
  struct Packs {
    Packed<T, width> dy, x, other;
  };
  const T *dy, *x, *other_x;
  T *out, *other_out;
  GradientsOfChannels<Compute> gradients, other_gradients;

  template <int width>
  __device__ void read(int64_t channel, OfChannel (&to)[width]) const {
    read_both(gradients, other_gradients, channel, to);
  }
  template <int width>
  __device__ Packs<width> load(int64_t index) const {
    return {load_packed<width>(dy + index), load_packed<width>(x + index), load_packed<width>(other_x + index)};
  }
  template <class AnyPacks>
  __device__ Compute operator()(const OfChannel& c, const AnyPacks& packs, int k) const {
    return c.first(packs.dy[k], packs.x[k] - c.first.affine.mean);
  }
  template <class AnyPacks>
  __device__ Compute other(const OfChannel& c, const AnyPacks& packs, int k) const {
    return c.second(packs.dy[k], packs.other[k] - c.second.affine.mean);
  }
};

// ---- Forward --------------------------------------------------------------------------------------------------------

template <class T>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  using C = compute_type<T>;
  const auto p = node.as<BatchNormPair>();
  const ChannelShape shape = channel_shape(p, node.inputs[0]);
  const bool own = uses_batch_statistics(p, node.is_train);
  const size_t other = p.given_sums ? 5 : 3, states = other + (p.other_given_sums ? 5 : 3);
  ScratchLayout scratch;
  const size_t affines_at = scratch.add<C>(Affines<C>::arrays * shape.channels);
  const size_t other_at = scratch.add<C>(Affines<C>::arrays * shape.channels);
  const size_t pieces_at = scratch.add_bytes(own ? piece_bytes(shape, sizeof(C)) : 0);
  return make_step(
      node,
      [=](const Args& args) {
        T* const y = args.out<T>(0);
        const bool wide = all_aligned_for_packs({args.inputs[0], args.inputs[other], y});
        const cudaStream_t stream = stream_of(args);
        const auto statistics = [&](size_t inputs, size_t state, size_t output, bool given_sums, size_t at) {
          const Affines<C> affines{scratch_at<C>(args.scratch, at), shape.channels};
          queue_statistics<T>(
              stream, shape, wide, p, own,
              {args.in<T>(inputs), args.in<C>(inputs + 1), args.in<C>(inputs + 2), args.state<C>(state),
               args.state<C>(state + 1), args.out<C>(output), args.out<C>(output + 1),
               given_sums ? args.in<C>(inputs + 3) : nullptr, given_sums ? args.in<C>(inputs + 4) : nullptr},
              affines, scratch_at<std::byte>(args.scratch, pieces_at));
          return affines;
        };
        // The data of the shortcut is usually the one that was computed last.
        const Affines<C> other_affines = statistics(other, states + 2, 3, p.other_given_sums, other_at);
        const Affines<C> affines = statistics(0, states, 1, p.given_sums, affines_at);
        queue_map_with_signs(
            stream, shape, wide,
            NormalizePairRelu<T, Affines<C>>{args.in<T>(0), args.in<T>(other), y, affines, other_affines},
            p.signs ? args.out<uint8_t>(5) : nullptr);
      },
      {.in_place = {{0, 0}, {static_cast<int>(other), 0}}, .scratch_bytes = scratch.total()});
}

template <class T>
std::unique_ptr<Kernel> build_recompute(const NodeView& node) {
  using C = compute_type<T>;
  const auto& p = node.as<BatchNormAddReluRecompute>();
  const ChannelShape shape = channel_shape({.axis = p.axis}, node.inputs[0]);
  return make_step(node,
                   [shape, fix_gamma = p.fix_gamma](const Args& args) {
                     const auto parameters = [&](size_t gamma, size_t mean) {
                       return Parameters<C>{args.in<C>(gamma), args.in<C>(gamma + 1), args.in<C>(mean),
                                            args.in<C>(mean + 1), fix_gamma};
                     };
                     const Parameters<C> first = parameters(1, 6), second = parameters(4, 8);
                     const T *const x = args.in<T>(0), *const other = args.in<T>(3);
                     T* const y = args.out<T>();
                     const bool wide = all_aligned_for_packs({x, other, y}) && first.aligned() && second.aligned();
                     queue_channel_map(stream_of(args), shape, wide,
                                       NormalizePairRelu<T, Parameters<C>>{x, other, y, first, second});
                   },
                   {.in_place = {{0, 0}, {3, 0}}});
}

// ---- Gradient -------------------------------------------------------------------------------------------------------

// The second half of both gradients, and the numbers per channel of each norm, which the first half computes.
template <class T>
class PairGradient {
 public:
  using C = compute_type<T>;

  PairGradient(const BatchNorm& p, const Tensor& data, bool is_train)
      : shape_(channel_shape(p, data)), own_(uses_batch_statistics(p, is_train)), fix_gamma_(p.fix_gamma) {
    for (size_t& at : gradients_at_) at = scratch_.add<C>(GradientsOfChannels<C>::arrays * shape_.channels);
    pieces_at_ = scratch_.add_bytes(piece_bytes(shape_, sizeof(C)));
  }

  const ChannelShape& shape() const { return shape_; }
  size_t scratch_bytes() const { return scratch_.total(); }
  void* pieces(const Args& args) const { return scratch_at<std::byte>(args.scratch, pieces_at_); }

  // Of the first norm (0) or the second (1), whose data is input `data`, before gamma, mean and var.
  FinishGradient<C> finish(const Args& args, size_t norm, size_t data) const {
    return {{args.in<C>(data + 1), nullptr, args.in<C>(data + 2), args.in<C>(data + 3), fix_gamma_},
            args.out<C>(3 * norm + 1),
            args.out<C>(3 * norm + 2),
            gradients(args, norm),
            1 / static_cast<double>(shape_.per_channel()),
            own_};
  }

  // `data` and `other` are the inputs with the data of the norms, before their parameters.
  bool is_wide(const Args& args, size_t data, size_t other, std::initializer_list<const void*> more) const {
    return all_aligned_for_packs(more) &&
           all_aligned_for_packs({args.inputs[data], args.inputs[other], args.outputs[0], args.outputs[3]}) &&
           finish(args, 0, data).parameters.aligned() && finish(args, 1, other).parameters.aligned();
  }

  void queue_map(const Args& args, bool wide, const T* dy, const T* x, const T* other_x) const {
    T *const dx = args.out<T>(0), *const other_dx = args.out<T>(3);
    if (!dx && !other_dx) return;
    queue_channel_map(stream_of(args), shape_, wide,
                      PairDataGradient<T>{dy, x, other_x, dx, other_dx, gradients(args, 0), gradients(args, 1)},
                      MapAfter::sums);
  }

 private:
  GradientsOfChannels<C> gradients(const Args& args, size_t norm) const {
    return {{scratch_at<C>(args.scratch, gradients_at_[norm]), shape_.channels}};
  }

  ChannelShape shape_;
  bool own_, fix_gamma_;
  ScratchLayout scratch_;
  size_t gradients_at_[2], pieces_at_;
};

template <class T, class Results>
std::unique_ptr<Kernel> build_gradient(const NodeView& node, const BatchNormPairGrad& p) {
  constexpr size_t data = 2, other = 6, more_grad = 10;
  constexpr int sum_grad_output = 6;
  const PairGradient<T> both(p, node.inputs[data], node.is_train);
  // The first pass reads all arrays but the data of the other norm and writes the gradient of the sum, which the passes
  // after it read with the data of both.
  KernelTraits traits{.in_place = {{0, sum_grad_output}, {data, 0}, {other, 3}, {0, 0}, {0, 3}},
                      .scratch_bytes = both.scratch_bytes()};
  if (!p.signs) traits.in_place.insert(traits.in_place.end(), {{1, sum_grad_output}, {1, 0}, {1, 3}});
  if (p.two_grads) traits.in_place.push_back({more_grad, sum_grad_output});
  return make_step(
      node,
      [both, two_grads = p.two_grads](const Args& args) {
        const T *const dy = args.in<T>(0), *const x = args.in<T>(data), *const other_x = args.in<T>(other);
        const T* const more = two_grads ? args.in<T>(more_grad) : nullptr;
        T* const sum_grad = args.out<T>(sum_grad_output);
        Results results{};
        if constexpr (std::is_same_v<Results, SignReader>)
          results = {args.in<uint8_t>(1), both.shape()};
        else
          results = {args.in<T>(1)};
        const bool wide = both.is_wide(args, data, other, {dy, args.inputs[1], more, sum_grad});
        const cudaStream_t stream = stream_of(args);
        queue_relu_gradient_sums<T, Results>(stream, both.shape(), wide,
                                             {dy, more, x, results, sum_grad, args.in<compute_type<T>>(data + 2)},
                                             both.finish(args, 0, data), both.pieces(args));
        queue_gradient_sums<T>(stream, both.shape(), wide, sum_grad, other_x, both.finish(args, 1, other),
                               both.pieces(args));
        both.queue_map(args, wide, sum_grad, x, other_x);
      },
      std::move(traits));
}

template <class T>
std::unique_ptr<Kernel> build_gradient_from_sums(const NodeView& node) {
  using C = compute_type<T>;
  constexpr size_t data = 1, sums = 5, other = 7, other_sum = 11;
  const auto& p = node.as<BatchNormPairGradFromSums>();
  const PairGradient<T> both(p, node.inputs[data], node.is_train);
  return make_step(
      node,
      [both, is_other_given = p.other_sum](const Args& args) {
        const T *const dy = args.in<T>(0), *const x = args.in<T>(data), *const other_x = args.in<T>(other);
        const bool wide = both.is_wide(args, data, other, {dy});
        const cudaStream_t stream = stream_of(args);
        const int64_t channels = both.shape().channels;
        const C* const grad_sums = args.in<C>(sums);
        queue_given_gradient_sums<C>(stream, grad_sums, args.in<C>(sums + 1), channels, both.finish(args, 0, data));
        if (is_other_given)
          queue_given_gradient_sums<C>(stream, grad_sums, args.in<C>(other_sum), channels, both.finish(args, 1, other));
        else
          queue_gradient_sums<T>(stream, both.shape(), wide, dy, other_x, both.finish(args, 1, other),
                                 both.pieces(args));
        both.queue_map(args, wide, dy, x, other_x);
      },
      {.in_place = {{data, 0}, {other, 3}, {0, 0}, {0, 3}}, .scratch_bytes = both.scratch_bytes()});
}

// ---- Nodes ----------------------------------------------------------------------------------------------------------

std::string refuse_pair(const NodeView& node) {
  const auto& p = node.as<BatchNormPair>();
  if ((p.given_sums || p.other_given_sums) && !uses_batch_statistics(p, node.is_train)) return "given statistics";
  return refuse_data(p, node.inputs[0], p.signs);
}

std::unique_ptr<Kernel> build_pair(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) { return build_forward<T>(node); });
}

std::string refuse_recompute(const NodeView& node) {
  const auto& p = node.as<BatchNormAddReluRecompute>();
  return p.pair ? refuse_data({.axis = p.axis}, node.inputs[0], false) : "one norm";
}

std::unique_ptr<Kernel> build_pair_recompute(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype,
                        [&]<class T>(std::type_identity<T>) { return build_recompute<T>(node); });
}

std::string refuse_gradient(const NodeView& node) {
  const auto& p = node.as<BatchNormPairGrad>();
  return refuse_data(p, node.inputs[2], p.signs);
}

std::unique_ptr<Kernel> build_pair_gradient(const NodeView& node) {
  const auto& p = node.as<BatchNormPairGrad>();
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return p.signs ? build_gradient<T, SignReader>(node, p) : build_gradient<T, ResultReader<T>>(node, p);
  });
}

std::string refuse_from_sums(const NodeView& node) {
  return refuse_data(node.as<BatchNormPairGradFromSums>(), node.inputs[1], false);
}

std::unique_ptr<Kernel> build_pair_from_sums(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype,
                        [&]<class T>(std::type_identity<T>) { return build_gradient_from_sums<T>(node); });
}

template <class P, size_t data>
std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  return follow_data(node, node.inputs[data], node.as<P>().axis);
}

}  // namespace

// Before the networks that they replace.
void add_batch_norm_pair(ImplementationTable& table) {
  table.add<BatchNormPair>(
      {"cuda", refuse_pair, build_pair, preferred_layouts<BatchNormPair, 0>, false, Tier::specialised});
  table.add<BatchNormAddReluRecompute>({"cuda", refuse_recompute, build_pair_recompute,
                                        preferred_layouts<BatchNormAddReluRecompute, 0>, false, Tier::specialised});
  table.add<BatchNormPairGrad>({"cuda", refuse_gradient, build_pair_gradient, preferred_layouts<BatchNormPairGrad, 2>,
                                false, Tier::specialised});
  table.add<BatchNormPairGradFromSums>({"cuda", refuse_from_sums, build_pair_from_sums,
                                        preferred_layouts<BatchNormPairGradFromSums, 1>, false, Tier::specialised});
}

}  // namespace symbind::cuda_backend
