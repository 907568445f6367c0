// Pooling by oneDNN: maximum and mean, and the gradient of the mean. It follows the layout of its input: a reorder
// would cost more than it saves.
#include "symbind/ops/pool.h"

#include "symbind/backend/onednn/max_pool_grad.h"
#include "symbind/backend/onednn/program.h"
#include "symbind/backend/pooling.h"
#include "symbind/ops/conv.h"
#include "symbind/passes/target.h"

namespace symbind::onednn {
namespace {

constexpr int64_t fewest_channels = 16;  // that fill a vector

struct Problem {
  PoolingSize size;
  dnnl::algorithm algorithm;
  Dims kernel, stride, dilate, left, right;

  Problem(const Pooling& p, const PoolingSize& known) : size(known) {
    algorithm = p.pool_type == "max" ? dnnl::algorithm::pooling_max
                : size.count_padding ? dnnl::algorithm::pooling_avg_include_padding
                                     : dnnl::algorithm::pooling_avg_exclude_padding;
    for (auto axis = static_cast<size_t>(3 - size.rank); axis < 3; ++axis) {
      kernel.push_back(size.kernel[axis]);
      stride.push_back(size.stride[axis]);
      dilate.push_back(0);
      left.push_back(size.pad[axis]);
      right.push_back(reach(axis) - size.in[axis]);
    }
  }

  // Where the last window along an axis starts and ends.
  int64_t last_start(size_t axis) const { return (size.out[axis] - 1) * size.stride[axis] - size.pad[axis]; }
  int64_t reach(size_t axis) const { return last_start(axis) + size.kernel[axis]; }
  int threads() const { return threads_for(size.batch * size.channels * size.in_size(), thread_elements); }
};

template <class P>
Problem problem_of(const NodeView& node) {
  const P& p = node.as<P>();
  if constexpr (std::is_same_v<P, PoolingGrad>)
    return {p, size_of(p, node.inputs[1].shape, node.inputs[0].shape)};
  else
    return {p, size_of(p, node.inputs[0].shape, node.outputs[0].shape)};
}

// A maximum is never less than the lowest number of its type. oneDNN starts from the lowest float32, which is -infinity
// in half precision.
dnnl::post_ops after_pooling(const Problem& problem, const Desc& output) {
  dnnl::post_ops after;
  if (problem.algorithm != dnnl::algorithm::pooling_max || output.get_data_type() == dnnl::memory::data_type::f32)
    return after;
  const bool is_float16 = output.get_data_type() == dnnl::memory::data_type::f16;
  after.append_eltwise(dnnl::algorithm::eltwise_clip, is_float16 ? lowest<float16>() : lowest<bfloat16>(),
                       std::numeric_limits<float>::infinity());
  return after;
}

dnnl::pooling_forward::primitive_desc forward_descriptor(const Problem& problem, dnnl::prop_kind kind, const Desc& data,
                                                         const Desc& output) {
  const dnnl::primitive_attr after = attributes(after_pooling(problem, output));
  return {engine(),       kind,           problem.algorithm, data,          output, problem.stride,
          problem.kernel, problem.dilate, problem.left,      problem.right, after};
}

void assemble_forward(Program& program, const NodeView& node) {
  const Problem problem = problem_of<Pooling>(node);
  const bool channels_last = problem.size.channels_last;
  const Desc data = activations(node.inputs[0], channels_last), output = activations(node.outputs[0], channels_last);
  const auto descriptor = forward_descriptor(problem, dnnl::prop_kind::forward_inference, data, output);
  program.execute(dnnl::pooling_forward(descriptor), descriptor,
                  {{DNNL_ARG_SRC, program.input(0, data)}, {DNNL_ARG_DST, program.output(0, output)}});
}

void assemble_backward(Program& program, const NodeView& node) {
  const Problem problem = problem_of<PoolingGrad>(node);
  const bool channels_last = problem.size.channels_last;
  const Desc data = activations(node.outputs[0], channels_last), output = activations(node.inputs[0], channels_last);
  const dnnl::pooling_backward::primitive_desc descriptor(
      engine(), problem.algorithm, data, output, problem.stride, problem.kernel, problem.dilate, problem.left,
      problem.right, forward_descriptor(problem, dnnl::prop_kind::forward_training, data, output), attributes());
  program.execute(dnnl::pooling_backward(descriptor), descriptor,
                  {{DNNL_ARG_DIFF_DST, program.input(0, output)}, {DNNL_ARG_DIFF_SRC, program.output(0, data)}});
}

std::string refuse_windows(const Problem& problem) {
  for (size_t axis = 0; axis < 3; ++axis) {
    if (problem.last_start(axis) >= problem.size.in[axis]) return "a window without elements";
    const bool overhangs = problem.reach(axis) > problem.size.in[axis] + problem.size.pad[axis];
    if (overhangs && problem.algorithm == dnnl::algorithm::pooling_avg_include_padding)
      return "a mean over a window that reaches beyond the padding";
  }
  return "";
}

template <class P>
std::string refuse(const NodeView& node) {
  if (std::string reason = refuse_arrays(node); !reason.empty()) return reason;
  const P& p = node.as<P>();
  if (p.pool_type != "max" && p.pool_type != "avg") return "pool_type " + p.pool_type;
  const bool is_float = node.outputs[0].dtype == DType::float32;
  if constexpr (std::is_same_v<P, PoolingGrad>)
    if (p.pool_type == "max") return is_float ? "" : join("element type ", node.outputs[0].dtype);
  const Problem problem = problem_of<P>(node);
  if (std::string reason = refuse_windows(problem); !reason.empty()) return reason;
  return Program::refuse(node, problem.threads(), [&](Program& program) {
    if constexpr (std::is_same_v<P, PoolingGrad>)
      assemble_backward(program, node);
    else
      assemble_forward(program, node);
  });
}

// For plain arrays oneDNN first makes the channels adjacent. For one window over a plane that takes longer than the
// sum, and with few channels vectors are mostly empty. Over one axis it computes window by window.
bool is_better_plain(const NodeView& node, const Problem& problem, size_t data) {
  return node.inputs[data].layout == Layout::plain && node.outputs[0].layout == Layout::plain &&
         !problem.size.channels_last &&
         (problem.size.rank == 1 || problem.size.out_size() == 1 || problem.size.channels < fewest_channels);
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  if (is_better_plain(node, problem_of<Pooling>(node), 0)) return build_plain(node);
  return Program::build(node, problem_of<Pooling>(node).threads(),
                        [&](Program& program) { assemble_forward(program, node); });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const Problem problem = problem_of<PoolingGrad>(node);
  if (problem.algorithm == dnnl::algorithm::pooling_max) {
    PoolingSize size = problem.size;
    if (const int64_t block = block_of(node.outputs[0].layout); block > 1) {  // each block is treated as an image
      size.batch *= size.channels / block;
      size.channels = block;
    }
    const bool side_by_side = size.channels_last || node.outputs[0].layout != Layout::plain;
    return side_by_side ? build_max_pool_grad(size) : build_plain(node);
  }
  if (is_better_plain(node, problem, 1)) return build_plain(node);
  return Program::build(node, problem.threads(), [&](Program& program) { assemble_backward(program, node); });
}

// The layout of the data decides, in backward as well: the layer that computed the data expects its gradient in that
// layout.
template <class P>
std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  const Tensor& data = node.inputs[std::is_same_v<P, PoolingGrad> ? 1 : 0];
  if (data.layout == Layout::plain) return std::nullopt;
  if (is_channels_last(node.as<P>().layout)) return std::nullopt;
  const Layout layout = data.layout;
  return PreferredLayouts{std::vector(node.inputs.size(), layout), {layout}};
}

}  // namespace

void add_pool(ImplementationTable& table) {
  table.add<Pooling>({"onednn", refuse<Pooling>, build_forward, preferred_layouts<Pooling>, true, Tier::library});
  table.add<PoolingGrad>(
      {"onednn", refuse<PoolingGrad>, build_backward, preferred_layouts<PoolingGrad>, true, Tier::library});
}

}  // namespace symbind::onednn
