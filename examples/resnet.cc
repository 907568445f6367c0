// Builds a residual network, says what it is made of and what memory it takes, and trains it for a step on random
// images.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>

#include "symbind/symbind.h"

#include "examples/support/networks.h"

using namespace symbind;

namespace {

struct Options {
  networks::ResNet network;
  int64_t image_size = 224;
  int64_t batch_size = 8;
  int contexts = 1;
  int steps = 1;
};

constexpr const char* usage =
    R"(usage: resnet [--depth N] [--version v1|v2] [--image-size N] [--batch-size N] [--classes N]
              [--contexts N] [--steps N]

  --depth N        18, 34, 50, 101 or 152 (50)
  --version V      v1: convolution, normalisation, activation; v2: the pre-activation form (v2)
  --image-size N   pixels a side, 32 or more (224)
  --batch-size N   images a step (8)
  --classes N      (1000)
  --contexts N     CPU contexts that share a batch (1)
  --steps N        steps to train (1)
)";

int64_t number_in(const std::string& option, const std::string& text, int64_t least) {
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  require(!text.empty() && *end == '\0' && value >= least, option, " takes a whole number of ", least,
          " or more: ", text, "\n\n", usage);
  return value;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") {
      std::cout << usage;
      std::exit(0);
    }
    require(option.starts_with("--"), "unknown argument ", option, "\n\n", usage);
    require(i + 1 < argc, option, " needs a value\n\n", usage);
    const std::string value = argv[++i];
    if (option == "--depth")
      options.network.depth = static_cast<int>(number_in(option, value, 1));
    else if (option == "--version") {
      require(value == "v1" || value == "v2", "--version is v1 or v2: ", value, "\n\n", usage);
      options.network.version = value == "v1" ? 1 : 2;
    } else if (option == "--image-size")
      options.image_size = number_in(option, value, 32);
    else if (option == "--batch-size")
      options.batch_size = number_in(option, value, 1);
    else if (option == "--classes")
      options.network.classes = number_in(option, value, 2);
    else if (option == "--contexts")
      options.contexts = static_cast<int>(number_in(option, value, 1));
    else if (option == "--steps")
      options.steps = static_cast<int>(number_in(option, value, 1));
    else
      fail("unknown option ", option, "\n\n", usage);
  }
  return options;
}

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

void run(const Options& options) {
  std::vector<Context> contexts;
  for (int i = 0; i < options.contexts; ++i) contexts.push_back(cpu(i));
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
  const NDArray data =
      invoke(random_normal, {}, {.shape = {options.batch_size, 3, options.image_size, options.image_size}})[0];
  const DataBatch batch{.data = {data}, .label = {label}};

  for (int step = 1; step <= options.steps; ++step) {
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
  try {
    run(parse_options(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "resnet: " << error.what() << "\n";
    return 1;
  }
}
