#include "symbind/graph/op.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/core/near_names.h"
#include "symbind/graph/attributes.h"

namespace symbind {

// ---- Inference ------------------------------------------------------------------------------------------------------

template <class Value>
Inferred<Value> Inference<Value>::operator[](std::string_view name) {
  for (size_t i = 0; i < input_names_.size(); ++i)
    if (input_names_[i] == name) return input(i);
  fail(where_, " has no input '", name, "'");
}
template class Inference<Shape>;
template class Inference<DType>;

void Inferred<Shape>::meet(const Shape& other) {
  Shape both = value_;
  if (!unify(both, other)) {
    // (?,?) alone would say no more than the number of axes.
    const bool only_rank = other.rank() > 0 && other == Shape::of_rank(other.rank());
    const std::string needed =
        only_rank ? join(other.rank(), other.rank() == 1 ? " axis is" : " axes are") : join(other, " is");
    fail(all_.where(), " ", name_, " has shape ", value_, ", but ", needed, " needed");
  }
  if (both == value_) return;
  value_ = both;
  all_.mark_changed();
}

void Inferred<Shape>::meet_dim(int axis, int64_t dim) { meet(Shape::of_rank(value_.rank()).with(axis, dim)); }

void Inferred<DType>::meet(DType other) {
  if (other == DType::none || other == value_) return;
  if (value_ != DType::none) fail(all_.where(), " ", name_, " has type ", value_, ", but ", other, " is needed");
  value_ = other;
  all_.mark_changed();
}

namespace {

template <class Value>
void all_equal(Inference<Value>& values) {
  // What is known of any value is merged into the first, and from it into all others.
  auto first = values.inputs() > 0 ? values.input(0) : values.output(0);
  const auto each = [&](auto&& visit) {
    for (size_t i = 0; i < values.inputs(); ++i) visit(values.input(i));
    for (size_t i = 0; i < values.outputs(); ++i) visit(values.output(i));
  };
  each([&](auto value) { first.meet(value.get()); });
  each([&](auto value) { value.meet(first.get()); });
}

}  // namespace

void same_shape(Shapes& shapes) { all_equal(shapes); }
void same_type(Types& types) { all_equal(types); }

namespace {

template <class Value>
Value unknown() {
  if constexpr (std::is_same_v<Value, DType>)
    return DType::none;
  else
    return {};
}

}  // namespace

template <class Value>
void infer_as_forward(const OpDef& forward, const void* params, Inference<Value>& gradient) {
  const Names inputs = forward.all_inputs(params), outputs = forward.outputs(params);
  std::vector<Value> values(inputs.size() + outputs.size(), unknown<Value>());
  // The index of each name among the values. An operator may have very many inputs or outputs.
  std::unordered_map<std::string_view, size_t> index_of;
  for (size_t i = 0; i < inputs.size(); ++i) index_of.emplace(inputs[i], i);
  for (size_t i = 0; i < outputs.size(); ++i) index_of.emplace(outputs[i], inputs.size() + i);
  size_t likes = 0;
  // The value that an input of the gradient refers to; null for one that the operator does not have.
  const auto value_of = [&](std::string_view name) -> Value* {
    constexpr std::string_view gradient_of_output = "out_grad";  // of the first, or with the output's number after it
    if (name == "like") return likes < inputs.size() ? &values[likes++] : nullptr;
    if (const auto found = index_of.find(name); found != index_of.end()) return &values[found->second];
    if (!name.starts_with(gradient_of_output)) return nullptr;
    size_t output = 0;
    const char* const end = name.data() + name.size();
    const char* const digits = name.data() + gradient_of_output.size();
    if (digits != end && std::from_chars(digits, end, output).ptr != end) return nullptr;
    return output < outputs.size() ? &values[inputs.size() + output] : nullptr;
  };
  std::vector<Value*> matched;
  for (size_t i = 0; i < gradient.inputs(); ++i) {
    matched.push_back(value_of(gradient.input_name(i)));
    if (matched.back()) *matched.back() = gradient.input(i).get();
  }
  const std::span<Value> all(values);
  Inference<Value> inference(gradient.where(), inputs, all.first(inputs.size()), outputs, all.subspan(inputs.size()));
  if constexpr (std::is_same_v<Value, Shape>)
    forward.infer_shape(params, inference);
  else
    forward.infer_type(params, inference);
  for (size_t i = 0; i < gradient.inputs(); ++i)
    if (matched[i]) gradient.input(i).meet(*matched[i]);
}
template void infer_as_forward(const OpDef& forward, const void* params, Shapes& gradient);
template void infer_as_forward(const OpDef& forward, const void* params, Types& gradient);

// ---- The definition -------------------------------------------------------------------------------------------------

OpDef::OpDef() = default;
OpDef::~OpDef() = default;
OpDef::OpDef(const OpDef&) = default;
OpDef::OpDef(OpDef&&) noexcept = default;
OpDef& OpDef::operator=(const OpDef&) = default;
OpDef& OpDef::operator=(OpDef&&) noexcept = default;

// ---- Parameters -----------------------------------------------------------------------------------------------------

namespace {

std::string where(const OpDef& op, std::string_view node) {
  return node.empty() ? join("[", op.name, "]") : join("[", op.name, " ", node, "]");
}

// MXNet passes over any argument of an operator that has no parameters: zeros_like(x, dtype="float32"). Once for each.
void warn_passed_over(const OpDef& op, const std::string& key) {
  static std::mutex guard;
  static std::set<std::pair<const OpDef*, std::string>> warned;
  const std::lock_guard lock(guard);
  if (warned.emplace(&op, key).second)
    log_warning("[", op.name, "] has no parameters: the argument '", key, "' has no effect");
}

bool is_hidden(std::string_view key) { return key.size() > 4 && key.starts_with("__") && key.ends_with("__"); }

}  // namespace

std::shared_ptr<const void> OpDef::parse_params(const Attributes& attributes, std::string_view node) const {
  auto params = make_params();
  for (const auto& [key, text] : attributes) {
    if (is_hidden(key)) continue;
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&key = key](const ParamField& f) { return f.name == key; });
    if (field == fields.end() && take_keyword) {
      take_keyword(params.get(), key, text);
      continue;
    }
    if (fields.empty()) {
      warn_passed_over(*this, key);
      continue;
    }
    if (field == fields.end()) {
      std::string known;
      for (const ParamField& f : fields) known += (known.empty() ? "" : ", ") + f.name;
      fail(where(*this, node), " has no parameter '", key, "'; it has ", known);
    }
    try {
      field->parse(params.get(), text);
    } catch (const Error& error) {
      fail(where(*this, node), " ", key, ": ", error.what());
    }
  }
  return checked_params(params.get(), node);
}

std::shared_ptr<const void> OpDef::checked_params(const void* params, std::string_view node) const {
  auto checked = copy_params(params);
  for (const ParamField& field : fields) {
    if (!field.given(checked.get())) fail(where(*this, node), " ", field.name, " must be given: ", field.doc);
    const std::string broken = field.broken_rule(checked.get());
    if (!broken.empty()) fail(where(*this, node), " ", field.name, " ", broken, ": ", field.print(checked.get()));
  }
  if (check) {
    try {
      check(checked.get());
    } catch (const Error& error) {
      fail(where(*this, node), " ", error.what());
    }
  }
  const size_t wanted = all_input_count(checked.get()), made = output_count(checked.get());
  if (wanted > most_arrays || made > most_arrays)
    fail(where(*this, node), " would have ", wanted, " inputs and ", made, " outputs",
         get_count ? join(" (", count_field, " is ", get_count(checked.get()), ")") : "", "; an operator has at most ",
         most_arrays, " of each");
  return checked;
}

void OpDef::check_count(const void* params, size_t given, std::string_view node) const {
  if (!get_count) return;
  const auto counted = static_cast<size_t>(get_count(params));
  if (counted <= given) return;
  // An input that the operator initializes itself (the weight of a bilinear UpSampling) may be left out.
  if (counted - given <= input_attributes.size()) {
    const Names names = inputs(params);
    if (std::all_of(names.begin() + static_cast<std::ptrdiff_t>(given), names.end(),
                    [&](const std::string& input) { return input_attributes.count(input) > 0; }))
      return;
  }
  fail(where(*this, node), " ", count_field, " is ", counted, ", but ", given, given == 1 ? " input is" : " inputs are",
       " given");
}

Attributes OpDef::print_params(const void* params) const {
  Attributes attributes;
  for (const ParamField& field : fields) {
    std::string text = field.print(params);
    if (field.is_required || text != field.default_text) attributes[field.name] = std::move(text);
  }
  if (keywords) attributes.merge(keywords(params));
  return attributes;
}

Names OpDef::all_inputs(const void* params) const {
  Names names = inputs(params);
  for (std::string& state : aux(params)) names.push_back(std::move(state));
  return names;
}

std::vector<bool> OpDef::updated_inputs(const void* params, size_t count) const {
  std::vector<bool> updated(count, false);
  for (size_t i = count - aux_count(params); i < count; ++i) updated[i] = true;
  if (also_updates)
    for (size_t i = 0; i < count; ++i) updated[i] = updated[i] || also_updates(params, i);
  return updated;
}

// ---- Registry -------------------------------------------------------------------------------------------------------

struct OpRegistry::Impl {
  mutable std::shared_mutex mutex;
  std::deque<OpDef> ops;  // addresses stay
  std::unordered_map<std::string, const OpDef*> by_name;
  std::unordered_map<std::type_index, const OpDef*> by_type;
};

OpRegistry& OpRegistry::instance() {
  // Never destroyed: nodes in static variables point into it.
  static OpRegistry& registry = *[] {
    auto* made = new OpRegistry;  // NOLINT
    made->impl_ = std::make_shared<Impl>();
    register_all_ops(*made);
    return made;
  }();
  return registry;
}

const OpRegistry& OpRegistry::get() { return instance(); }

void OpRegistry::add(OpDef op, std::type_index params_type) {
  const std::unique_lock lock(impl_->mutex);
  Names names = op.aliases;
  names.push_back(op.name);
  for (const std::string& name : names)
    require(!impl_->by_name.contains(name), "an operator '", name, "' exists already: choose another name");
  require(!impl_->by_type.contains(params_type), "the parameters of '", op.name,
          "' belong to another operator already");
  const OpDef& added = impl_->ops.emplace_back(std::move(op));
  for (const std::string& name : names) impl_->by_name.emplace(name, &added);
  impl_->by_type.emplace(params_type, &added);
}

void OpRegistry::add_own(OpDef op, std::type_index params_type) {
  op.own = true;
  instance().add(std::move(op), params_type);
}

const OpDef* OpRegistry::find_or_null(std::string_view name) const {
  const std::shared_lock lock(impl_->mutex);
  const auto found = impl_->by_name.find(std::string(name));
  return found == impl_->by_name.end() ? nullptr : found->second;
}

const OpDef& OpRegistry::find(std::string_view name) const {
  if (const OpDef* op = find_or_null(name)) return *op;
  Names known;
  for (const OpDef* op : all_public()) {
    known.push_back(op->name);
    known.insert(known.end(), op->aliases.begin(), op->aliases.end());
  }
  fail("unknown operator '", name, "'", did_you_mean(name, known));
}

const OpDef& OpRegistry::find_public(std::string_view name) const {
  const OpDef& op = find(name);
  require(!op.internal, "'", name, "' is an internal operator of the library: it cannot be used by name");
  return op;
}

const OpDef& OpRegistry::find(std::type_index params_type) const {
  const std::shared_lock lock(impl_->mutex);
  const auto found = impl_->by_type.find(params_type);
  require(found != impl_->by_type.end(), "an operator's parameters are not registered: ", params_type.name());
  return *found->second;
}

std::vector<const OpDef*> OpRegistry::all() const {
  const std::shared_lock lock(impl_->mutex);
  std::vector<const OpDef*> ops;
  for (const OpDef& op : impl_->ops) ops.push_back(&op);
  return ops;
}

std::vector<const OpDef*> OpRegistry::all_public() const {
  std::vector<const OpDef*> ops = all();
  std::erase_if(ops, [](const OpDef* op) { return op->internal; });
  return ops;
}

}  // namespace symbind
