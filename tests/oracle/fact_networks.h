// The networks of facts.py, built again in C++ under the same names. Parameters are text, spelt as Python's str()
// spells them, so that even their texts can be compared.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "symbind/graph/builder.h"

namespace symbind::testing::facts {

inline Symbol var(const std::string& name) { return Symbol::variable(name); }

inline Symbol from_nothing(const std::string& op, const Attributes& attributes) {
  return apply(op, Inputs(std::vector<Symbol>{}), attributes);
}

inline Symbol mlp() {
  Symbol net = apply("FullyConnected", var("data"), {{"num_hidden", "128"}}, "fc1");
  net = apply("Activation", net, {{"act_type", "relu"}}, "relu1");
  net = apply("FullyConnected", net, {{"num_hidden", "10"}}, "fc2");
  return apply("SoftmaxOutput", net, {}, "softmax");
}

inline Symbol mlp_automatic_names() {
  Symbol net = apply("FullyConnected", var("data"), {{"num_hidden", "8"}});
  net = apply("Activation", net, {{"act_type", "tanh"}});
  net = apply("FullyConnected", net, {{"num_hidden", "4"}, {"no_bias", "True"}});
  net = apply("Activation", net, {{"act_type", "sigmoid"}});
  net = apply("Dropout", net, {{"p", "0.25"}});
  return apply("SoftmaxOutput", net);
}

inline Symbol lenet() {
  const Attributes tanh{{"act_type", "tanh"}};
  const Attributes pool{{"pool_type", "max"}, {"kernel", "(2, 2)"}, {"stride", "(2, 2)"}};
  Symbol net = apply("Convolution", var("data"), {{"kernel", "(5, 5)"}, {"num_filter", "20"}}, "conv1");
  net = apply("Pooling", apply("Activation", net, tanh, "tanh1"), pool, "pool1");
  net = apply("Convolution", net, {{"kernel", "(5, 5)"}, {"num_filter", "50"}}, "conv2");
  net = apply("Pooling", apply("Activation", net, tanh, "tanh2"), pool, "pool2");
  net = apply("FullyConnected", apply("Flatten", net, {}, "flatten"), {{"num_hidden", "500"}}, "fc1");
  net = apply("FullyConnected", apply("Activation", net, tanh, "tanh3"), {{"num_hidden", "10"}}, "fc2");
  return apply("SoftmaxOutput", net, {}, "softmax");
}

inline Symbol residual() {
  const auto norm = [](const std::string& fix_gamma) {
    return Attributes{{"fix_gamma", fix_gamma}, {"eps", "2e-05"}, {"momentum", "0.9"}};
  };
  Symbol net = apply("BatchNorm", var("data"), norm("True"), "bn_data");
  net = apply("Convolution", net,
              {{"num_filter", "8"},
               {"kernel", "(3, 3)"},
               {"stride", "(1, 1)"},
               {"pad", "(1, 1)"},
               {"no_bias", "True"},
               {"workspace", "256"}},
              "conv0");
  for (int unit = 0; unit < 2; ++unit) {
    const std::string name = "unit" + std::to_string(unit), stride = unit == 0 ? "(1, 1)" : "(2, 2)";
    Symbol left = apply("BatchNorm", net, norm("False"), name + "_bn1");
    left = apply("Activation", left, {{"act_type", "relu"}}, name + "_relu1");
    Symbol right = net;
    if (unit == 1)
      right =
          apply("Convolution", left,
                {{"num_filter", "16"}, {"kernel", "(1, 1)"}, {"stride", "(2, 2)"}, {"no_bias", "True"}}, name + "_sc");
    left = apply("Convolution", left,
                 {{"num_filter", std::to_string(8 * (unit + 1))},
                  {"kernel", "(3, 3)"},
                  {"stride", stride},
                  {"pad", "(1, 1)"},
                  {"no_bias", "True"}},
                 name + "_conv1");
    net = left + right;
  }
  net = apply("Pooling", net, {{"global_pool", "True"}, {"kernel", "(7, 7)"}, {"pool_type", "avg"}}, "pool1");
  net = apply("FullyConnected", apply("Flatten", net), {{"num_hidden", "10"}}, "fc1");
  return apply("SoftmaxOutput", net, {}, "softmax");
}

inline Symbol concat() {
  const Symbol data = var("data");
  std::vector<Symbol> towers;
  for (const int k : {1, 3, 5}) {
    const std::string kernel = join("(", k, ", ", k, ")"), pad = join("(", k / 2, ", ", k / 2, ")");
    towers.push_back(
        apply("Convolution", data, {{"kernel", kernel}, {"pad", pad}, {"num_filter", join(k + 1)}}, join("tower", k)));
  }
  Symbol net = apply("Concat", towers, {}, "concat");
  net = apply("Concat", {net, data}, {{"dim", "1"}});
  return apply("Pooling", net, {{"kernel", "(2, 2)"}, {"pool_type", "avg"}, {"pooling_convention", "full"}}, "pool");
}

inline Symbol concat_many() {
  std::vector<Symbol> parts;
  for (int i = 0; i < 12; ++i) parts.push_back(var(join("v", i)));
  return apply("Concat", parts, {{"dim", "0"}}, "all");
}

inline Symbol arithmetic() {
  const Symbol a = var("a"), b = var("b");
  Symbol net = (a + b) * 2 - 1;
  net = net / 3.5 + 1.0;
  net = 2 - net;
  net = 1.5 / net;
  net = pow(net, 2);
  const Symbol negated = -net, difference = a - b, product = negated * difference;
  return pow(product / (a * b), b);
}

inline Symbol comparisons() {
  const Symbol a = var("a"), b = var("b");
  const Symbol equal = a == b, not_equal = a != b, more = a > b, at_least = a >= b, less = a < b, at_most = a <= b;
  const Symbol equal_1 = a == 1, not_equal_1 = a != 1, more_s = a > 0.5, at_least_s = a >= 2, less_s = a < 1e-7,
               at_most_s = a <= -3;
  return Symbol::group(
      {equal, not_equal, more, at_least, less, at_most, equal_1, not_equal_1, more_s, at_least_s, less_s, at_most_s});
}

inline Symbol attributes() {
  const Symbol data = Symbol::variable("data", {.attr = {{"mood", "angry"}, {"__lr_mult__", "0.5"}}});
  const Symbol weight = Symbol::variable("fc1_weight", {.attr = {{"__lr_mult__", "2"}, {"__wd_mult__", "0.0"}},
                                                        .shape = {4, 0},
                                                        .dtype = DType::float32,
                                                        .init = R"(["constant", {"value": 0.5}])"});
  Symbol net = data;
  {
    AttrScope scope({{"ctx_group", "stage1"}, {"__lr_mult__", "3"}});
    net = apply("FullyConnected", {net, weight}, {{"num_hidden", "4"}}, "fc1");
    net = apply("Activation", net, {{"act_type", "relu"}, {"__mirror_stage__", "True"}}, "act1");
  }
  AttrScope scope(Attributes{{"ctx_group", "stage2"}});
  {
    AttrScope inner(Attributes{{"__depth__", "2"}});
    net = apply("FullyConnected", net, {{"num_hidden", "3"}}, "fc2");
  }
  return apply("SoftmaxOutput", net, {}, "softmax");
}

inline Symbol grouped() {
  const Symbol data = var("data");
  const Symbol fc = apply("FullyConnected", data, {{"num_hidden", "6"}}, "fc");
  const Symbol first = apply("SoftmaxOutput", fc, {}, "softmax");
  const Symbol second = apply("LinearRegressionOutput", apply("sum", fc, {{"axis", "1"}}), {}, "reg");
  return Symbol::group({first, apply("BlockGrad", fc, {}, "seen"), second, data});
}

inline Symbol batch_norm_outputs() {
  const Symbol net = apply("BatchNorm", var("data"), {{"output_mean_var", "True"}, {"axis", "-1"}}, "bn");
  return Symbol::group({net[0] * 2, net[2], net[1]});
}

inline Symbol shared_weights() {
  const Symbol weight = var("shared_weight"), bias = var("shared_bias");
  const Attributes five{{"num_hidden", "5"}};
  const Symbol left = apply("FullyConnected", {var("left"), weight, bias}, five, "fc_left");
  const Symbol right = apply("FullyConnected", {var("right"), weight, bias}, five, "fc_right");
  const Symbol square = apply("square", left - right);
  return apply("MakeLoss", apply("sum", square, {{"axis", "1"}}), {{"grad_scale", "0.5"}, {"normalization", "batch"}},
               "loss");
}

inline Symbol composed() {
  const Symbol stem = apply("FullyConnected", var("x"), {{"num_hidden", "3"}}, "stem");
  const Symbol head = apply("FullyConnected", var("y"), {{"num_hidden", "2"}}, "head");
  return head({{"y", stem}}, "joined");
}

inline Symbol prefixed() {
  Symbol net = var("data");
  {
    Prefix prefix("net_");
    net = apply("FullyConnected", net, {{"num_hidden", "3"}});
    net = apply("Activation", net, {{"act_type", "relu"}}, "act");
  }
  return apply("FullyConnected", net, {{"num_hidden", "2"}});
}

inline Symbol shapes() {
  Symbol net = apply("Reshape", var("data"), {{"shape", "(0, -4, 2, -1, -2)"}});
  net = apply("transpose", net, {{"axes", "(0, 2, 1, 3)"}});
  net = apply("slice", net, {{"begin", "(0, None, 1)"}, {"end", "(None, 2, None)"}, {"step", "(1, 1, None)"}});
  net = apply("Cast", net, {{"dtype", "float64"}});
  net = apply("mean", net, {{"axis", "(2, 3)"}, {"keepdims", "True"}});
  return apply("broadcast_add", {net, var("offset")});
}

inline Symbol creation() {
  const Symbol zeros = from_nothing("_zeros", {{"shape", "(2, 3)"}, {"dtype", "float32"}});
  const Symbol ones = from_nothing("_ones", {{"shape", "(2, 3)"}, {"dtype", "int32"}});
  const Symbol sum = zeros + apply("Cast", ones, {{"dtype", "float32"}}) + var("x");
  return sum + from_nothing("_random_uniform", {{"low", "-1"}, {"high", "1"}, {"shape", "(2, 3)"}});
}

inline Symbol backward_inference() {
  const Symbol fc = apply("FullyConnected", var("x"), {{"num_hidden", "3"}}, "fc");
  return apply("Concat", {fc + var("y"), var("z")}, {{"dim", "1"}}, "both");
}

inline Symbol inputs_of_label() {
  const Symbol fc = apply("FullyConnected", var("data"), {{"num_hidden", "4"}}, "fc");
  return apply("SoftmaxOutput", {fc, var("target")},
               {{"grad_scale", "0.5"},
                {"use_ignore", "True"},
                {"ignore_label", "0"},
                {"multi_output", "False"},
                {"normalization", "valid"}},
               "sm");
}

inline Symbol single_variable() { return var("alone"); }

inline Symbol internal_output() { return mlp().get_internals()["relu1_output"]; }

inline const std::map<std::string, std::function<Symbol()>>& networks() {
  static const std::map<std::string, std::function<Symbol()>> all{
      {"mlp", mlp},
      {"mlp_automatic_names", mlp_automatic_names},
      {"lenet", lenet},
      {"residual", residual},
      {"concat", concat},
      {"concat_many", concat_many},
      {"arithmetic", arithmetic},
      {"comparisons", comparisons},
      {"attributes", attributes},
      {"grouped", grouped},
      {"batch_norm_outputs", batch_norm_outputs},
      {"shared_weights", shared_weights},
      {"composed", composed},
      {"prefixed", prefixed},
      {"shapes", shapes},
      {"creation", creation},
      {"backward_inference", backward_inference},
      {"inputs_of_label", inputs_of_label},
      {"single_variable", single_variable},
      {"internal_output", internal_output},
  };
  return all;
}

}  // namespace symbind::testing::facts
