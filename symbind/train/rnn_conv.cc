// Cells over images.
#include <utility>

#include "symbind/core/error.h"
#include "symbind/graph/builder.h"
#include "symbind/train/rnn_steps.h"

namespace symbind {

Symbol leaky_activation(const Symbol& input, const std::string& name) {
  return apply("LeakyReLU", input, {{"act_type", "leaky"}, {"slope", "0.2"}}, name);
}

namespace {

VariableOptions initialized_by(const std::string& text) { return {.init = text}; }

// The extent after the convolution of the input.
int64_t convolved(int64_t extent, int64_t kernel, int64_t stride, int64_t pad, int64_t dilate) {
  const int64_t reached = extent + 2 * pad - dilate * (kernel - 1) - 1;
  require(reached >= 0 && stride > 0, "[rnn] a kernel of ", kernel, " does not fit into ", extent);
  return reached / stride + 1;
}

}  // namespace

BaseConvRNNCell::BaseConvRNNCell(const Tuple& input_shape, int64_t num_hidden, int64_t gates, int states,
                                 ConvRNNOptions options, std::string prefix, RNNParamsPtr params)
    : BaseRNNCell(std::move(prefix), std::move(params)),
      num_hidden_(num_hidden),
      gates_(gates),
      states_(states),
      options_(std::move(options)),
      i2h_weight_(own_params().get("i2h_weight", initialized_by(options_.i2h_weight_initializer))),
      i2h_bias_(own_params().get("i2h_bias", initialized_by(options_.i2h_bias_initializer))),
      h2h_weight_(own_params().get("h2h_weight", initialized_by(options_.h2h_weight_initializer))),
      h2h_bias_(own_params().get("h2h_bias", initialized_by(options_.h2h_bias_initializer))) {
  require(num_hidden > 0, "[rnn] num_hidden must be above 0: ", num_hidden);
  for (const Tuple* each : {&options_.h2h_kernel, &options_.h2h_dilate, &options_.i2h_kernel, &options_.i2h_stride,
                            &options_.i2h_pad, &options_.i2h_dilate})
    require(each->size() == 2, "[rnn] kernels, strides, pads and dilations have two extents: ", print(*each));
  require(options_.conv_layout == "NCHW" || options_.conv_layout == "NHWC",
          "[rnn] conv_layout must be NCHW or NHWC: ", options_.conv_layout);
  require(input_shape.size() == 4, "[rnn] input_shape must have the axes ", options_.conv_layout, ": ",
          print(input_shape));
  const size_t channels = static_cast<size_t>(channel_axis()), first = channels == 1 ? 2 : 1;
  state_shape_ = {0, num_hidden, num_hidden, num_hidden};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t kernel = options_.h2h_kernel[i];
    require(kernel % 2 == 1,
            "[rnn] h2h_kernel must be odd, so that the state keeps its extent: ", print(options_.h2h_kernel));
    h2h_pad_.push_back(options_.h2h_dilate[i] * (kernel - 1) / 2);
    state_shape_[first + i] = convolved(input_shape[first + i], options_.i2h_kernel[i], options_.i2h_stride[i],
                                        options_.i2h_pad[i], options_.i2h_dilate[i]);
  }
}

int BaseConvRNNCell::channel_axis() const { return static_cast<int>(options_.conv_layout.find('C')); }

std::vector<RNNStateInfo> BaseConvRNNCell::state_info() const {
  return std::vector<RNNStateInfo>(static_cast<size_t>(states_), {state_shape_, options_.conv_layout});
}

Attributes BaseConvRNNCell::convolution_attributes(const Tuple& kernel, const Tuple& stride, const Tuple& pad,
                                                   const Tuple& dilate) const {
  return {{"kernel", print(kernel)},
          {"stride", print(stride)},
          {"pad", print(pad)},
          {"dilate", print(dilate)},
          {"num_filter", std::to_string(gates_ * num_hidden_)},
          {"layout", options_.conv_layout}};
}

Symbol BaseConvRNNCell::i2h(const Symbol& input, const std::string& name) const {
  return apply("Convolution", Inputs({input, i2h_weight_, i2h_bias_}),
               convolution_attributes(options_.i2h_kernel, options_.i2h_stride, options_.i2h_pad, options_.i2h_dilate),
               name);
}
Symbol BaseConvRNNCell::h2h(const Symbol& state, const std::string& name) const {
  return apply("Convolution", Inputs({state, h2h_weight_, h2h_bias_}),
               convolution_attributes(options_.h2h_kernel, {1, 1}, h2h_pad_, options_.h2h_dilate), name);
}

// MXNet leaves the axis out for GRU cells, and so slices images with their channels last in the wrong direction.
Symbol BaseConvRNNCell::gates_of(const Symbol& products, const std::string& name, bool names_axis) const {
  Attributes attributes{{"num_outputs", std::to_string(gates_)}};
  if (names_axis || channel_axis() != 1) attributes["axis"] = std::to_string(channel_axis());
  return apply("SliceChannel", products, attributes, name);
}

ConvRNNCell::ConvRNNCell(const Tuple& input_shape, int64_t num_hidden, ConvRNNOptions options, std::string prefix,
                         RNNParamsPtr params)
    : BaseConvRNNCell(input_shape, num_hidden, 1, 1, std::move(options), std::move(prefix), std::move(params)) {}

RNNStep ConvRNNCell::step(const Symbol& input, const std::vector<Symbol>& states) {
  const std::string name = next_step_name();
  const Symbol from_input = i2h(input, name + "i2h"), from_state = h2h(checked_states(states, 1)[0], name + "h2h");
  const Symbol output = activation()(from_input + from_state, name + "out");
  return {output, {output}};
}

ConvLSTMCell::ConvLSTMCell(const Tuple& input_shape, int64_t num_hidden, ConvRNNOptions options, std::string prefix,
                           RNNParamsPtr params)
    : BaseConvRNNCell(input_shape, num_hidden, 4, 2, std::move(options), std::move(prefix), std::move(params)) {}

RNNStep ConvLSTMCell::step(const Symbol& input, const std::vector<Symbol>& states) {
  const std::string name = next_step_name();
  const Symbol from_input = i2h(input, name + "i2h"), from_state = h2h(checked_states(states, 2)[0], name + "h2h");
  const Symbol gates = gates_of(from_input + from_state, name + "slice", true);
  return lstm_step(gates, states[1], activation(), name);
}

ConvGRUCell::ConvGRUCell(const Tuple& input_shape, int64_t num_hidden, ConvRNNOptions options, std::string prefix,
                         RNNParamsPtr params)
    : BaseConvRNNCell(input_shape, num_hidden, 3, 1, std::move(options), std::move(prefix), std::move(params)) {}

RNNStep ConvGRUCell::step(const Symbol& input, const std::vector<Symbol>& states) {
  const std::string name = next_step_name();
  const Symbol from_input = i2h(input, name + "i2h"), from_state = h2h(checked_states(states, 1)[0], name + "h2h");
  const Symbol inputs = gates_of(from_input, name + "_i2h_slice", false);
  return gru_step(inputs, gates_of(from_state, name + "_h2h_slice", false), states[0], activation(), name);
}

}  // namespace symbind
