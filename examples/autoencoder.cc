// An autoencoder on the digits in data/: a network that learns to give back its input through a few numbers.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/digits.h"
#include "examples/support/options.h"

using namespace symbind;

namespace {

struct Program {
  std::string data = "data";
  std::vector<int64_t> layers = {128, 32};
  int64_t epochs = 10, batch_size = 64;
  double lr = 0.003;
};

// A decoder after an encoder; `code` is the activation between them.
Symbol network(const std::vector<int64_t>& sizes, int64_t pixels) {
  const auto relu = [](const Symbol& data, const std::string& name) {
    return activation(data, {.act_type = act_type::relu}, name);
  };
  Symbol net = Symbol::variable("data");
  for (size_t i = 0; i < sizes.size(); ++i) {
    net = fully_connected(net, {.num_hidden = sizes[i]}, join("encoder", i + 1));
    net = relu(net, i + 1 == sizes.size() ? "code" : join("encoder", i + 1, "_act"));
  }
  for (size_t i = sizes.size(); i > 0; --i) {
    net = fully_connected(net, {.num_hidden = i > 1 ? sizes[i - 2] : pixels}, join("decoder", i));
    if (i > 1) net = relu(net, join("decoder", i, "_act"));
  }
  return logistic_regression_output(net, {}, "pixels");
}

// The digits as rows of pixels, which are data and label.
NDArrayIter rows_of(const examples::Digits& digits, int64_t batch_size, bool shuffle) {
  const NDArray rows = digits.images.reshape({digits.count(), -1});
  return NDArrayIter(rows, rows, {.batch_size = batch_size, .shuffle = shuffle, .label_name = "pixels_label"});
}

// The mean over the pixels of how far they spread over the images.
double variance_of(const NDArray& rows) {
  const std::vector<float> values = rows.to_vector<float>();
  const auto pixels = static_cast<size_t>(rows.shape()[1]), count = static_cast<size_t>(rows.shape()[0]);
  double total = 0;
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    double sum = 0, squares = 0;
    for (size_t row = 0; row < count; ++row) {
      const double value = values[row * pixels + pixel];
      sum += value;
      squares += value * value;
    }
    const double mean = sum / static_cast<double>(count);
    total += squares / static_cast<double>(count) - mean * mean;
  }
  return total / static_cast<double>(pixels);
}

void run(const Program& program) {
  seed(1);
  const examples::Digits digits = examples::read_digits(program.data, "train");
  const examples::Digits unseen = examples::read_digits(program.data, "t10k");
  NDArrayIter train = rows_of(digits, program.batch_size, true), test = rows_of(unseen, program.batch_size, false);
  const NDArray rows = test.data()[0].array;
  Module module(network(program.layers, rows.shape()[1]), {.label_names = {"pixels_label"}});
  const int64_t batches = (digits.count() + program.batch_size - 1) / program.batch_size;
  module.fit(train, {.eval_metric = "mse",
                     .batch_end_callback = {ProgressBar(batches, 40)},
                     .optimizer = optim::Adam{.learning_rate = program.lr},
                     .initializer = std::make_shared<init::Xavier>(),
                     .num_epoch = static_cast<int>(program.epochs)});
  const double error = module.score(test, "mse")[0].second;
  std::cout << program.layers.back() << " numbers keep " << std::fixed << std::setprecision(1)
            << 100 * (1 - error / variance_of(rows)) << "% of the variance of " << unseen.count()
            << " unseen digits.\nThree of them, and what the network gives back:\n";
  examples::draw_images(unseen.images, 3);
  examples::draw_images(module.predict(test)[0].reshape(unseen.images.shape()), 3);
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("autoencoder", [&] {
    Program program;
    examples::Options options("autoencoder", "Learns to give back handwritten digits through a few numbers.");
    options.add("--data", program.data, "folder with the digits in MNIST's idx files", "DIR")
        .add("--layers", program.layers, "sizes of the encoder's layers; the last is that of the code")
        .add("--epochs", program.epochs, "how often every digit is seen")
        .add("--batch-size", program.batch_size, "digits a step")
        .add("--lr", program.lr, "the learning rate");
    options.parse(argc, argv);
    run(program);
  });
}
