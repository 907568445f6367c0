// Builds an image classification network by name, says what it is made of and what memory it takes, and trains it: on
// random images, on the digits in data/ at the size the network takes, or on a RecordIO file.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/image_data.h"
#include "examples/support/image_training.h"
#include "examples/support/network_by_name.h"
#include "examples/support/options.h"
#include "examples/support/progress.h"

using namespace symbind;

namespace {

struct Program {
  std::string network = "resnet", version, batch_norm = "no", symbol_file;
  int64_t num_layers = 0, num_group = 0, num_classes = 1000;
  double multiplier = 1;
  std::vector<int64_t> image_shape;
  examples::ImageData data;
  examples::ImageTraining training;

  void add_to(examples::Options& options) {
    options.add("--network", network, "what to train", "NAME")
        .add("--num-layers", num_layers, "of VGG, ResNet, ResNeXt and DenseNet; 0: as usual", 0)
        .add("--num-group", num_group, "groups of AlexNet's and ResNeXt's convolutions; 0: as usual", 0)
        .add("--multiplier", multiplier, "of the widths of MobileNet")
        .add_choice("--batch-norm", batch_norm, {"yes", "no"}, "normalise in VGG")
        .add("--version", version, "of SqueezeNet: 1.0 or 1.1")
        .add("--num-classes", num_classes, "what an image may show", 2)
        .add("--image-shape", image_shape, "channels,height,width; those the network is made for if left out")
        .add("--symbol", symbol_file, "write the network to this JSON file, and end", "FILE");
    data.add_to(options);
    training.add_to(options);
  }

  const networks::NetworkFamily& family() const { return networks::network_family(network); }
  Shape image() const {
    if (image_shape.empty()) return {family().channels, family().image_size, family().image_size};
    require(image_shape.size() == 3, "--image-shape takes three numbers, as 3,224,224");
    const int64_t least = family().least_size;
    require(std::min(image_shape[1], image_shape[2]) >= least, network, " takes images of ", least,
            " pixels a side or more");
    return Shape(image_shape);
  }
  Symbol symbol() const {
    networks::NetworkOptions given{.classes = num_classes, .multiplier = multiplier, .batch_norm = batch_norm == "yes"};
    if (num_layers) given.depth = static_cast<int>(num_layers);
    if (num_group) given.groups = num_group;
    if (!version.empty()) given.version = version;
    return family().build(given);
  }
};

std::string megabytes(size_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1 << 20) << " MiB";
  return out.str();
}

void print_parameters(const Symbol& network, const Shape& data) {
  const InferredShapes shapes = infer_shape(network, {{"data", data}});
  const std::vector<std::string> names = network.list_arguments();
  int64_t arrays = 0, numbers = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "data" || names[i] == "softmax_label") continue;
    ++arrays;
    numbers += Shape(shapes.args[i]).size();
  }
  std::cout << "  parameters         " << arrays << " arrays, " << numbers << " numbers\n"
            << "  auxiliary states   " << network.list_auxiliary_states().size() << " arrays\n"
            << "  output             " << network.list_outputs()[0] << " " << Shape(shapes.outputs[0]) << "\n";
}

void print_memory(const Module& module) {
  for (const ExecutorPtr& executor : module.exec_group()->execs()) {
    const MemoryReport memory = executor->memory();
    std::cout << "  memory on " << std::left << std::setw(9) << executor->context().str() << megabytes(memory.arena)
              << " for activations (" << megabytes(memory.unshared) << " if nothing were shared), "
              << megabytes(memory.arguments) << " for arguments, " << megabytes(memory.gradients) << " for gradients\n";
  }
}

void train(const Program& program) {
  seed(1);
  const examples::ImageTraining& training = program.training;
  require(!training.load_epoch || !training.model_prefix.empty(), "--load-epoch needs the checkpoint's --model-prefix");
  const KVStorePtr store = training.store();
  const examples::Images images =
      examples::images_of(program.data, program.image(), training.batch_size, program.num_classes,
                          {.rank = store->rank(), .workers = store->num_workers()});
  if (training.test_io) return examples::read_all(*images.train, training.batch_size);
  const std::string prefix = training.prefix(*store);
  const std::unique_ptr<Module> module =
      training.load_epoch ? Module::load(prefix, static_cast<int>(training.load_epoch), true, training.module_options())
                          : std::make_unique<Module>(program.symbol(), training.module_options());
  const Shape shape = images.train->provide_data()[0].shape;
  std::cout << program.network << " for " << shape << "\n";
  print_parameters(module->symbol(), shape);

  EpochEndCallbacks checkpoints;
  if (!prefix.empty()) checkpoints = {module_checkpoint(*module, prefix, static_cast<int>(training.save_period), true)};
  std::unique_ptr<Monitor> monitor;
  if (training.monitor) monitor = std::make_unique<Monitor>(training.monitor);
  module->fit(*images.train,
              {.eval_data = images.validation.get(),
               .eval_metric = training.metrics(),
               .epoch_end_callback = checkpoints,
               .batch_end_callback = {examples::progress(training.batch_size, training.disp_batches, images.batches)},
               .kvstore = store,
               .optimizer = training.optimizer,
               .optimizer_params = training.optimizer_params(images.batches),
               .initializer = training.start(),
               .begin_epoch = static_cast<int>(training.load_epoch),
               .num_epoch = static_cast<int>(training.num_epochs),
               .monitor = monitor.get()});
  print_memory(*module);
}

std::string about() {
  std::ostringstream text;
  text << "Builds an image classification network, says what it is made of and what memory it takes, and trains it on\n"
          "random images, handwritten digits or a RecordIO file. The networks are:\n";
  for (const networks::NetworkFamily& family : networks::network_families())
    text << "\n  " << std::left << std::setw(14) << family.name << family.about;
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("train_imagenet", [&] {
    Program program;
    examples::Options options("train_imagenet", about());
    program.add_to(options);
    options.parse(argc, argv);
    if (program.symbol_file.empty()) return train(program);
    program.symbol().save(program.symbol_file);
  });
}
