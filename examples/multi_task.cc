// Two tasks on one body: which digit an image shows, and whether it is odd. Each has its own loss, label and score.
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/digits_training.h"

using namespace symbind;

namespace {

Symbol network() {
  Symbol net = Symbol::variable("data");
  net = fully_connected(net, {.num_hidden = 128}, "fc1");
  net = activation(net, {.act_type = act_type::relu}, "relu1");
  const Symbol digit = fully_connected(net, {.num_hidden = 10}, "fc_digit");
  const Symbol parity = fully_connected(net, {.num_hidden = 2}, "fc_parity");
  return Symbol::group({softmax_output(digit, {}, "digit"), softmax_output(parity, {}, "parity")});
}

NDArrayIter labelled_twice(const examples::Digits& digits, int64_t batch_size, bool shuffle) {
  std::vector<float> odd = digits.labels.to_vector<float>();
  for (float& label : odd) label = std::fmod(label, 2.0F);
  return NDArrayIter(digits.images,
                     {{"digit_label", digits.labels}, {"parity_label", array(odd, digits.labels.shape())}},
                     {.batch_size = batch_size, .shuffle = shuffle});
}

EvalMetricPtr both_accuracies() {
  std::vector<EvalMetricPtr> tasks;
  for (const std::string task : {"digit", "parity"})
    tasks.push_back(std::make_shared<metric::Accuracy>(
        1, EvalMetric::Options{.name = task, .output_names = {task + "_output"}, .label_names = {task + "_label"}}));
  return std::make_shared<metric::Composite>(tasks);
}

void run(const examples::DigitsTraining& training) {
  seed(1);
  NDArrayIter train = labelled_twice(examples::read_digits(training.data, "train"), training.batch_size, true);
  NDArrayIter unseen = labelled_twice(examples::read_digits(training.data, "t10k"), training.batch_size, false);
  Module module(network(), {.label_names = {"digit_label", "parity_label"},
                            .context = examples::contexts_of({}, training.contexts)});
  const int64_t batches = (train.num_data() + training.batch_size - 1) / training.batch_size;
  module.fit(train,
             {.eval_data = &unseen,
              .eval_metric = both_accuracies(),
              .batch_end_callback = {ProgressBar(batches, 40)},
              .optimizer = optim::Sgd{.learning_rate = training.lr, .momentum = training.momentum, .wd = training.wd},
              .initializer = std::make_shared<init::Xavier>(),
              .num_epoch = static_cast<int>(training.epochs)});
  for (const auto& [task, accuracy] : module.score(unseen, both_accuracies()))
    std::cout << task << ": " << std::fixed << std::setprecision(1) << 100 * accuracy
              << "% of the unseen digits are right.\n";
  if (!training.out.empty()) module.save_checkpoint(training.out + "/multi_task", static_cast<int>(training.epochs));
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("multi_task", [&] {
    examples::DigitsTraining training;
    examples::Options options("multi_task", "Learns which digit an image shows, and whether it is odd, on one body.");
    training.add_to(options);
    options.parse(argc, argv);
    run(training);
  });
}
