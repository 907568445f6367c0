// What buckets cost: switching to one that was visited before, and the memory of thirty of them beside that of the
// largest alone. A language model of one recurrent layer, unrolled over 5 to 34 steps. Prints one JSON row.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <vector>

#include "symbind/symbind.h"

using namespace symbind;

namespace {

constexpr int64_t samples = 32, words = 2000, hidden = 200, shortest = 5, buckets = 30;

BucketNetwork language_model(const BucketKey& key) {
  const int64_t length = key.number();
  const Symbol data = Symbol::variable("data");
  const Symbol embed = embedding(data, {.input_dim = words, .output_dim = hidden}, "embed");
  const Symbol steps =
      apply("SliceChannel", {embed}, {{"num_outputs", std::to_string(length)}, {"axis", "1"}, {"squeeze_axis", "True"}},
            "steps");
  const Symbol i2h_weight = Symbol::variable("i2h_weight"), i2h_bias = Symbol::variable("i2h_bias");
  const Symbol h2h_weight = Symbol::variable("h2h_weight"), h2h_bias = Symbol::variable("h2h_bias");
  Symbol h = Symbol::variable("init_h");
  std::vector<Symbol> all;
  for (int64_t t = 0; t < length; ++t) {
    const Attributes wide{{"num_hidden", std::to_string(hidden)}};
    const Symbol i2h = apply("FullyConnected", {steps[static_cast<size_t>(t)], i2h_weight, i2h_bias}, wide);
    const Symbol h2h = apply("FullyConnected", {h, h2h_weight, h2h_bias}, wide);
    h = activation(i2h + h2h, {.act_type = "tanh"});
    all.push_back(apply("expand_dims", {h}, {{"axis", "1"}}));
  }
  const Symbol states = apply("Concat", all, {{"dim", "1"}, {"num_args", std::to_string(length)}});
  const Symbol scores = fully_connected(reshape(states, {.shape = {-1, hidden}}), {.num_hidden = words}, "pred");
  const Symbol label = reshape(Symbol::variable("softmax_label"), {.shape = {-1}});
  return {softmax_output(scores, label, {}, "softmax"), {"data", "init_h"}};
}

DataBatch batch_of(int64_t length) {
  return {.data = {ones({samples, length}), zeros({samples, hidden})},
          .label = {zeros({samples, length})},
          .bucket_key = length};
}

std::unique_ptr<BucketingModule> module_of(int64_t default_length) {
  auto module =
      std::make_unique<BucketingModule>(language_model, BucketingOptions{.default_bucket_key = default_length});
  module->bind({{"data", {samples, default_length}}, {"init_h", {samples, hidden}}},
               {{"softmax_label", {samples, default_length}}});
  module->init_params();
  module->init_optimizer({.optimizer = optim::Sgd{.learning_rate = 0.1, .momentum = 0.9}});
  return module;
}

void step(BucketingModule& module, int64_t length) {
  module.forward_backward(batch_of(length));
  module.update();
}

int64_t live_bytes() { return Device::get(cpu()).memory().live; }

double microseconds_per_switch(BucketingModule& module) {
  constexpr int rounds = 1000;
  double best = 1e9;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) module.switch_bucket(shortest + i * 7 % buckets, {}, {});
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count() / rounds);
  }
  return best;
}

}  // namespace

int main() {
  const int64_t longest = shortest + buckets - 1, before = live_bytes();
  auto alone = module_of(longest);
  step(*alone, longest);
  const int64_t largest = live_bytes() - before;
  alone.reset();

  auto module = module_of(shortest);
  for (int64_t length = shortest; length <= longest; ++length) step(*module, length);
  const int64_t once = live_bytes() - before;
  for (int64_t length = longest; length >= shortest; --length) step(*module, length);
  const int64_t twice = live_bytes() - before;
  constexpr double mib = 1 << 20;
  std::cout << "{\"case\": \"buckets\", \"switch_us\": " << microseconds_per_switch(*module)
            << ", \"largest_mib\": " << static_cast<double>(largest) / mib
            << ", \"thirty_mib\": " << static_cast<double>(once) / mib
            << ", \"second_visit_mib\": " << static_cast<double>(twice) / mib << "}\n";
}
