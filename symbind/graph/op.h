// What an operator is: parameters, names, inference, gradient. One OpDef per operator, in one registry. Everything else
// about an operator (its C++ builder, its Python function, JSON attributes, argument checks, its reference page) is
// made from the OpDef; how it runs is in backend/.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "symbind/core/dtype.h"
#include "symbind/core/shape.h"
#include "symbind/graph/node.h"
#include "symbind/graph/param.h"

namespace SYMBIND_API symbind {

class OpDef;
class Symbol;
using Names = std::vector<std::string>;

// ---- Inference ------------------------------------------------------------------------------------------------------

// The shape (or type) of one input or output while it is being inferred. meet() adds what is known; a contradiction
// fails with the node, the argument and both values.
template <class Value>
class Inferred;

// The inputs (auxiliary states included) and outputs of one node under inference.
template <class Value>
class Inference {
 public:
  Inference(std::string where, std::span<const std::string> input_names, std::span<Value> inputs,
            std::span<const std::string> output_names, std::span<Value> outputs)
      : where_(std::move(where)),
        input_names_(input_names),
        inputs_(inputs),
        output_names_(output_names),
        outputs_(outputs) {}

  Inferred<Value> operator[](std::string_view input);
  Inferred<Value> input(size_t index) { return {*this, inputs_[index], input_names_[index]}; }
  Inferred<Value> output(size_t index = 0) { return {*this, outputs_[index], output_names_[index]}; }
  const std::string& input_name(size_t index) const { return input_names_[index]; }
  size_t inputs() const { return inputs_.size(); }
  size_t outputs() const { return outputs_.size(); }
  const std::string& where() const { return where_; }  // "[Convolution conv1]"
  bool changed() const { return changed_; }
  void mark_changed() { changed_ = true; }

 private:
  std::string where_;
  std::span<const std::string> input_names_;
  std::span<Value> inputs_;
  std::span<const std::string> output_names_;
  std::span<Value> outputs_;
  bool changed_ = false;
};
using Shapes = Inference<Shape>;
using Types = Inference<DType>;

template <>
class Inferred<Shape> {
 public:
  Inferred(Shapes& all, Shape& value, const std::string& name) : all_(all), value_(value), name_(name) {}
  operator const Shape&() const { return value_; }
  const Shape& get() const { return value_; }
  bool known() const { return value_.known(); }
  bool rank_known() const { return value_.rank_known(); }
  int rank() const { return value_.rank(); }
  int64_t operator[](int axis) const { return value_[axis]; }
  void meet(const Shape& other);         // unknown parts of either are filled from the other
  void meet_dim(int axis, int64_t dim);  // the same for one dimension; the rank is known
  // Both get what either knows.
  void meet(Inferred<Shape> other) {
    meet(other.value_);
    other.meet(value_);
  }

 private:
  Shapes& all_;
  Shape& value_;
  const std::string& name_;
};

template <>
class Inferred<DType> {
 public:
  Inferred(Types& all, DType& value, const std::string& name) : all_(all), value_(value), name_(name) {}
  operator DType() const { return value_; }
  DType get() const { return value_; }
  bool known() const { return value_ != DType::none; }
  void meet(DType other);
  // For an input of another type than the others, such as lengths: this type, unless another one is known.
  void default_to(DType type) {
    if (!known()) meet(type);
  }

 private:
  Types& all_;
  DType& value_;
  const std::string& name_;
};

// All inputs and outputs have one shape / one type.
void same_shape(Shapes& shapes);
void same_type(Types& types);

// ---- Gradient -------------------------------------------------------------------------------------------------------

// What a gradient may read, and where it puts its results: expressions over other operators. Values that it does not
// read are not stored: the memory of an input that no gradient requests is released after forward.
class Grad {
 public:
  virtual ~Grad() = default;
  virtual Symbol input(std::string_view name) = 0;
  virtual Symbol input(size_t index) = 0;
  virtual size_t inputs() const = 0;
  virtual Symbol output(size_t index = 0) = 0;
  // The gradient that arrives at an output. A loss head never calls it, and so needs none.
  virtual Symbol out_grad(size_t index = 0) = 0;
  virtual bool has_out_grad(size_t index) = 0;    // does any arrive?
  virtual bool wants(std::string_view name) = 0;  // is the gradient of this input requested?
  virtual bool wants(size_t index) = 0;
  virtual void set(std::string_view name, const Symbol& gradient) = 0;  // no set: the gradient is zero
  virtual void set(size_t index, const Symbol& gradient) = 0;
};

// How a node is recomputed where it cannot simply run again: by another operator, whose inputs are some of its inputs
// followed by some of its outputs.
struct Recomputation {
  const OpDef* op;
  std::shared_ptr<const void> params;
  std::vector<int> inputs, outputs;
};

// ---- The definition -------------------------------------------------------------------------------------------------

// How mixed precision (train/mixed_precision.h) computes an operator.
enum class Precision {
  as_given,   // in the types of its inputs
  low,        // in 16 bits: it is fast there, and accumulates in float32
  full,       // in float32: it loses digits, or overflows, in 16 bits
  widest,     // in the widest type among its inputs
  narrowest,  // in the narrowest: the other input is a parameter, which does not widen the data
};

class OpDef {
 public:
  // The maximum number of inputs or outputs: a count from a corrupt file must not exhaust the memory. The limit is
  // checked for every operator with its parameters; definitions need none of their own.
  static constexpr size_t most_arrays = 1'048'576;

  // Not inline: they are large, and every file that defines operators would compile them.
  OpDef();
  ~OpDef();
  OpDef(const OpDef&);
  OpDef(OpDef&&) noexcept;
  OpDef& operator=(const OpDef&);
  OpDef& operator=(OpDef&&) noexcept;

  std::string name;
  Names aliases;
  std::string doc;
  // The library's own: gradients, fused operators and steps of optimizers. Users and files cannot name it.
  bool internal = false;
  std::vector<ParamField> fields;

  std::function<std::shared_ptr<void>()> make_params;  // with defaults
  std::function<std::shared_ptr<void>(const void*)> copy_params;
  std::function<Names(const void* params)> inputs;  // without auxiliary states
  std::function<Names(const void* params)> aux;     // inputs the operator itself updates; they follow the others
  // Inputs that the operator also updates although they are between others (the momenta of multi_sgd_mom_update).
  std::function<bool(const void* params, size_t input)> also_updates;
  std::function<Names(const void* params)> outputs;  // hidden ones included
  std::function<int(const void* params)> visible_outputs;
  // How many outputs MXNet's files count, where its own operator has more than ours.
  std::function<int(const void* params)> outputs_in_files;
  std::function<void(const void* params, Shapes&)> infer_shape;
  std::function<void(const void* params, Types&)> infer_type;
  std::function<void(const void* params, Grad&)> gradient;  // none: not differentiable, its inputs get no gradient
  bool refuses_gradient = false;  // none, and it is an error if one is needed: it would not be zero
  // Checks the whole struct once all fields are set; throws the rule that is broken. May fill in derived fields.
  std::function<void(void* params)> check;

  std::string count_field;  // the parameter that holds the number of inputs ("num_args"), for operators that take any
  std::function<int64_t(const void* params)> get_count;
  std::function<void(void* params, int64_t count)> set_count;  // called if the user did not give it
  // For operators that take keywords besides their fields: sets one, and returns all. None: such a keyword fails.
  std::function<void(void* params, const std::string& key, const std::string& text)> take_keyword;
  std::function<Attributes(const void* params)> keywords;
  // Whether it draws random numbers: an operator that is the identity in inference (Dropout) draws in training only.
  std::function<bool(const void* params, bool is_train)> random;
  Names shape_only;          // inputs of which only shape and type are read, never the data
  bool own = false;          // user-defined: passes/own_operator.h
  bool keeps_state = false;  // its kernels have state: two nodes never share one
  // Its kernels wait in training for the same node on the network's other contexts: such nodes run once, in plan order.
  bool synchronized = false;
  bool view = false;  // output 0 holds the bytes of input 0: a no-op if they share memory
  // Which contiguous pieces of input 0's memory the outputs are (or of output 0's the inputs): the offset of each, in
  // elements; no function or an empty result: they are not. Such an operator is a no-op if they share memory.
  using Pieces = std::function<std::vector<int64_t>(const void* params, std::span<const Shape> inputs,
                                                    std::span<const Shape> outputs)>;
  Pieces pieces_of_input, pieces_of_output;
  bool elementwise = false;  // one output, each element a function of the same element of each input
  // How many products a run adds up (multiplications, each with an addition), for operators that compute sums of
  // products; no function: few for each element.
  std::function<double(const void* params, std::span<const Shape> inputs, std::span<const Shape> outputs)>
      multiply_adds;
  bool memory_bound =
      false;              // takes about as long as reading and writing its arrays (elementwise ones and views do too)
  bool in_place = false;  // its kernels can write output 0 over input 0 (elementwise ones can too)
  // Inputs whose values have no effect with these parameters (the gamma of a BatchNorm with fix_gamma): they are not
  // decayed.
  std::function<Names(const void* params)> ignored_inputs;
  std::function<Recomputation(const void* params)> recomputed_by;  // none: it runs again as it is
  // Does the gradient have other terms than multiples of the output's gradient, as a penalty has? Where a loss is
  // scaled, such an operator is given the gradient without the scale.
  bool own_gradient_terms = false;
  Precision precision = Precision::as_given;
  // Mixed precision computes them in float32 whatever the types of the others: lengths, parameters of BatchNorm.
  Names full_precision_inputs;
  // Full precision where a parameter has one of these values, whatever `precision` is; no name: never.
  struct ParameterValues {
    std::string parameter;
    std::vector<std::string> values;
  };
  ParameterValues full_precision_if;
  Attributes input_attributes;  // "moving_var" → the __init__ attribute a variable made for it gets

  // The parameter struct of text attributes. Keys with double underscores are not parameters; any other unknown key
  // fails, listing the valid ones. `node` is named in errors.
  std::shared_ptr<const void> parse_params(const Attributes& attributes, std::string_view node) const;
  // Checks a struct that was filled in C++, and completes it.
  std::shared_ptr<const void> checked_params(const void* params, std::string_view node) const;
  // For operators that take any number of inputs: fails if the parameters require more than are given.
  void check_count(const void* params, size_t given, std::string_view node) const;
  // The fields that differ from their defaults, as text.
  Attributes print_params(const void* params) const;

  Names all_inputs(const void* params) const;  // inputs, then auxiliary states
  size_t all_input_count(const void* params) const { return input_count(params) + aux_count(params); }
  // Which of `count` inputs it updates: the auxiliary states, and also_updates.
  std::vector<bool> updated_inputs(const void* params, size_t count) const;
  bool is_random(const void* params, bool is_train) const { return random && random(params, is_train); }

  // The number of inputs or outputs, and the name of one, without generating all names.
  std::function<size_t(const void* params)> input_count;
  std::function<size_t(const void* params)> aux_count;
  std::function<size_t(const void* params)> output_count;
  std::function<std::string(const void* params, size_t output)> output_name;
};

// For the gradient of an operator: applies the inference of that operator, `forward`, to the gradient's inputs. They
// are matched by name: its inputs and outputs have their own, "like" is the next of its inputs, "out_grad" (or
// out_grad0, …) are its outputs. What the gradient does not read stays unknown.
template <class Value>
void infer_as_forward(const OpDef& forward, const void* params, Inference<Value>& gradient);

// The registry: filled once by register_all_ops() (ops/all_ops.cc), read ever after.
class OpRegistry {
 public:
  static const OpRegistry& get();
  // By name or alias; fails with a suggestion of similar names. Names that come from users or files are looked up by
  // find_public(), which refuses internal operators.
  const OpDef& find(std::string_view name) const;
  const OpDef* find_or_null(std::string_view name) const;
  const OpDef& find_public(std::string_view name) const;
  const OpDef& find(std::type_index params_type) const;
  std::vector<const OpDef*> all() const;         // in order of registration
  std::vector<const OpDef*> all_public() const;  // without internal operators

  // For built-in operators, during registration only.
  void add(OpDef op, std::type_index params_type);
  // For user-defined operators (passes/own_operator.h), at any time and from any thread.
  static void add_own(OpDef op, std::type_index params_type);

 private:
  OpRegistry() = default;
  static OpRegistry& instance();
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Supplied by ops/ when linking.
void register_all_ops(OpRegistry& registry);

template <class P>
const OpDef& op_of() {
  static const OpDef& op = OpRegistry::get().find(std::type_index(typeid(P)));
  return op;
}

}  // namespace symbind
