// Trains an MLP and LeNet on handwritten digits through Module::fit on two CPU contexts, saves checkpoints, loads them
// again, scores them on digits they have not seen, and shows what LeNet reads.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/digits.h"
#include "examples/support/networks.h"

using namespace symbind;

namespace {

constexpr const char* usage = R"(usage: train_digits [options]
  --network NAME        train mlp or lenet alone
  --data DIR            folder with the digits in MNIST's idx files (data)
  --out DIR             folder for the checkpoint (digits)
  --epochs N            how often every digit is seen (12)
  --devices N           how many CPU contexts share each batch (2)
  --resume EPOCH        go on from the checkpoint of this epoch
)";

struct Options {
  std::string network = "", data = "data", out = "digits";
  int epochs = 12, devices = 2, resume = 0;
};

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--help") {
      std::cout << usage;
      std::exit(0);
    }
    require(i + 1 < argc, option, " needs a value\n", usage);
    const std::string value = argv[i + 1];
    if (option == "--network")
      options.network = value;
    else if (option == "--data")
      options.data = value;
    else if (option == "--out")
      options.out = value;
    else if (option == "--epochs")
      options.epochs = std::atoi(value.c_str());
    else if (option == "--devices")
      options.devices = std::atoi(value.c_str());
    else if (option == "--resume")
      options.resume = std::atoi(value.c_str());
    else
      fail("unknown option ", option, "\n", usage);
  }
  require(options.network.empty() || options.network == "lenet" || options.network == "mlp", "which network?\n", usage);
  require(options.epochs > 0 && options.devices > 0 && options.resume >= 0, "numbers must be positive\n", usage);
  return options;
}

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

constexpr int64_t batch_size = 64;

std::string prefix_of(const Options& options, const std::string& name) { return options.out + "/" + name; }

void train(const Options& options, const std::string& name, const examples::Digits& train, DataIter& test_data) {
  seed(1);
  NDArrayIter train_data(train.images, train.labels, {.batch_size = batch_size, .shuffle = true});
  ModuleOptions module_options;
  module_options.context.clear();
  for (int i = 0; i < options.devices; ++i) module_options.context.push_back(cpu(i));
  const std::string prefix = prefix_of(options, name);
  const auto module =
      options.resume ? Module::load(prefix, options.resume, true, module_options)
                     : std::make_unique<Module>(name == "mlp" ? networks::mlp() : networks::lenet(), module_options);
  std::cout << "\nTraining " << name << " on " << options.devices << " CPU contexts\n";
  module->fit(train_data, {.eval_data = &test_data,
                           .epoch_end_callback = {module_checkpoint(*module, prefix, options.epochs, true)},
                           .batch_end_callback = {ProgressBar((train.count() + batch_size - 1) / batch_size, 40)},
                           .optimizer_params = {{"learning_rate", 0.05}, {"momentum", 0.9}, {"wd", 1e-4}},
                           .initializer = std::make_shared<init::Xavier>(),
                           .begin_epoch = options.resume,
                           .num_epoch = options.epochs});
}

// What a loaded network reads; as another program would, from the files alone.
std::vector<int> read_all(const Options& options, const std::string& name, NDArrayIter& test_data) {
  const auto loaded = Module::load(prefix_of(options, name), options.epochs);
  loaded->bind(test_data.provide_data(), test_data.provide_label(), {.for_training = false});
  const double accuracy = loaded->score(test_data, "acc")[0].second;
  std::cout << "\nLoaded again from " << prefix_of(options, name) << "-*, " << name << " reads " << std::fixed
            << std::setprecision(1) << 100 * accuracy << "% of the unseen digits right.\n";
  const std::vector<float> probabilities = loaded->predict(test_data)[0].to_vector<float>();
  std::vector<int> read;
  for (size_t row = 0; row < probabilities.size(); row += 10) {
    const float* of_digit = probabilities.data() + row;
    read.push_back(static_cast<int>(std::max_element(of_digit, of_digit + 10) - of_digit));
  }
  return read;
}

void run(const Options& options) {
  const examples::Digits digits = examples::read_digits(options.data, "train");
  const examples::Digits unseen = examples::read_digits(options.data, "t10k");
  std::cout << digits.count() << " digits to learn from, " << unseen.count() << " others to be tested on.\n";
  std::filesystem::create_directories(options.out);
  NDArrayIter test_data(unseen.images, unseen.labels, {.batch_size = batch_size});
  const std::vector<std::string> names =
      options.network.empty() ? std::vector<std::string>{"mlp", "lenet"} : std::vector{options.network};
  for (const std::string& name : names) train(options, name, digits, test_data);
  std::vector<int> read;
  for (const std::string& name : names) read = read_all(options, name, test_data);

  std::vector<int> truth;
  for (const float label : unseen.labels.to_vector<float>()) truth.push_back(static_cast<int>(label));
  print_confusion(read, truth);
  std::cout << "\n";
  examples::draw_digits(unseen, read, 6);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse_options(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "train_digits: " << error.what() << "\n";
    return 1;
  }
}
