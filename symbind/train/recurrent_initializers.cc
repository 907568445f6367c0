// Initializers of recurrent layers.
#include <string_view>
#include <utility>

#include "symbind/train/initializer.h"
#include "symbind/train/initializer_fill.h"
#include "symbind/train/initializer_text.h"

namespace symbind::init {
namespace {

// What is before "_weight" and "_bias" for each gate, in the order of the vector.
std::vector<std::string> gates_of(const std::string& mode) {
  if (mode == "lstm") return {"_i", "_f", "_c", "_o"};
  if (mode == "gru") return {"_r", "_z", "_o"};
  if (mode == "rnn_relu" || mode == "rnn_tanh") return {""};
  fail("[initializer fusedrnn] mode must be rnn_relu, rnn_tanh, lstm or gru: ", mode.empty() ? "it is missing" : mode);
}

}  // namespace

std::string LSTMBias::dumps() const { return dump("lstmbias", {{"forget_bias", real_number(forget_bias_)}}); }

void LSTMBias::init_weight(const InitDesc& desc, NDArray& array) const {
  require(array.rank() >= 1 && array.shape()[0] % 4 == 0, where(desc),
          "an LSTM's bias has four gates of one size: ", array.shape());
  const int64_t num_hidden = array.shape()[0] / 4;
  array.fill(0);
  array.slice(num_hidden, 2 * num_hidden).fill(forget_bias_);
}

FusedRNN::FusedRNN(FusedRNNOptions options) : options_(std::move(options)) {
  gates_of(options_.mode);
  require(options_.num_hidden > 0 && options_.num_layers > 0,
          "[initializer fusedrnn] num_hidden and num_layers must be above 0: ", options_.num_hidden, " and ",
          options_.num_layers);
}

std::string FusedRNN::dumps() const {
  return dump("fusedrnn", {{"init", options_.init ? quoted(options_.init->dumps()) : "null"},
                           {"num_hidden", std::to_string(options_.num_hidden)},
                           {"num_layers", std::to_string(options_.num_layers)},
                           {"mode", quoted(options_.mode)},
                           {"bidirectional", options_.bidirectional ? "true" : "false"},
                           {"forget_bias", real_number(options_.forget_bias)}});
}

// The vector: for each layer, for each direction, the matrices from the input and from the state, gate by gate; after
// all of them the biases in the same order. Layers above the first read the states of both directions. The width of the
// first one's input follows from the length.
void FusedRNN::init_weight(const InitDesc& desc, NDArray& array) const {
  const auto& [inner, hidden, layers, mode, bidirectional, forget_bias] = options_;
  const Initializer* init = inner ? inner.get() : desc.global_init;
  require(init != nullptr && init != this, where(desc), "fusedrnn has no initializer for what is inside");
  const std::vector<std::string> gates = gates_of(mode);
  const std::vector<std::string> directions =
      bidirectional ? std::vector<std::string>{"l", "r"} : std::vector<std::string>{"l"};
  const auto ways = static_cast<int64_t>(directions.size());
  const int64_t rows = static_cast<int64_t>(gates.size()) * hidden * ways;  // of a layer's matrices from one source
  const int64_t known = rows * hidden * layers + rows * ways * hidden * (layers - 1) + 2 * rows * layers;
  const int64_t inputs = (array.size() - known) / rows;
  require(array.rank() == 1 && inputs >= 1 && known + rows * inputs == array.size(), where(desc),
          "the parameters of this fused ", mode, " of ", layers, " layers and ", hidden, " states number ", known,
          " and ", rows, " for each input: ", array.shape());

  int64_t position = 0;
  const auto fill = [&, &hidden = hidden, &mode = mode, &forget_bias = forget_bias](const std::string& name,
                                                                                    int64_t columns) {
    const bool weight = name.ends_with("_weight");
    NDArray part = array.slice(position, position + hidden * columns);
    position += hidden * columns;
    if (weight) part = part.reshape({hidden, columns});
    if (mode == "lstm" && name.ends_with("_f_bias"))
      part.fill(forget_bias);
    else
      (*init)(InitDesc{name, {}, desc.global_init}, part);
  };
  for (const char* kind : {"_weight", "_bias"})
    for (int64_t layer = 0; layer < layers; ++layer)
      for (const std::string& direction : directions)
        for (const char* source : {"_i2h", "_h2h"}) {
          const int64_t width = source == std::string_view("_h2h") ? hidden : layer == 0 ? inputs : ways * hidden;
          for (const std::string& gate : gates)
            fill(join(direction, layer, source, gate, kind), kind == std::string_view("_bias") ? 1 : width);
        }
}

}  // namespace symbind::init
