#include <algorithm>

#include "tests/support/random_graph_generator.h"

namespace symbind::testing {

RandomGraphGenerator::Made RandomGraphGenerator::convolve(const Value& x) {
  if (x.spatial() < 1 || x.spatial() > 3) return {};
  const auto axes = static_cast<size_t>(x.spatial());
  Convolution params;
  const int64_t kernel = pick({1, 1, 3, 3, 5, 2});
  params.kernel = Tuple(axes, kernel);
  if (chance(0.1)) params.kernel[0] = 1;
  const int64_t pad = chance(0.6) ? kernel / 2 : chance(0.9) ? between(0, 1) : between(2, 4);
  if (pad > 0) params.pad = Tuple(axes, pad);
  if (chance(0.05)) params.pad = Tuple(axes, 0), params.pad.back() = between(0, 2);
  if (chance(0.2)) params.stride = Tuple(axes, 2);
  if (chance(0.04)) params.stride = Tuple(axes, 1), params.stride.back() = 3;
  if (chance(0.07)) params.dilate = Tuple(axes, 2);
  params.num_filter = chance(0.4) ? x.shape[1] : pick<int64_t>({3, 8, 16, 16, 24, 32, 7, 1});
  params.no_bias = chance(0.5);
  if (chance(0.12) && x.shape[1] % 2 == 0 && params.num_filter % 2 == 0) params.num_group = 2;
  if (chance(0.05) && params.num_filter == x.shape[1]) params.num_group = x.shape[1];
  if (x.spatial() == 2 && chance(0.05)) {
    params.layout = "NHWC";
    params.num_group = 1;
    return add(convolution(x.symbol, params, fresh("last")), x.magnitude + 0.5);
  }
  const std::string name = fresh("conv");
  const double magnitude = x.magnitude + 0.5;
  // Sometimes the weights of an earlier one.
  const auto fits = [&](const auto& weight) {
    return weight.channels == x.shape[1] && weight.kernel.size() == params.kernel.size();
  };
  if (const auto found = std::find_if(weights_.begin(), weights_.end(), fits); found != weights_.end() && chance(0.3)) {
    params.num_group = 1;
    params.kernel = found->kernel;
    params.num_filter = found->filters;
    return add(convolution({{"data", x.symbol}, {"weight", found->symbol}}, params, name), magnitude);
  }
  const Symbol weight = Symbol::variable(name + "_weight");
  auto made = add(convolution({{"data", x.symbol}, {"weight", weight}}, params, name), magnitude);
  if (made && params.num_group == 1) weights_.push_back({weight, x.shape[1], params.num_filter, params.kernel});
  return made;
}

RandomGraphGenerator::Made RandomGraphGenerator::deconvolve(const Value& x) {
  if (x.spatial() < 1 || x.spatial() > 2) return {};
  const auto axes = static_cast<size_t>(x.spatial());
  Deconvolution params;
  params.kernel = Tuple(axes, between(1, 3));
  if (chance(0.5)) params.stride = Tuple(axes, 2);
  if (params.kernel[0] > 1 && chance(0.5)) params.pad = Tuple(axes, 1);
  params.num_filter = pick<int64_t>({3, 8, 16});
  params.no_bias = chance(0.5);
  return add(deconvolution(x.symbol, params, fresh("deconv")), x.magnitude + 0.5);
}

RandomGraphGenerator::Made RandomGraphGenerator::connect(const Value& x) {
  FullyConnected params;
  params.num_hidden = chance(0.1) ? 96 : pick({4, 7, 8, 16});
  params.no_bias = chance(0.4);
  params.flatten = chance(0.8);
  return add(fully_connected(x.symbol, params, fresh("fc")), x.magnitude + 0.5);
}

RandomGraphGenerator::Made RandomGraphGenerator::normalise(const Value& x) {
  if (x.rank() < 2) return {};
  BatchNorm params;
  if (chance(0.1)) params.axis = chance(0.5) ? -1 : between(0, x.rank() - 1);
  const int64_t channels = x.shape[static_cast<size_t>(params.axis < 0 ? x.rank() - 1 : params.axis)];
  if (Shape(x.shape).size() / channels < 4) return {};
  params.fix_gamma = chance(0.4);
  params.use_global_stats = chance(0.2);
  params.output_mean_var = chance(0.07);
  params.eps = pick({1e-3, 2e-3, 1e-2});
  params.momentum = pick({0.9, 0.5});
  const std::string name = fresh("bn");
  Inputs inputs(std::vector<Symbol>{});
  inputs.add("data", x.symbol);
  // Sometimes the states of an earlier one, with its parameters or without; but a state is on one device.
  const auto fits = [&](const Norm& norm) { return norm.channels == channels; };
  if (const auto found = std::find_if(norms_.begin(), norms_.end(), fits);
      found != norms_.end() && !grouped_ && chance(0.15)) {
    const bool states_alone = chance(0.5);
    for (const Symbol& variable : found->variables) {
      const std::string& full = variable.entries()[0].node->name;
      const std::string input = full.substr(full.find('_') + 1);
      if (input.starts_with("moving") || !states_alone) inputs.add(input, variable);
    }
  } else {
    Norm& kept = norms_.emplace_back(Norm{{}, channels});
    for (const char* input : {"gamma", "beta", "moving_mean", "moving_var"}) {
      kept.variables.push_back(Symbol::variable(name + "_" + input));
      inputs.add(input, kept.variables.back());
    }
  }
  const auto made = add(batch_norm(inputs, params, name), 3);
  return made && params.output_mean_var ? values_[values_.size() - 3] : made;
}

RandomGraphGenerator::Made RandomGraphGenerator::normalise_otherwise(const Value& x) {
  switch (between(0, 4)) {
    case 0:
      if (x.spatial() != 2) return {};
      return add(lrn(x.symbol, {.alpha = 0.1, .nsize = 3}, fresh("lrn")), x.magnitude);
    case 1:
      if (x.spatial() < 1 || Shape(x.shape).size() / (x.shape[0] * x.shape[1]) < 4) return {};
      return add(instance_norm(x.symbol, {.eps = 1e-2}, fresh("instance")), 3);
    case 2:
      if (x.shape.back() < 4) return {};
      return add(layer_norm(x.symbol, {.eps = 1e-2}, fresh("layer")), 3);
    case 3:
      return add(softmax(x.symbol, {.axis = between(0, x.rank() - 1)}), 1);
    default:
      return add(l2_normalization(x.symbol, {.eps = 1e-2}), 1);
  }
}

RandomGraphGenerator::Made RandomGraphGenerator::activate(const Value& x) {
  if (chance(0.15)) {
    const auto type = pick<std::string>({"leaky", "elu", "prelu", "selu", "gelu"});
    if (type == "prelu" && x.rank() < 2) return {};
    return add(leaky_relu(x.symbol, {.act_type = type}, fresh(type)), 1.8 * x.magnitude);
  }
  const auto type = pick<std::string>({"relu", "relu", "relu", "sigmoid", "tanh", "softrelu", "softsign"});
  return add(activation(x.symbol, {.act_type = type}, fresh(type)), type == "relu" ? x.magnitude : 1);
}

RandomGraphGenerator::Made RandomGraphGenerator::pool(const Value& x) {
  if (x.spatial() < 1 || x.spatial() > 3) return {};
  const auto axes = static_cast<size_t>(x.spatial());
  Pooling params;
  params.pool_type = chance(0.1) ? "sum" : pick<std::string>({"max", "avg"});
  params.global_pool = chance(0.15);
  const int64_t kernel = between(2, 3);
  params.kernel = Tuple(axes, kernel);
  params.stride = Tuple(axes, between(1, 2));
  if (chance(0.5)) params.pad = Tuple(axes, 1);
  // Otherwise a window may be entirely outside the image: the maximum of no elements.
  if ((kernel == 3 || params.pad.empty()) && *std::min_element(x.shape.begin() + 2, x.shape.end()) >= kernel &&
      chance(0.3))
    params.pooling_convention = "full";
  if (params.pool_type == "avg" && chance(0.4)) params.count_include_pad = chance(0.5);
  if (x.spatial() == 2 && params.pooling_convention != "full" && chance(0.05)) params.layout = "NHWC";
  return add(pooling(x.symbol, params, fresh("pool")), params.pool_type == "sum" ? 9 * x.magnitude : x.magnitude);
}

RandomGraphGenerator::Made RandomGraphGenerator::drop(const Value& x) {
  if (grouped_) return {};  // devices draw different numbers
  Dropout params{.p = 0.25};
  if (chance(0.2)) params.mode = "always";
  if (chance(0.2)) params.axes = {between(0, x.rank() - 1)};
  return add(dropout(x.symbol, params, fresh("drop")), 1.4 * x.magnitude);
}

// A loss is read further like any other array; its gradient does not read that of its output.
RandomGraphGenerator::Made RandomGraphGenerator::lose(const Value& x) {
  if (chance(0.3)) return add(make_loss(x.symbol, {.grad_scale = 0.5}, fresh("loss")), x.magnitude);
  const Symbol label = add_variable(x.shape, "label");
  return chance(0.5) ? add(linear_regression_output(x.symbol, label, {.grad_scale = 0.5}, fresh("linear")), x.magnitude)
                     : add(logistic_regression_output(x.symbol, label, {}, fresh("logistic")), 1);
}

}  // namespace symbind::testing
