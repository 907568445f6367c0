// A network that reads a text character by character, and then writes in its manner. The LSTM is trained unrolled over
// pieces of the text; to write, it runs one character at a time, each drawn from the probabilities that the one before
// gave, with its state passed on.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/contexts.h"
#include "examples/support/options.h"
#include "examples/support/text.h"

using namespace symbind;

namespace {

struct Program {
  examples::TextSource text{.sentences = 800};
  std::vector<int64_t> gpus = {};
  std::string start = "the ";
  int64_t layers = 1, hidden = 96, embedded = 16, steps = 32, epochs = 10, batch_size = 16, length = 400, seed = 1;
  double lr = 0.01, temperature = 0.7;
};

class Network {
 public:
  Network(const Program& program, int64_t letters) : program_(program), letters_(letters) {
    for (int64_t layer = 0; layer < program.layers; ++layer)
      cells_.add(std::make_shared<LSTMCell>(program.hidden, join("lstm_l", layer, "_")));
  }

  // For training: what comes after each character of a piece.
  Symbol reader() {
    cells_.reset();
    const Symbol outputs = cells_.unroll(program_.steps, embedded(), {.merge_outputs = true}).merged();
    const Symbol label = reshape(Symbol::variable("softmax_label"), {.shape = {-1}});
    return softmax_output(scores(outputs), label, {}, "softmax");
  }

  // For writing: the probabilities after one character, and the states for the next, whose names are in `states`.
  Symbol writer(std::vector<std::string>& states) {
    cells_.reset();
    const std::vector<Symbol> first = cells_.begin_state([&](const std::string& name, const RNNStateInfo&) {
      states.push_back(name);
      return Symbol::variable(name);
    });
    const RNNUnrolled one = cells_.unroll(1, embedded(), {.begin_state = first, .merge_outputs = true});
    std::vector<Symbol> outputs{softmax(scores(one.merged()), {}, "probabilities")};
    outputs.insert(outputs.end(), one.states.begin(), one.states.end());
    return Symbol::group(outputs);
  }

 private:
  Symbol embedded() const {
    return embedding(Symbol::variable("data"), {.input_dim = letters_, .output_dim = program_.embedded}, "embed");
  }
  Symbol scores(const Symbol& outputs) const {
    return fully_connected(reshape(outputs, {.shape = {-1, program_.hidden}}), {.num_hidden = letters_}, "pred");
  }

  const Program& program_;
  int64_t letters_;
  SequentialRNNCell cells_;
};

// The trained network, one character at a time.
class Writer {
 public:
  Writer(Network& network, const Program& program, const std::string& alphabet, const NamedArrays& params)
      : alphabet_(alphabet), random_(static_cast<uint32_t>(program.seed)) {
    const Symbol net = network.writer(states_);
    NamedShapes shapes{{"data", {1, 1}}};
    for (const std::string& state : states_) shapes[state] = {1, program.hidden};
    executor_ = simple_bind(net, cpu(), shapes, {.grad_req = "null"});
    executor_->copy_params_from(params, {}, /*allow_extra_params=*/true);
  }

  // `length` characters after `start`. A temperature below 1 prefers what is likely.
  std::string write(const std::string& start, int64_t length, double temperature) {
    std::string written = start;
    for (const char letter : start) read(letter);
    for (int64_t i = 0; i < length; ++i) {
      std::vector<double> weights = executor_->outputs()[0].to_vector<double>();
      for (double& weight : weights) weight = std::pow(std::max(weight, 1e-30), 1 / temperature);
      const auto drawn = std::discrete_distribution<size_t>(weights.begin(), weights.end())(random_);
      written += alphabet_[drawn];
      read(written.back());
    }
    return written;
  }

 private:
  void read(char letter) {
    const auto& outputs =
        executor_->forward(false, {{"data", array(std::vector{static_cast<float>(alphabet_.find(letter))}, {1, 1})}});
    for (size_t i = 0; i < states_.size(); ++i) outputs[i + 1].copyto(executor_->arg_dict().at(states_[i]));
  }

  const std::string& alphabet_;
  std::mt19937 random_;
  std::vector<std::string> states_;
  ExecutorPtr executor_;
};

void run(const Program& program) {
  require(!program.start.empty(), "--start needs a character");
  seed(static_cast<uint64_t>(program.seed));
  const examples::Characters text(examples::read_lines(program.text), program.start);
  const auto letters = static_cast<int64_t>(text.alphabet.size());
  std::cout << text.codes.size() << " characters, " << letters << " of them different\n";
  const auto [data, label] = text.pieces(program.steps, program.batch_size);
  NDArrayIter train(data, label, {.batch_size = program.batch_size, .shuffle = true, .last_batch_handle = "discard"});

  Network network(program, letters);
  Module module(network.reader(), {.context = examples::contexts_of(program.gpus)});
  const double each = 1.0 / static_cast<double>(program.batch_size * program.steps);
  module.fit(train, {.eval_metric = std::make_shared<metric::Perplexity>(std::nullopt),
                     .batch_end_callback = {ProgressBar(train.num_data() / program.batch_size, 40)},
                     .optimizer = optim::Adam{.learning_rate = program.lr, .rescale_grad = each},
                     .initializer =
                         std::make_shared<init::Xavier>(init::XavierOptions{.factor_type = "in", .magnitude = 2.34}),
                     .num_epoch = static_cast<int>(program.epochs)});
  Writer writer(network, program, text.alphabet, module.get_params().arg_params);
  std::cout << writer.write(program.start, program.length, program.temperature) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("char_rnn", [&] {
    Program program;
    examples::Options options("char_rnn", "Reads a text character by character, and then writes in its manner.");
    program.text.add_to(options);
    options.add("--layers", program.layers, "of the LSTM")
        .add("--hidden", program.hidden, "the size of a layer")
        .add("--embedded", program.embedded, "numbers for a character")
        .add("--steps", program.steps, "characters the network is unrolled over")
        .add("--epochs", program.epochs, "how often the text is read", 0)
        .add("--batch-size", program.batch_size, "pieces of text a step")
        .add("--lr", program.lr, "the learning rate")
        .add("--start", program.start, "what the written text begins with")
        .add("--length", program.length, "characters to write")
        .add("--temperature", program.temperature, "below 1 the network prefers what is likely")
        .add("--gpus", program.gpus, "GPUs that share a batch; else the CPU is used", 0)
        .add("--seed", program.seed, "of the random numbers");
    options.parse(argc, argv);
    run(program);
  });
}
