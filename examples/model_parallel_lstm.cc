// An LSTM whose layers are on different devices: a model that does not fit one of them. Each layer is in a context
// group of its own, and group2ctx says on which device a group runs; what crosses from one to the next is copied. The
// network reads a text character by character and predicts the next one.
#include <cmath>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/contexts.h"
#include "examples/support/options.h"
#include "examples/support/text.h"

using namespace symbind;

namespace {

struct Program {
  examples::TextSource text{.sentences = 400};
  std::vector<int64_t> gpus = {};
  int64_t layers = 2, hidden = 64, embedded = 16, steps = 20, epochs = 5, batch_size = 16;
  double lr = 0.01;
};

std::string group_of(int64_t layer) { return join("layer", layer); }

// Unrolled over the steps of a piece: what comes after each character of `data`.
Symbol network(const Program& program, int64_t letters) {
  RNNSequence sequence = [&] {
    const AttrScope scope{{"ctx_group", "embed"}};
    return RNNSequence(
        embedding(Symbol::variable("data"), {.input_dim = letters, .output_dim = program.embedded}, "embed"));
  }();
  for (int64_t layer = 0; layer < program.layers; ++layer) {
    const AttrScope scope{{"ctx_group", group_of(layer)}};
    LSTMCell cell(program.hidden, join("lstm_l", layer, "_"));
    sequence = cell.unroll(program.steps, sequence, {.merge_outputs = true}).outputs;
  }
  const AttrScope scope{{"ctx_group", "decode"}};
  const Symbol net =
      fully_connected(reshape(sequence.merged(), {.shape = {-1, program.hidden}}), {.num_hidden = letters}, "predict");
  const Symbol label = reshape(Symbol::variable("softmax_label"), {.shape = {-1}});
  return softmax_output(net, label, {.normalization = "batch"}, "softmax");
}

// Layers in order over the devices; the embedding with the first, the prediction with the last.
std::map<std::string, Context> placement(const Program& program, const std::vector<Context>& devices) {
  std::map<std::string, Context> groups{{"embed", devices.front()}, {"decode", devices.back()}};
  for (int64_t layer = 0; layer < program.layers; ++layer)
    groups[group_of(layer)] =
        devices[static_cast<size_t>(layer) * devices.size() / static_cast<size_t>(program.layers)];
  return groups;
}

void run(const Program& program) {
  seed(1);
  const examples::Characters text(examples::read_lines(program.text), "");
  const auto letters = static_cast<int64_t>(text.alphabet.size());
  const auto [data, label] = text.pieces(program.steps, program.batch_size);
  NDArrayIter train(data, label, {.batch_size = program.batch_size, .last_batch_handle = "discard"});

  const std::vector<Context> devices = examples::contexts_of(program.gpus, 2);
  const auto groups = placement(program, devices);
  for (const auto& [group, device] : groups)
    std::cout << std::left << std::setw(8) << group << " on " << device << "\n";
  Module module(network(program, letters), {.context = {devices.front()}, .group2ctxs = {groups}});
  module.fit(train, {.eval_metric = std::make_shared<metric::Perplexity>(std::nullopt),
                     .batch_end_callback = {ProgressBar(train.num_data() / program.batch_size, 40)},
                     .optimizer = optim::Adam{.learning_rate = program.lr, .rescale_grad = 1.0},
                     .initializer = std::make_shared<init::Xavier>(init::XavierOptions{.magnitude = 2.34}),
                     .num_epoch = static_cast<int>(program.epochs)});
  std::cout << "The next character is one of " << std::fixed << std::setprecision(2)
            << module.score(train, std::make_shared<metric::Perplexity>(std::nullopt))[0].second << ", of " << letters
            << " characters.\n";
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("model_parallel_lstm", [&] {
    Program program;
    examples::Options options("model_parallel_lstm", "An LSTM whose layers are on different devices.");
    program.text.add_to(options);
    options.add("--layers", program.layers, "of the LSTM")
        .add("--hidden", program.hidden, "the size of a layer")
        .add("--embedded", program.embedded, "numbers for a character")
        .add("--steps", program.steps, "characters the network is unrolled over")
        .add("--epochs", program.epochs, "how often the text is read")
        .add("--batch-size", program.batch_size, "pieces of text a step")
        .add("--lr", program.lr, "the learning rate")
        .add("--gpus", program.gpus, "GPUs for the layers; else two CPU contexts are used", 0);
    options.parse(argc, argv);
    run(program);
  });
}
