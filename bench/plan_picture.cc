// Draws how a network's plan uses memory, as SVG, and prints the plan as a table. Nothing is run: a plan says it all.
#include <fstream>
#include <iostream>
#include <map>
#include <string>

#include "symbind/symbind.h"

#include "examples/support/networks.h"
#include "examples/support/options.h"

using namespace symbind;

namespace {

struct Drawing {
  std::string network = "resnet50", mode = "train", out = "";
  int64_t batch = 32, image_size = 224, budget = 0;
};

Symbol network_named(const std::string& name) {
  if (name == "mlp") return networks::mlp();
  if (name == "lenet") return networks::lenet();
  return networks::resnet({.depth = std::stoi(name.substr(std::string("resnet").size()))});
}

Shape data_shape(const Drawing& drawing) {
  if (drawing.network == "mlp") return {drawing.batch, 784};
  if (drawing.network == "lenet") return {drawing.batch, 1, 28, 28};
  return {drawing.batch, 3, drawing.image_size, drawing.image_size};
}

void draw(const Drawing& drawing) {
  const Symbol symbol = network_named(drawing.network);
  std::map<std::string, std::string> requests;  // data and labels need no gradient
  for (const std::string& name : symbol.list_arguments())
    if (name != "data" && name != "softmax_label") requests[name] = drawing.mode == "train" ? "write" : "null";
  const auto budget = static_cast<size_t>(drawing.budget) << 20;
  const ExecutorPtr executor = simple_bind(symbol, cpu(), {{"data", data_shape(drawing)}},
                                           {.grad_req = requests, .options = {.memory_budget = budget}});
  std::cout << executor->debug_str();
  if (drawing.out.empty()) return;
  std::string title = join(drawing.network, ", batch of ", drawing.batch,
                           drawing.mode == "train" ? ", forward and backward" : ", inference");
  if (budget > 0) title += join(", to fit ", drawing.budget, " MiB");
  std::ofstream file(drawing.out);
  file << executor->memory_picture(title);
  require(file.flush().good(), "cannot write ", drawing.out);
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("plan_picture", [&] {
    Drawing drawing;
    examples::Options options("plan_picture", "Prints the plan of a network, and draws its working memory.");
    options
        .add_choice("--network", drawing.network,
                    {"mlp", "lenet", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152"}, "which one")
        .add_choice("--mode", drawing.mode, {"train", "inference"}, "with or without backward")
        .add("--batch", drawing.batch, "images a step")
        .add("--image-size", drawing.image_size, "pixels a side, for residual networks", 32)
        .add("--budget", drawing.budget, "MiB that a training plan is to fit in; 0: as many as it needs", 0)
        .add("--out", drawing.out, "file for the picture; none is drawn without it", "FILE");
    options.parse(argc, argv);
    draw(drawing);
  });
}
