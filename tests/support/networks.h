// Small networks that several tests train, each with the shapes of its inputs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"

namespace symbind::testing {

struct Network {
  std::string name;
  Symbol symbol;
  NamedShapes inputs;
  int64_t classes;  // labels are 0 … classes - 1; 0: the label is a number
};

// Shorthands; parameters as text, as files and Python have them.
Symbol var(const std::string& name);
Symbol fc(const Symbol& data, int64_t num_hidden, const std::string& name);
Symbol relu(const Symbol& data, const std::string& name);
Symbol softmax(const Symbol& data, const std::string& name = "softmax");

Network mlp();
Network lenet();
Network batch_norm_net();       // convolutions, batch normalisation, a residual sum
Network shared_weights_net();   // one weight used by two layers
Network several_outputs_net();  // two heads and a blocked output
std::vector<Network> all_networks();

// Bound with every argument, input and label set from a seed.
ExecutorPtr bind_with_values(const Network& network, Context context = cpu(), const SimpleBindOptions& options = {});
// Sets every argument of an executor from a seed; labels to whole numbers below `classes`.
void set_values(Executor& executor, int64_t classes, uint64_t seed = 1);

// Steps of plain gradient descent; the outputs of the last forward, then all parameters, then all auxiliary states.
std::vector<NDArray> train(Executor& executor, const NamedShapes& inputs, int steps, double lr = 0.05);

}  // namespace symbind::testing
