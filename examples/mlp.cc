// Trains a multi-layer perceptron on handwritten digits through Module::fit.
#include "examples/support/networks/mlp.h"

#include "examples/support/digits_training.h"

int main(int argc, char** argv) {
  return examples::run_program("mlp", [&] {
    networks::MLP network;
    examples::DigitsTraining training;
    examples::Options options("mlp", "Trains a multi-layer perceptron on the handwritten digits in data/.");
    training.add_to(options);
    options.add("--hidden", network.hidden, "the sizes of its hidden layers")
        .add_choice("--activation", network.activation, {"relu", "tanh", "sigmoid"}, "after each of them");
    options.parse(argc, argv);
    examples::train_and_score("mlp", networks::mlp(network), training);
  });
}
