#include <utility>

#include "symbind/core/error.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/rnn.h"
#include "symbind/train/initializer.h"
#include "symbind/train/initializer_text.h"
#include "symbind/train/rnn_cell.h"
#include "symbind/train/rnn_sequence.h"

namespace symbind {
namespace {

std::string initial_parameters(int64_t num_hidden, const FusedRNNOptions& options) {
  return init::FusedRNN({.num_hidden = num_hidden,
                         .num_layers = options.num_layers,
                         .mode = options.mode,
                         .bidirectional = options.bidirectional,
                         .forget_bias = options.forget_bias})
      .dumps();
}

const char* text_of(bool value) { return value ? "True" : "False"; }

}  // namespace

FusedRNNCell::FusedRNNCell(int64_t num_hidden, FusedRNNOptions options, std::optional<std::string> prefix,
                           RNNParamsPtr params)
    : BaseRNNCell(prefix.value_or(options.mode + "_"), std::move(params)),
      num_hidden_(num_hidden),
      options_(std::move(options)),
      parameters_(own_params().get("parameters", {.init = initial_parameters(num_hidden, options_)})) {}

RNNStep FusedRNNCell::step(const Symbol&, const std::vector<Symbol>&) {
  fail("[FusedRNNCell] it cannot be stepped, since it is one operator: use unroll, or unfuse() it");
}

std::vector<std::string> FusedRNNCell::gate_names() const {
  if (options_.mode == rnn_mode::lstm) return {"_i", "_f", "_c", "_o"};
  if (options_.mode == rnn_mode::gru) return {"_r", "_z", "_o"};
  return {""};
}

std::vector<RNNStateInfo> FusedRNNCell::state_info() const {
  const int64_t layers = options_.num_layers * (options_.bidirectional ? 2 : 1);
  return std::vector<RNNStateInfo>(options_.mode == rnn_mode::lstm ? 2 : 1, {{layers, 0, num_hidden_}, "LNC"});
}

RNNUnrolled FusedRNNCell::unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options) {
  reset();
  const int axis = time_axis(options.layout);
  require(axis <= 1, "[FusedRNNCell] layout must be NTC or TNC: ", options.layout);
  const auto swapped = [&](const Symbol& symbol) {
    return axis == 0 ? symbol : apply("swapaxes", symbol, {{"dim1", "0"}, {"dim2", "1"}});
  };
  const Symbol data = swapped(as_sequence(length, inputs, options.layout, true).merged());
  const std::vector<Symbol> states = options.begin_state ? *options.begin_state : begin_state();
  require(states.size() == state_info().size(), "[FusedRNNCell] there must be ", state_info().size(), " states, not ",
          states.size());
  std::vector<Symbol> arguments{data, parameters_};
  arguments.insert(arguments.end(), states.begin(), states.end());
  Attributes attributes{
      {"state_size", std::to_string(num_hidden_)},         {"num_layers", std::to_string(options_.num_layers)},
      {"bidirectional", text_of(options_.bidirectional)},  {"p", init::real_number(options_.dropout)},
      {"state_outputs", text_of(options_.get_next_state)}, {"mode", options_.mode}};
  if (options_.get_next_state) attributes["__layout__"] = "LNC";
  const Symbol all = apply("RNN", Inputs(std::move(arguments)), attributes, prefix() + "rnn");
  std::vector<Symbol> last;
  for (size_t i = 1; i < all.size(); ++i) last.push_back(all[i]);
  return {as_sequence(length, swapped(all[0]), options.layout, options.merge_outputs), std::move(last)};
}

std::vector<std::pair<std::string, Shape>> FusedRNNCell::parts(int64_t input) const {
  const std::vector<std::string> gates = gate_names();
  const int64_t ways = options_.bidirectional ? 2 : 1;
  std::vector<std::pair<std::string, Shape>> found;
  for (const bool is_weight : {true, false})
    for (int64_t layer = 0; layer < options_.num_layers; ++layer)
      for (int64_t way = 0; way < ways; ++way)
        for (const bool from_input : {true, false})
          for (const std::string& gate : gates) {
            const int64_t columns = !from_input ? num_hidden_ : layer == 0 ? input : ways * num_hidden_;
            const std::string name = join(prefix(), way == 0 ? "l" : "r", layer, from_input ? "_i2h" : "_h2h", gate,
                                          is_weight ? "_weight" : "_bias");
            found.emplace_back(name, is_weight ? Shape{num_hidden_, columns} : Shape{num_hidden_});
          }
  return found;
}

int64_t FusedRNNCell::input_of(int64_t parameters) const {
  RNN params;
  params.state_size = num_hidden_;
  params.num_layers = options_.num_layers;
  params.bidirectional = options_.bidirectional;
  params.mode = options_.mode;
  const RnnSize without = size_of(params, Shape{0, 0, 0});
  const int64_t rest = parameters - without.parameter_count(), each = without.directions * without.gate_width();
  require(rest > 0 && rest % each == 0, "[FusedRNNCell] ", parameters_.name(), " has ", parameters,
          " elements, which does not match the parameters of this cell");
  return rest / each;
}

NamedArrays FusedRNNCell::unpack_weights(NamedArrays args) const {
  const auto found = args.find(parameters_.name());
  require(found != args.end(), "[FusedRNNCell] there is no parameter ", parameters_.name());
  const NDArray all = found->second;
  args.erase(found);
  int64_t position = 0;
  for (const auto& [name, shape] : parts(input_of(all.size()))) {
    args[name] = all.slice(position, position + shape.size()).reshape(shape.dims()).copy();
    position += shape.size();
  }
  return args;
}

NamedArrays FusedRNNCell::pack_weights(NamedArrays args) const {
  const std::string first = join(prefix(), "l0_i2h", gate_names()[0], "_weight");
  const auto found = args.find(first);
  require(found != args.end() && found->second.rank() == 2, "[FusedRNNCell] there is no matrix ", first);
  const auto all_parts = parts(found->second.shape()[1]);
  int64_t count = 0;
  for (const auto& [name, shape] : all_parts) count += shape.size();
  NDArray all(Shape{count}, found->second.context(), found->second.dtype());
  int64_t position = 0;
  for (const auto& [name, shape] : all_parts) {
    const auto part = args.find(name);
    require(part != args.end(), "[FusedRNNCell] there is no parameter ", name);
    require(part->second.shape() == shape, "[FusedRNNCell] ", name, " must have the shape ", shape, ": ",
            part->second.shape());
    NDArray to = all.slice(position, position + shape.size());
    part->second.reshape({shape.size()}).copyto(to);
    position += shape.size();
    args.erase(part);
  }
  args[parameters_.name()] = all;
  return args;
}

std::shared_ptr<SequentialRNNCell> FusedRNNCell::unfuse() const {
  const auto cell = [&](const std::string& name) -> RNNCellPtr {
    if (options_.mode == rnn_mode::lstm)
      return std::make_shared<LSTMCell>(num_hidden_, name, nullptr, options_.forget_bias);
    if (options_.mode == rnn_mode::gru) return std::make_shared<GRUCell>(num_hidden_, name);
    return std::make_shared<RNNCell>(num_hidden_, options_.mode == rnn_mode::rnn_relu ? "relu" : "tanh", name);
  };
  auto stack = std::make_shared<SequentialRNNCell>();
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    const std::string left = join(prefix(), "l", layer, "_"), right = join(prefix(), "r", layer, "_");
    if (options_.bidirectional)
      stack->add(
          std::make_shared<BidirectionalCell>(cell(left), cell(right), nullptr, join(prefix(), "bi_l", layer, "_")));
    else
      stack->add(cell(left));
    if (options_.dropout > 0 && layer + 1 < options_.num_layers)
      stack->add(std::make_shared<DropoutCell>(options_.dropout, join(prefix(), "_dropout", layer, "_")));
  }
  return stack;
}

}  // namespace symbind
