#include <iostream>

#include "symbind/symbind.h"

using namespace symbind;

int main() {
  Symbol net = Symbol::variable("data");
  net = fully_connected(net, {.num_hidden = 16}, "fc1");
  net = activation(net, {.act_type = act_type::relu}, "relu1");
  net = fully_connected(net, {.num_hidden = 2}, "fc2");
  net = softmax_output(net, {}, "softmax");

  // Every other shape follows from that of the data.
  ExecutorPtr executor = simple_bind(net, cpu(), {{"data", {100, 2}}}, {.grad_req = "parameters"});

  seed(1);
  const init::Xavier xavier;
  for (const auto& [name, gradient] : executor->grad_dict()) {
    NDArray weight = executor->arg_dict().at(name);
    xavier(InitDesc{name}, weight);
  }

  // Points inside and outside of a circle.
  NDArray points = random::uniform({.low = -1, .high = 1, .shape = {100, 2}});
  NDArray inside = sum(points * points, {.axis = 1}) < 0.5;

  for (int step = 0; step < 300; ++step) {
    executor->forward(/*is_train=*/true, {{"data", points}, {"softmax_label", inside}});
    executor->backward();
    for (const auto& [name, gradient] : executor->grad_dict()) {
      const NDArray& weight = executor->arg_dict().at(name);
      invoke(sgd_update, {weight, gradient}, {.lr = 0.5, .rescale_grad = 0.01}, {.out = {weight}});
    }
  }

  const std::vector<float> scores = executor->forward()[0].to_vector<float>(), truth = inside.to_vector<float>();
  int right = 0;
  for (size_t i = 0; i < truth.size(); ++i) right += (scores[2 * i + 1] > scores[2 * i]) == (truth[i] == 1.0f);
  std::cout << right << " of " << truth.size() << " points are right\n";
  save("circle.params", executor->arg_dict());
}
