// Recurrent cells: they build the symbol of one step of a recurrent layer, and of a whole sequence by unrolling.
//
//   SequentialRNNCell stack;
//   stack.add(std::make_shared<LSTMCell>(200, "lstm_l0_"));
//   stack.add(std::make_shared<LSTMCell>(200, "lstm_l1_"));
//   Symbol outputs = stack.unroll(35, embedded, {.merge_outputs = true}).merged();
//
// Names of nodes and parameters are MXNet's, so that checkpoints interchange. A cell serves one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/graph/param.h"
#include "symbind/graph/symbol.h"

namespace SYMBIND_API symbind {

// The variables of cells, each made once: cells with the same RNNParams share their parameters.
class RNNParams {
 public:
  explicit RNNParams(std::string prefix = "") : prefix_(std::move(prefix)) {}
  // The variable prefix + name.
  Symbol get(const std::string& name, const VariableOptions& options = {});
  // For variables that are made by another function.
  Symbol get(const std::string& name, const std::function<Symbol(const std::string& full_name)>& make);
  void add(const std::map<std::string, Symbol>& variables);  // replaces those of the same names
  const std::string& prefix() const { return prefix_; }
  const std::map<std::string, Symbol>& variables() const { return variables_; }  // by full names

 private:
  std::string prefix_;
  std::map<std::string, Symbol> variables_;
};
using RNNParamsPtr = std::shared_ptr<RNNParams>;

struct RNNStateInfo {
  Tuple shape;  // 0: the batch
  std::string layout;
};

struct RNNStep {
  Symbol output;
  std::vector<Symbol> states;
};

// A sequence as a symbol per step, or as one symbol with an axis of time.
class RNNSequence {
 public:
  RNNSequence(const Symbol& merged) : symbols_{merged}, is_merged_(true) {}
  RNNSequence(std::vector<Symbol> steps) : symbols_(std::move(steps)), is_merged_(false) {}
  bool is_merged() const { return is_merged_; }
  const Symbol& merged() const;              // fails where there is a symbol per step
  const std::vector<Symbol>& steps() const;  // fails where there is one symbol

 private:
  std::vector<Symbol> symbols_;
  bool is_merged_;
};

struct UnrollOptions {
  std::optional<std::vector<Symbol>> begin_state = {};  // none: zeros
  std::string layout = "NTC";                           // or TNC: of merged inputs and outputs
  std::optional<bool> merge_outputs = {};               // none: what is least work
};

// A part of a list of states: [begin, end).
struct RNNStateRange {
  size_t begin, end;
};

struct RNNUnrolled {
  RNNSequence outputs;
  std::vector<Symbol> states;  // after the last step
  // The states of each direction of the bidirectional cells, an outer range before those inside it.
  std::vector<RNNStateRange> directions = {};
  const Symbol& merged() const { return outputs.merged(); }
  const std::vector<Symbol>& steps() const { return outputs.steps(); }
};

// A function that makes an initial state.
using BeginState = std::function<Symbol(const std::string& name, const RNNStateInfo& info)>;
Symbol zero_state(const std::string& name, const RNNStateInfo& info);

class BaseRNNCell {
 public:
  explicit BaseRNNCell(std::string prefix = "", RNNParamsPtr params = nullptr);
  virtual ~BaseRNNCell() = default;

  // One step: the output and the new states from an input and the states before.
  RNNStep operator()(const Symbol& input, const std::vector<Symbol>& states) { return step(input, states); }
  virtual RNNStep step(const Symbol& input, const std::vector<Symbol>& states) = 0;
  // Unrolls a sequence of `length` steps from its beginning.
  virtual RNNUnrolled unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options = {});
  // Restarts the numbering of names at 0.
  virtual void reset();

  virtual std::vector<RNNStateInfo> state_info() const = 0;
  std::vector<Tuple> state_shape() const;
  virtual std::vector<Symbol> begin_state(const BeginState& make = zero_state);
  // The suffixes of i2h and h2h in the names of the parameters of single gates.
  virtual std::vector<std::string> gate_names() const { return {}; }
  // Parameters of all gates as those of single gates, and back.
  virtual NamedArrays unpack_weights(NamedArrays args) const;
  virtual NamedArrays pack_weights(NamedArrays args) const;

  virtual const RNNParamsPtr& params() { return own_params_ = false, params_; }
  bool has_own_params() const { return own_params_; }
  const std::string& prefix() const { return prefix_; }
  // A modifier cell wraps this one: states and outputs come from it.
  bool is_modified() const { return modified_; }
  void set_modified(bool modified) { modified_ = modified; }
  // The numbers of the last step and of the last initial state, -1 before the first.
  int64_t counter() const { return counter_; }
  int64_t state_counter() const { return state_counter_; }
  void set_counter(int64_t value) { counter_ = value; }
  void set_state_counter(int64_t value) { state_counter_ = value; }

 protected:
  std::string next_step_name();  // "lstm_t3_"
  void require_unmodified() const;
  RNNParams& own_params() { return *params_; }

 private:
  friend class SequentialRNNCell;
  friend class BidirectionalCell;
  std::string prefix_;
  bool own_params_;
  RNNParamsPtr params_;
  int64_t counter_ = -1, state_counter_ = -1;
  bool modified_ = false;
};
using RNNCellPtr = std::shared_ptr<BaseRNNCell>;

// An activation by its name, or any function of a symbol and a name.
class RNNActivation {
 public:
  using Function = std::function<Symbol(const Symbol& input, const std::string& name)>;
  RNNActivation(std::string name) : name_(std::move(name)) {}
  RNNActivation(const char* name) : name_(name) {}
  RNNActivation(Function function) : function_(std::move(function)) {}
  Symbol operator()(const Symbol& input, const std::string& name = "") const;
  const std::string& name() const { return name_; }  // empty: a function

 private:
  std::string name_;
  Function function_;
};

// ---- Cells with parameters ------------------------------------------------------------------------------------------

// What plain cells, LSTM and GRU share: a matrix and a bias for the input and for the state.
class DenseRNNCell : public BaseRNNCell {
 public:
  int64_t num_hidden() const { return num_hidden_; }
  const Symbol& i2h_weight() const { return i2h_weight_; }
  const Symbol& i2h_bias() const { return i2h_bias_; }
  const Symbol& h2h_weight() const { return h2h_weight_; }
  const Symbol& h2h_bias() const { return h2h_bias_; }
  std::vector<RNNStateInfo> state_info() const override;

 protected:
  DenseRNNCell(int64_t num_hidden, int64_t gates, int states, std::string prefix, RNNParamsPtr params,
               const VariableOptions& i2h_bias = {});
  Symbol i2h(const Symbol& input, const std::string& name) const;
  Symbol h2h(const Symbol& state, const std::string& name) const;

 private:
  int64_t num_hidden_, gates_;
  int states_;
  Symbol i2h_weight_, i2h_bias_, h2h_weight_, h2h_bias_;
};

class RNNCell : public DenseRNNCell {
 public:
  explicit RNNCell(int64_t num_hidden, RNNActivation function = "tanh", std::string prefix = "rnn_",
                   RNNParamsPtr params = nullptr);
  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  std::vector<std::string> gate_names() const override { return {""}; }
  const RNNActivation& activation() const { return activation_; }

 private:
  RNNActivation activation_;
};

class LSTMCell : public DenseRNNCell {
 public:
  // forget_bias: the initial value of the forget gate's bias.
  explicit LSTMCell(int64_t num_hidden, std::string prefix = "lstm_", RNNParamsPtr params = nullptr,
                    double forget_bias = 1.0);
  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  std::vector<std::string> gate_names() const override { return {"_i", "_f", "_c", "_o"}; }
};

class GRUCell : public DenseRNNCell {
 public:
  explicit GRUCell(int64_t num_hidden, std::string prefix = "gru_", RNNParamsPtr params = nullptr);
  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  std::vector<std::string> gate_names() const override { return {"_r", "_z", "_o"}; }
};

struct FusedRNNOptions {
  int64_t num_layers = 1;
  std::string mode = "lstm";  // rnn_relu, rnn_tanh, lstm or gru
  bool bidirectional = false;
  double dropout = 0;           // between layers
  bool get_next_state = false;  // return states when unrolled
  double forget_bias = 1.0;
};

// Several layers as one RNN operator. It is unrolled as a whole and has no single steps; unfuse() has.
class FusedRNNCell : public BaseRNNCell {
 public:
  explicit FusedRNNCell(int64_t num_hidden, FusedRNNOptions options = {}, std::optional<std::string> prefix = {},
                        RNNParamsPtr params = nullptr);
  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  RNNUnrolled unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options = {}) override;
  std::vector<RNNStateInfo> state_info() const override;
  std::vector<std::string> gate_names() const override;
  NamedArrays unpack_weights(NamedArrays args) const override;
  NamedArrays pack_weights(NamedArrays args) const override;
  // The same layers, for unpacked weights, as a stack of cells.
  std::shared_ptr<class SequentialRNNCell> unfuse() const;

  int64_t num_hidden() const { return num_hidden_; }
  const FusedRNNOptions& options() const { return options_; }
  const Symbol& parameters() const { return parameters_; }

 private:
  // The parts of the vector in order: name, and shape of a matrix or bias.
  std::vector<std::pair<std::string, Shape>> parts(int64_t input) const;
  int64_t input_of(int64_t parameters) const;

  int64_t num_hidden_;
  FusedRNNOptions options_;
  Symbol parameters_;
};

// ---- Cells of cells -------------------------------------------------------------------------------------------------

// Cells on top of each other.
class SequentialRNNCell : public BaseRNNCell {
 public:
  explicit SequentialRNNCell(RNNParamsPtr params = nullptr);
  void add(RNNCellPtr cell);
  const std::vector<RNNCellPtr>& cells() const { return cells_; }

  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  RNNUnrolled unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options = {}) override;
  void reset() override;
  std::vector<RNNStateInfo> state_info() const override;
  std::vector<Symbol> begin_state(const BeginState& make = zero_state) override;
  NamedArrays unpack_weights(NamedArrays args) const override;
  NamedArrays pack_weights(NamedArrays args) const override;

 private:
  bool overrides_params_;
  std::vector<RNNCellPtr> cells_;
};

// A cell over the sequence and one over its reverse; their outputs are concatenated. It cannot be stepped.
class BidirectionalCell : public BaseRNNCell {
 public:
  BidirectionalCell(RNNCellPtr left, RNNCellPtr right, RNNParamsPtr params = nullptr,
                    std::string output_prefix = "bi_");
  const RNNCellPtr& left() const { return left_; }
  const RNNCellPtr& right() const { return right_; }
  const std::string& output_prefix() const { return output_prefix_; }

  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  RNNUnrolled unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options = {}) override;
  void reset() override;
  std::vector<RNNStateInfo> state_info() const override;
  std::vector<Symbol> begin_state(const BeginState& make = zero_state) override;
  NamedArrays unpack_weights(NamedArrays args) const override;
  NamedArrays pack_weights(NamedArrays args) const override;

 private:
  RNNCellPtr left_, right_;
  std::string output_prefix_;
};

// ---- Cells that modify others ---------------------------------------------------------------------------------------

// Dropout on the input of each step; it has no states.
class DropoutCell : public BaseRNNCell {
 public:
  explicit DropoutCell(double p, std::string prefix = "dropout_", RNNParamsPtr params = nullptr);
  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  RNNUnrolled unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options = {}) override;
  std::vector<RNNStateInfo> state_info() const override { return {}; }
  double dropout() const { return dropout_; }

 private:
  double dropout_;
};

// Base class of cells that modify another cell's steps and use its parameters and states.
class ModifierCell : public BaseRNNCell {
 public:
  explicit ModifierCell(RNNCellPtr base_cell);
  const RNNCellPtr& base_cell() const { return base_cell_; }
  const RNNParamsPtr& params() override;
  void reset() override;
  std::vector<RNNStateInfo> state_info() const override { return base_cell_->state_info(); }
  std::vector<Symbol> begin_state(const BeginState& make = zero_state) override;
  NamedArrays unpack_weights(NamedArrays args) const override;
  NamedArrays pack_weights(NamedArrays args) const override;

 private:
  RNNCellPtr base_cell_;
};

// In training, outputs and states keep their previous values with these probabilities.
class ZoneoutCell : public ModifierCell {
 public:
  explicit ZoneoutCell(RNNCellPtr base_cell, double zoneout_outputs = 0, double zoneout_states = 0);
  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  void reset() override;
  double zoneout_outputs() const { return zoneout_outputs_; }
  double zoneout_states() const { return zoneout_states_; }
  const std::optional<Symbol>& last_output() const { return last_output_; }  // none before the first step

 private:
  double zoneout_outputs_, zoneout_states_;
  std::optional<Symbol> last_output_;
};

// Adds the input to the output.
class ResidualCell : public ModifierCell {
 public:
  explicit ResidualCell(RNNCellPtr base_cell);
  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  RNNUnrolled unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options = {}) override;
};

// ---- Cells over images ----------------------------------------------------------------------------------------------

Symbol leaky_activation(const Symbol& input, const std::string& name);  // LeakyReLU with the slope 0.2

struct ConvRNNOptions {
  Tuple h2h_kernel = {3, 3};  // odd, so that the state keeps its extent
  Tuple h2h_dilate = {1, 1};
  Tuple i2h_kernel = {3, 3};
  Tuple i2h_stride = {1, 1};
  Tuple i2h_pad = {1, 1};
  Tuple i2h_dilate = {1, 1};
  std::string i2h_weight_initializer = {};  // as text
  std::string h2h_weight_initializer = {};
  std::string i2h_bias_initializer = "zeros";
  std::string h2h_bias_initializer = "zeros";
  RNNActivation activation = RNNActivation::Function(leaky_activation);
  std::string conv_layout = "NCHW";  // or NHWC
};

// Plain, LSTM and GRU cells whose products are convolutions. input_shape: of the input of one step.
class BaseConvRNNCell : public BaseRNNCell {
 public:
  std::vector<RNNStateInfo> state_info() const override;
  int64_t num_hidden() const { return num_hidden_; }
  const ConvRNNOptions& options() const { return options_; }
  const Tuple& h2h_pad() const { return h2h_pad_; }
  // The products of a step: those of all gates.
  Symbol i2h(const Symbol& input, const std::string& name) const;
  Symbol h2h(const Symbol& state, const std::string& name) const;

 protected:
  BaseConvRNNCell(const Tuple& input_shape, int64_t num_hidden, int64_t gates, int states, ConvRNNOptions options,
                  std::string prefix, RNNParamsPtr params);
  Symbol gates_of(const Symbol& products, const std::string& name, bool names_axis) const;
  const RNNActivation& activation() const { return options_.activation; }

 private:
  Attributes convolution_attributes(const Tuple& kernel, const Tuple& stride, const Tuple& pad,
                                    const Tuple& dilate) const;
  int channel_axis() const;

  int64_t num_hidden_, gates_;
  int states_;
  ConvRNNOptions options_;
  Tuple h2h_pad_, state_shape_;
  Symbol i2h_weight_, i2h_bias_, h2h_weight_, h2h_bias_;
};

class ConvRNNCell : public BaseConvRNNCell {
 public:
  ConvRNNCell(const Tuple& input_shape, int64_t num_hidden, ConvRNNOptions options = {},
              std::string prefix = "ConvRNN_", RNNParamsPtr params = nullptr);
  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  std::vector<std::string> gate_names() const override { return {""}; }
};

class ConvLSTMCell : public BaseConvRNNCell {
 public:
  ConvLSTMCell(const Tuple& input_shape, int64_t num_hidden, ConvRNNOptions options = {},
               std::string prefix = "ConvLSTM_", RNNParamsPtr params = nullptr);
  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  std::vector<std::string> gate_names() const override { return {"_i", "_f", "_c", "_o"}; }
};

class ConvGRUCell : public BaseConvRNNCell {
 public:
  ConvGRUCell(const Tuple& input_shape, int64_t num_hidden, ConvRNNOptions options = {},
              std::string prefix = "ConvGRU_", RNNParamsPtr params = nullptr);
  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override;
  std::vector<std::string> gate_names() const override { return {"_r", "_z", "_o"}; }
};

}  // namespace symbind
