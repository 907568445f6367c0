// Trains LeNet, a small convolutional network, on handwritten digits through Module::fit.
#include "examples/support/networks/lenet.h"

#include "examples/support/digits_training.h"

int main(int argc, char** argv) {
  return examples::run_program("lenet", [&] {
    networks::LeNet network;
    examples::DigitsTraining training;
    examples::Options options("lenet", "Trains LeNet on the handwritten digits in data/.");
    training.add_to(options);
    options.add("--filters", network.filters, "of its convolutions, one number each")
        .add("--hidden", network.hidden, "the size of its hidden layer")
        .add_choice("--activation", network.activation, {"tanh", "relu", "sigmoid"}, "after each of them")
        .add_choice("--pooling", network.pooling, {"max", "avg"}, "after the convolutions");
    options.parse(argc, argv);
    examples::train_and_score("lenet", networks::lenet(network), training);
  });
}
