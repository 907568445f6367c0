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
#include "examples/support/network_by_name.h"
#include "examples/support/options.h"

using namespace symbind;

namespace {

struct Program {
  std::string network = "resnet", version, batch_norm = "no", symbol_file;
  int64_t num_layers = 0, num_group = 0, num_classes = 1000;
  double multiplier = 1;
  std::vector<int64_t> image_shape;
  examples::ImageData data;

  std::string model_prefix, optimizer = "sgd", kv_store = "local";
  int64_t batch_size = 8, num_epochs = 1, load_epoch = 0, contexts = 1, gpus = 0;
  double lr = 0.01, lr_factor = 0.1, mom = 0.9, wd = 1e-4;
  std::vector<int64_t> lr_step_epochs;

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
    options.add("--batch-size", batch_size, "images a step")
        .add("--num-epochs", num_epochs, "epochs to train")
        .add("--optimizer", optimizer, "by its name: sgd, nag, adam, …", "NAME")
        .add("--lr", lr, "the learning rate")
        .add("--lr-factor", lr_factor, "what it is multiplied by at each step")
        .add("--lr-step-epochs", lr_step_epochs, "the epochs before which it is; none if left out")
        .add("--mom", mom, "momentum, of sgd and nag")
        .add("--wd", wd, "weight decay")
        .add("--kv-store", kv_store, "how devices share gradients: local or device", "NAME")
        .add("--contexts", contexts, "CPU contexts that share a batch")
        .add("--gpus", gpus, "GPUs that share a batch instead", 0)
        .add("--model-prefix", model_prefix, "save a checkpoint with this prefix after each epoch", "PREFIX")
        .add("--load-epoch", load_epoch, "go on from the checkpoint of this epoch; 0 is the beginning", 0);
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
  std::vector<Context> devices() const {
    std::vector<Context> all;
    for (int i = 0; i < (gpus ? gpus : contexts); ++i) all.push_back(gpus ? gpu(i) : cpu(i));
    return all;
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

OptimizerParams optimizer_params(const Program& program, int64_t batches) {
  OptimizerParams params{{"learning_rate", program.lr}, {"wd", program.wd}};
  if (program.optimizer == "sgd" || program.optimizer == "nag") params.insert_or_assign("momentum", program.mom);
  std::vector<int64_t> steps;  // counted from the beginning, as a checkpoint counts its updates
  for (const int64_t epoch : program.lr_step_epochs) steps.push_back(epoch * batches);
  if (!steps.empty())
    params.insert_or_assign(
        "lr_scheduler", multi_factor_scheduler({.step = steps, .factor = program.lr_factor, .base_lr = program.lr}));
  return params;
}

void train(const Program& program) {
  seed(1);
  require(!program.load_epoch || !program.model_prefix.empty(), "--load-epoch needs the checkpoint's --model-prefix");
  const examples::Images images =
      examples::images_of(program.data, program.image(), program.batch_size, program.num_classes);
  const ModuleOptions options{.context = program.devices()};
  const std::unique_ptr<Module> module =
      program.load_epoch ? Module::load(program.model_prefix, static_cast<int>(program.load_epoch), true, options)
                         : std::make_unique<Module>(program.symbol(), options);
  const Shape shape = images.train->provide_data()[0].shape;
  std::cout << program.network << " for " << shape << "\n";
  print_parameters(module->symbol(), shape);

  EpochEndCallbacks checkpoints;
  if (!program.model_prefix.empty()) checkpoints = {module_checkpoint(*module, program.model_prefix, 1, true)};
  module->fit(*images.train, {.eval_data = images.validation.get(),
                              .eval_metric = std::vector<std::string>{"acc", "ce"},
                              .epoch_end_callback = checkpoints,
                              .batch_end_callback = {ProgressBar(images.batches, 40)},
                              .kvstore = program.kv_store,
                              .optimizer = program.optimizer,
                              .optimizer_params = optimizer_params(program, images.batches),
                              .initializer = std::make_shared<init::Xavier>(
                                  init::XavierOptions{.rnd_type = "gaussian", .factor_type = "in", .magnitude = 2}),
                              .begin_epoch = static_cast<int>(program.load_epoch),
                              .num_epoch = static_cast<int>(program.num_epochs)});
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
