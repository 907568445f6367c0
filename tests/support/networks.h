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
  GradReqs grad_req = "write";
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

// Networks with difficult cases for passes, some with outputs that are not losses; in networks_for_plans.cc.
Network unrolled_lstm();
Network inception_net();                       // branches of four kinds that are joined
Network added_gradients_net();                 // grad_req add for some arguments, null for others
Network intermediate_outputs_net();            // outputs that are used further
Network norm_before_convolution(int64_t pad);  // without a ReLU between them: padding differs from the interior
Network norms_of_all_kinds();                  // fix_gamma, use_global_stats, statistics as outputs
Network reused_operand_net();                  // an operand of a residual sum is read again
Network dropout_net();
Network resnet(int depth, int version, int64_t width, int64_t image_size);
std::vector<Network> residual_networks();   // of depth 18 and 50 in both forms, narrow
std::vector<Network> networks_for_plans();  // all of the above
// A network with all kinds of memory sharing: in place, views, pieces, several users, several outputs. Its inputs are
// two arrays `a` and `b` of 4 × columns; it may leave one out.
Symbol random_network(uint32_t seed, int64_t columns);

// Bound with every argument, input and label set from a seed.
ExecutorPtr bind_with_values(const Network& network, Context context = cpu(), const SimpleBindOptions& options = {});
// Values for a parameter: a normalisation's scale is around one, and weights of wide layers are small.
NDArray parameter_values(const std::string& name, const Shape& shape, uint64_t seed);
// Sets every argument of an executor from a seed; labels to whole numbers below `classes`.
void set_values(Executor& executor, int64_t classes, uint64_t seed = 1);

// A gradient for every output, as backward() takes them; loss heads ignore it.
std::vector<NDArray> out_grads_for(const Executor& executor, uint64_t seed = 100);

// Steps of plain gradient descent; the outputs of the last forward, then all parameters, then all auxiliary states.
std::vector<NDArray> train(Executor& executor, const NamedShapes& inputs, int steps, double lr = 0.05);

}  // namespace symbind::testing
