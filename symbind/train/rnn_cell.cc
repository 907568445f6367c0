// What all cells have in common.
#include "symbind/train/rnn_cell.h"

#include <utility>

#include "symbind/core/error.h"
#include "symbind/exec/invoke.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/concat.h"
#include "symbind/train/rnn_sequence.h"

namespace symbind {

// ---- Parameters -----------------------------------------------------------------------------------------------------

Symbol RNNParams::get(const std::string& name, const VariableOptions& options) {
  return get(name, [&](const std::string& full_name) { return Symbol::variable(full_name, options); });
}

Symbol RNNParams::get(const std::string& name, const std::function<Symbol(const std::string& full_name)>& make) {
  const std::string full_name = prefix_ + name;
  const auto found = variables_.find(full_name);
  if (found != variables_.end()) return found->second;
  return variables_.emplace(full_name, make(full_name)).first->second;
}

void RNNParams::add(const std::map<std::string, Symbol>& variables) {
  for (const auto& [name, variable] : variables) variables_.insert_or_assign(name, variable);
}

// ---- The base -------------------------------------------------------------------------------------------------------

namespace {

NDArray taken(NamedArrays& args, const std::string& name) {
  const auto found = args.find(name);
  require(found != args.end(), "[rnn] there is no parameter ", name);
  NDArray array = found->second;
  args.erase(found);
  return array;
}

constexpr const char *sources[] = {"i2h", "h2h"}, *kinds[] = {"_weight", "_bias"};

}  // namespace

Symbol zero_state(const std::string& name, const RNNStateInfo& info) {
  Attributes attributes{{"shape", print(info.shape)}, {"dtype", "float32"}};
  if (!info.layout.empty()) attributes["__layout__"] = info.layout;
  return apply("_zeros", Inputs(std::vector<Symbol>{}), attributes, name);
}

BaseRNNCell::BaseRNNCell(std::string prefix, RNNParamsPtr params)
    : prefix_(std::move(prefix)),
      own_params_(params == nullptr),
      params_(params ? std::move(params) : std::make_shared<RNNParams>(prefix_)) {}

void BaseRNNCell::reset() { counter_ = state_counter_ = -1; }

std::vector<Tuple> BaseRNNCell::state_shape() const {
  std::vector<Tuple> shapes;
  for (const RNNStateInfo& info : state_info()) shapes.push_back(info.shape);
  return shapes;
}

void BaseRNNCell::require_unmodified() const {
  require(!modified_, "[rnn] cell ", prefix_.empty() ? "" : "'" + prefix_ + "' ",
          "is inside a modifier (zoneout, residual): call the modifier instead");
}

std::string BaseRNNCell::next_step_name() { return join(prefix_, "t", ++counter_, "_"); }

std::vector<Symbol> BaseRNNCell::begin_state(const BeginState& make) {
  require_unmodified();
  std::vector<Symbol> states;
  for (const RNNStateInfo& info : state_info())
    states.push_back(make(join(prefix_, "begin_state_", ++state_counter_), info));
  return states;
}

RNNUnrolled BaseRNNCell::unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options) {
  reset();
  const RNNSequence steps = as_sequence(length, inputs, options.layout, false);
  std::vector<Symbol> states = options.begin_state ? *options.begin_state : begin_state();
  std::vector<Symbol> outputs;
  for (const Symbol& input : steps.steps()) {
    RNNStep next = step(input, states);
    outputs.push_back(std::move(next.output));
    states = std::move(next.states);
  }
  return {as_sequence(length, outputs, options.layout, options.merge_outputs), std::move(states)};
}

NamedArrays BaseRNNCell::unpack_weights(NamedArrays args) const {
  const std::vector<std::string> gates = gate_names();
  if (gates.empty()) return args;
  const auto count = static_cast<int64_t>(gates.size());
  for (const char* source : sources)
    for (const char* kind : kinds) {
      const NDArray all = taken(args, prefix_ + source + kind);
      require(all.rank() >= 1 && all.shape()[0] % count == 0, "[rnn] ", prefix_, source, kind, " has ", all.shape(),
              ", which does not divide into ", count, " gates");
      const int64_t rows = all.shape()[0] / count;
      for (int64_t i = 0; i < count; ++i)
        args[prefix_ + source + gates[static_cast<size_t>(i)] + kind] = all.slice(i * rows, (i + 1) * rows).copy();
    }
  return args;
}

NamedArrays BaseRNNCell::pack_weights(NamedArrays args) const {
  const std::vector<std::string> gates = gate_names();
  if (gates.empty()) return args;
  for (const char* source : sources)
    for (const char* kind : kinds) {
      std::vector<NDArray> parts;
      for (const std::string& gate : gates) parts.push_back(taken(args, prefix_ + source + gate + kind));
      args[prefix_ + source + kind] = symbind::concat(parts, {.dim = 0});
    }
  return args;
}

Symbol RNNActivation::operator()(const Symbol& input, const std::string& name) const {
  return function_ ? function_(input, name) : apply("Activation", input, {{"act_type", name_}}, name);
}

}  // namespace symbind
