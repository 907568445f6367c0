// A user-defined operator: its parameters, its definition, how it runs on CPUs and GPUs, and a network that trains with
// it.
#include "symbind/passes/own_operator.h"

#include <cmath>
#include <iostream>

#include "symbind/symbind.h"

#include "examples/own_operator.h"
#include "examples/support/options.h"

using namespace symbind;

// ---- Parameters and builders ----------------------------------------------------------------------------------------

struct ScaledSwish {
  double beta = 1;
};
inline constexpr Builder<ScaledSwish> scaled_swish;

struct ScaledSwishGrad : ScaledSwish {};
inline constexpr Builder<ScaledSwishGrad> scaled_swish_grad;

// ---- What the operators are -----------------------------------------------------------------------------------------

OpDef define_forward(Op<ScaledSwish> op) {
  return op.doc("x · sigmoid(beta · x), element by element.")
      .param(&ScaledSwish::beta, "beta", "how steep the step at 0 is")
      .gradient([](const ScaledSwish& params, Grad& grad) {
        grad.set("data", scaled_swish_grad(grad.out_grad(), grad.input("data"), {params}));
      });
}

OpDef define_gradient(Op<ScaledSwishGrad> op) {
  return op.doc("The gradient of scaled_swish.")
      .param(&ScaledSwish::beta, "beta", "that of scaled_swish")
      .inputs({"out_grad", "data"});
}

// ---- How they run ---------------------------------------------------------------------------------------------------

float sigmoid_of(float x) { return 1 / (1 + std::exp(-x)); }

void run_forward(const ScaledSwish& params, const KernelCall& call) {
  const float* x = call.inputs[0].as<float>();
  float* y = call.outputs[0].as<float>();
  const auto beta = static_cast<float>(params.beta);
  for (int64_t i = 0; i < call.outputs[0].shape.size(); ++i) y[i] = x[i] * sigmoid_of(beta * x[i]);
}

void run_gradient(const ScaledSwishGrad& params, const KernelCall& call) {
  const float *dy = call.inputs[0].as<float>(), *x = call.inputs[1].as<float>();
  float* dx = call.outputs[0].as<float>();
  const auto beta = static_cast<float>(params.beta);
  for (int64_t i = 0; i < call.outputs[0].shape.size(); ++i) {
    const float s = sigmoid_of(beta * x[i]);
    dx[i] = dy[i] * s * (1 + beta * x[i] * (1 - s));
  }
}

void register_scaled_swish() {
  register_operator<ScaledSwish>("scaled_swish", define_forward);
  register_operator<ScaledSwishGrad>("scaled_swish_grad", define_gradient);
  // Each element is read before it is written: the result may overwrite an input.
  register_kernel<ScaledSwish>(DeviceType::cpu, run_forward, {.in_place = {{0, 0}}});
  register_kernel<ScaledSwishGrad>(DeviceType::cpu, run_gradient, {.in_place = {{0, 0}, {1, 0}}});
#ifdef WITH_GPU_KERNELS
  register_kernel<ScaledSwish>(DeviceType::gpu, [](const ScaledSwish& params, const KernelCall& call) {
    queue_scaled_swish(call.stream, call.inputs[0].as<float>(), call.outputs[0].as<float>(),
                       call.outputs[0].shape.size(), static_cast<float>(params.beta));
  });
  register_kernel<ScaledSwishGrad>(DeviceType::gpu, [](const ScaledSwishGrad& params, const KernelCall& call) {
    queue_scaled_swish_grad(call.stream, call.inputs[0].as<float>(), call.inputs[1].as<float>(),
                            call.outputs[0].as<float>(), call.outputs[0].shape.size(), static_cast<float>(params.beta));
  });
#endif
}

// ---- A network that uses them ---------------------------------------------------------------------------------------

// Fits y = |x| in so many steps and returns the mean squared error.
double fit_absolute_value(Context context, int64_t steps) {
  Symbol net = Symbol::variable("data");
  net = fully_connected(net, {.num_hidden = 8}, "fc1");
  net = scaled_swish(net, {.beta = 2}, "swish1");
  net = fully_connected(net, {.num_hidden = 1}, "fc2");
  net = linear_regression_output(net, Symbol::variable("label"), {}, "loss");

  std::vector<float> x(64), y(64);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i) / 32 - 1;
    y[i] = std::fabs(x[i]);
  }
  seed(1);
  ExecutorPtr executor = simple_bind(net, context, {{"data", {64, 1}}, {"label", {64, 1}}}, {.grad_req = "parameters"});
  const init::Xavier xavier;
  for (const auto& [name, gradient] : executor->grad_dict()) {
    NDArray weight = executor->arg_dict().at(name);
    xavier(InitDesc{name}, weight);
  }
  executor->arg_dict().at("data").copy_from(x);
  executor->arg_dict().at("label").copy_from(y);
  ProgressBar bar(steps, 40);
  for (int64_t step = 0; step < steps; ++step) {
    executor->forward(/*is_train=*/true);
    executor->backward();
    for (const auto& [name, gradient] : executor->grad_dict()) {
      const NDArray& weight = executor->arg_dict().at(name);
      invoke(sgd_update, {weight, gradient}, {.lr = 0.1, .rescale_grad = 1.0 / 64}, {.out = {weight}});
    }
    bar({.nbatch = step});
  }
  const std::vector<float> found = executor->forward()[0].to_vector<float>();
  double error = 0;
  for (size_t i = 0; i < y.size(); ++i) error += (found[i] - y[i]) * (found[i] - y[i]) / static_cast<double>(y.size());
  return error;
}

int main(int argc, char** argv) {
  return examples::run_program("own_operator", [&] {
    int64_t steps = 500;
    examples::Options options("own_operator",
                              "Trains a small network with a user-defined operator, on every kind of device there is.");
    options.add("--steps", steps, "updates of the network");
    options.parse(argc, argv);
    register_scaled_swish();
    std::vector<Context> contexts{cpu()};
    if (num_gpus() > 0) contexts.push_back(gpu());
    for (const Context context : contexts) {
      const NDArray x = array({-1, 0, 1}, context);
      std::cout << context << ": " << scaled_swish(x, {.beta = 2}) << '\n';
      const double error = fit_absolute_value(context, steps);
      std::cout << context << ": mean squared error " << error << '\n';
    }
  });
}
