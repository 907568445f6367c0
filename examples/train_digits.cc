// Trains an MLP and LeNet on handwritten digits through Module::fit on two CPU contexts, saves checkpoints, loads them
// again, scores them on digits they have not seen, and shows what LeNet reads.
#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/digits_training.h"
#include "examples/support/networks/lenet.h"
#include "examples/support/networks/mlp.h"

using namespace symbind;

namespace {

// Rows: what a digit is. Columns: what it was read as.
void print_confusion(const std::vector<int>& read, const std::vector<int>& truth) {
  std::vector<std::vector<int>> counts(10, std::vector<int>(10, 0));
  for (size_t i = 0; i < truth.size(); ++i) ++counts[static_cast<size_t>(truth[i])][static_cast<size_t>(read[i])];
  std::cout << "\nis \\ read as";
  for (int digit = 0; digit < 10; ++digit) std::cout << std::setw(5) << digit;
  for (size_t digit = 0; digit < 10; ++digit) {
    std::cout << "\n" << std::setw(12) << digit;
    for (const int count : counts[digit])
      if (count)
        std::cout << std::setw(5) << count;
      else
        std::cout << std::setw(5) << ".";
  }
  std::cout << "\n";
}

struct Program {
  examples::DigitsTraining training{.out = "digits", .epochs = 12, .contexts = 2};
  std::string network = "both";
  int64_t resume = 0;
  std::string prefix_of(const std::string& name) const { return training.out + "/" + name; }
};

void train(const Program& program, const std::string& name, const examples::Digits& digits, DataIter& unseen) {
  seed(1);
  const examples::DigitsTraining& training = program.training;
  const ModuleOptions options{.context = examples::contexts_of({}, training.contexts)};
  const auto module = program.resume
                          ? Module::load(program.prefix_of(name), static_cast<int>(program.resume), true, options)
                          : std::make_unique<Module>(name == "mlp" ? networks::mlp() : networks::lenet(), options);
  std::cout << "\nTraining " << name << " on " << training.contexts << " CPU contexts\n";
  const int last = static_cast<int>(training.epochs);
  examples::fit_digits(*module, training, digits, unseen,
                       {module_checkpoint(*module, program.prefix_of(name), last, true)}, program.resume);
}

// What a loaded network reads; as another program would, from the files alone.
std::vector<int> read_all(const Program& program, const std::string& name, NDArrayIter& unseen) {
  const auto loaded = Module::load(program.prefix_of(name), static_cast<int>(program.training.epochs));
  loaded->bind(unseen.provide_data(), unseen.provide_label(), {.for_training = false});
  const double accuracy = loaded->score(unseen, "acc")[0].second;
  std::cout << "\nLoaded again from " << program.prefix_of(name) << "-*, " << name << " reads " << std::fixed
            << std::setprecision(1) << 100 * accuracy << "% of the unseen digits right.\n";
  const std::vector<float> probabilities = loaded->predict(unseen)[0].to_vector<float>();
  std::vector<int> read;
  for (size_t row = 0; row < probabilities.size(); row += 10) {
    const float* of_digit = probabilities.data() + row;
    read.push_back(static_cast<int>(std::max_element(of_digit, of_digit + 10) - of_digit));
  }
  return read;
}

void run(const Program& program) {
  const examples::DigitsTraining& training = program.training;
  const examples::Digits digits = examples::read_digits(training.data, "train");
  const examples::Digits unseen = examples::read_digits(training.data, "t10k");
  std::cout << digits.count() << " digits to learn from, " << unseen.count() << " others to be tested on.\n";
  std::filesystem::create_directories(training.out);
  NDArrayIter unseen_data(unseen.images, unseen.labels, {.batch_size = training.batch_size});
  const std::vector<std::string> names =
      program.network == "both" ? std::vector<std::string>{"mlp", "lenet"} : std::vector{program.network};
  for (const std::string& name : names) train(program, name, digits, unseen_data);
  std::vector<int> read;
  for (const std::string& name : names) read = read_all(program, name, unseen_data);

  std::vector<int> truth;
  for (const float label : unseen.labels.to_vector<float>()) truth.push_back(static_cast<int>(label));
  print_confusion(read, truth);
  std::cout << "\n";
  examples::draw_digits(unseen, read, 6);
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("train_digits", [&] {
    Program program;
    examples::Options options("train_digits",
                              "Trains an MLP and LeNet on handwritten digits, saves them, loads them "
                              "again, and shows what they read.");
    options.add_choice("--network", program.network, {"both", "mlp", "lenet"}, "what to train");
    program.training.add_to(options);
    options.add("--resume", program.resume, "go on from the checkpoint of this epoch; 0 is the beginning", 0);
    options.parse(argc, argv);
    run(program);
  });
}
