// Cells that are made of others: stacks, both directions, modifiers.
#include <algorithm>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/graph/builder.h"
#include "symbind/train/initializer_text.h"
#include "symbind/train/rnn_cell.h"
#include "symbind/train/rnn_sequence.h"

namespace symbind {
namespace {

const RNNCellPtr& there(const RNNCellPtr& cell) {
  require(cell != nullptr, "[rnn] a cell is missing");
  return cell;
}

// The states of one cell among those of several.
std::vector<Symbol> next_states(const std::vector<Symbol>& states, size_t& position, const BaseRNNCell& cell) {
  const size_t count = cell.state_info().size();
  require(position + count <= states.size(), "[rnn] there are ", states.size(), " states, which are too few");
  const auto begin = states.begin() + static_cast<std::ptrdiff_t>(position);
  position += count;
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

// While it exists, a modifier may call the cell it wraps.
class Unmodified {
 public:
  explicit Unmodified(BaseRNNCell& cell) : cell_(cell) { cell_.set_modified(false); }
  ~Unmodified() { cell_.set_modified(true); }
  Unmodified(const Unmodified&) = delete;
  Unmodified& operator=(const Unmodified&) = delete;

 private:
  BaseRNNCell& cell_;
};

template <class T>
void append(std::vector<T>& all, std::vector<T> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

// The states of a cell after those that are already there.
void append_states(RNNUnrolled& all, RNNUnrolled next) {
  const size_t before = all.states.size();
  for (const auto& [begin, end] : next.directions) all.directions.push_back({before + begin, before + end});
  append(all.states, std::move(next.states));
}

void append_direction(RNNUnrolled& all, RNNUnrolled next) {
  const size_t before = all.states.size();
  all.directions.push_back({before, before + next.states.size()});
  append_states(all, std::move(next));
}

}  // namespace

// ---- Stacks ---------------------------------------------------------------------------------------------------------

SequentialRNNCell::SequentialRNNCell(RNNParamsPtr params)
    : BaseRNNCell("", params), overrides_params_(params != nullptr) {}

void SequentialRNNCell::add(RNNCellPtr cell) {
  there(cell);
  if (overrides_params_) {
    require(cell->has_own_params(), "[SequentialRNNCell] give params to the stack or to its cells, not to both");
    cell->params()->add(own_params().variables());
  }
  own_params().add(cell->params()->variables());
  cells_.push_back(std::move(cell));
}

void SequentialRNNCell::reset() {
  BaseRNNCell::reset();
  for (const RNNCellPtr& cell : cells_) cell->reset();
}

std::vector<RNNStateInfo> SequentialRNNCell::state_info() const {
  std::vector<RNNStateInfo> all;
  for (const RNNCellPtr& cell : cells_) append(all, cell->state_info());
  return all;
}

std::vector<Symbol> SequentialRNNCell::begin_state(const BeginState& make) {
  require_unmodified();
  std::vector<Symbol> all;
  for (const RNNCellPtr& cell : cells_) append(all, cell->begin_state(make));
  return all;
}

RNNStep SequentialRNNCell::step(const Symbol& input, const std::vector<Symbol>& states) {
  set_counter(counter() + 1);
  RNNStep all{input, {}};
  size_t position = 0;
  for (const RNNCellPtr& cell : cells_) {
    RNNStep next = cell->step(all.output, next_states(states, position, *cell));
    all.output = std::move(next.output);
    append(all.states, std::move(next.states));
  }
  return all;
}

RNNUnrolled SequentialRNNCell::unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options) {
  reset();
  require(!cells_.empty(), "[SequentialRNNCell] add a cell before unrolling");
  const std::vector<Symbol> begin = options.begin_state ? *options.begin_state : begin_state();
  RNNUnrolled all{inputs, {}};
  size_t position = 0;
  for (const RNNCellPtr& cell : cells_) {
    UnrollOptions its{next_states(begin, position, *cell), options.layout, {}};
    if (cell == cells_.back()) its.merge_outputs = options.merge_outputs;
    RNNUnrolled next = cell->unroll(length, all.outputs, its);
    all.outputs = next.outputs;
    append_states(all, std::move(next));
  }
  return all;
}

NamedArrays SequentialRNNCell::unpack_weights(NamedArrays args) const {
  for (const RNNCellPtr& cell : cells_) args = cell->unpack_weights(std::move(args));
  return args;
}
NamedArrays SequentialRNNCell::pack_weights(NamedArrays args) const {
  for (const RNNCellPtr& cell : cells_) args = cell->pack_weights(std::move(args));
  return args;
}

// ---- Both directions ------------------------------------------------------------------------------------------------

BidirectionalCell::BidirectionalCell(RNNCellPtr left, RNNCellPtr right, RNNParamsPtr params, std::string output_prefix)
    : BaseRNNCell("", params),
      left_(std::move(left)),
      right_(std::move(right)),
      output_prefix_(std::move(output_prefix)) {
  for (const RNNCellPtr& cell : {left_, right_}) {
    there(cell);
    if (params) {
      require(cell->has_own_params(), "[BidirectionalCell] give params to it or to its cells, not to both");
      cell->params()->add(own_params().variables());
    }
    own_params().add(cell->params()->variables());
  }
}

RNNStep BidirectionalCell::step(const Symbol&, const std::vector<Symbol>&) {
  fail("[BidirectionalCell] it cannot be stepped, since it reads a sequence from both ends: use unroll");
}

void BidirectionalCell::reset() {
  BaseRNNCell::reset();
  left_->reset();
  right_->reset();
}

std::vector<RNNStateInfo> BidirectionalCell::state_info() const {
  std::vector<RNNStateInfo> all = left_->state_info();
  append(all, right_->state_info());
  return all;
}

std::vector<Symbol> BidirectionalCell::begin_state(const BeginState& make) {
  require_unmodified();
  std::vector<Symbol> all = left_->begin_state(make);
  append(all, right_->begin_state(make));
  return all;
}

RNNUnrolled BidirectionalCell::unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options) {
  reset();
  const RNNSequence sequence = as_sequence(length, inputs, options.layout, false);
  const std::vector<Symbol> begin = options.begin_state ? *options.begin_state : begin_state();
  size_t position = 0;
  const auto one = [&](BaseRNNCell& cell, const std::vector<Symbol>& steps) {
    return cell.unroll(length, steps, {next_states(begin, position, cell), options.layout, options.merge_outputs});
  };
  const RNNUnrolled left = one(*left_, sequence.steps());
  const RNNUnrolled right = one(*right_, {sequence.steps().rbegin(), sequence.steps().rend()});
  const bool merge = options.merge_outputs.value_or(left.outputs.is_merged() && right.outputs.is_merged());
  const RNNSequence lefts = as_sequence(length, left.outputs, options.layout, merge);
  const RNNSequence rights = as_sequence(length, right.outputs, options.layout, merge);
  RNNUnrolled all{inputs, {}};
  append_direction(all, left);
  append_direction(all, right);
  if (merge) {
    const Symbol reversed = apply("reverse", rights.merged(), {{"axis", std::to_string(time_axis(options.layout))}});
    all.outputs = apply("Concat", Inputs({lefts.merged(), reversed}), {{"dim", "2"}}, output_prefix_ + "out");
    return all;
  }
  std::vector<Symbol> outputs;
  for (size_t i = 0; i < lefts.steps().size(); ++i)
    outputs.push_back(apply("Concat", Inputs({lefts.steps()[i], rights.steps()[rights.steps().size() - 1 - i]}),
                            {{"dim", "1"}}, join(output_prefix_, "t", i)));
  all.outputs = outputs;
  return all;
}

NamedArrays BidirectionalCell::unpack_weights(NamedArrays args) const {
  return right_->unpack_weights(left_->unpack_weights(std::move(args)));
}
NamedArrays BidirectionalCell::pack_weights(NamedArrays args) const {
  return right_->pack_weights(left_->pack_weights(std::move(args)));
}

// ---- Modifiers ------------------------------------------------------------------------------------------------------

DropoutCell::DropoutCell(double p, std::string prefix, RNNParamsPtr params)
    : BaseRNNCell(std::move(prefix), std::move(params)), dropout_(p) {
  require(p >= 0 && p < 1, "[DropoutCell] dropout must be in [0, 1): ", p);
}

RNNStep DropoutCell::step(const Symbol& input, const std::vector<Symbol>& states) {
  if (dropout_ == 0) return {input, states};
  return {apply("Dropout", input, {{"p", init::real_number(dropout_)}}), states};
}

RNNUnrolled DropoutCell::unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options) {
  reset();
  const RNNSequence sequence = as_sequence(length, inputs, options.layout, options.merge_outputs);
  if (sequence.is_merged()) return {step(sequence.merged(), {}).output, {}};
  std::vector<Symbol> outputs;
  for (const Symbol& input : sequence.steps()) outputs.push_back(step(input, {}).output);
  return {outputs, {}};
}

ModifierCell::ModifierCell(RNNCellPtr base_cell) : base_cell_(std::move(base_cell)) {
  there(base_cell_)->set_modified(true);
}

const RNNParamsPtr& ModifierCell::params() { return BaseRNNCell::params(), base_cell_->params(); }

void ModifierCell::reset() {
  BaseRNNCell::reset();
  base_cell_->reset();
}

std::vector<Symbol> ModifierCell::begin_state(const BeginState& make) {
  require_unmodified();
  const Unmodified base(*base_cell_);
  return base_cell_->begin_state(make);
}

NamedArrays ModifierCell::unpack_weights(NamedArrays args) const { return base_cell_->unpack_weights(std::move(args)); }
NamedArrays ModifierCell::pack_weights(NamedArrays args) const { return base_cell_->pack_weights(std::move(args)); }

ZoneoutCell::ZoneoutCell(RNNCellPtr base_cell, double zoneout_outputs, double zoneout_states)
    : ModifierCell(std::move(base_cell)), zoneout_outputs_(zoneout_outputs), zoneout_states_(zoneout_states) {
  require(!dynamic_cast<const FusedRNNCell*>(this->base_cell().get()),
          "[ZoneoutCell] a fused cell has no single steps: unfuse() it first");
  require(!dynamic_cast<const BidirectionalCell*>(this->base_cell().get()),
          "[ZoneoutCell] a bidirectional cell has no single steps: modify its cells instead");
}

void ZoneoutCell::reset() {
  ModifierCell::reset();
  last_output_.reset();
}

RNNStep ZoneoutCell::step(const Symbol& input, const std::vector<Symbol>& states) {
  RNNStep next = base_cell()->step(input, states);
  // Where the mask is not 0 the new value is used.
  const auto mixed = [](double probability, const Symbol& now, const Symbol& before) {
    const Symbol mask = apply("Dropout", apply("ones_like", now), {{"p", init::real_number(probability)}});
    return apply("where", Inputs({mask, now, before}));
  };
  const auto zeros = [] {
    return apply("_zeros", Inputs(std::vector<Symbol>{}), {{"shape", "(0, 0)"}, {"dtype", "float32"}});
  };
  const Symbol before = last_output_ ? *last_output_ : zeros();
  Symbol output = zoneout_outputs_ == 0 ? next.output : mixed(zoneout_outputs_, next.output, before);
  if (zoneout_states_ != 0) {
    require(next.states.size() == states.size(), "[ZoneoutCell] a step has ", states.size(), " states and returns ",
            next.states.size());
    for (size_t i = 0; i < states.size(); ++i) next.states[i] = mixed(zoneout_states_, next.states[i], states[i]);
  }
  last_output_ = output;
  return {std::move(output), std::move(next.states)};
}

ResidualCell::ResidualCell(RNNCellPtr base_cell) : ModifierCell(std::move(base_cell)) {}

namespace {

Symbol with_residual(const Symbol& output, const Symbol& input) {
  return apply("elemwise_add", Inputs({output, input}), {}, output.name() + "_plus_residual");
}

}  // namespace

RNNStep ResidualCell::step(const Symbol& input, const std::vector<Symbol>& states) {
  RNNStep next = base_cell()->step(input, states);
  return {with_residual(next.output, input), std::move(next.states)};
}

RNNUnrolled ResidualCell::unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options) {
  reset();
  const Unmodified base(*base_cell());
  RNNUnrolled unrolled = base_cell()->unroll(length, inputs, options);
  const bool merge = options.merge_outputs.value_or(unrolled.outputs.is_merged());
  const RNNSequence sequence = as_sequence(length, inputs, options.layout, merge);
  if (merge) {
    unrolled.outputs = with_residual(unrolled.merged(), sequence.merged());
    return unrolled;
  }
  std::vector<Symbol> outputs;
  for (size_t i = 0; i < unrolled.steps().size(); ++i)
    outputs.push_back(with_residual(unrolled.steps()[i], sequence.steps()[i]));
  unrolled.outputs = outputs;
  return unrolled;
}

}  // namespace symbind
