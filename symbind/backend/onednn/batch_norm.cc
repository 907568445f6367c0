// BatchNorm by oneDNN, where the channels lie last: there it is twice as fast as the plain loops, for other arrays four
// times slower. It speaks of the variance where our third output is the reciprocal deviation; the difference, the
// moving statistics and the gradient of a fixed gamma are a few loops over channels around the primitive.
#include "symbind/ops/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "symbind/backend/onednn/families.h"
#include "symbind/backend/onednn/program.h"

namespace symbind::onednn {
namespace {

using dnnl::normalization_flags;

struct Problem {
  BatchNorm params;
  int64_t channels;
  Desc data, per_channel;
  bool own_statistics;
  normalization_flags flags;
  float eps;

  Problem(const BatchNorm& p, const Tensor& tensor, bool is_train) : params(p) {
    const BatchNormSize size = size_of(p, tensor.shape);
    channels = size.channels;
    data = with_channels_last({size.outer, size.channels, size.inner, 1}, tensor.dtype);
    per_channel = dense({size.channels}, DType::float32);
    own_statistics = uses_batch_statistics(p, is_train);
    flags = normalization_flags::use_shift;
    if (!own_statistics) flags |= normalization_flags::use_global_stats;
    if (!p.fix_gamma) flags |= normalization_flags::use_scale;
    eps = static_cast<float>(p.eps);
  }

  dnnl::batch_normalization_forward::primitive_desc forward_descriptor() const {
    return {engine(), dnnl::prop_kind::forward_training, data, data, eps, flags, attributes()};
  }
};

// Turns what the primitive left in `var` into the reciprocal deviation, and updates the moving statistics.
void finish_own_statistics(const BatchNorm& p, int64_t channels, const Args& args) {
  float *moving_mean = args.state<float>(3), *moving_var = args.state<float>(4);
  float *mean = args.out<float>(1), *var = args.out<float>(2);
  for (int64_t c = 0; c < channels; ++c) {
    moving_mean[c] = static_cast<float>(moving_mean[c] * p.momentum + mean[c] * (1 - p.momentum));
    moving_var[c] = static_cast<float>(moving_var[c] * p.momentum + var[c] * (1 - p.momentum));
    var[c] = static_cast<float>(1 / std::sqrt(var[c] + p.eps));
  }
}

void show_moving_statistics(const BatchNorm& p, int64_t channels, const Args& args) {
  const float *moving_mean = args.in<float>(3), *moving_var = args.in<float>(4);
  float *mean = args.out<float>(1), *deviation = args.out<float>(2);
  for (int64_t c = 0; c < channels; ++c) {
    mean[c] = moving_mean[c];
    deviation[c] = static_cast<float>(1 / std::sqrt(moving_var[c] + p.eps));
  }
}

void assemble_forward(Program& program, const NodeView& node) {
  const Problem problem(node.as<BatchNorm>(), node.inputs[0], node.is_train);
  const auto descriptor = problem.forward_descriptor();
  const bool own = problem.own_statistics;
  std::vector<std::pair<int, Program::Array>> arrays{
      {DNNL_ARG_SRC, program.input(0, problem.data)},
      {DNNL_ARG_DST, program.output(0, problem.data)},
      {DNNL_ARG_SHIFT, program.input(2, problem.per_channel)},
      {DNNL_ARG_MEAN, own ? program.output(1, problem.per_channel) : program.input(3, problem.per_channel)},
      {DNNL_ARG_VARIANCE, own ? program.output(2, problem.per_channel) : program.input(4, problem.per_channel)}};
  if (!problem.params.fix_gamma) arrays.emplace_back(DNNL_ARG_SCALE, program.input(1, problem.per_channel));
  program.execute(dnnl::batch_normalization_forward(descriptor), descriptor, arrays);
  program.call([p = problem.params, channels = problem.channels, own](const Args& args) {
    if (own)
      finish_own_statistics(p, channels, args);
    else
      show_moving_statistics(p, channels, args);
  });
  program.in_place = {{0, 0}};
}

void assemble_backward(Program& program, const NodeView& node) {
  const Problem problem(node.as<BatchNormGrad>(), node.inputs[1], node.is_train);
  const dnnl::batch_normalization_backward::primitive_desc descriptor(
      engine(), dnnl::prop_kind::backward, problem.data, problem.data, problem.data, problem.eps, problem.flags,
      problem.forward_descriptor(), attributes());
  const auto variance = program.scratch(problem.per_channel);
  program.call([&program, variance, eps = problem.params.eps, channels = problem.channels](const Args& args) {
    const float* deviation = args.in<float>(4);
    float* result = program.float_data(variance, args);
    for (int64_t c = 0; c < channels; ++c)
      result[c] = static_cast<float>(1 / (static_cast<double>(deviation[c]) * deviation[c]) - eps);
  });
  std::vector<std::pair<int, Program::Array>> arrays{{DNNL_ARG_DIFF_DST, program.input(0, problem.data)},
                                                     {DNNL_ARG_SRC, program.input(1, problem.data)},
                                                     {DNNL_ARG_MEAN, program.input(3, problem.per_channel)},
                                                     {DNNL_ARG_VARIANCE, variance},
                                                     {DNNL_ARG_DIFF_SRC, program.output(0, problem.data)},
                                                     {DNNL_ARG_DIFF_SHIFT, program.output(2, problem.per_channel)}};
  if (!problem.params.fix_gamma) {
    arrays.emplace_back(DNNL_ARG_SCALE, program.input(2, problem.per_channel));
    arrays.emplace_back(DNNL_ARG_DIFF_SCALE, program.output(1, problem.per_channel));
  }
  program.execute(dnnl::batch_normalization_backward(descriptor), descriptor, arrays);
  if (problem.params.fix_gamma)
    program.call([channels = problem.channels](const Args& args) { std::fill_n(args.out<float>(1), channels, 0.0f); });
  program.in_place = {{0, 0}};
}

template <class P>
void assemble(Program& program, const NodeView& node) {
  if constexpr (std::is_same_v<P, BatchNormGrad>)
    assemble_backward(program, node);
  else
    assemble_forward(program, node);
}

template <class P>
std::string refuse(const NodeView& node) {
  if (std::string reason = refuse_arrays(node); !reason.empty()) return reason;
  if (node.outputs[0].dtype == DType::float32) return "";
  return Program::refuse(node, [&](Program& program) { assemble<P>(program, node); });
}

// Does nothing stand behind the channels in memory?
template <class P>
bool channels_lie_last(const NodeView& node) {
  return node.outputs[0].layout == Layout::channels_last || size_of(node.as<P>(), node.outputs[0].shape).inner == 1;
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  if (!channels_lie_last<P>(node)) return build_plain(node);
  return Program::build(node, threads_for(node.outputs[0].shape.size(), thread_elements),
                        [&](Program& program) { assemble<P>(program, node); });
}

// Follows the data; statistics and parameters have one axis and no layout.
template <class P>
std::optional<LayoutWish> likes(const NodeView& node) {
  if (node.inputs[std::is_same_v<P, BatchNormGrad> ? 1 : 0].layout == Layout::plain) return std::nullopt;
  if (node.inputs[0].shape.axis(node.as<P>().axis, node.where()) != 1) return std::nullopt;
  LayoutWish wish{std::vector(node.inputs.size(), Layout::plain), std::vector(node.outputs.size(), Layout::plain)};
  wish.inputs[0] = wish.outputs[0] = Layout::channels_last;
  if (std::is_same_v<P, BatchNormGrad>) wish.inputs[1] = Layout::channels_last;
  return wish;
}

template <class P>
void add(ImplementationTable& table) {
  table.add<P>({"onednn", refuse<P>, build<P>, likes<P>, true});
}

}  // namespace

void add_batch_norm(ImplementationTable& table) {
  add<BatchNorm>(table);
  add<BatchNormGrad>(table);
}

}  // namespace symbind::onednn
