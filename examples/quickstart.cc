#include <iostream>

#include "symbind/symbind.h"

using namespace symbind;

int main(int argc, char** argv) {
  Symbol net = Symbol::variable("data");
  net = fully_connected(net, {.num_hidden = 128}, "fc1");
  net = activation(net, {.act_type = act_type::relu}, "relu1");
  net = fully_connected(net, {.num_hidden = 10}, "fc2");
  net = softmax_output(net, {}, "softmax");

  const std::string folder = argc > 1 ? argv[1] : "data";
  MNISTIter train({.image = folder + "/train-images-idx3-ubyte.gz",
                   .label = folder + "/train-labels-idx1-ubyte.gz",
                   .batch_size = 64,
                   .flat = true});
  MNISTIter test({.image = folder + "/t10k-images-idx3-ubyte.gz",
                  .label = folder + "/t10k-labels-idx1-ubyte.gz",
                  .batch_size = 64,
                  .flat = true});

  Module mod(net, {.context = {cpu(0), cpu(1)}});
  mod.fit(train, {.eval_data = &test,
                  .optimizer = optim::Sgd{.learning_rate = 0.1, .momentum = 0.9},
                  .initializer = std::make_shared<init::Xavier>(),
                  .num_epoch = 8});
  std::cout << "accuracy " << mod.score(test, "acc")[0].second << "\n";
  mod.save_checkpoint("quickstart", 8);
}
