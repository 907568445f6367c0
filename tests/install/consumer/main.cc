// A program as a user writes it: one header, one network, one forward pass.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "symbind/symbind.h"

using namespace symbind;

int main() {
  auto net = Symbol::variable("data");
  net = fully_connected(net, {.num_hidden = 4}, "fc1");

  const auto arguments = net.list_arguments();
  for (const std::string& name : arguments) std::cout << name << '\n';
  if (arguments != std::vector<std::string>{"data", "fc1_weight", "fc1_bias"}) {
    std::cerr << "unexpected arguments\n";
    return EXIT_FAILURE;
  }

  auto exe = simple_bind(net, cpu(), {{"data", Shape{2, 3}}}, {.grad_req = "write"});
  exe->arg_dict().at("data").copy_from(std::vector<float>(6, 1.0f));
  exe->arg_dict().at("fc1_weight").copy_from(std::vector<float>(12, 2.0f));
  exe->arg_dict().at("fc1_bias").copy_from(std::vector<float>(4, 0.5f));
  exe->forward(false);

  // Every output is 1*2 + 1*2 + 1*2 + 0.5.
  const std::vector<float> y = exe->outputs()[0].to_vector<float>();
  for (float value : y) std::cout << value << '\n';
  if (y.size() != 8 || !std::all_of(y.begin(), y.end(), [](float value) { return value == 6.5f; })) {
    std::cerr << "unexpected outputs\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
