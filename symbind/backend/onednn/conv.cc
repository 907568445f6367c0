// Convolution by oneDNN. Its fast kernels require blocked or channels-last activations; for plain ones it falls back to
// im2col and a matrix product. Weights are plain in memory and are reordered for the primitive when they have changed.
#include "symbind/ops/conv.h"

#include <algorithm>

#include "symbind/backend/cpu/conv_nodes.h"
#include "symbind/backend/cpu/fold_norm.h"
#include "symbind/backend/onednn/conv_way.h"
#include "symbind/backend/onednn/program.h"
#include "symbind/core/parallel.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/passes/target.h"

namespace symbind::onednn {
namespace {

using cpu_backend::as_fused;
using cpu_backend::is_grad_data;
using cpu_backend::is_grad_weight;
using cpu_backend::size_of_node;

using dnnl::algorithm;
using dnnl::prop_kind;

constexpr int64_t few_channels = 4;  // up to this many a first layer reads plain

// A convolution in oneDNN's terms: descriptions of the arrays, and the numbers in its convention. The activations must
// be all blocked, all channels-last or all plain, except that a first layer reads its few channels plain and writes
// blocks (forward and for the weight's gradient): for other mixtures oneDNN has only its reference loops.
struct Problem {
  Desc given_data, given_output;    // as passed to the node
  Desc data, weight, bias, output;  // for the primitive
  Desc given_weight;                // in another type than the primitive's where weights are rounded first
  Dims stride, dilate, pad;
  int64_t products;

  Problem(const Convolution& p, const Tensor& data_tensor, const Tensor& weight_tensor, const Tensor& output_tensor,
          bool first_layer_may_mix = true) {
    const bool channels_last = is_channels_last(p.layout);
    given_data = data = activations(data_tensor, channels_last);
    given_output = output = activations(output_tensor, channels_last);
    if (!channels_last && !fit_together(data_tensor, output_tensor, first_layer_may_mix)) {
      data = with_channels_last(data.get_dims(), data_tensor.dtype);
      output = with_channels_last(output.get_dims(), output_tensor.dtype);
      // With one channel both layouts are the same bytes.
      if (data_tensor.shape[1] == 1) given_data = data;
      if (output_tensor.shape[1] == 1) given_output = output;
    }
    weight = describe_weight(p, {weight_tensor.shape, data_tensor.dtype}, channels_last);
    given_weight = describe_weight(p, weight_tensor, channels_last);
    bias = dense({p.num_filter}, weight_tensor.dtype);
    stride = p.stride;
    pad = p.pad;
    for (const int64_t step : p.dilate) dilate.push_back(step - 1);
    products = output_tensor.shape.size() * (weight_tensor.shape.size() / p.num_filter);
  }

  int threads() const { return threads_for(products, thread_products); }
  int64_t elements() const { return count(data) + count(output); }

  // The same problem, with activations that the kernel itself reorders to these layouts.
  Problem in(Layout data_layout, Layout output_layout) const {
    // With one channel, plain and channels last are the same bytes: such an array is described as the other one is,
    // since for mixtures oneDNN has only its reference loops.
    const auto follow = [](const Desc& desc, Layout& layout, Layout of_other) {
      if (desc.get_dims()[1] == 1 && layout == Layout::plain && of_other == Layout::channels_last) layout = of_other;
    };
    follow(data, data_layout, output_layout);
    follow(output, output_layout, data_layout);
    Problem other = *this;
    other.data = in_layout(data, data_layout);
    other.output = in_layout(output, output_layout);
    const auto is_same = [](const Desc& given, const Desc& wanted, Layout layout) {
      return given.get_dims()[1] == 1 && layout != Layout::blocked8 && layout != Layout::blocked16 &&
             given.get_size() == wanted.get_size();
    };
    if (is_same(given_data, other.data, data_layout)) other.given_data = other.data;
    if (is_same(given_output, other.output, output_layout)) other.given_output = other.output;
    return other;
  }

 private:
  static int64_t count(const Desc& desc) {
    int64_t elements = 1;
    for (const int64_t extent : desc.get_dims()) elements *= extent;
    return elements;
  }
  static Desc in_layout(const Desc& desc, Layout layout) {
    const Dims dims = desc.get_dims();
    const DType dtype = desc.get_data_type() == dnnl::memory::data_type::f32   ? DType::float32
                        : desc.get_data_type() == dnnl::memory::data_type::f16 ? DType::float16
                                                                               : DType::bfloat16;
    if (const int64_t block = block_of(layout); block > 1) return with_blocks(dims, dtype, block);
    return layout == Layout::channels_last ? with_channels_last(dims, dtype) : dense(dims, dtype);
  }

  static bool fit_together(const Tensor& data, const Tensor& output, bool first_layer_may_mix) {
    if (block_of(output.layout) > 1 && data.layout == Layout::plain)
      return first_layer_may_mix && data.shape[1] <= few_channels;
    return data.layout == output.layout && (data.layout != Layout::channels_last || data.shape[1] > 1);
  }

  // (groups,) filters, channels of a group, kernel…
  static Desc describe_weight(const Convolution& p, const Tensor& tensor, bool channels_last) {
    const auto spatial = static_cast<int>(p.kernel.size());
    const int64_t channels = tensor.shape[channels_last ? spatial + 1 : 1];
    Dims dims;
    if (p.num_group > 1) dims.push_back(p.num_group);
    dims.push_back(p.num_filter / p.num_group);
    dims.push_back(channels);
    dims.insert(dims.end(), p.kernel.begin(), p.kernel.end());
    std::vector<int> order;
    const int channel_axis = p.num_group > 1 ? 2 : 1;
    for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis)
      if (axis != channel_axis || !channels_last) order.push_back(axis);
    if (channels_last) order.push_back(channel_axis);
    return dense(dims, tensor.dtype, order);
  }
};

// The same array in float32.
Desc in_float(const Desc& desc) { return Desc(desc.get_dims(), type_of(DType::float32), desc.get_strides()); }
// The same array in the order that the primitive prefers.
Desc any(const Desc& desc) { return Desc(desc.get_dims(), desc.get_data_type(), dnnl::memory::format_tag::any); }

// Calls make() with what descriptions of the forward pass and of the weight's gradient have in common.
template <class Make>
auto with_arrays(const Problem& problem, bool with_bias, const Make& make) {
  return make(problem.data, any(problem.weight), with_bias ? problem.bias : Desc(), problem.output, problem.stride,
              problem.dilate, problem.pad, problem.pad);
}

dnnl::convolution_forward::primitive_desc forward_descriptor(const Problem& problem, bool with_bias,
                                                             const dnnl::primitive_attr& attr) {
  return with_arrays(problem, with_bias, [&](const auto&... arrays) {
    return dnnl::convolution_forward::primitive_desc(engine(), prop_kind::forward_training,
                                                     algorithm::convolution_direct, arrays..., attr);
  });
}

// ---- Forward --------------------------------------------------------------------------------------------------------

// The operations after the products, as oneDNN's post-ops.
struct After {
  bool sum = false;
  bool sum_is_spent = false;  // it is written in place of the result
  std::optional<Eltwise> activation;

  dnnl::post_ops post_ops(const Desc& output) const {
    dnnl::post_ops after;
    if (sum && sum_is_spent) after.append_sum(1.0f);
    if (sum && !sum_is_spent) after.append_binary(algorithm::binary_add, output);
    if (activation) after.append_eltwise(activation->algorithm, activation->alpha, 0);
    return after;
  }
};

// Copies the bytes of the sum to the result, unless they share memory.
void copy_sum(const Args& args, size_t sum, size_t bytes) {
  const auto* from = args.in<std::byte>(sum);
  auto* to = args.out<std::byte>();
  if (from == to) return;
  parallel_for(static_cast<int64_t>(bytes), 1 << 18,
               [=](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
}

// Weight and bias in the primitive's format, with norms folded into them in float32.
std::pair<Program::Array, Program::Array> folded(Program& program, const Problem& problem, const ConvolutionFused& p,
                                                 const Tensor& given, const Desc& wanted) {
  const Desc floats = in_float(problem.given_weight);
  const auto weight = program.cached(wanted), bias = program.cached(problem.bias);
  program.in_preparation(folded_inputs(p), [&] {
    const auto plain = wanted == floats ? weight : program.scratch(floats);
    program.call([&program, plain, bias, p, given](const Args& args) {
      cpu_backend::fold_norms(p, given, args, program.float_data(plain, args), program.float_data(bias, args));
    });
    program.finish(plain, weight);
  });
  return {weight, bias};
}

// The primitive, and whether the operations after the products run separately.
struct Forward {
  dnnl::convolution_forward::primitive_desc descriptor;
  bool apart;
};

Forward describe_forward(const Problem& problem, const ConvolutionFused& p) {
  const bool with_bias = !p.no_bias || p.has_norms();
  const After after{p.sum, p.sum_is_spent, eltwise_of(p.act_type)};
  auto descriptor = forward_descriptor(problem, with_bias, attributes(after.post_ops(problem.output)));
  const bool apart = (p.sum || after.activation) && is_slow_with_post_ops(descriptor);
  if (apart) descriptor = forward_descriptor(problem, with_bias, attributes());
  return {descriptor, apart};
}

void assemble_forward(Program& program, const NodeView& node, const Problem& problem, const ConvolutionFused& p) {
  const ConvolutionFusedInputs at = inputs_of(p);
  const bool with_bias = !p.no_bias || p.has_norms();
  const std::optional<Eltwise> activation = eltwise_of(p.act_type);
  const auto [descriptor, apart] = describe_forward(problem, p);

  const auto data = program.reordered(program.input(0, problem.given_data), problem.data);
  const auto given = program.output(0, problem.given_output), output = program.writable(given, problem.output);
  std::vector<std::pair<int, Program::Array>> arrays{{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, output}};
  if (p.has_norms()) {
    const auto [weight, bias] = folded(program, problem, p, node.inputs[1], descriptor.weights_desc());
    arrays.emplace_back(DNNL_ARG_WEIGHTS, weight);
    arrays.emplace_back(DNNL_ARG_BIAS, bias);
  } else {
    arrays.emplace_back(DNNL_ARG_WEIGHTS, program.prepared(1, problem.given_weight, descriptor.weights_desc()));
    if (with_bias) arrays.emplace_back(DNNL_ARG_BIAS, program.input(static_cast<size_t>(at.bias), problem.bias));
  }
  if (p.sum) {
    const auto sum_index = static_cast<size_t>(at.sum);
    const Desc given_sum = activations(node.inputs[sum_index], is_channels_last(p.layout));
    const auto sum = program.reordered(program.input(sum_index, given_sum), problem.output);
    const bool over_result =
        p.sum_is_spent && !apart && problem.given_output == problem.output && given_sum == problem.output;
    if (over_result) {
      program.in_place = {{at.sum, 0}};
      program.call(
          [sum_index, bytes = problem.output.get_size()](const Args& args) { copy_sum(args, sum_index, bytes); });
    } else if (p.sum_is_spent && !apart) {
      program.finish(sum, output);
    } else if (!apart) {
      arrays.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, sum);
    }
    program.execute(dnnl::convolution_forward(descriptor), descriptor, arrays);
    if (apart) program.add(output, sum);
  } else {
    program.execute(dnnl::convolution_forward(descriptor), descriptor, arrays);
  }
  if (apart && activation) program.activate(output, *activation);
  program.finish(output, given);
}

// ---- Gradients ------------------------------------------------------------------------------------------------------

dnnl::convolution_backward_data::primitive_desc describe_grad_data(const Problem& problem) {
  return {engine(),       algorithm::convolution_direct,
          problem.data,   any(problem.weight),
          problem.output, problem.stride,
          problem.dilate, problem.pad,
          problem.pad,    forward_descriptor(problem, false, attributes()),
          attributes()};
}

void assemble_grad_data(Program& program, const Problem& problem) {
  const auto descriptor = describe_grad_data(problem);
  const auto out_grad = program.reordered(program.input(0, problem.given_output), problem.output);
  const auto weight = program.prepared(1, problem.weight, descriptor.weights_desc());
  const auto given = program.output(0, problem.given_data), data_grad = program.writable(given, problem.data);
  program.execute(dnnl::convolution_backward_data(descriptor), descriptor,
                  {{DNNL_ARG_DIFF_DST, out_grad}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_SRC, data_grad}});
  program.finish(data_grad, given);
}

dnnl::convolution_backward_weights::primitive_desc describe_grad_weight(const Problem& problem, bool with_bias) {
  return with_arrays(problem, with_bias, [&](const auto&... arrays) {
    return dnnl::convolution_backward_weights::primitive_desc(engine(), algorithm::convolution_direct, arrays...,
                                                              forward_descriptor(problem, with_bias, attributes()),
                                                              attributes());
  });
}

void assemble_grad_weight(Program& program, const Problem& problem, bool with_bias) {
  const auto descriptor = describe_grad_weight(problem, with_bias);
  const auto weight_grad = program.output(0, problem.weight);
  const auto written = program.writable(weight_grad, descriptor.diff_weights_desc());
  const auto out_grad = program.reordered(program.input(0, problem.given_output), problem.output);
  const auto data = program.reordered(program.input(1, problem.given_data), problem.data);
  std::vector<std::pair<int, Program::Array>> arrays{
      {DNNL_ARG_DIFF_DST, out_grad}, {DNNL_ARG_SRC, data}, {DNNL_ARG_DIFF_WEIGHTS, written}};
  if (with_bias) arrays.emplace_back(DNNL_ARG_DIFF_BIAS, program.output(1, problem.bias));
  program.execute(dnnl::convolution_backward_weights(descriptor), descriptor, arrays);
  program.finish(written, weight_grad);
}

// ---- The three kinds of node, each with its arrays in its own order -------------------------------------------------

Problem forward_problem(const ConvolutionFused& p, const NodeView& node) {
  Problem problem(p, node.inputs[0], node.inputs[1], node.outputs[0]);
  if (p.has_norms()) problem.bias = dense({p.num_filter}, DType::float32);
  return problem;
}

template <class P>
Problem problem_of(const NodeView& node) {
  const P& p = node.as<P>();
  if constexpr (is_grad_data<P>)
    return {p, node.outputs[0], node.inputs[1], node.inputs[0], false};
  else if constexpr (is_grad_weight<P>)
    return {p, node.inputs[1], node.inputs[2], node.inputs[0]};
  else
    return forward_problem(as_fused(p), node);
}

template <class P>
void assemble(Program& program, const NodeView& node, const Problem& problem) {
  const P& p = node.as<P>();
  if constexpr (is_grad_data<P>)
    assemble_grad_data(program, problem);
  else if constexpr (is_grad_weight<P>)
    assemble_grad_weight(program, problem, !p.no_bias);
  else
    assemble_forward(program, node, problem, as_fused(p));
}

// ---- Layouts --------------------------------------------------------------------------------------------------------

// How good a kernel is: a product of matrices over unfolded patches is in between. `small_products` is oneDNN's brgemm.
enum class Quality { reference, product, small_products, direct };

bool is_optimised(Quality quality) { return quality == Quality::small_products || quality == Quality::direct; }

template <class P>
Quality quality_of(const P& p, const Problem& problem) {
  const ThreadScope scope({.threads = problem.threads()});
  const auto judged = [](const dnnl::primitive_desc_base& descriptor) {
    if (is_reference(descriptor)) return Quality::reference;
    if (is_slow_with_post_ops(descriptor)) return Quality::product;
    const bool has_small_products = std::string_view(descriptor.impl_info_str()).find("brg") != std::string_view::npos;
    return has_small_products ? Quality::small_products : Quality::direct;
  };
  try {
    if constexpr (is_grad_data<P>)
      return judged(describe_grad_data(problem));
    else if constexpr (is_grad_weight<P>)
      return judged(describe_grad_weight(problem, !p.no_bias));
    else
      return judged(describe_forward(problem, as_fused(p)).descriptor);
  } catch (const dnnl::error&) {
    return Quality::reference;
  }
}

struct Layouts {
  Layout data = Layout::plain, output = Layout::plain;
};

// In order: blocks where both sides have whole blocks of channels (in every group, if there are groups), the data of a
// first layer plain before them; channels last; plain, for which there is always a product of matrices.
std::vector<Layouts> candidates(const Convolution& p, int64_t channels, int64_t filters, bool first_layer_may_mix) {
  std::vector<Layouts> found;
  if (const std::optional<Layout> blocked = blocked_layout()) {
    const int64_t block = block_of(*blocked);
    const bool depthwise = p.num_group == channels && p.num_group == filters;
    const auto whole = [&](int64_t count) { return (depthwise ? count : count / p.num_group) % block == 0; };
    if (whole(filters) && whole(channels))
      found.push_back({*blocked, *blocked});
    else if (!first_layer_may_mix && channels <= few_channels)
      found.emplace_back();  // as a matrix product
    else if (whole(filters) && first_layer_may_mix && channels <= few_channels && p.num_group == 1)
      found.push_back({Layout::plain, *blocked});
  }
  const auto last = [](int64_t count) { return count == 1 ? Layout::plain : Layout::channels_last; };
  found.push_back({last(channels), last(filters)});
  found.emplace_back();
  return found;
}

template <class P>
std::vector<Layouts> candidates(const NodeView& node) {
  const P& p = node.as<P>();
  const auto channel_axis = is_channels_last(p.layout) ? static_cast<int>(p.kernel.size()) + 1 : 1;
  const auto channels = [&](const Tensor& tensor) { return tensor.shape[channel_axis]; };
  if constexpr (is_grad_data<P>)
    return candidates(p, channels(node.outputs[0]), channels(node.inputs[0]), false);
  else if constexpr (is_grad_weight<P>)
    return candidates(p, channels(node.inputs[1]), channels(node.inputs[0]), true);
  else
    return candidates(p, channels(node.inputs[0]), channels(node.outputs[0]), true);
}

// The first layouts for which oneDNN has more than its reference loops. To find them oneDNN describes a kernel for each
// candidate, which takes far longer than anything else here: call it once.
struct RatedLayouts : Layouts {
  Quality quality = Quality::reference;
};
template <class P>
std::optional<RatedLayouts> preferred_by_library(const NodeView& node) {
  const Problem problem = problem_of<P>(node);
  for (const Layouts& layouts : candidates<P>(node)) {
    const Quality quality = quality_of(node.as<P>(), problem.in(layouts.data, layouts.output));
    if (quality != Quality::reference) return RatedLayouts{layouts, quality};
  }
  return std::nullopt;
}

// ---- Choice of algorithm --------------------------------------------------------------------------------------------

template <class P>
ConvolutionWork work_of(const NodeView& node) {
  constexpr bool of_data = is_grad_data<P>;
  const ConvolutionSize size = size_of_node<P>(node);
  const int64_t data = size.data_size(), output = size.output_size();
  return {size,
          of_data ? size.group_channels() : size.group_filters(),
          of_data ? size.group_filters() : size.group_channels(),
          output * size.group_channels() * size.kernel_size(),
          data + output,
          of_data,
          is_grad_weight<P>};
}

// Depthwise: oneDNN has kernels for it in two dimensions.
bool has_kernels_by_channel(const ConvolutionWork& work, size_t axes) {
  const bool dilated = work.size.dilate != std::array<int64_t, 3>{1, 1, 1};
  return work.results == 1 && work.read == 1 && !dilated &&
         (axes == 2 || (axes == 1 && !work.of_data && !work.of_weight));
}

// For arrays whose shape names the channels last, which oneDNN reads without reorders.
Way way_without_reorders(const ConvolutionWork& work) {
  if (work.has_most_products_outside()) return Way::reordered;
  if (work.size.groups > 1 && (work.results < 16 || work.read < 16)) return Way::patches;
  if (work.size.groups == 1 && work.results <= 8 && work.read >= 16) return Way::patches;
  if (work.size.groups == 1 && work.of_data && work.read <= 8 && work.results >= 16) return Way::patches;
  return Way::reordered;
}

// How oneDNN computes in its preferred layouts.
Reordered reordered(const std::optional<RatedLayouts>& layouts) {
  if (!layouts || !is_optimised(layouts->quality)) return Reordered::unavailable;
  return layouts->quality == Quality::small_products ? Reordered::by_small_products : Reordered::directly;
}

template <class P>
Way way_of(const NodeView& node, const std::optional<RatedLayouts>& layouts) {
  const ConvolutionWork work = work_of<P>(node);
  if (has_kernels_by_channel(work, node.as<P>().kernel.size())) return Way::reordered;
  if (work.size.groups > 1 && work.results == 1 && work.read == 1) return Way::patches;
  if (work.size.channels_last) return way_without_reorders(work);
  const bool is_half = node.outputs[0].dtype != DType::float32;
  return is_half ? fastest_way_in_half(work, reordered(layouts)) : fastest_way(work, reordered(layouts));
}

// The problem with its arrays unchanged, or with reorders to layouts for which oneDNN has a better kernel: a single
// operator outside a plan has no layout pass.
template <class P>
Problem optimised_problem(const NodeView& node) {
  const P& p = node.as<P>();
  Problem given = problem_of<P>(node);
  const Quality quality = quality_of(p, given);
  if (is_optimised(quality)) return given;
  const std::optional<RatedLayouts> layouts = preferred_by_library<P>(node);
  if (!layouts || (quality == Quality::product && way_of<P>(node, layouts) == Way::plain)) return given;
  const bool is_better = quality == Quality::reference || is_optimised(layouts->quality);
  return is_better ? given.in(layouts->data, layouts->output) : given;
}

// In types other than float32 oneDNN does not write parts of a kernel's gradient: rows that are outside of
// the data at all positions, and in three dimensions more where no position has the whole depth of the kernel inside.
bool has_unwritten_rows(const Convolution& p, const Shape& data, const Shape& output) {
  for (size_t i = 0; i < p.kernel.size(); ++i) {
    const int axis = static_cast<int>(i) + (is_channels_last(p.layout) ? 1 : 2);
    std::vector<bool> is_met(static_cast<size_t>(p.kernel[i]), false);
    bool is_ever_whole = false;
    for (int64_t index = 0; index < output[axis]; ++index) {
      bool is_whole = true;
      for (int64_t row = 0; row < p.kernel[i]; ++row) {
        const int64_t position = index * p.stride[i] + row * p.dilate[i] - p.pad[i];
        const bool inside = position >= 0 && position < data[axis];
        if (inside) is_met[static_cast<size_t>(row)] = true;
        is_whole = is_whole && inside;
      }
      is_ever_whole = is_ever_whole || is_whole;
    }
    const bool is_depth = p.kernel.size() == 3 && i == 0;
    if (std::find(is_met.begin(), is_met.end(), false) != is_met.end() || (is_depth && !is_ever_whole)) return true;
  }
  return false;
}

template <class P>
std::string refuse(const NodeView& node) {
  if (std::string reason = refuse_arrays(node); !reason.empty()) return reason;
  if constexpr (std::is_same_v<P, ConvolutionFused>) {
    const P& p = node.as<P>();
    if (!p.act_type.empty() && !eltwise_of(p.act_type)) return refuse_activation(p.act_type);
  }
  const std::optional<RatedLayouts> layouts = preferred_by_library<P>(node);
  if (way_of<P>(node, layouts) == Way::patches) {
    const ConvolutionWork work = work_of<P>(node);
    const bool is_half = node.outputs[0].dtype != DType::float32;
    return join(is_half ? "float32" : "the product over patches", " is faster: channels read ", work.read, ", written ",
                work.results);
  }
  if (!layouts) return "oneDNN has only its reference loops for this";
  if (node.outputs[0].dtype == DType::float32) return "";
  if constexpr (is_grad_weight<P>) {
    if (node.as<P>().kernel.size() == 3) return "float32 is several times faster over three axes";
    if (has_unwritten_rows(node.as<P>(), node.inputs[1].shape, node.inputs[0].shape))
      return join("rows of the kernel beside the data in ", node.outputs[0].dtype);
  }
  const Problem problem = optimised_problem<P>(node);
  return Program::refuse(node, problem.threads(), [&](Program& program) { assemble<P>(program, node, problem); });
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  const Problem problem = optimised_problem<P>(node);
  return Program::build(node, problem.threads(), [&](Program& program) { assemble<P>(program, node, problem); });
}

template <class P>
std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  const P& p = node.as<P>();
  if (is_channels_last(p.layout)) return std::nullopt;
  const std::optional<RatedLayouts> found = preferred_by_library<P>(node);
  Layouts layouts = found.value_or(RatedLayouts{});
  // Activations that already have another layout need no reorder.
  const auto is_plain = [](const Tensor& tensor) { return tensor.layout == Layout::plain; };
  if (way_of<P>(node, found) == Way::plain && std::ranges::all_of(node.inputs, is_plain) &&
      quality_of(p, problem_of<P>(node)) == Quality::product)
    layouts = {};
  PreferredLayouts preferred{std::vector(node.inputs.size(), Layout::plain),
                             std::vector(node.outputs.size(), Layout::plain)};
  if constexpr (is_grad_data<P>) {
    preferred.inputs[0] = layouts.output;
    preferred.outputs[0] = layouts.data;
  } else if constexpr (is_grad_weight<P>) {
    preferred.inputs[0] = layouts.output;
    preferred.inputs[1] = layouts.data;
  } else {
    preferred.inputs[0] = layouts.data;
    preferred.outputs[0] = layouts.output;
    if constexpr (std::is_same_v<P, ConvolutionFused>)
      if (p.sum) preferred.inputs.back() = layouts.output;
  }
  return preferred;
}

template <class P>
void add(ImplementationTable& table) {
  table.add<P>({"onednn", refuse<P>, build<P>, preferred_layouts<P>, true, Tier::library});
}

}  // namespace

void add_conv(ImplementationTable& table) {
  add<Convolution>(table);
  add<ConvolutionFused>(table);
  add<ConvolutionGradData>(table);
  add<ConvolutionGradWeight>(table);
}

}  // namespace symbind::onednn
