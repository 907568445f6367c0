// Builds a residual network, says what it is made of and what memory it takes, and trains it for a step on random
// images.
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <string>

#include "symbind/symbind.h"

#include "examples/support/networks.h"
#include "examples/support/options.h"

using namespace symbind;

namespace {

struct Training {
  networks::ResNet network;
  int64_t image_size = 224, batch_size = 8, contexts = 1, steps = 1;
};

std::string megabytes(size_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1 << 20) << " MiB";
  return out.str();
}

void print_parameters(const Module& module) {
  const DataParallelExecutorGroup& group = *module.exec_group();
  int64_t numbers = 0;
  for (const auto& per_device : group.param_arrays()) numbers += per_device[0].size();
  std::cout << "  parameters         " << module.param_names().size() << " arrays, " << numbers << " numbers, "
            << module.param_names().front() << " to " << module.param_names().back() << "\n"
            << "  auxiliary states   " << module.aux_names().size() << " arrays\n";
  for (const auto& [name, shape] : module.output_shapes())
    std::cout << "  output             " << name << " " << shape << "\n";
}

void print_memory(const Module& module) {
  for (const ExecutorPtr& executor : module.exec_group()->execs()) {
    const MemoryReport memory = executor->memory();
    std::cout << "  memory on " << std::left << std::setw(9) << executor->context().str() << megabytes(memory.arena)
              << " for activations (" << megabytes(memory.unshared) << " if nothing were shared), "
              << megabytes(memory.arguments) << " for arguments, " << megabytes(memory.gradients) << " for gradients\n";
  }
}

// The mean of -log(probability of the right class).
double loss_of(const NDArray& probabilities, const NDArray& label) {
  const auto values = probabilities.to_vector<float>(), right = label.to_vector<float>();
  const auto classes = static_cast<size_t>(probabilities.shape()[1]);
  double total = 0;
  for (size_t row = 0; row < right.size(); ++row)
    total -= std::log(std::max(values[row * classes + static_cast<size_t>(right[row])], 1e-12f));
  return total / static_cast<double>(right.size());
}

void run(const Training& options) {
  std::vector<Context> contexts;
  for (int64_t i = 0; i < options.contexts; ++i) contexts.push_back(cpu(static_cast<int>(i)));
  const Shape images{options.batch_size, 3, options.image_size, options.image_size};

  seed(1);
  Module module(networks::resnet(options.network), {.context = contexts});
  module.bind({{"data", images}}, {{"softmax_label", {options.batch_size}}});
  std::cout << "ResNet-" << options.network.depth << " v" << options.network.version << " for " << images << "\n";
  print_parameters(module);
  module.init_params({.initializer = std::make_shared<init::Xavier>(
                          init::XavierOptions{.rnd_type = "gaussian", .factor_type = "in", .magnitude = 2})});
  module.init_optimizer({.optimizer = "sgd", .optimizer_params = {{"learning_rate", 0.01}, {"momentum", 0.9}}});

  std::vector<float> classes;
  for (int64_t i = 0; i < options.batch_size; ++i)
    classes.push_back(static_cast<float>(i * 7 % options.network.classes));
  const NDArray label = array(classes, {options.batch_size});
  const NDArray data = random::normal({.shape = {options.batch_size, 3, options.image_size, options.image_size}});
  const DataBatch batch{.data = {data}, .label = {label}};

  for (int64_t step = 1; step <= options.steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    module.forward_backward(batch);
    module.update();
    const double loss = loss_of(module.get_outputs()[0], label);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (step == 1) print_memory(module);  // planned with the first step
    std::cout << "  step " << step << std::fixed << std::setprecision(3) << "             loss " << loss << ", "
              << seconds.count() << " s\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("resnet", [&] {
    Training training;
    int64_t depth = training.network.depth;
    std::string version = "v2";
    examples::Options options("resnet",
                              "Builds a residual network, says what it is made of and what memory it takes, "
                              "and trains it on random images.");
    options.add("--depth", depth, "its layers: 18, 34, 50, 101 or 152")
        .add_choice("--version", version, {"v1", "v2"},
                    "v1: convolution, normalisation, activation; v2: the pre-activation form")
        .add("--image-size", training.image_size, "pixels a side, 32 or more", 32)
        .add("--batch-size", training.batch_size, "images a step")
        .add("--classes", training.network.classes, "what an image may show", 2)
        .add("--contexts", training.contexts, "CPU contexts that share a batch")
        .add("--steps", training.steps, "steps to train");
    options.parse(argc, argv);
    training.network.depth = static_cast<int>(depth);
    training.network.version = version == "v1" ? 1 : 2;
    run(training);
  });
}
