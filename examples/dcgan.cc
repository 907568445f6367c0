// A generative adversarial network of convolutions (DCGAN) that learns to write digits.
//
// A generator makes images from random numbers; a discriminator tells them from real ones. The discriminator's gradient
// by its input is what the generator learns from.
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
  int64_t epochs = 15, batch_size = 64, filters = 16, length = 32, max_batches = 0;
  double lr = 0.001;
};

constexpr int64_t image_size = 32;  // the digits get a frame, so that every layer halves or doubles

// Images of 32 × 32 pixels, -1 to 1, from random numbers (batch, length, 1, 1).
Symbol generator(int64_t filters) {
  const auto grown = [](const Symbol& data, int64_t width, bool first, const std::string& name) {
    const int64_t stride = first ? 1 : 2, pad = first ? 0 : 1;
    return deconvolution(
        data, {.kernel = {4, 4}, .stride = {stride, stride}, .pad = {pad, pad}, .num_filter = width, .no_bias = true},
        name);
  };
  Symbol net = Symbol::variable("rand");
  int number = 1;
  for (const int64_t width : {4 * filters, 2 * filters, filters}) {
    net = grown(net, width, number == 1, join("g", number));
    net = batch_norm(net, {.eps = 1e-5, .fix_gamma = true}, join("gbn", number));
    net = activation(net, {.act_type = act_type::relu}, join("gact", number));
    ++number;
  }
  return activation(grown(net, 1, false, "g4"), {.act_type = act_type::tanh}, "gact4");
}

// The probability that an image is real.
Symbol discriminator(int64_t filters) {
  Symbol net = Symbol::variable("data");
  int number = 1;
  for (const int64_t width : {filters, 2 * filters, 4 * filters}) {
    net = convolution(net, {.kernel = {4, 4}, .stride = {2, 2}, .pad = {1, 1}, .num_filter = width, .no_bias = true},
                      join("d", number));
    if (number > 1) net = batch_norm(net, {.eps = 1e-5, .fix_gamma = true}, join("dbn", number));
    net = leaky_relu(net, {.act_type = leaky_type::leaky, .slope = 0.2}, join("dact", number));
    ++number;
  }
  net = convolution(net, {.kernel = {4, 4}, .num_filter = 1, .no_bias = true}, "d4");
  return logistic_regression_output(flatten(net), Symbol::variable("label"), {}, "dloss");
}

// The two modules and a step of both.
class Gan {
 public:
  explicit Gan(const Program& program)
      : batch_size_(program.batch_size),
        length_(program.length),
        generator_(generator(program.filters), {.data_names = {"rand"}, .label_names = {}}),
        discriminator_(discriminator(program.filters), {.data_names = {"data"}, .label_names = {"label"}}) {
    generator_.bind({{"rand", {batch_size_, length_, 1, 1}}});
    discriminator_.bind({{"data", {batch_size_, 1, image_size, image_size}}}, {{"label", {batch_size_, 1}}},
                        {.inputs_need_grad = true});
    for (Module* module : {&generator_, &discriminator_}) {
      module->init_params({.initializer = std::make_shared<init::Normal>(0.02)});
      module->init_optimizer({.optimizer = optim::Adam{.learning_rate = program.lr, .beta1 = 0.5}});
    }
  }

  // A batch of images by the generator.
  NDArray made(bool is_train = false) {
    generator_.forward({.data = {random::normal({.shape = {batch_size_, length_, 1, 1}})}}, is_train);
    return generator_.get_outputs()[0];
  }

  // One update of each network; how often the discriminator was right about made and about real images.
  struct Right {
    double made = 0, real = 0;
  };
  Right step(const NDArray& real) {
    const NDArray images = made(/*is_train=*/true);
    Right right;
    right.made = judge(images, false);
    std::vector<NDArray> gradients;
    for (const auto& per_device : discriminator_.exec_group()->grad_arrays()) gradients.push_back(per_device[0].copy());
    right.real = judge(real, true);
    size_t index = 0;
    for (const auto& per_device : discriminator_.exec_group()->grad_arrays()) {
      NDArray total = per_device[0];
      total += gradients[index++];
    }
    discriminator_.update();
    judge(images, true);  // what would make the images pass for real
    generator_.backward(discriminator_.get_input_grads());
    generator_.update();
    return right;
  }

 private:
  // The discriminator's gradients for images that are to be found real or not; the share it has right.
  double judge(const NDArray& images, bool real) {
    const NDArray label = full({batch_size_, 1}, real ? 1.0 : 0.0);
    discriminator_.forward({.data = {images}, .label = {label}}, true);
    discriminator_.backward();
    int64_t right = 0;
    for (const float probability : discriminator_.get_outputs()[0].to_vector<float>())
      right += (probability > 0.5F) == real;
    return static_cast<double>(right) / static_cast<double>(batch_size_);
  }

  int64_t batch_size_, length_;
  Module generator_, discriminator_;
};

// Digits of 28 × 28 pixels, 0 to 1, as images of 32 × 32 pixels, -1 to 1.
NDArray framed(const NDArray& digits) {
  const int64_t before = (image_size - digits.shape()[2]) / 2, after = image_size - digits.shape()[2] - before;
  NDArray images = pad(digits, {.mode = "constant", .pad_width = {0, 0, 0, 0, before, after, before, after}});
  images *= 2;
  images -= 1;
  return images;
}

void run(const Program& program) {
  seed(1);
  const examples::Digits digits = examples::read_digits(program.data, "train");
  NDArrayIter train(framed(digits.images),
                    {.batch_size = program.batch_size, .shuffle = true, .last_batch_handle = "discard"});
  Gan gan(program);
  int64_t batches = digits.count() / program.batch_size;
  if (program.max_batches) batches = std::min(batches, program.max_batches);
  require(batches > 0, "there are fewer digits than --batch-size");
  ProgressBar bar(batches, 40);
  for (int64_t epoch = 0; epoch < program.epochs; ++epoch) {
    train.reset();
    Gan::Right total;
    int64_t steps = 0;
    while (const auto batch = train.next()) {
      const Gan::Right right = gan.step(batch->data[0]);
      total.made += right.made;
      total.real += right.real;
      bar({.epoch = static_cast<int>(epoch), .nbatch = steps});
      if (++steps == program.max_batches) break;
    }
    std::cout << "Epoch[" << epoch << "] the discriminator is right about " << std::fixed << std::setprecision(0)
              << 100 * total.made / static_cast<double>(steps) << "% of the made and "
              << 100 * total.real / static_cast<double>(steps) << "% of the real images" << std::endl;
  }
  NDArray images = gan.made().copy();
  images += 1;
  images *= 0.5;
  std::cout << "Digits by the generator:\n";
  examples::draw_images(images, 6);
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("dcgan", [&] {
    Program program;
    examples::Options options("dcgan",
                              "Trains a generator of digits and a discriminator that tells them from real ones.");
    options.add("--data", program.data, "folder with the digits in MNIST's idx files", "DIR")
        .add("--epochs", program.epochs, "how often every digit is seen")
        .add("--batch-size", program.batch_size, "digits a step")
        .add("--filters", program.filters, "of the layers next to the images; the inner ones have four times as many")
        .add("--length", program.length, "random numbers for an image")
        .add("--lr", program.lr, "the learning rate of both networks")
        .add("--max-batches", program.max_batches, "end an epoch after so many batches; 0: do not", 0);
    options.parse(argc, argv);
    run(program);
  });
}
