// A language model with buckets: an LSTM that predicts the next word, unrolled to the length of a batch's sentences.
// Sentences of about one length share a batch, and each length has a network of its own; all share their parameters.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/contexts.h"
#include "examples/support/options.h"
#include "examples/support/progress.h"
#include "examples/support/text.h"

using namespace symbind;

namespace {

constexpr int64_t padding = 0;  // the number of no word: what fills a sentence up

struct Program {
  examples::TextSource text;
  std::string data_val, model_prefix, optimizer = "adam", kv_store = "device";
  std::vector<int64_t> buckets = {8, 12, 16, 24}, gpus = {};
  int64_t layers = 2, hidden = 64, embedded = 32, epochs = 8, batch_size = 32, disp_batches = 0;
  double dropout = 0, lr = 0.01, wd = 1e-5;
};

std::shared_ptr<SequentialRNNCell> recurrent_cells(const Program& program) {
  auto cells = std::make_shared<SequentialRNNCell>();
  for (int64_t layer = 0; layer < program.layers; ++layer) {
    cells->add(std::make_shared<LSTMCell>(program.hidden, join("lstm_l", layer, "_")));
    if (program.dropout > 0) cells->add(std::make_shared<DropoutCell>(program.dropout, join("lstm_d", layer, "_")));
  }
  return cells;
}

// The network for sentences of one length.
Symbol network(SequentialRNNCell& cells, const Program& program, int64_t words, int64_t length) {
  Symbol net = embedding(Symbol::variable("data"), {.input_dim = words, .output_dim = program.embedded}, "embed");
  cells.reset();
  net = cells.unroll(length, net, {.merge_outputs = true}).merged();
  net = fully_connected(reshape(net, {.shape = {-1, program.hidden}}), {.num_hidden = words}, "pred");
  const Symbol label = reshape(Symbol::variable("softmax_label"), {.shape = {-1}});
  return softmax_output(net, label, {.ignore_label = padding, .use_ignore = true, .normalization = "valid"}, "softmax");
}

struct Sentences {
  std::vector<std::vector<int64_t>> train, unseen;
  int64_t words = 0;
};

// A tenth is kept for testing, unless there is a file for that.
Sentences read_sentences(const Program& program) {
  std::vector<std::string> lines = examples::read_lines(program.text), unseen;
  if (program.data_val.empty()) {
    const auto split = lines.begin() + static_cast<std::ptrdiff_t>(lines.size() * 9 / 10);
    unseen.assign(split, lines.end());
    lines.erase(split, lines.end());
  } else {
    unseen = examples::read_lines(program.data_val);
  }
  EncodedSentences train =
      encode_sentences(examples::words_of(lines), std::nullopt, {.invalid_label = padding, .start_label = padding + 1});
  EncodedSentences others = encode_sentences(examples::words_of(unseen), train.vocabulary,
                                             {.invalid_label = padding, .unknown_token = "<unk>"});
  int64_t words = 0;
  for (const auto& [word, number] : others.vocabulary) words = std::max(words, number + 1);
  return {std::move(train.sentences), std::move(others.sentences), words};
}

void run(const Program& program) {
  seed(1);
  const Sentences sentences = read_sentences(program);
  std::cout << sentences.train.size() << " sentences to train on, " << sentences.unseen.size() << " others, "
            << sentences.words << " words\n";
  const BucketSentenceOptions options{.buckets = program.buckets, .invalid_label = padding};
  BucketSentenceIter train(sentences.train, program.batch_size, options);
  BucketSentenceIter unseen(sentences.unseen, program.batch_size, options);
  require(unseen.next().has_value(), "there are too few sentences to test on: lower --batch-size");
  unseen.reset();

  const auto cells = recurrent_cells(program);
  BucketingModule module(
      [&](const BucketKey& length) {
        return BucketNetwork{network(*cells, program, sentences.words, length.number())};
      },
      {.default_bucket_key = train.default_bucket_key(), .context = examples::contexts_of(program.gpus)});
  EpochEndCallbacks saved;
  if (!program.model_prefix.empty()) saved.push_back(do_rnn_checkpoint({cells}, program.model_prefix));
  module.fit(
      train,
      {.eval_data = &unseen,
       .eval_metric = std::make_shared<metric::Perplexity>(padding),
       .epoch_end_callback = saved,
       .batch_end_callback = {examples::progress(program.batch_size, program.disp_batches, train.num_batches())},
       .kvstore = program.kv_store,
       .optimizer = program.optimizer,
       .optimizer_params = {{"learning_rate", program.lr}, {"wd", program.wd}},
       .initializer = std::make_shared<init::Xavier>(init::XavierOptions{.factor_type = "in", .magnitude = 2.34}),
       .num_epoch = static_cast<int>(program.epochs)});
  std::cout << "The next word of unseen sentences is one of " << std::fixed << std::setprecision(2)
            << module.score(unseen, std::make_shared<metric::Perplexity>(padding))[0].second << ", of "
            << sentences.words << " words.\n";
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("lstm_bucketing", [&] {
    Program program;
    examples::Options options("lstm_bucketing",
                              "A language model over sentences of many lengths, each with a network of its own.");
    program.text.add_to(options);
    options.add("--data-val", program.data_val, "another text to be tested on; else a tenth of the first", "FILE")
        .add("--buckets", program.buckets, "lengths that sentences are filled up to")
        .add("--num-layers", program.layers, "of the LSTM")
        .add("--num-hidden", program.hidden, "the size of a layer")
        .add("--num-embed", program.embedded, "numbers for a word")
        .add("--dropout", program.dropout, "between layers")
        .add("--num-epochs", program.epochs, "how often every sentence is read")
        .add("--batch-size", program.batch_size, "sentences a step")
        .add("--optimizer", program.optimizer, "by its name")
        .add("--lr", program.lr, "the learning rate")
        .add("--wd", program.wd, "weight decay")
        .add("--kv-store", program.kv_store, "how devices share gradients")
        .add("--disp-batches", program.disp_batches, "a line of progress every so many batches; 0: a progress bar", 0)
        .add("--model-prefix", program.model_prefix, "save a checkpoint with this prefix after each epoch", "PREFIX")
        .add("--gpus", program.gpus, "GPUs that share a batch; else the CPU is used", 0);
    options.parse(argc, argv);
    run(program);
  });
}
