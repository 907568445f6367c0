// Trains two networks on handwritten digits with nothing but an executor and a loop, tests them on digits they have not
// seen, saves them, and loads them again to read a few digits.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

#include "symbind/symbind.h"

using namespace symbind;

namespace {

constexpr int64_t batch_size = 64;
constexpr int64_t classes = 10;

struct Options {
  std::string data = "data";
  std::string out = "digits";
  int epochs = 12;
};

// ---- Networks ----------------------------------------------------------------------------------------------------

Symbol mlp() {
  Symbol net = Symbol::variable("data");
  net = fully_connected(net, {.num_hidden = 128}, "fc1");
  net = activation(net, {.act_type = "relu"}, "relu1");
  net = fully_connected(net, {.num_hidden = 64}, "fc2");
  net = activation(net, {.act_type = "relu"}, "relu2");
  net = fully_connected(net, {.num_hidden = classes}, "fc3");
  return softmax_output(net, {}, "softmax");
}

Symbol lenet() {
  Symbol net = Symbol::variable("data");
  net = convolution(net, {.kernel = {5, 5}, .num_filter = 20}, "conv1");
  net = activation(net, {.act_type = "tanh"}, "tanh1");
  net = pooling(net, {.kernel = {2, 2}, .pool_type = "max", .stride = {2, 2}}, "pool1");
  net = convolution(net, {.kernel = {5, 5}, .num_filter = 50}, "conv2");
  net = activation(net, {.act_type = "tanh"}, "tanh2");
  net = pooling(net, {.kernel = {2, 2}, .pool_type = "max", .stride = {2, 2}}, "pool2");
  net = fully_connected(flatten(net), {.num_hidden = 500}, "fc1");
  net = activation(net, {.act_type = "tanh"}, "tanh3");
  net = fully_connected(net, {.num_hidden = classes}, "fc2");
  return softmax_output(net, {}, "softmax");
}

struct Network {
  std::string name;
  Symbol symbol;
  double learning_rate;
};

// ---- Digits ------------------------------------------------------------------------------------------------------

struct Digits {
  int64_t count = 0, height = 0, width = 0;
  std::vector<float> pixels;  // 0 to 1, image after image
  std::vector<float> labels;

  const float* image(int64_t index) const { return pixels.data() + index * height * width; }
  Shape shape(int64_t images) const { return {images, 1, height, width}; }
};

Digits read_digits(const std::string& folder, const std::string& part) {
  const std::string images_file = folder + "/" + part + "-images-idx3-ubyte.gz";
  const std::string labels_file = folder + "/" + part + "-labels-idx1-ubyte.gz";
  const IdxArray images = read_idx(images_file), labels = read_idx(labels_file);
  require(images.shape.rank() == 3, "[", images_file, "] holds an array ", images.shape, ", not images");
  require(labels.shape == Shape({images.shape[0]}), "[", labels_file, "] holds ", labels.shape,
          " labels for the images ", images.shape);
  Digits digits{
      .count = images.shape[0], .height = images.shape[1], .width = images.shape[2], .pixels = {}, .labels = {}};
  for (const uint8_t value : images.values) digits.pixels.push_back(static_cast<float>(value) / 255);
  digits.labels.assign(labels.values.begin(), labels.values.end());
  return digits;
}

// ---- Progress ----------------------------------------------------------------------------------------------------

// One line that is written over and over on a terminal; into a file, a line per epoch.
class Progress {
 public:
  void show(const std::string& line, bool whole_epoch) {
    if (live_)
      std::cout << "\r\033[K" << line << std::flush;
    else if (whole_epoch)
      std::cout << line << "\n" << std::flush;
  }
  void finish(const std::string& line) { std::cout << (live_ ? "\r\033[K" : "") << line << "\n" << std::flush; }

 private:
  bool live_ = ::isatty(STDOUT_FILENO) != 0;
};

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string bar(double part) {
  constexpr int width = 24;
  std::string text;
  const long full = std::lround(part * width);
  for (int i = 0; i < width; ++i) text += i < full ? "█" : "░";
  return text;
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// ---- Training ----------------------------------------------------------------------------------------------------

int64_t best_class(const float* probabilities) {
  return std::max_element(probabilities, probabilities + classes) - probabilities;
}

// Sums over the rows of a batch of probabilities.
struct Score {
  int64_t count = 0, right = 0;
  double loss = 0;

  void add(const std::vector<float>& probabilities, const std::vector<float>& labels) {
    for (size_t row = 0; row < labels.size(); ++row) {
      const float* of_row = probabilities.data() + row * classes;
      const auto label = static_cast<int64_t>(labels[row]);
      right += best_class(of_row) == label;
      loss -= std::log(std::max(of_row[label], 1e-12f));
      ++count;
    }
  }
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(count); }
  double mean_loss() const { return loss / static_cast<double>(count); }
};

bool is_parameter(const std::string& argument) { return argument != "data" && argument != "softmax_label"; }

void initialize(const Executor& executor) {
  const init::Xavier xavier({.magnitude = 2});
  const auto attributes = executor.symbol().attr_dict();
  for (auto& [name, array] : executor.arg_dict())
    if (is_parameter(name)) {
      const auto found = attributes.find(name);
      NDArray parameter = array;
      xavier(InitDesc{name, found == attributes.end() ? Attributes{} : found->second}, parameter);
    }
}

// Stochastic gradient descent with momentum on every parameter of an executor.
class Sgd {
 public:
  Sgd(const Executor& executor, double learning_rate) : learning_rate_(learning_rate) {
    const NamedArrays &weights = executor.arg_dict(), &gradients = executor.grad_dict();
    for (const auto& [name, weight] : weights)
      if (is_parameter(name))
        parameters_.push_back({weight, gradients.at(name), zeros(weight.shape(), weight.context())});
  }
  void update() {
    const SgdMomUpdate step{
        .lr = learning_rate_, .momentum = 0.9, .wd = 1e-4, .rescale_grad = 1.0 / static_cast<double>(batch_size)};
    for (const auto& [weight, gradient, momentum] : parameters_)
      invoke(sgd_mom_update, {weight, gradient, momentum}, step, {.out = {weight}});
  }

 private:
  struct Parameter {
    NDArray weight, gradient, momentum;
  };
  double learning_rate_;
  std::vector<Parameter> parameters_;
};

ExecutorPtr train(const Network& network, const Digits& digits, int epochs, Progress& progress) {
  std::map<std::string, std::string> grad_req;  // whatever is not named gets no gradient
  for (const std::string& name : network.symbol.list_arguments())
    if (is_parameter(name)) grad_req[name] = "write";
  ExecutorPtr executor =
      simple_bind(network.symbol, cpu(), {{"data", digits.shape(batch_size)}}, {.grad_req = grad_req});
  initialize(*executor);
  Sgd sgd(*executor, network.learning_rate);
  NDArray data = executor->arg_dict().at("data"), label = executor->arg_dict().at("softmax_label");

  const Stopwatch watch;
  std::mt19937 shuffler(1);
  std::vector<int64_t> order(static_cast<size_t>(digits.count));
  std::iota(order.begin(), order.end(), 0);
  const int64_t batches = digits.count / batch_size;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), shuffler);  // what does not fill a batch waits for another epoch
    Score score;
    for (int64_t batch = 0; batch < batches; ++batch) {
      std::vector<float> pixels, labels;
      for (int64_t i = batch * batch_size; i < (batch + 1) * batch_size; ++i) {
        const int64_t index = order[static_cast<size_t>(i)];
        pixels.insert(pixels.end(), digits.image(index), digits.image(index + 1));
        labels.push_back(digits.labels[static_cast<size_t>(index)]);
      }
      data.copy_from(pixels);
      label.copy_from(labels);

      executor->forward(/*is_train=*/true);
      executor->backward();
      sgd.update();

      score.add(executor->outputs()[0].to_vector<float>(), labels);
      const double done = epoch - 1 + static_cast<double>(batch + 1) / static_cast<double>(batches);
      progress.show(join("  ", std::left, std::setw(6), network.name, bar(done / epochs), "  epoch ", epoch, "/",
                         epochs, "  loss ", fixed(score.mean_loss(), 4), "  accuracy ", fixed(score.accuracy(), 3),
                         "  ", fixed(watch.seconds(), 1), " s"),
                    batch + 1 == batches);
    }
  }
  return executor;
}

// The probabilities of each class, by an executor for as many digits.
std::vector<float> probabilities_of(Executor& executor, const Digits& digits) {
  const NDArray images = array(digits.pixels, digits.shape(digits.count));
  return executor.forward(/*is_train=*/false, {{"data", images}})[0].to_vector<float>();
}

// The same by an executor for another number: one that fits shares its parameters.
std::vector<float> probabilities_by_reshaped(Executor& executor, const Digits& digits) {
  const ExecutorPtr fitting = executor.reshape(
      {{"data", digits.shape(digits.count)}, {"softmax_label", {digits.count}}}, {.allow_up_sizing = true});
  return probabilities_of(*fitting, digits);
}

// ---- Files -------------------------------------------------------------------------------------------------------

struct Files {
  std::string symbol, params;
};

Files files_of(const Network& network, const Options& options) {
  std::ostringstream epoch;
  epoch << std::setw(4) << std::setfill('0') << options.epochs;
  const std::string prefix = options.out + "/" + network.name;
  return {prefix + "-symbol.json", prefix + "-" + epoch.str() + ".params"};
}

void save_network(const Executor& executor, const Files& files) {
  NamedArrays arrays;
  for (const auto& [name, array] : executor.arg_dict())
    if (is_parameter(name)) arrays["arg:" + name] = array;
  for (const auto& [name, array] : executor.aux_dict()) arrays["aux:" + name] = array;
  executor.symbol().save(files.symbol);
  save(files.params, arrays);
}

ExecutorPtr load_network(const Files& files, const Shape& data) {
  NamedArrays args, aux;
  for (const auto& [name, array] : load(files.params).dict()) {
    if (name.starts_with("arg:")) args[name.substr(4)] = array;
    if (name.starts_with("aux:")) aux[name.substr(4)] = array;
  }
  ExecutorPtr executor = simple_bind(Symbol::load(files.symbol), cpu(), {{"data", data}}, {.grad_req = "null"});
  executor->copy_params_from(args, aux);
  return executor;
}

// ---- Drawing -----------------------------------------------------------------------------------------------------

constexpr int64_t across = 3;  // digits side by side
constexpr int64_t frame = 2;   // empty pixels around each

// Two pixels, one above the other, make a character.
std::string picture_line(const Digits& digits, int64_t index, int64_t row) {
  static const char* const shades[] = {" ", "░", "▒", "▓", "█"};
  std::string line;
  for (int64_t x = frame; x < digits.width - frame; ++x) {
    const float* above = digits.image(index) + row * digits.width + x;
    line += shades[std::min(4, static_cast<int>((above[0] + above[digits.width]) / 2 * 5))];
  }
  return line;
}

void draw(const Digits& digits, const std::vector<float>& probabilities) {
  const auto caption_width = static_cast<size_t>(digits.width - 2 * frame);
  for (int64_t first = 0; first < digits.count; first += across) {
    const int64_t end = std::min(first + across, digits.count);
    for (int64_t row = frame; row + 1 < digits.height - frame; row += 2) {
      for (int64_t i = first; i < end; ++i) std::cout << "  " << picture_line(digits, i, row);
      std::cout << "\n";
    }
    for (int64_t i = first; i < end; ++i) {
      const float* of_digit = probabilities.data() + i * classes;
      const int64_t guess = best_class(of_digit);
      std::string caption = join("  read ", guess, " (", fixed(100 * of_digit[guess], 0), "%), is ",
                                 digits.labels[static_cast<size_t>(i)]);
      caption.resize(caption_width + 2, ' ');
      std::cout << caption;
    }
    std::cout << "\n\n";
  }
}

Digits some_of(const Digits& digits, int64_t count) {
  Digits chosen{.count = count, .height = digits.height, .width = digits.width, .pixels = {}, .labels = {}};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = i * digits.count / count;
    chosen.pixels.insert(chosen.pixels.end(), digits.image(index), digits.image(index + 1));
    chosen.labels.push_back(digits.labels[static_cast<size_t>(index)]);
  }
  return chosen;
}

// ---- The program -------------------------------------------------------------------------------------------------

constexpr const char* usage = R"(usage: without_module [--data DIR] [--out DIR] [--epochs N]

  --data DIR   the digits: MNIST's four files, gzipped (data)
  --out DIR    where the trained networks are saved (digits)
  --epochs N   how often every digit is seen (12)
)";

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") {
      std::cout << usage;
      std::exit(0);
    }
    require(option == "--data" || option == "--out" || option == "--epochs", "unknown option ", option, "\n\n", usage);
    require(i + 1 < argc, option, " needs a value\n\n", usage);
    const std::string value = argv[++i];
    if (option == "--data") options.data = value;
    if (option == "--out") options.out = value;
    if (option == "--epochs") options.epochs = std::atoi(value.c_str());
  }
  require(options.epochs >= 1, "--epochs must be at least 1");
  return options;
}

void run(const Options& options) {
  const Digits training = read_digits(options.data, "train"), unseen = read_digits(options.data, "t10k");
  require(training.count >= batch_size, "[", options.data, "] at least ", batch_size,
          " digits are needed: ", training.count);
  std::filesystem::create_directories(options.out);
  std::cout << "Training on " << training.count << " digits of " << training.height << "x" << training.width
            << ", testing on " << unseen.count << " others.\n\n";

  seed(7);
  const std::vector<Network> networks{{"mlp", mlp(), 0.05}, {"lenet", lenet(), 0.05}};
  for (const Network& network : networks) {
    Progress progress;
    const Stopwatch watch;
    const ExecutorPtr executor = train(network, training, options.epochs, progress);
    Score score;
    score.add(probabilities_by_reshaped(*executor, unseen), unseen.labels);
    const Files files = files_of(network, options);
    save_network(*executor, files);
    progress.finish(join("  ", std::left, std::setw(6), network.name, "reads ", fixed(100 * score.accuracy(), 1),
                         "% of the unseen digits right after ", options.epochs, " epochs, ", fixed(watch.seconds(), 1),
                         " s; saved as ", files.params));
  }

  const Digits few = some_of(unseen, 2 * across);
  for (const Network& network : networks) {
    const Files files = files_of(network, options);
    const ExecutorPtr executor = load_network(files, few.shape(few.count));
    const std::vector<float> probabilities = probabilities_of(*executor, few);
    if (network.name == networks.back().name) {
      std::cout << "\nLoaded again, " << network.name << " reads digits it has not seen:\n\n";
      draw(few, probabilities);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse_options(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "without_module: " << error.what() << "\n";
    return 1;
  }
}
