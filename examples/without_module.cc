// Trains two networks on handwritten digits with nothing but an executor and a loop, tests them on digits they have not
// seen, saves them, and loads them again to read a few digits.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include <unistd.h>

#include "symbind/symbind.h"

#include "examples/support/digits.h"
#include "examples/support/networks/lenet.h"
#include "examples/support/networks/mlp.h"
#include "examples/support/options.h"

using namespace symbind;

namespace {

constexpr int64_t batch_size = 64;
constexpr int64_t classes = 10;

using examples::Digits;

struct Settings {
  std::string data = "data", out = "digits";
  int64_t epochs = 12;
};

struct Network {
  std::string name;
  Symbol symbol;
  double learning_rate;
};

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

ExecutorPtr train(const Network& network, const Digits& digits, int64_t epochs, Progress& progress) {
  std::map<std::string, std::string> grad_req;  // whatever is not named gets no gradient
  for (const std::string& name : network.symbol.list_arguments())
    if (is_parameter(name)) grad_req[name] = "write";
  ExecutorPtr executor =
      simple_bind(network.symbol, cpu(), {{"data", digits.images.shape().with(0, batch_size)}}, {.grad_req = grad_req});
  initialize(*executor);
  Sgd sgd(*executor, network.learning_rate);
  NDArray data = executor->arg_dict().at("data"), label = executor->arg_dict().at("softmax_label");

  const Stopwatch watch;
  // What does not fill a batch waits for another epoch.
  NDArrayIter batches(digits.images, digits.labels,
                      {.batch_size = batch_size, .shuffle = true, .last_batch_handle = "discard"});
  const int64_t steps = digits.count() / batch_size;
  for (int64_t epoch = 1; epoch <= epochs; ++epoch, batches.reset()) {
    Score score;
    for (int64_t step = 1; const auto batch = batches.next(); ++step) {
      batch->data[0].copyto(data);
      batch->label[0].copyto(label);

      executor->forward(/*is_train=*/true);
      executor->backward();
      sgd.update();

      score.add(executor->outputs()[0].to_vector<float>(), label.to_vector<float>());
      const double done = static_cast<double>(epoch - 1) + static_cast<double>(step) / static_cast<double>(steps);
      progress.show(join("  ", std::left, std::setw(6), network.name, bar(done / static_cast<double>(epochs)),
                         "  epoch ", epoch, "/", epochs, "  loss ", fixed(score.mean_loss(), 4), "  accuracy ",
                         fixed(score.accuracy(), 3), "  ", fixed(watch.seconds(), 1), " s"),
                    step == steps);
    }
  }
  return executor;
}

// The probabilities of each class, by an executor for another number of digits: one that fits shares its parameters.
std::vector<float> probabilities_of(Executor& executor, const Digits& digits) {
  const ExecutorPtr fitting = executor.reshape({{"data", digits.images.shape()}, {"softmax_label", {digits.count()}}},
                                               {.allow_up_sizing = true});
  return fitting->forward(/*is_train=*/false, {{"data", digits.images}})[0].to_vector<float>();
}

// ---- Files -------------------------------------------------------------------------------------------------------

struct Files {
  std::string symbol, params;
};

Files files_of(const Network& network, const Settings& settings) {
  std::ostringstream epoch;
  epoch << std::setw(4) << std::setfill('0') << settings.epochs;
  const std::string prefix = settings.out + "/" + network.name;
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

// ---- The program -------------------------------------------------------------------------------------------------

void run(const Settings& settings) {
  const Digits training = examples::read_digits(settings.data, "train");
  const Digits unseen = examples::read_digits(settings.data, "t10k");
  require(training.count() >= batch_size, "[", settings.data, "] at least ", batch_size,
          " digits are needed: ", training.count());
  std::filesystem::create_directories(settings.out);
  std::cout << "Training on " << training.count() << " digits, testing on " << unseen.count() << " others.\n\n";

  seed(7);
  const std::vector<Network> all{{"mlp", networks::mlp(), 0.05}, {"lenet", networks::lenet(), 0.05}};
  for (const Network& network : all) {
    Progress progress;
    const Stopwatch watch;
    const ExecutorPtr executor = train(network, training, settings.epochs, progress);
    Score score;
    score.add(probabilities_of(*executor, unseen), unseen.labels.to_vector<float>());
    const Files files = files_of(network, settings);
    save_network(*executor, files);
    progress.finish(join("  ", std::left, std::setw(6), network.name, " reads ", fixed(100 * score.accuracy(), 1),
                         "% of the unseen digits right after ", settings.epochs, " epochs, ", fixed(watch.seconds(), 1),
                         " s; saved as ", files.params));
  }

  const ExecutorPtr loaded = load_network(files_of(all.back(), settings), unseen.images.shape());
  const std::vector<float> probabilities = probabilities_of(*loaded, unseen);
  std::vector<int> read;
  for (size_t row = 0; row < probabilities.size(); row += classes)
    read.push_back(static_cast<int>(best_class(probabilities.data() + row)));
  std::cout << "\nLoaded again, " << all.back().name << " reads digits it has not seen:\n\n";
  examples::draw_digits(unseen, read, 6);
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("without_module", [&] {
    Settings settings;
    examples::Options options("without_module",
                              "Trains two networks on handwritten digits with nothing but an executor "
                              "and a loop.");
    options.add("--data", settings.data, "folder with the digits in MNIST's idx files", "DIR")
        .add("--out", settings.out, "folder for the trained networks", "DIR")
        .add("--epochs", settings.epochs, "how often every digit is seen");
    options.parse(argc, argv);
    run(settings);
  });
}
