// Convolution by cuDNN or a kernel of ours, or by the direct kernels if cuDNN has no engine. If the channels fill
// whole vectors, channels-last activations are preferred, as tensor cores read them; the weights, which users see with
// channels second, are then reordered first, and their gradient is reordered back, unless the operator that converts
// all parameters does both. BatchNorms fused into a convolution are folded into its weight and bias; other operations
// are a part of the library's kernel, or a pass over the result.

#include <utility>

#include "symbind/backend/cuda/channels.cuh"
#include "symbind/backend/cuda/conv_direct.h"
#include "symbind/backend/cuda/conv_finish.h"
#include "symbind/backend/cuda/conv_first_layer.h"
#include "symbind/backend/cuda/conv_image.h"
#include "symbind/backend/cuda/conv_plan.h"
#include "symbind/backend/cuda/conv_product.h"
#include "symbind/backend/cuda/conv_sums.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/transpose.h"
#include "symbind/core/environment.h"
#include "symbind/core/error.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr size_t usual_workspace = size_t{256} << 20;

// ---- Passes over results and weights --------------------------------------------------------------------------------

template <class T>
struct StoreSum {
  T* out;
  __device__ void operator()(int64_t channel, double sum, double) const {
    out[channel] = store<T>(static_cast<compute_type<T>>(sum));
  }
};

// A BatchNorm with given statistics per channel: x · scale + shift. The identity if gamma is null.
struct Norm {
  const float *gamma = nullptr, *beta = nullptr, *mean = nullptr, *var = nullptr;
  bool fix_gamma = false;
  double eps = 0;

  __device__ double scale(int64_t c) const { return gamma ? (fix_gamma ? 1.0 : gamma[c]) / ::sqrt(var[c] + eps) : 1.0; }
  __device__ double shift(int64_t c) const { return gamma ? beta[c] - mean[c] * scale(c) : 0.0; }
};

Norm norm_at(const Args& args, int first, bool fix_gamma, double eps) {
  if (first < 0) return {};
  const auto at = static_cast<size_t>(first);
  return {args.in<float>(at), args.in<float>(at + 1), args.in<float>(at + 2), args.in<float>(at + 3), fix_gamma, eps};
}

// The weight and bias of the plain convolution equivalent to this one with its norms (see backend/cpu/fold_norm.h), in
// the type of its data. A block per filter. `channel_step` and `tap_step` are the distances in the given weight,
// channels are last in the folded one if `last`.
struct FoldSize {
  int64_t channels, taps, channel_step, tap_step, group_filters;
  bool last;
};
template <class Given, class T>
__global__ void fold_norms(const Given* weight, const Given* bias, Norm before, Norm after, FoldSize size,
                           T* folded_weight, T* folded_bias) {
  const int64_t filter = blockIdx.x, inner = size.channels * size.taps;
  const int64_t first_channel = filter / size.group_filters * size.channels;
  const double scale = after.scale(filter);
  double sum = 0;
  for (int64_t i = threadIdx.x; i < inner; i += blockDim.x) {
    const int64_t channel = i / size.taps, tap = i % size.taps;
    const float value = load(weight[filter * inner + channel * size.channel_step + tap * size.tap_step]);
    const int64_t target = size.last ? tap * size.channels + channel : i;
    folded_weight[filter * inner + target] =
        store<T>(static_cast<float>(value * before.scale(first_channel + channel) * scale));
    if (before.gamma) sum += value * before.shift(first_channel + channel);
  }
  sum = combine_block<Add>(sum);
  if (threadIdx.x != 0) return;
  const double given = bias ? load(bias[filter]) : 0.0f;
  folded_bias[filter] = store<T>(static_cast<float>((sum + given) * scale + after.shift(filter)));
}

// Calls visit with the types of the given weight and of the data.
template <class Visit>
void visit_weight_types(DType given, DType data, Visit visit) {
  if (data == DType::float32) return visit(std::type_identity<float>{}, std::type_identity<float>{});
  const auto with_data = [&]<class T>(std::type_identity<T> type) {
    if (given == data)
      visit(type, type);
    else
      visit(std::type_identity<float>{}, type);
  };
  if (data == DType::float16)
    with_data(std::type_identity<float16>{});
  else
    with_data(std::type_identity<bfloat16>{});
}

// ---- A node as a problem --------------------------------------------------------------------------------------------

template <class P>
constexpr bool has_relu_gradient = std::is_same_v<P, ConvolutionGradAddRelu>;
template <class P>
constexpr ConvolutionPass pass_of =
    std::is_same_v<P, ConvolutionGradData> || has_relu_gradient<P> ? ConvolutionPass::data_grad
    : std::is_same_v<P, ConvolutionGradWeight>                     ? ConvolutionPass::weight_grad
                                                                   : ConvolutionPass::forward;

struct NodeArrays {
  const Tensor &data, &weight, &output;
};

template <class P>
NodeArrays arrays_of(const NodeView& node) {
  if constexpr (pass_of<P> == ConvolutionPass::data_grad)
    return {node.outputs[0], node.inputs[1], node.inputs[0]};
  else if constexpr (pass_of<P> == ConvolutionPass::weight_grad)
    return {node.inputs[1], node.outputs[0], node.inputs[0]};
  else
    return {node.inputs[0], node.inputs[1], node.outputs[0]};
}

// With one channel, or one position, both layouts are the same bytes.
bool is_stored_channels_last(const Tensor& tensor) {
  return tensor.layout == Layout::channels_last && tensor.shape[1] > 1 && tensor.shape.size(2, tensor.shape.rank()) > 1;
}
bool is_stored_plain(const Tensor& tensor) {
  return tensor.layout == Layout::plain && tensor.shape[1] > 1 && tensor.shape.size(2, tensor.shape.rank()) > 1;
}

// Do vectors of 16 bytes divide the channels? The few channels of images are padded by the library itself.
bool suits_channels_last(const ConvolutionSize& size, DType dtype) {
  if (dtype == DType::float64) return false;
  const auto vector = static_cast<int64_t>(16 / size_of(dtype));
  const bool image = size.groups == 1 && size.channels <= 4;
  return (image || size.group_channels() % vector == 0) && size.group_filters() % vector == 0;
}

// For convolutions that do not set it themselves.
std::string usual_tuning() {
  const char* const tunings[] = {"off", "limited_workspace", "fastest"};
  return tunings[environment::variable("MXNET_CUDNN_AUTOTUNE_DEFAULT").value()];
}

// What a library may apply to the products; none if it has no such activation.
template <class P>
ConvolutionEpilogue epilogue_of(const P& p) {
  if constexpr (has_relu_gradient<P>) return {.relu_gradient = true, .signs = p.signs};
  if (pass_of<P> != ConvolutionPass::forward) return {};
  const ConvolutionFused fused{p};
  if (!fused.act_type.empty() && fused.act_type != "relu") return {};
  return {fused.sum, !fused.no_bias || fused.has_norms(), !fused.act_type.empty(),
          std::is_same_v<P, ConvolutionStatistics>};
}

template <class P>
ConvolutionProblem problem_of(const NodeView& node) {
  const P& p = node.as<P>();
  const NodeArrays arrays = arrays_of<P>(node);
  ConvolutionProblem problem;
  problem.pass = pass_of<P>;
  problem.size = size_of(p, arrays.data.shape, arrays.output.shape);
  problem.dtype = arrays.output.dtype;
  problem.epilogue = epilogue_of(p);
  const bool channels_last = is_channels_last(p.layout);
  problem.channels_last = channels_last || is_stored_channels_last(arrays.data) ||
                          is_stored_channels_last(arrays.weight) || is_stored_channels_last(arrays.output);
  require(channels_last || !problem.channels_last || (!is_stored_plain(arrays.data) && !is_stored_plain(arrays.output)),
          node.where(), " has data and output in different layouts");
  const std::string tune = p.cudnn_tune.value_or(usual_tuning());
  problem.tune = tune != "off";
  const size_t allowed = static_cast<size_t>(std::clamp<int64_t>(p.workspace, 0, 1 << 20)) << 20;
  problem.most_workspace = tune == "fastest" ? allowed : std::min(allowed, usual_workspace);
  problem.repeatable = environment::variable("MXNET_CUDNN_AUTOTUNE_DEFAULT").value() < 2;
  return problem;
}

// Is another weight computed from the given one, rather than only reordered?
bool derives_weight(const ConvolutionFused& p, const Tensor& weight, DType dtype) {
  return p.has_norms() || weight.dtype != dtype;
}

// ---- The kernel -----------------------------------------------------------------------------------------------------

class ConvolutionKernel final : public Kernel {
 public:
  ConvolutionKernel(const NodeView& node, const ConvolutionFused& p, const ConvolutionProblem& problem,
                    const Tensor& weight)
      : device_(CudaDevice::of(node.context)),
        where_(node.where()),
        params_(p),
        at_(inputs_of(p)),
        problem_(problem),
        weight_last_(is_channels_last(p.layout) || is_stored_channels_last(weight)),
        weight_type_(weight.dtype),
        derives_weight_(derives_weight(p, weight, problem.dtype)) {
    std::string reason;
    if (problem.dtype != DType::float64) plan_ = find_convolution(device_, problem, &reason);
    const ConvolutionSize& size = problem.size;
    weight_matrices_ = {size.filters, size.group_channels(), size.kernel_size()};
    weight_bytes_ = static_cast<size_t>(size.weight_size()) * size_of(problem.dtype);
    reorders_weight_ = plan_ && problem.channels_last && !weight_last_ && !weight_matrices_.trivial();
    output_shape_ = problem.channels_last ? ChannelShape{size.batch * size.out_size(), size.filters, 1}
                                          : ChannelShape{size.batch, size.filters, size.out_size()};
    plan_memory();
  }

  void prepare(const Args& args) override {
    is_just_prepared_ = true;
    guarded([&] {
      if (derives_weight_)
        derive(args);
      else
        queue_transpose(stream_of(args), args.inputs[1], args.cached, size_of(problem_.dtype), weight_matrices_);
    });
  }

  void run(const Args& args) override {
    guarded([&] {
      switch (problem_.pass) {
        case ConvolutionPass::forward:
          return run_forward(args);
        case ConvolutionPass::data_grad:
          return run_data_grad(args);
        case ConvolutionPass::weight_grad:
          if (args.outputs[0]) convolve(args, {args.inputs[1], args.outputs[0], args.inputs[0]});
          if (!params_.no_bias && args.outputs[1]) sum_bias(args);
      }
    });
  }

 private:
  // Scratch: the library's workspace, the gradient of the weight in the library's order, sums for the bias or for
  // statistics. Cached: the weight in the library's order; weight and bias with norms folded into them, or rounded to
  // the type of the data.
  void plan_memory() {
    const bool weight_grad = problem_.pass == ConvolutionPass::weight_grad;
    weight_at_ = plan_ ? aligned(plan_->workspace_bytes()) : 0;
    sums_at_ = weight_at_ + (weight_grad && reorders_weight_ ? aligned(weight_bytes_) : 0);
    const size_t element = problem_.dtype == DType::float64 ? sizeof(double) : sizeof(float);
    size_t total = sums_at_ + (weight_grad && !params_.no_bias ? piece_bytes(output_shape_, element) : 0);
    if (problem_.epilogue.statistics) total += output_sums_bytes(problem_);
    if (problem_.epilogue.relu_gradient) total += relu_gradient_bytes(problem_);
    if (total > 0) scratch_bytes = total + workspace_alignment;
    if (derives_weight_) {
      cached_bytes = aligned(weight_bytes_) + static_cast<size_t>(params_.num_filter) * size_of(problem_.dtype);
      cached_from = folded_inputs(params_);
    } else if (!weight_grad && reorders_weight_) {
      cached_bytes = weight_bytes_;
      cached_from = {1};
    }
  }

  template <class Work>
  void guarded(Work work) {
    const Queueing queueing(device_);
    device_.note(where_);
    work();
    device_.check_queued(where_);
  }

  std::byte* scratch_of(const Args& args) const {
    return reinterpret_cast<std::byte*>(aligned(reinterpret_cast<size_t>(args.scratch)));
  }
  void* derived_bias(const Args& args) const { return static_cast<std::byte*>(args.cached) + aligned(weight_bytes_); }
  const void* input_at(const Args& args, int index) const {
    return index < 0 ? nullptr : args.inputs[static_cast<size_t>(index)];
  }

  void derive(const Args& args) const {
    const int64_t channels = weight_matrices_.rows, taps = weight_matrices_.columns;
    const FoldSize size{channels,
                        taps,
                        weight_last_ ? 1 : taps,
                        weight_last_ ? channels : 1,
                        problem_.size.group_filters(),
                        weight_last_ || reorders_weight_};
    const Norm before = norm_at(args, at_.norm_before, params_.norm_before_fix_gamma, params_.norm_before_eps);
    const Norm after = norm_at(args, at_.norm, params_.norm_fix_gamma, params_.norm_eps);
    visit_weight_types(weight_type_, problem_.dtype,
                       [&]<class Given, class T>(std::type_identity<Given>, std::type_identity<T>) {
                         fold_norms<<<static_cast<unsigned>(weight_matrices_.batch), block_size, 0, stream_of(args)>>>(
                             args.in<Given>(1), static_cast<const Given*>(input_at(args, at_.bias)), before, after,
                             size, static_cast<T*>(args.cached), static_cast<T*>(derived_bias(args)));
                       });
  }

  void run_forward(const Args& args) {
    ConvolutionArrays arrays{args.inputs[0], args.inputs[1], args.outputs[0], input_at(args, at_.sum),
                             input_at(args, at_.bias)};
    if (derives_weight_) {
      arrays.weight = args.cached;
      if (arrays.bias || params_.has_norms()) arrays.bias = derived_bias(args);
    }
    if (problem_.epilogue.statistics) {
      arrays.channel_sum = args.outputs[1];
      arrays.channel_square_sum = args.outputs[2];
    }
    const bool is_finished = convolve(args, arrays);
    if (is_finished) return;
    queue_finish(stream_of(args), problem_, params_.act_type, arrays.output, arrays.residual, arrays.bias);
    if (problem_.epilogue.statistics)
      queue_output_sums(stream_of(args), problem_, arrays.output, arrays.channel_sum, arrays.channel_square_sum,
                        scratch_of(args) + sums_at_);
  }

  void run_data_grad(const Args& args) {
    ConvolutionArrays arrays{args.outputs[0], args.inputs[1], args.inputs[0]};
    if (problem_.epilogue.relu_gradient) {
      arrays.more_grad = args.inputs[3];
      arrays.activation = args.inputs[4];
      arrays.norm_data = args.inputs[5];
      arrays.mean = args.inputs[6];
      arrays.channel_sum = args.outputs[1];
      arrays.channel_square_sum = args.outputs[2];
    }
    const bool is_finished = convolve(args, arrays);
    if (problem_.epilogue.relu_gradient && !is_finished)
      queue_relu_gradient(stream_of(args), problem_, arrays, scratch_of(args) + sums_at_);
  }

  bool suits_plan(const ConvolutionArrays& arrays) const {
    return plan_ && all_aligned_for_packs({arrays.data, arrays.weight, arrays.output}) &&
           (!plan_->applies_epilogue() ||
            all_aligned_for_packs({arrays.residual, arrays.bias, arrays.channel_sum, arrays.channel_square_sum,
                                   arrays.more_grad, arrays.activation, arrays.norm_data, arrays.mean}));
  }

  // Has it applied the epilogue?
  bool convolve(const Args& args, const ConvolutionArrays& arrays) {
    const cudaStream_t stream = stream_of(args);
    if (!suits_plan(arrays)) {
      const bool last = weight_last_ || (derives_weight_ && reorders_weight_);
      queue_direct_convolution(stream, problem_, last, arrays.data, arrays.weight, arrays.output);
      return false;
    }
    const bool is_weight_grad = problem_.pass == ConvolutionPass::weight_grad;
    std::byte* const scratch = scratch_of(args);
    ConvolutionArrays ordered = arrays;
    if (reorders_weight_) ordered.weight = is_weight_grad ? scratch + weight_at_ : args.cached;
    ordered.weight_is_settled = cached_bytes > 0 && !std::exchange(is_just_prepared_, false);
    plan_->run(stream, ordered, scratch);
    if (is_weight_grad && reorders_weight_)
      queue_transpose(stream, ordered.weight, arrays.weight, size_of(problem_.dtype),
                      {weight_matrices_.batch, weight_matrices_.columns, weight_matrices_.rows});
    return plan_->applies_epilogue();
  }

  void sum_bias(const Args& args) {
    visit_floating(problem_.dtype, [&]<class T>(std::type_identity<T>) {
      const T* const dy = args.in<T>(0);
      queue_channel_sums<T>(stream_of(args), output_shape_, aligned_for_packs(dy), ElementSums<T>{{dy}},
                            scratch_of(args) + sums_at_, StoreSum<T>{args.out<T>(1)});
    });
  }

  CudaDevice& device_;
  std::string where_;
  const ConvolutionFused params_;
  const ConvolutionFusedInputs at_;
  const ConvolutionProblem problem_;
  const bool weight_last_;   // the given weight, or the requested gradient
  const DType weight_type_;  // of the given weight
  const bool derives_weight_;
  std::shared_ptr<ConvolutionPlan> plan_;  // none: the direct kernels
  bool reorders_weight_ = false;
  Matrices weight_matrices_;
  size_t weight_bytes_ = 0, weight_at_ = 0, sums_at_ = 0;
  bool is_just_prepared_ = false;  // the weight, for the next run
  ChannelShape output_shape_;
};

// ---- Implementations ------------------------------------------------------------------------------------------------

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  return std::make_unique<ConvolutionKernel>(node, ConvolutionFused{node.as<P>()}, problem_of<P>(node),
                                             arrays_of<P>(node).weight);
}

// Weight and bias may be float32 where the data has 16 bits. Norms are folded in float32.
std::string refuse_types(const ConvolutionFused& p, const NodeView& node) {
  const DType data = node.inputs[0].dtype, weight = node.inputs[1].dtype;
  const ConvolutionFusedInputs at = inputs_of(p);
  const auto is_of = [&](int index, DType dtype) {
    return index < 0 || node.inputs[static_cast<size_t>(index)].dtype == dtype;
  };
  const bool is_wider = weight == DType::float32 && (data == DType::float16 || data == DType::bfloat16);
  if (node.outputs[0].dtype != data || !is_of(at.sum, data) || (weight != data && !is_wider) || !is_of(at.bias, weight))
    return "arrays of different types";
  if (!p.has_norms()) return "";
  if (data == DType::float64) return "norms are not folded into float64";
  for (const int first : {at.norm_before, at.norm})
    for (int i = 0; first >= 0 && i < 4; ++i)
      if (!is_of(first + i, DType::float32)) return "norms in other types than float32";
  return "";
}

template <class P>
std::string refuse_arrays(const NodeView& node) {
  const NodeArrays arrays = arrays_of<P>(node);
  if (!is_floating(arrays.output.dtype)) return "wants floating numbers";
  for (const Tensor* tensor : {&arrays.data, &arrays.weight, &arrays.output}) {
    if (!std::is_same_v<P, ConvolutionFused> && tensor->dtype != arrays.output.dtype)
      return "arrays of different types";
    if (tensor->shape.size() == 0) return "an empty array";
    if (block_of(tensor->layout) > 1) return "a blocked layout";
  }
  if constexpr (std::is_same_v<P, ConvolutionFused>)
    if (std::string reason = refuse_types(node.as<P>(), node); !reason.empty()) return reason;
  const ConvolutionSize size = size_of(node.as<P>(), arrays.data.shape, arrays.output.shape);
  return size.batch * size.out_size() < (int64_t{1} << 31) ? "" : "too many elements in a channel";
}

template <class P>
std::string refuse_cudnn(const NodeView& node) {
  if (std::string reason = refuse_arrays<P>(node); !reason.empty()) return reason;
  if (node.outputs[0].dtype == DType::float64) return "float64";
  ConvolutionProblem problem = problem_of<P>(node);
  problem.channels_last |= suits_channels_last(problem.size, problem.dtype);  // as the layout pass will set it
  std::string reason;
  find_convolution(CudaDevice::of(node.context), problem, &reason);
  return reason;
}

// Statistics are computed with the result by a kernel of ours, or by cuDNN's compiled engines, which are for float16
// and channels that fill its vectors. The engines add in the order in which blocks end, so the last bits differ from
// run to run: they are used only where the user prefers time. Where both are slower than a pass over the result, the
// pass belongs to BatchNorm, whose sums are more precise.
std::string refuse_statistics(const NodeView& node) {
  if (!node.as<ConvolutionStatistics>().no_bias) return "a bias";
  if (std::string reason = refuse_arrays<ConvolutionStatistics>(node); !reason.empty()) return reason;
  ConvolutionProblem problem = problem_of<ConvolutionStatistics>(node);
  problem.channels_last |= suits_channels_last(problem.size, problem.dtype);  // as the layout pass will set it
  if (!problem.channels_last) return "channels that do not fill vectors";
  if (node.context.id >= num_gpus()) return "no such GPU";
  CudaDevice& device = CudaDevice::of(node.context);
  const bool has_engines = problem.dtype == DType::float16 && !problem.repeatable;
  if (!has_engines && product_forms(device, problem).empty() && image_forms(device, problem).empty())
    return "no kernel that computes the same sums every time";
  std::string reason;
  const auto plan = find_convolution(device, problem, &reason);
  if (!plan) return reason;
  return plan->applies_epilogue() ? "" : "no kernel that is faster than a pass for the statistics";
}

// The gradient of ReLU and the sums after it are fused by a product of ours, where that is faster than a pass.
std::string refuse_relu_gradient(const NodeView& node) {
  if (std::string reason = refuse_arrays<ConvolutionGradAddRelu>(node); !reason.empty()) return reason;
  const DType dtype = node.outputs[0].dtype;
  const bool signs = node.as<ConvolutionGradAddRelu>().signs;
  for (const size_t input : {3, 4, 5})
    if (node.inputs[input].dtype != (signs && input == 4 ? DType::uint8 : dtype)) return "arrays of different types";
  if (node.inputs[6].dtype != DType::float32) return "a mean in another type than float32";
  ConvolutionProblem problem = problem_of<ConvolutionGradAddRelu>(node);
  problem.channels_last |= suits_channels_last(problem.size, problem.dtype);  // as the layout pass will set it
  if (node.context.id >= num_gpus()) return "no such GPU";
  CudaDevice& device = CudaDevice::of(node.context);
  if (product_forms(device, problem).empty()) return "no kernel with the gradient of ReLU";
  std::string reason;
  const auto plan = find_convolution(device, problem, &reason);
  if (!plan) return reason;
  return plan->applies_epilogue() ? "" : "no kernel that is faster than a pass for the gradient of ReLU";
}

Layout preferred_layout(const Tensor& tensor) { return tensor.shape[1] == 1 ? Layout::plain : Layout::channels_last; }

template <class P>
std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  const P& p = node.as<P>();
  const NodeArrays arrays = arrays_of<P>(node);
  if (is_channels_last(p.layout)) return std::nullopt;
  if (!suits_channels_last(size_of(p, arrays.data.shape, arrays.output.shape), arrays.output.dtype))
    return std::nullopt;
  PreferredLayouts preferred{std::vector(node.inputs.size(), Layout::plain),
                             std::vector(node.outputs.size(), Layout::plain)};
  preferred.inputs[0] = preferred_layout(node.inputs[0]);
  // A weight that is channels-last stays so, and so does its gradient.
  if constexpr (pass_of<P> == ConvolutionPass::weight_grad) {
    preferred.inputs[1] = preferred_layout(node.inputs[1]);
    preferred.inputs[2] = preferred.outputs[0] = node.inputs[2].layout;
  } else {
    preferred.outputs[0] = preferred_layout(node.outputs[0]);
    if (!derives_weight(ConvolutionFused{p}, arrays.weight, arrays.output.dtype))
      preferred.inputs[1] = node.inputs[1].layout;
  }
  if constexpr (has_relu_gradient<P>)
    for (const size_t input : {3, 4, 5})
      if (!p.signs || input != 4) preferred.inputs[input] = preferred.outputs[0];
  if constexpr (std::is_same_v<P, ConvolutionFused>)
    if (const int sum = inputs_of(p).sum; sum >= 0) preferred.inputs[static_cast<size_t>(sum)] = preferred.outputs[0];
  return preferred;
}

template <class P>
void add(ImplementationTable& table) {
  table.add<P>({"cudnn", refuse_cudnn<P>, build<P>, preferred_layouts<P>, true, Tier::library});
  table.add<P>({"direct", refuse_arrays<P>, build<P>, nullptr, true});
}

}  // namespace

void add_conv(ImplementationTable& table) {
  add<Convolution>(table);
  add<ConvolutionFused>(table);
  table.add<ConvolutionStatistics>({"statistics", refuse_statistics, build<ConvolutionStatistics>,
                                    preferred_layouts<ConvolutionStatistics>, true, Tier::library});
  add<ConvolutionGradData>(table);
  table.add<ConvolutionGradAddRelu>({"product", refuse_relu_gradient, build<ConvolutionGradAddRelu>,
                                     preferred_layouts<ConvolutionGradAddRelu>, true, Tier::library});
  add<ConvolutionGradWeight>(table);
  add_first_layer_gradient(table);
}

}  // namespace symbind::cuda_backend
