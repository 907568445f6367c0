// The definition language of operators: Op<P> turns a parameter struct P, a few names and three functions into an
// OpDef. See docs/adding_an_op.md for a walk through it.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <utility>

#include "symbind/graph/op.h"
#include "symbind/graph/symbol.h"

namespace SYMBIND_API symbind {

// The value of a count parameter; 0 if it was not given.
constexpr size_t count_of(int64_t given) { return given < 0 ? 0 : static_cast<size_t>(given); }
constexpr size_t count_of(size_t count) { return count; }
// The names stem0, stem1, … of inputs or outputs that a parameter counts.
inline auto numbered(std::string stem) {
  return [stem = std::move(stem)](const auto& /*params*/, size_t index) { return stem + std::to_string(index); };
}

// The part of a definition that is the same for every parameter struct, compiled once.
class OpBase {
 public:
  operator OpDef() const { return def_; }

 protected:
  explicit OpBase(std::string name);  // one input "data", one output "output", all of one shape and type
  void set_inputs(Names names);
  void set_aux(Names names);
  void set_outputs(const Names& names);
  void make_all_visible();

  OpDef def_;
};

template <class P>
class Op : public OpBase {
 public:
  explicit Op(std::string name) : OpBase(std::move(name)) {
    def_.make_params = [] { return std::make_shared<P>(); };
    def_.copy_params = [](const void* p) { return std::make_shared<P>(of(p)); };
  }

  Op& aliases(Names names) { return def_.aliases = std::move(names), *this; }
  Op& internal() { return def_.internal = true, *this; }
  Op& doc(std::string_view text) { return def_.doc = text, *this; }

  // One field of P: its name in files and in Python, a line of documentation, and a rule for its values. `Base` is P or
  // a struct P inherits from.
  template <class T, class Base>
  requires std::derived_from<P, Base> Op& param(T Base::*field, std::string_view name, std::string_view doc) {
    return add_field(field, name, doc, Rule<typename FieldValue<T>::type>{});
  }
  template <class T, class Base, class MakeRule>
  requires std::derived_from<P, Base> Op& param(T Base::*field, std::string_view name, std::string_view doc,
                                                MakeRule make_rule) {
    return add_field(field, name, doc, make_rule(std::type_identity<typename FieldValue<T>::type>{}));
  }

  Op& inputs(Names names) { return set_inputs(std::move(names)), *this; }
  template <std::invocable<const P&> F>
  Op& inputs(F names) {
    def_.input_count = [names](const void* p) { return Names(names(of(p))).size(); };
    return def_.inputs = [names](const void* p) -> Names { return names(of(p)); }, *this;
  }
  // As many inputs as a parameter says: count(params), each named name(params, index).
  template <std::invocable<const P&> Count, std::invocable<const P&, size_t> Name>
  Op& inputs(Count count, Name name) {
    def_.input_count = counted(count);
    return def_.inputs = all_named(def_.input_count, name), *this;
  }
  // Any number of inputs; `count` is the parameter that holds how many.
  Op& variadic(Required<int64_t> P::*count, std::string name) {
    def_.count_field = std::move(name);
    def_.get_count = [count](const void* p) -> int64_t { return of(p).*count; };
    def_.set_count = [count](void* p, int64_t n) {
      if (!(of(p).*count).given()) static_cast<P*>(p)->*count = n;
    };
    return *this;
  }
  Op& aux(Names names) { return set_aux(std::move(names)), *this; }
  template <std::invocable<const P&> F>
  Op& aux(F names) {
    def_.aux_count = [names](const void* p) { return Names(names(of(p))).size(); };
    return def_.aux = [names](const void* p) -> Names { return names(of(p)); }, *this;
  }
  // Inputs that the operator also updates although they are between others; given by position.
  template <std::invocable<const P&, size_t> F>
  Op& also_updates(F updates) {
    return def_.also_updates = [updates](const void* p, size_t input) -> bool { return updates(of(p), input); }, *this;
  }
  Op& outputs(const Names& names) { return set_outputs(names), *this; }
  template <std::invocable<const P&> F>
  Op& outputs(F names) {
    def_.outputs = [names](const void* p) -> Names { return names(of(p)); };
    def_.output_count = [names](const void* p) { return Names(names(of(p))).size(); };
    def_.output_name = [names](const void* p, size_t index) { return Names(names(of(p))).at(index); };
    return make_all_visible(), *this;
  }
  // As many outputs as a parameter says: count(params), each named name(params, index).
  template <std::invocable<const P&> Count, std::invocable<const P&, size_t> Name>
  Op& outputs(Count count, Name name) {
    def_.output_count = counted(count);
    def_.output_name = [name](const void* p, size_t index) -> std::string { return name(of(p), index); };
    def_.outputs = all_named(def_.output_count, name);
    return make_all_visible(), *this;
  }
  // How many of the outputs a user sees; the others are for the gradient. Call it after outputs().
  template <std::invocable<const P&> F>
  Op& visible_outputs(F count) {
    return def_.visible_outputs = [count](const void* p) -> int { return count(of(p)); }, *this;
  }

  template <std::invocable<const P&> F>
  Op& outputs_in_files(F count) {
    return def_.outputs_in_files = [count](const void* p) -> int { return count(of(p)); }, *this;
  }

  template <std::invocable<const P&, Shapes&> F>
  Op& infer_shape(F infer) {
    return def_.infer_shape = [infer](const void* p, Shapes& s) { infer(of(p), s); }, *this;
  }
  template <std::invocable<const P&, Types&> F>
  Op& infer_type(F infer) {
    return def_.infer_type = [infer](const void* p, Types& t) { infer(of(p), t); }, *this;
  }
  // For the gradient of Forward, the operator whose parameters P extends. Wraps the inference set so far:
  // that of Forward is applied to the inputs first, so that inconsistent inputs fail.
  template <class Forward>
  requires std::derived_from<P, Forward> Op& shapes_of() {
    def_.infer_shape = [own = def_.infer_shape](const void* p, Shapes& s) {
      infer_as_forward(op_of<Forward>(), static_cast<const Forward*>(&of(p)), s);
      own(p, s);
    };
    return *this;
  }
  template <class Forward>
  requires std::derived_from<P, Forward> Op& types_of() {
    def_.infer_type = [own = def_.infer_type](const void* p, Types& t) {
      infer_as_forward(op_of<Forward>(), static_cast<const Forward*>(&of(p)), t);
      own(p, t);
    };
    return *this;
  }
  template <std::invocable<const P&, Grad&> F>
  Op& gradient(F gradient) {
    return def_.gradient = [gradient](const void* p, Grad& g) { gradient(of(p), g); }, *this;
  }
  template <std::invocable<P&> F>
  Op& check(F check) {
    return def_.check = [check](void* p) { check(*static_cast<P*>(p)); }, *this;
  }
  // The operator draws random numbers: always, or where draws(params, is_train) is true.
  Op& random() {
    return def_.random = [](const void*, bool) { return true; }, *this;
  }
  template <std::invocable<const P&, bool> F>
  Op& random(F draws) {
    return def_.random = [draws](const void* p, bool is_train) -> bool { return draws(of(p), is_train); }, *this;
  }
  // The field that collects keywords that are not fields.
  Op& keywords(Attributes P::*field) {
    def_.take_keyword = [field](void* p, const std::string& key, const std::string& text) {
      (static_cast<P*>(p)->*field)[key] = text;
    };
    def_.keywords = [field](const void* p) { return of(p).*field; };
    return *this;
  }
  Op& keeps_state() { return def_.keeps_state = true, *this; }
  Op& synchronized() { return def_.synchronized = true, *this; }
  Op& shape_only(Names inputs) { return def_.shape_only = std::move(inputs), *this; }
  Op& view() { return def_.view = true, *this; }
  // f(params, input shapes, output shapes) → the offset of each output in input 0, in elements, if each is one
  // contiguous piece.
  template <std::invocable<const P&, std::span<const Shape>, std::span<const Shape>> F>
  Op& pieces_of_input(F begins) {
    return def_.pieces_of_input = pieces(begins), *this;
  }
  // The same for inputs that are pieces of output 0.
  template <std::invocable<const P&, std::span<const Shape>, std::span<const Shape>> F>
  Op& pieces_of_output(F begins) {
    return def_.pieces_of_output = pieces(begins), *this;
  }
  // f(params, input shapes, output shapes) → how many products a run adds up
  template <std::invocable<const P&, std::span<const Shape>, std::span<const Shape>> F>
  Op& multiply_adds(F count) {
    def_.multiply_adds = [count](const void* p, std::span<const Shape> inputs, std::span<const Shape> outputs) {
      return static_cast<double>(count(of(p), inputs, outputs));
    };
    return *this;
  }
  Op& elementwise() { return def_.elementwise = true, *this; }
  Op& memory_bound() { return def_.memory_bound = true, *this; }
  Op& in_place() { return def_.in_place = true, *this; }
  template <std::invocable<const P&> F>
  Op& ignored_inputs(F names) {
    return def_.ignored_inputs = [names](const void* p) -> Names { return names(of(p)); }, *this;
  }
  // f(params) → Recomputation
  template <std::invocable<const P&> F>
  Op& recomputed_by(F function) {
    return def_.recomputed_by = [function](const void* p) { return function(of(p)); }, *this;
  }
  Op& refuses_gradient() { return def_.refuses_gradient = true, *this; }
  Op& own_gradient_terms() { return def_.own_gradient_terms = true, *this; }
  Op& precision(Precision precision) { return def_.precision = precision, *this; }
  Op& full_precision_inputs(Names inputs) { return def_.full_precision_inputs = std::move(inputs), *this; }
  Op& full_precision_if(std::string parameter, std::vector<std::string> values) {
    return def_.full_precision_if = {std::move(parameter), std::move(values)}, *this;
  }
  // The __init__ attribute that a variable made for this input gets.
  Op& initialize(const std::string& input, std::string init) {
    return def_.input_attributes[input] = std::move(init), *this;
  }

 private:
  using CountOf = std::function<size_t(const void* params)>;
  static const P& of(const void* params) { return *static_cast<const P*>(params); }
  template <class Count>
  static CountOf counted(Count count) {
    return [count](const void* p) -> size_t { return count_of(std::invoke(count, of(p))); };
  }
  template <class Name>
  static std::function<Names(const void* params)> all_named(CountOf count, Name name) {
    return [count = std::move(count), name](const void* p) {
      Names names(count(p));
      for (size_t i = 0; i < names.size(); ++i) names[i] = name(of(p), i);
      return names;
    };
  }
  template <class F>
  static OpDef::Pieces pieces(F begins) {
    return [begins](const void* p, std::span<const Shape> inputs,
                    std::span<const Shape> outputs) -> std::vector<int64_t> { return begins(of(p), inputs, outputs); };
  }

  template <class T, class Base>
  Op& add_field(T Base::*member, std::string_view name, std::string_view doc, Rule<typename FieldValue<T>::type> rule) {
    static_assert(is_param_type<typename FieldValue<T>::type>, "not a type a parameter can have");
    const P defaults{};
    const auto* begin = reinterpret_cast<const std::byte*>(&defaults);
    const ptrdiff_t offset = reinterpret_cast<const std::byte*>(&(defaults.*member)) - begin;
    def_.fields.push_back(ParamField::make(offset, name, doc, defaults.*member, std::move(rule)));
    return *this;
  }
};

// By the operator P, from these of the node's inputs and outputs.
template <class P>
Recomputation recompute_by(P params, std::vector<int> inputs, std::vector<int> outputs) {
  return {&op_of<P>(), std::make_shared<const P>(std::move(params)), std::move(inputs), std::move(outputs)};
}

// Registers operators one after the other: each block in ops/ is `OpDef define(Op<P> op)`. add_internal registers
// operators that only the library itself uses.
template <class P>
void add(OpRegistry& registry, const std::string& name, OpDef (*define)(Op<P>)) {
  registry.add(define(Op<P>(name)), typeid(P));
}
template <class P>
void add_internal(OpRegistry& registry, const std::string& name, OpDef (*define)(Op<P>)) {
  registry.add(define(std::move(Op<P>(name).internal())), typeid(P));
}

}  // namespace symbind
