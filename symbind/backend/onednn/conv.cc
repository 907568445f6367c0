// Convolution by oneDNN. The kernels behind channels-last activations run near the processor's peak; for plain ones the
// library falls back to im2col and a matrix product, so channels-last is what these implementations ask for. Weights
// are plain in memory and are brought into the primitive's own order at each run: they are small beside the
// activations.
#include "symbind/ops/conv.h"

#include "symbind/backend/onednn/families.h"
#include "symbind/backend/onednn/program.h"

namespace symbind::onednn {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

// A convolution in oneDNN's terms: descriptions of the arrays, and the numbers in its convention. The activations are
// wanted both plain or both channels-last: for a mixture oneDNN has only its reference loops.
struct Problem {
  Desc given_data, given_output;  // as they lie
  Desc data, weight, bias, output;
  Dims stride, dilate, pad;
  int64_t products;

  Problem(const Convolution& p, const Tensor& data_tensor, const Tensor& weight_tensor, const Tensor& output_tensor) {
    const bool behind = channels_behind(p.layout);
    given_data = data = activations(data_tensor, behind);
    given_output = output = activations(output_tensor, behind);
    if (!behind && (lies_last(data_tensor) || lies_last(output_tensor))) {
      data = with_channels_last(data.get_dims(), data_tensor.dtype);
      output = with_channels_last(output.get_dims(), output_tensor.dtype);
      // With one channel both layouts are the same bytes.
      if (data_tensor.shape[1] == 1) given_data = data;
      if (output_tensor.shape[1] == 1) given_output = output;
    }
    weight = describe_weight(p, weight_tensor, behind);
    bias = dense({p.num_filter}, weight_tensor.dtype);
    stride = p.stride;
    pad = p.pad;
    for (const int64_t step : p.dilate) dilate.push_back(step - 1);
    products = output_tensor.shape.size() * (weight_tensor.shape.size() / p.num_filter);
  }

  int threads() const { return threads_for(products, thread_products); }

 private:
  static bool lies_last(const Tensor& tensor) { return tensor.layout == Layout::channels_last && tensor.shape[1] > 1; }

  // (groups,) filters, channels of a group, kernel…
  static Desc describe_weight(const Convolution& p, const Tensor& tensor, bool behind) {
    const auto spatial = static_cast<int>(p.kernel.size());
    const int64_t channels = tensor.shape[behind ? spatial + 1 : 1];
    Dims dims;
    if (p.num_group > 1) dims.push_back(p.num_group);
    dims.push_back(p.num_filter / p.num_group);
    dims.push_back(channels);
    dims.insert(dims.end(), p.kernel.begin(), p.kernel.end());
    std::vector<int> order;
    const int channel_axis = p.num_group > 1 ? 2 : 1;
    for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis)
      if (axis != channel_axis || !behind) order.push_back(axis);
    if (behind) order.push_back(channel_axis);
    return dense(dims, tensor.dtype, order);
  }
};

// The same array in whatever order the primitive likes best.
Desc any(const Desc& desc) { return Desc(desc.get_dims(), desc.get_data_type(), dnnl::memory::format_tag::any); }

dnnl::convolution_forward::primitive_desc forward_descriptor(const Problem& problem, bool with_bias,
                                                             const dnnl::primitive_attr& attr) {
  return {engine(),
          prop_kind::forward_training,
          algorithm::convolution_direct,
          problem.data,
          any(problem.weight),
          with_bias ? problem.bias : Desc(),
          problem.output,
          problem.stride,
          problem.dilate,
          problem.pad,
          problem.pad,
          attr};
}

void assemble_forward(Program& program, const Problem& problem, bool with_bias,
                      const std::optional<Eltwise>& activation) {
  auto descriptor = forward_descriptor(problem, with_bias, attributes(activation));
  const bool activate_apart = activation && is_gemm(descriptor);
  if (activate_apart) descriptor = forward_descriptor(problem, with_bias, attributes());
  const auto data = program.reordered(program.input(0, problem.given_data), problem.data);
  const auto weight = program.reordered(program.input(1, problem.weight), descriptor.weights_desc());
  const auto given = program.output(0, problem.given_output), output = program.writable(given, problem.output);
  std::vector<std::pair<int, Program::Array>> arrays{
      {DNNL_ARG_SRC, data}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, output}};
  if (with_bias) arrays.emplace_back(DNNL_ARG_BIAS, program.input(2, problem.bias));
  program.execute(dnnl::convolution_forward(descriptor), descriptor, arrays);
  if (activate_apart) program.activate(output, *activation);
  program.finish(output, given);
}

void assemble_grad_data(Program& program, const Problem& problem) {
  const dnnl::convolution_backward_data::primitive_desc descriptor(
      engine(), algorithm::convolution_direct, problem.data, any(problem.weight), problem.output, problem.stride,
      problem.dilate, problem.pad, problem.pad, forward_descriptor(problem, false, attributes()), attributes());
  const auto out_grad = program.reordered(program.input(0, problem.given_output), problem.output);
  const auto weight = program.reordered(program.input(1, problem.weight), descriptor.weights_desc());
  const auto given = program.output(0, problem.given_data), data_grad = program.writable(given, problem.data);
  program.execute(dnnl::convolution_backward_data(descriptor), descriptor,
                  {{DNNL_ARG_DIFF_DST, out_grad}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_SRC, data_grad}});
  program.finish(data_grad, given);
}

void assemble_grad_weight(Program& program, const Problem& problem, bool with_bias) {
  const dnnl::convolution_backward_weights::primitive_desc descriptor(
      engine(), algorithm::convolution_direct, problem.data, any(problem.weight), with_bias ? problem.bias : Desc(),
      problem.output, problem.stride, problem.dilate, problem.pad, problem.pad,
      forward_descriptor(problem, with_bias, attributes()), attributes());
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

// ---- The three kinds of node, each with its arrays in their places --------------------------------------------------

template <class P>
std::optional<Eltwise> activation_of(const P& params) {
  if constexpr (std::is_same_v<P, ConvolutionActivation>)
    return eltwise_of(params.act_type);
  else
    return std::nullopt;
}

template <class P>
Problem problem_of(const NodeView& node) {
  const P& p = node.as<P>();
  if constexpr (std::is_same_v<P, ConvolutionGradData>)
    return {p, node.outputs[0], node.inputs[1], node.inputs[0]};
  else if constexpr (std::is_same_v<P, ConvolutionGradWeight>)
    return {p, node.inputs[1], node.inputs[2], node.inputs[0]};
  else
    return {p, node.inputs[0], node.inputs[1], node.outputs[0]};
}

template <class P>
void assemble(Program& program, const NodeView& node) {
  const P& p = node.as<P>();
  const Problem problem = problem_of<P>(node);
  if constexpr (std::is_same_v<P, ConvolutionGradData>)
    assemble_grad_data(program, problem);
  else if constexpr (std::is_same_v<P, ConvolutionGradWeight>)
    assemble_grad_weight(program, problem, !p.no_bias);
  else
    assemble_forward(program, problem, !p.no_bias, activation_of(p));
}

template <class P>
std::string refuse(const NodeView& node) {
  if (std::string reason = refuse_arrays(node); !reason.empty()) return reason;
  if constexpr (std::is_same_v<P, ConvolutionActivation>)
    if (std::string reason = refuse_activation(node.as<P>().act_type); !reason.empty()) return reason;
  if (node.outputs[0].dtype == DType::float32) return "";
  return Program::refuse(node, [&](Program& program) { assemble<P>(program, node); });
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  return Program::build(node, problem_of<P>(node).threads(), [&](Program& program) { assemble<P>(program, node); });
}

Layout liked(const Tensor& tensor) { return tensor.shape[1] == 1 ? Layout::plain : Layout::channels_last; }

template <class P>
std::optional<LayoutWish> likes(const NodeView& node) {
  if (channels_behind(node.as<P>().layout)) return std::nullopt;
  LayoutWish wish{std::vector(node.inputs.size(), Layout::plain), std::vector(node.outputs.size(), Layout::plain)};
  wish.inputs[0] = liked(node.inputs[0]);
  if constexpr (std::is_same_v<P, ConvolutionGradWeight>)
    wish.inputs[1] = liked(node.inputs[1]);
  else
    wish.outputs[0] = liked(node.outputs[0]);
  return wish;
}

template <class P>
void add(ImplementationTable& table) {
  table.add<P>({"onednn", refuse<P>, build<P>, likes<P>, true});
}

}  // namespace

void add_conv(ImplementationTable& table) {
  add<Convolution>(table);
  add<ConvolutionActivation>(table);
  add<ConvolutionGradData>(table);
  add<ConvolutionGradWeight>(table);
}

}  // namespace symbind::onednn
