// A program as a user writes it: one header, one network, one forward pass, on a machine with or without a GPU.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "symbind/symbind.h"

using namespace symbind;

// A GPU is used where there is one, with CUDA's libraries; what is missing is said.
bool gpu_works_or_says_what_is_missing() {
  std::cout << num_gpus() << " GPUs\n";
  try {
    const NDArray matrix = ones({2, 2}, gpu(0));
    return dot(matrix, matrix).to_vector<float>() == std::vector<float>(4, 2.0f);
  } catch (const Error& error) {
    std::cout << error.what() << '\n';
    return std::string(error.what()).find("is not available") != std::string::npos;
  }
}

int main() {
  std::cout << "Symbind " << version() << '\n';
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
  if (!gpu_works_or_says_what_is_missing()) {
    std::cerr << "unexpected answer about gpu(0)\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
