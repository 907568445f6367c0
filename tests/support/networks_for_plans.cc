// Networks with the special cases of the passes: channels that fill a block of 8 or 16 and channels that do not,
// results with several readers, parameters with several users.
#include "symbind/symbind.h"

#include "examples/support/networks.h"
#include "tests/support/networks.h"

namespace symbind::testing {
namespace {

Symbol conv(const Symbol& data, int64_t filters, int64_t kernel, const std::string& name, bool no_bias = false) {
  const int64_t pad = kernel / 2;
  return convolution(data, {.kernel = {kernel, kernel}, .pad = {pad, pad}, .num_filter = filters, .no_bias = no_bias},
                     name);
}

Symbol norm(const Symbol& data, const std::string& name) { return batch_norm(data, {.fix_gamma = false}, name); }

Symbol mean_of_space(const Symbol& data) {
  return pooling(data, {.kernel = {1, 1}, .pool_type = "avg", .global_pool = true}, "mean_of_space");
}

NamedShapes images(int64_t batch, int64_t channels, int64_t height, int64_t width) {
  return {{"data", {batch, channels, height, width}}, {"softmax_label", {batch}}};
}

}  // namespace

Network unrolled_lstm() {
  constexpr int64_t batch = 3, inputs = 5, hidden = 8, steps = 4;
  const Symbol data = slice_channel(var("data"), {.num_outputs = steps, .axis = 1, .squeeze_axis = true}, "steps");
  const Symbol i2h_weight = var("i2h_weight"), i2h_bias = var("i2h_bias");
  const Symbol h2h_weight = var("h2h_weight"), h2h_bias = var("h2h_bias");
  Symbol h = var("h"), c = var("c");
  for (int64_t t = 0; t < steps; ++t) {
    const std::string name = join("t", t, "_");
    const Symbol from_data =
        fully_connected({data[static_cast<size_t>(t)], i2h_weight, i2h_bias}, {.num_hidden = 4 * hidden});
    const Symbol from_state = fully_connected({h, h2h_weight, h2h_bias}, {.num_hidden = 4 * hidden});
    const Symbol gates = slice_channel(from_data + from_state, {.num_outputs = 4}, name + "gates");
    c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[2]);
    h = sigmoid(gates[3]) * tanh(c);
  }
  return {
      "unrolled_lstm",
      softmax(fc(h, 6, "fc")),
      {{"data", {batch, steps, inputs}}, {"h", {batch, hidden}}, {"c", {batch, hidden}}, {"softmax_label", {batch}}},
      6};
}

Network inception_net() {
  const auto unit = [](const Symbol& data, int64_t filters, int64_t kernel, const std::string& name) {
    return relu(norm(conv(data, filters, kernel, name, true), name + "_bn"), name + "_relu");
  };
  const auto block = [&](const Symbol& data, int64_t filters, const std::string& name) {
    const Symbol one = unit(data, filters, 1, name + "1x1");
    const Symbol three = unit(unit(data, filters / 2, 1, name + "3x3_reduce"), filters + 3, 3, name + "3x3");
    const Symbol five = unit(unit(data, 5, 1, name + "5x5_reduce"), filters, 5, name + "5x5");
    const Symbol pooled = pooling(data, {.kernel = {3, 3}, .pool_type = "max", .stride = {1, 1}, .pad = {1, 1}});
    return concat({one, three, five, unit(pooled, 16, 1, name + "proj")}, {.num_args = 4}, name + "concat");
  };
  Symbol net = unit(var("data"), 16, 3, "stem");
  net = block(net, 16, "a_");  // 67 channels
  net = pooling(net, {.kernel = {2, 2}, .pool_type = "max", .stride = {2, 2}}, "pool");
  net = block(unit(net, 32, 1, "narrow"), 8, "b_");
  return {"inception_net", softmax(fc(mean_of_space(net), 5, "fc")), images(2, 3, 8, 9), 5};
}

Network added_gradients_net() {
  Symbol net = relu(norm(conv(var("data"), 16, 3, "conv1"), "bn1"), "relu1");
  net = relu(conv(net, 8, 3, "conv2"), "relu2");
  net = softmax(fc(mean_of_space(net), 4, "fc"));
  return {"added_gradients_net", net, images(3, 2, 6, 5), 4,
          std::map<std::string, std::string>{{"data", "add"},
                                             {"conv1_weight", "add"},
                                             {"conv2_weight", "write"},
                                             {"bn1_gamma", "add"},
                                             {"fc_weight", "write"},
                                             {"fc_bias", "add"}}};
}

Network intermediate_outputs_net() {
  const Symbol first = conv(var("data"), 16, 3, "conv1");
  const Symbol normed = norm(first, "bn1");
  const Symbol active = relu(normed, "relu1");
  const Symbol second = conv(active, 16, 3, "conv2");
  const Symbol sum = second + active;
  const Symbol last = relu(sum, "relu2");
  const Symbol classes = softmax(fc(mean_of_space(last), 4, "fc"));
  return {"intermediate_outputs_net", Symbol::group({normed, active, classes, sum, first}), images(2, 3, 5, 6), 4};
}

Network norm_before_convolution(int64_t pad) {
  Symbol net = norm(conv(var("data"), 16, 1, "conv1"), "bn1");
  net = convolution(net, {.kernel = {3, 3}, .pad = {pad, pad}, .num_filter = 16}, "conv2");
  net = norm(net, "bn2");
  net = convolution(net, {.kernel = {3, 3}, .stride = {2, 2}, .pad = {pad, pad}, .num_filter = 7}, "conv3");
  return {join("norm_before_convolution_pad", pad), softmax(fc(mean_of_space(net), 4, "fc")), images(2, 3, 9, 8), 4};
}

Network norms_of_all_kinds() {
  Symbol net = batch_norm(conv(var("data"), 16, 3, "conv1"), {.fix_gamma = true}, "fixed");
  net = batch_norm(conv(net, 16, 3, "conv2"), {.fix_gamma = false, .use_global_stats = true}, "global");
  net = relu(net, "relu2");
  const Symbol seen =
      batch_norm(conv(net, 16, 1, "conv3", true), {.fix_gamma = false, .output_mean_var = true}, "seen");
  net = batch_norm(relu(seen[0], "relu3"), {.fix_gamma = true, .use_global_stats = true}, "both");
  net = softmax(fc(mean_of_space(net), 4, "fc"));
  return {"norms_of_all_kinds", Symbol::group({net, seen[1], apply("BlockGrad", seen[2])}), images(3, 3, 6, 6), 4};
}

Network reused_operand_net() {
  const Symbol first = relu(norm(conv(var("data"), 16, 3, "conv1"), "bn1"), "relu1");
  const Symbol sum = norm(conv(first, 16, 3, "conv2"), "bn2") + first;  // `first` is read again below
  const Symbol again = conv(relu(sum, "relu2"), 16, 1, "conv3") + sum;  // and so is the sum
  const Symbol twice = conv(again, 16, 1, "conv4");
  const Symbol net = (twice + twice) * 0.5 + first * sum;
  return {"reused_operand_net", softmax(fc(mean_of_space(net), 4, "fc")), images(2, 3, 6, 6), 4};
}

Network dropout_net() {
  Symbol net = relu(norm(conv(var("data"), 16, 3, "conv1"), "bn1"), "relu1");
  net = relu(conv(dropout(net, {.p = 0.25}, "drop1"), 8, 3, "conv2"), "relu2");
  net = relu(fc(dropout(flatten(net), {.p = 0.5}, "drop2"), 12, "fc1"), "relu3");
  return {"dropout_net", softmax(fc(dropout(net, {.p = 0.5}, "drop3"), 4, "fc2")), images(3, 3, 5, 5), 4};
}

Network resnet(int depth, int version, int64_t width, int64_t image_size) {
  return {join("resnet", depth, "_v", version),
          networks::resnet({.depth = depth, .version = version, .classes = 10, .width = width}),
          images(2, 3, image_size, image_size), 10};
}

std::vector<Network> residual_networks() {
  return {resnet(18, 1, 16, 48), resnet(18, 2, 12, 48), resnet(50, 1, 4, 48), resnet(50, 2, 8, 48)};
}

std::vector<Network> networks_for_plans() {
  std::vector<Network> networks = all_networks();
  for (Network& network :
       std::vector<Network>{unrolled_lstm(), inception_net(), added_gradients_net(), intermediate_outputs_net(),
                            norm_before_convolution(0), norm_before_convolution(1), norms_of_all_kinds(),
                            reused_operand_net(), dropout_net()})
    networks.push_back(std::move(network));
  for (Network& network : residual_networks()) networks.push_back(std::move(network));
  return networks;
}

}  // namespace symbind::testing
