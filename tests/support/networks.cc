#include "tests/support/networks.h"

#include <cmath>
#include <random>

#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"

namespace symbind::testing {

Symbol var(const std::string& name) { return Symbol::variable(name); }

Symbol fc(const Symbol& data, int64_t num_hidden, const std::string& name) {
  return apply("FullyConnected", data, {{"num_hidden", std::to_string(num_hidden)}}, name);
}

Symbol relu(const Symbol& data, const std::string& name) {
  return apply("Activation", data, {{"act_type", "relu"}}, name);
}

Symbol softmax(const Symbol& data, const std::string& name) { return apply("SoftmaxOutput", data, {}, name); }

namespace {

Symbol conv(const Symbol& data, int64_t filters, const std::string& kernel, const std::string& pad,
            const std::string& name) {
  return apply("Convolution", data, {{"kernel", kernel}, {"num_filter", std::to_string(filters)}, {"pad", pad}}, name);
}

Symbol max_pool(const Symbol& data, const std::string& name) {
  return apply("Pooling", data, {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pool_type", "max"}}, name);
}

Symbol batch_norm(const Symbol& data, const std::string& name) {
  return apply("BatchNorm", data, {{"fix_gamma", "False"}}, name);
}

bool is_label(const std::string& name) { return name.find("label") != std::string::npos; }

}  // namespace

Network mlp() {
  Symbol net = relu(fc(var("data"), 16, "fc1"), "relu1");
  net = relu(fc(net, 8, "fc2"), "relu2");
  return {"mlp", softmax(fc(net, 4, "fc3")), {{"data", {6, 12}}, {"softmax_label", {6}}}, 4};
}

Network lenet() {
  Symbol net = apply("Activation", conv(var("data"), 6, "(3, 3)", "(1, 1)", "conv1"), {{"act_type", "tanh"}}, "tanh1");
  net = max_pool(net, "pool1");
  net = max_pool(relu(conv(net, 8, "(3, 3)", "(0, 0)", "conv2"), "relu2"), "pool2");
  net = relu(fc(apply("Flatten", net, {}, "flatten"), 16, "fc1"), "relu3");
  return {"lenet", softmax(fc(net, 10, "fc2")), {{"data", {4, 1, 14, 14}}, {"softmax_label", {4}}}, 10};
}

Network batch_norm_net() {
  const Symbol first = relu(batch_norm(conv(var("data"), 8, "(3, 3)", "(1, 1)", "conv1"), "bn1"), "relu1");
  const Symbol branch = batch_norm(conv(first, 8, "(3, 3)", "(1, 1)", "conv2"), "bn2");
  Symbol net = relu(apply("elemwise_add", {first, branch}, {}, "sum"), "relu2");
  net = apply("Pooling", net, {{"global_pool", "True"}, {"pool_type", "avg"}, {"kernel", "(1, 1)"}}, "pool");
  return {"batch_norm_net", softmax(fc(net, 5, "fc")), {{"data", {4, 3, 6, 6}}, {"softmax_label", {4}}}, 5};
}

Network shared_weights_net() {
  const Symbol data = var("data"), weight = var("weight"), bias = var("bias");
  const Attributes size{{"num_hidden", "8"}};
  Symbol net = apply("FullyConnected", {data, weight, bias}, size, "first");
  net = apply("Activation", net, {{"act_type", "sigmoid"}}, "squash");
  net = apply("FullyConnected", {net, weight, bias}, size, "second");
  net = net + 0.5 * data;
  return {"shared_weights_net", softmax(net), {{"data", {5, 8}}, {"softmax_label", {5}}}, 8};
}

Network several_outputs_net() {
  const Symbol body = relu(fc(var("data"), 10, "fc1"), "relu1");
  const Symbol classes = softmax(fc(body, 3, "fc2"));
  const Symbol number = apply("LinearRegressionOutput", fc(body, 2, "fc3"), {}, "regression");
  const Symbol seen = apply("BlockGrad", body, {}, "seen");
  return {"several_outputs_net",
          Symbol::group({classes, number, seen}),
          {{"data", {6, 7}}, {"softmax_label", {6}}, {"regression_label", {6, 2}}},
          3};
}

std::vector<Network> all_networks() {
  return {mlp(), lenet(), batch_norm_net(), shared_weights_net(), several_outputs_net()};
}

NDArray parameter_values(const std::string& name, const Shape& shape, uint64_t seed) {
  if (name.ends_with("gamma")) return random_array(shape, seed, 0.5, 1.5);
  std::vector<double> values = random_array(shape, seed, -0.5, 0.5).to_vector<double>();
  const double inputs = shape.rank() > 1 && shape[0] > 0 ? static_cast<double>(shape.size() / shape[0]) : 1;
  if (name.ends_with("weight") && inputs > 16)
    for (double& value : values) value *= 4 / std::sqrt(inputs);
  return array(values, shape);
}

Symbol random_network(uint32_t seed, int64_t columns) {
  std::mt19937 engine(seed);
  const auto pick = [&](size_t count) { return static_cast<size_t>(engine() % count); };
  std::vector<Symbol> values{var("a"), var("b")};
  const int nodes = 5 + static_cast<int>(engine() % 25);
  for (int i = 0; i < nodes; ++i) {
    const Symbol x = values[pick(values.size())], y = values[pick(values.size())];
    switch (engine() % 12) {
      case 0:
        values.push_back(apply("negative", x));
        break;
      case 1:
        values.push_back(apply("tanh", x));
        break;
      case 2:
        values.push_back(relu(x, ""));
        break;
      case 3:
        values.push_back(x + y);
        break;
      case 4:
        values.push_back(x * y);
        break;
      case 5:
        values.push_back(apply("Reshape", apply("Reshape", x, {{"shape", "(-1,)"}}), {{"shape", "(4, -1)"}}));
        break;
      case 6:
        values.push_back(apply("transpose", apply("Reshape", x, {{"shape", "(-1, 4)"}})));
        break;
      case 7:
        values.push_back(fc(x, columns, "fc" + std::to_string(i)));
        break;
      case 8:
        values.push_back(apply("Dropout", x, {{"p", "0.5"}}));
        break;
      case 9: {  // pieces of an array, put together in another order
        const Symbol parts = apply("SliceChannel", x, {{"num_outputs", "2"}, {"axis", "0"}});
        values.push_back(apply("Concat", {parts[1], apply("tanh", parts[0])}, {{"dim", "0"}, {"num_args", "2"}}));
        break;
      }
      case 10: {
        const Symbol joined =
            apply("Concat", {apply("exp", x), apply("negative", y)}, {{"dim", "0"}, {"num_args", "2"}});
        const int begin = static_cast<int>(pick(5));
        values.push_back(apply("slice_axis", pick(2) ? apply("tanh", joined) : joined,
                               {{"axis", "0"}, {"begin", std::to_string(begin)}, {"end", std::to_string(begin + 4)}}));
        break;
      }
      case 11:
        values.push_back(apply("slice_axis", apply("stack", {x, relu(y, "")}, {{"num_args", "2"}}),
                               {{"axis", "0"}, {"begin", "1"}, {"end", "2"}}));
        values.back() = apply("Reshape", values.back(), {{"shape", "(4, -1)"}});
        break;
    }
  }
  std::vector<Symbol> outputs{values.back()};
  for (size_t extra = pick(3); extra > 0; --extra) outputs.push_back(values[pick(values.size())]);
  return Symbol::group(outputs);
}

void set_values(Executor& executor, int64_t classes, uint64_t seed) {
  const auto names = executor.symbol().list_arguments();
  for (size_t i = 0; i < names.size(); ++i) {
    const NDArray& values = executor.arg_arrays()[i];
    const NDArray wanted =
        is_label(names[i]) ? random_array(values.shape(), seed + i, 0, static_cast<double>(classes - 1), DType::int32)
                           : parameter_values(names[i], values.shape(), seed + i);
    wanted.copyto(values);
  }
  const auto aux = executor.symbol().list_auxiliary_states();
  for (size_t i = 0; i < aux.size(); ++i) {
    const NDArray& values = executor.aux_arrays()[i];
    const bool variance = aux[i].find("var") != std::string::npos;
    random_array(values.shape(), seed + 1000 + i, variance ? 0.5 : -0.25, variance ? 1.5 : 0.25).copyto(values);
  }
}

ExecutorPtr bind_with_values(const Network& network, Context context, const SimpleBindOptions& options) {
  auto executor = simple_bind(network.symbol, context, network.inputs, options);
  set_values(*executor, network.classes);
  return executor;
}

std::vector<NDArray> out_grads_for(const Executor& executor, uint64_t seed) {
  std::vector<NDArray> grads;
  for (const NDArray& output : executor.outputs())
    grads.push_back(random_array(output.shape(), seed++, -0.25, 0.25, output.dtype(), output.context()));
  return grads;
}

std::vector<NDArray> train(Executor& executor, const NamedShapes& inputs, int steps, double lr) {
  const auto names = executor.symbol().list_arguments();
  const std::vector<NDArray> out_grads = out_grads_for(executor);
  for (int step = 0; step < steps; ++step) {
    executor.forward(true);
    executor.backward(out_grads);
    for (size_t i = 0; i < names.size(); ++i) {
      NDArray weight = executor.arg_arrays()[i];
      const NDArray& grad = executor.grad_arrays()[i];
      if (!grad || inputs.contains(names[i])) continue;
      invoke("sgd_update", {weight, grad}, {{"lr", join(lr)}}, {.out = {weight}});
    }
  }
  std::vector<NDArray> results;
  for (const auto* arrays : {&executor.outputs(), &executor.arg_arrays(), &executor.aux_arrays()})
    for (const NDArray& each : *arrays) results.push_back(each.copy());
  return results;
}

}  // namespace symbind::testing
