// The networks that are timed, with the shapes of their batches and random numbers for them.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/networks.h"

namespace bench {

using namespace symbind;

struct Case {
  Symbol symbol;
  Shape data;  // the first axis is the batch
  int64_t classes = 10;
  Shape label = {};        // none: a number for each of the batch
  int64_t vocabulary = 0;  // the data are whole numbers below it; none: normal numbers

  Shape label_shape() const { return label.rank() > 0 ? label : Shape{data[0]}; }
  std::shared_ptr<Initializer> initializer() const {
    if (vocabulary > 0) return std::make_shared<init::Uniform>(0.1);
    return std::make_shared<init::Xavier>(init::XavierOptions{.magnitude = 2});
  }
  std::vector<std::string> parameters() const {
    std::vector<std::string> names;
    for (const std::string& name : symbol.list_arguments())
      if (name != "data" && name != "softmax_label") names.push_back(name);
    return names;
  }

  // A batch, on the host: the same in each call.
  NDArray random_data() const { return vocabulary > 0 ? whole_numbers(data, vocabulary) : normal_numbers(data); }
  NDArray random_labels() const { return whole_numbers(label_shape(), classes); }

 private:
  static NDArray normal_numbers(const Shape& shape) { return numbers(shape, std::normal_distribution<float>()); }
  static NDArray whole_numbers(const Shape& shape, int64_t below) {
    return numbers(shape, std::uniform_int_distribution<int64_t>(0, below - 1));
  }
  template <class Distribution>
  static NDArray numbers(const Shape& shape, Distribution number) {
    std::mt19937 random(1);
    std::vector<float> values(static_cast<size_t>(shape.size()));
    for (float& value : values) value = static_cast<float>(number(random));
    return array(values, shape);
  }
};

inline Case mlp() { return {networks::mlp(), {64, 784}}; }
inline Case lenet() { return {networks::lenet(), {64, 1, 28, 28}}; }

constexpr int64_t resnet_batch = 32;
// The pre-activation network.
inline Case resnet50() { return {networks::resnet({.depth = 50}), {resnet_batch, 3, 224, 224}, 1000}; }
// Version 1.5, which torchvision has.
inline Case resnet50_v1() {
  return {networks::resnet({.depth = 50, .version = 1, .stride_in_3x3 = true}), {resnet_batch, 3, 224, 224}, 1000};
}

// A layer of LSTM cells over the steps of a sequence, from operators.
inline std::vector<Symbol> lstm_layer(const std::vector<Symbol>& steps, int64_t hidden, const std::string& name) {
  const auto zeros_to_begin_with = [&] { return make_zeros({.shape = {0, hidden}}); };
  Symbol h = zeros_to_begin_with(), c = zeros_to_begin_with();
  const auto weight_and_bias = [&](const std::string& of) {
    return std::pair(Symbol::variable(name + of + "_weight"), Symbol::variable(name + of + "_bias"));
  };
  const auto [i2h_weight, i2h_bias] = weight_and_bias("i2h");
  const auto [h2h_weight, h2h_bias] = weight_and_bias("h2h");
  std::vector<Symbol> outputs;
  for (const Symbol& x : steps) {
    const Symbol gates = fully_connected(x, i2h_weight, i2h_bias, {.num_hidden = 4 * hidden}) +
                         fully_connected(h, h2h_weight, h2h_bias, {.num_hidden = 4 * hidden});
    const Symbol parts = slice_channel(gates, {.num_outputs = 4});
    const Symbol in = activation(parts[0], {.act_type = "sigmoid"});
    const Symbol forget = activation(parts[1], {.act_type = "sigmoid"});
    const Symbol transform = activation(parts[2], {.act_type = "tanh"});
    const Symbol out = activation(parts[3], {.act_type = "sigmoid"});
    c = forget * c + in * transform;
    h = out * activation(c, {.act_type = "tanh"});
    outputs.push_back(h);
  }
  return outputs;
}

// A language model: the next word at each of 35 steps. `layers` turns the words (batch, length, hidden) into rows.
constexpr int64_t lm_length = 35, lm_words = 10000;

inline Case language_model(int64_t hidden, int64_t batch, Symbol (*layers)(const Symbol& embedded)) {
  const Symbol embedded =
      embedding({{"data", Symbol::variable("data")}}, {.input_dim = lm_words, .output_dim = hidden}, "embed");
  const Symbol rows = reshape(layers(embedded), {.shape = {-1, hidden}});
  const Symbol words_at_all = fully_connected(rows, {.num_hidden = lm_words}, "pred");
  const Symbol label = reshape(Symbol::variable("softmax_label"), {.shape = {-1}});
  return {.symbol = softmax_output(words_at_all, label, {}, "softmax"),
          .data = {batch, lm_length},
          .classes = lm_words,
          .label = {batch, lm_length},
          .vocabulary = lm_words};
}

inline Case unrolled_lstm() {
  constexpr int64_t hidden = 200;
  return language_model(hidden, 32, [](const Symbol& embedded) {
    const Symbol slices = slice_channel(embedded, {.num_outputs = lm_length, .axis = 1, .squeeze_axis = true});
    std::vector<Symbol> steps;
    for (int64_t t = 0; t < lm_length; ++t) steps.push_back(slices[static_cast<size_t>(t)]);
    for (const char* layer : {"lstm0_", "lstm1_"}) steps = lstm_layer(steps, hidden, layer);
    for (Symbol& step : steps) step = expand_dims(step, {.axis = 1});
    return concat(steps, {.dim = 1});
  });
}

template <int64_t hidden, int64_t batch>
Case fused_lstm() {
  return language_model(hidden, batch, [](const Symbol& embedded) {
    const auto zeros_to_begin_with = [] { return make_zeros({.shape = {2, 0, hidden}}); };
    const Symbol steps_first = swap_axis(embedded, {.dim1 = 0, .dim2 = 1});
    const Symbol outputs =
        rnn({steps_first, Symbol::variable("lstm_weight"), zeros_to_begin_with(), zeros_to_begin_with()},
            {.state_size = hidden, .num_layers = 2, .mode = rnn_mode::lstm});
    return swap_axis(outputs, {.dim1 = 0, .dim2 = 1});
  });
}

// Inception-ResNet-v2 as published, but for widths that are no multiple of a vector: 129 in the middle blocks, and 1154
// between them.
class InceptionResnet {
 public:
  static Symbol network() {
    Symbol net = stem(Symbol::variable("data"));
    for (int i = 0; i < 10; ++i) net = block35(net);
    net = concat({conv(net, 450, {3, 3}, {0, 0}, {2, 2}),
                  conv(conv(conv(net, 256, {1, 1}), 256, {3, 3}, {1, 1}), 384, {3, 3}, {0, 0}, {2, 2}), halved(net)},
                 {.dim = 1});
    for (int i = 0; i < 20; ++i) net = block17(net);
    const Symbol narrow = conv(net, 256, {1, 1});
    net = concat({conv(narrow, 384, {3, 3}, {0, 0}, {2, 2}), conv(narrow, 288, {3, 3}, {0, 0}, {2, 2}),
                  conv(conv(narrow, 288, {3, 3}, {1, 1}), 320, {3, 3}, {0, 0}, {2, 2}), halved(net)},
                 {.dim = 1});
    for (int i = 0; i < 10; ++i) net = block8(net, i < 9);
    net = pooling(conv(net, 1536, {1, 1}), {.kernel = {1, 1}, .pool_type = "avg", .global_pool = true});
    return softmax_output(fully_connected(flatten(net), {.num_hidden = 1000}, "fc1"), {}, "softmax");
  }

 private:
  static Symbol conv(const Symbol& x, int64_t filters, Tuple kernel, Tuple pad = {0, 0}, Tuple stride = {1, 1}) {
    const Symbol y = convolution(x, {.kernel = std::move(kernel),
                                     .stride = std::move(stride),
                                     .pad = std::move(pad),
                                     .num_filter = filters,
                                     .no_bias = true});
    return activation(batch_norm(y, {.eps = 2e-5, .fix_gamma = false}), {.act_type = "relu"});
  }
  static Symbol halved(const Symbol& x) { return pooling(x, {.kernel = {3, 3}, .pool_type = "max", .stride = {2, 2}}); }
  static Symbol stem(Symbol x) {
    x = conv(x, 32, {3, 3}, {0, 0}, {2, 2});
    x = halved(conv(conv(x, 32, {3, 3}), 64, {3, 3}, {1, 1}));
    x = halved(conv(conv(x, 80, {1, 1}), 192, {3, 3}));
    const Symbol mean = pooling(x, {.kernel = {3, 3}, .pool_type = "avg", .stride = {1, 1}, .pad = {1, 1}});
    return concat({conv(x, 96, {1, 1}), conv(conv(x, 48, {1, 1}), 64, {5, 5}, {2, 2}),
                   conv(conv(conv(x, 64, {1, 1}), 96, {3, 3}, {1, 1}), 96, {3, 3}, {1, 1}), conv(mean, 64, {1, 1})},
                  {.dim = 1});
  }
  static Symbol residual(const Symbol& x, const std::vector<Symbol>& towers, int64_t filters, double scale, bool relu) {
    const Symbol up = convolution(concat(towers, {.dim = 1}), {.kernel = {1, 1}, .num_filter = filters});
    const Symbol sum = x + up * scale;
    return relu ? activation(sum, {.act_type = "relu"}) : sum;
  }
  static Symbol block35(const Symbol& x) {
    return residual(x,
                    {conv(x, 32, {1, 1}), conv(conv(x, 32, {1, 1}), 32, {3, 3}, {1, 1}),
                     conv(conv(conv(x, 32, {1, 1}), 48, {3, 3}, {1, 1}), 64, {3, 3}, {1, 1})},
                    320, 0.17, true);
  }
  static Symbol block17(const Symbol& x) {
    return residual(x,
                    {conv(x, 192, {1, 1}), conv(conv(conv(x, 129, {1, 1}), 160, {1, 7}, {0, 3}), 192, {7, 1}, {3, 0})},
                    1154, 0.1, true);
  }
  static Symbol block8(const Symbol& x, bool relu) {
    return residual(x,
                    {conv(x, 192, {1, 1}), conv(conv(conv(x, 192, {1, 1}), 224, {1, 3}, {0, 1}), 256, {3, 1}, {1, 0})},
                    2146, 0.2, relu);
  }
};

inline Case inception_resnet() { return {InceptionResnet::network(), {2, 3, 299, 299}, 1000}; }

// Sentences of 56 words, each a row of 300 numbers: kernels over three to five whole words, the largest answer of each.
inline Case text_cnn() {
  const Symbol words = Symbol::variable("data");
  std::vector<Symbol> answers;
  for (const int64_t length : {3, 4, 5}) {
    const Symbol y = activation(convolution(words, {.kernel = {length, 300}, .num_filter = 100}), {.act_type = "relu"});
    answers.push_back(pooling(y, {.kernel = {56 - length + 1, 1}, .pool_type = "max"}));
  }
  const Symbol all = dropout(flatten(concat(answers, {.dim = 1})), {.p = 0.5});
  return {softmax_output(fully_connected(all, {.num_hidden = 2}, "fc1"), {}, "softmax"), {50, 1, 56, 300}, 2};
}

// By name: "-train" is a step of training, "-infer" a prediction.
inline const std::map<std::string, Case (*)()>& cases() {
  static const std::map<std::string, Case (*)()> all = {{"mlp-train", mlp},
                                                        {"lenet-train", lenet},
                                                        {"lenet-infer", lenet},
                                                        {"lstm-train", fused_lstm<200, 32>},
                                                        {"lstm650-train", fused_lstm<650, 64>},
                                                        {"lstm-train-unrolled", unrolled_lstm},
                                                        {"resnet50-train", resnet50},
                                                        {"resnet50-infer", resnet50},
                                                        {"resnet50-infer-b1", resnet50},
                                                        {"resnet50v1-train", resnet50_v1},
                                                        {"resnet50v1-infer", resnet50_v1},
                                                        {"resnet50v1-infer-b1", resnet50_v1},
                                                        {"inception-resnet-v2-infer", inception_resnet},
                                                        {"text-cnn-train", text_cnn}};
  return all;
}

// For messages and --help.
inline std::string case_names() {
  std::string names;
  for (const auto& [name, make] : cases()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

inline bool is_inference(const std::string& name) { return name.find("-infer") != std::string::npos; }

// `batch` 0: as many samples as the case usually has.
inline Case make_case(const std::string& name, int64_t batch = 0) {
  require(cases().contains(name), "unknown case '", name, "'; there are ", case_names());
  Case made = cases().at(name)();
  if (batch == 0 && name.ends_with("-b1")) batch = 1;
  if (batch == 0) return made;
  made.data[0] = batch;
  if (made.label.rank() > 0) made.label[0] = batch;
  return made;
}

}  // namespace bench
