// Training on the digits through Module::fit, as several programs do it.
#pragma once

#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/contexts.h"
#include "examples/support/digits.h"
#include "examples/support/options.h"

namespace examples {

struct DigitsTraining {
  std::string data = "data", out = "";
  int64_t epochs = 10, batch_size = 64, contexts = 1;
  double lr = 0.05, momentum = 0.9, wd = 1e-4;

  void add_to(Options& options) {
    options.add("--data", data, "folder with the digits in MNIST's idx files", "DIR")
        .add("--out", out, "folder for a checkpoint of the trained network; none is saved without it", "DIR")
        .add("--epochs", epochs, "how often every digit is seen")
        .add("--batch-size", batch_size, "digits a step")
        .add("--lr", lr, "the learning rate")
        .add("--momentum", momentum, "of gradient descent")
        .add("--wd", wd, "weight decay")
        .add("--contexts", contexts, "how many CPU contexts share each batch");
  }
};

// Trains with a progress bar and a score after every epoch.
inline void fit_digits(Module& module, const DigitsTraining& training, const Digits& digits, DataIter& unseen,
                       EpochEndCallbacks callbacks = {}, int64_t begin_epoch = 0) {
  const int64_t size = training.batch_size, batches = (digits.count() + size - 1) / size;
  NDArrayIter data(digits.images, digits.labels, {.batch_size = size, .shuffle = true});
  module.fit(
      data, {.eval_data = &unseen,
             .epoch_end_callback = std::move(callbacks),
             .batch_end_callback = {ProgressBar(batches, 40)},
             .optimizer_params = {{"learning_rate", training.lr}, {"momentum", training.momentum}, {"wd", training.wd}},
             .initializer = std::make_shared<init::Xavier>(),
             .begin_epoch = static_cast<int>(begin_epoch),
             .num_epoch = static_cast<int>(training.epochs)});
}

// A whole program: a network trained, scored on digits it has not seen, and saved if that was asked for.
inline void train_and_score(const std::string& name, const Symbol& network, const DigitsTraining& training) {
  seed(1);
  const Digits digits = read_digits(training.data, "train"), unseen = read_digits(training.data, "t10k");
  NDArrayIter unseen_data(unseen.images, unseen.labels, {.batch_size = training.batch_size});
  Module module(network, {.context = contexts_of({}, training.contexts)});
  std::cout << "Training " << name << " on " << digits.count() << " digits, " << training.contexts
            << (training.contexts == 1 ? " CPU context\n" : " CPU contexts\n");
  fit_digits(module, training, digits, unseen_data);
  const double accuracy = module.score(unseen_data, "acc")[0].second;
  std::cout << name << " reads " << std::fixed << std::setprecision(1) << 100 * accuracy << "% of the "
            << unseen.count() << " unseen digits right.\n";
  if (training.out.empty()) return;
  std::filesystem::create_directories(training.out);
  module.save_checkpoint(training.out + "/" + name, static_cast<int>(training.epochs), true);
}

}  // namespace examples
