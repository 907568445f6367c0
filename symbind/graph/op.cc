#include "symbind/graph/op.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <unordered_map>

#include "symbind/core/error.h"
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
  if (!unify(both, other)) fail(all_.where(), " ", name_, " has shape ", value_, ", but ", other, " is needed");
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
  // What any of them knows first reaches the first, then everybody.
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

// ---- Parameters -----------------------------------------------------------------------------------------------------

namespace {

std::string where(const OpDef& op, std::string_view node) {
  return node.empty() ? join("[", op.name, "]") : join("[", op.name, " ", node, "]");
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
    if (field == fields.end()) {
      std::string known;
      for (const ParamField& f : fields) known += (known.empty() ? "" : ", ") + f.name;
      fail(where(*this, node), " has no parameter '", key, "'; it has ", known.empty() ? "none" : known);
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
    if (field.missing(checked.get())) {
      if (field.is_required) fail(where(*this, node), " ", field.name, " must be given: ", field.doc);
      continue;
    }
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
    fail(where(*this, node), " would have ", wanted, " inputs and ", made, " outputs; an operator has at most ",
         most_arrays, " of each");
  return checked;
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
  std::deque<OpDef> ops;  // addresses stay
  std::unordered_map<std::string, const OpDef*> by_name;
  std::unordered_map<std::type_index, const OpDef*> by_type;
};

const OpRegistry& OpRegistry::get() {
  // Never destroyed: nodes in static variables point into it.
  static const OpRegistry& registry = *[] {
    auto* made = new OpRegistry;  // NOLINT
    made->impl_ = std::make_shared<Impl>();
    register_all_ops(*made);
    return made;
  }();
  return registry;
}

void OpRegistry::add(OpDef op, std::type_index params_type) {
  impl_->ops.push_back(std::move(op));
  const OpDef& added = impl_->ops.back();
  const auto name_it = [&](const std::string& name) {
    const bool is_new = impl_->by_name.emplace(name, &added).second;
    require(is_new, "two operators are named '", name, "'");
  };
  name_it(added.name);
  for (const std::string& alias : added.aliases) name_it(alias);
  require(impl_->by_type.emplace(params_type, &added).second, "the parameters of '", added.name,
          "' belong to another operator already");
}

namespace {

// How many letters must be put in, left out or changed to make one word of the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

const OpDef* OpRegistry::find_or_null(std::string_view name) const {
  const auto found = impl_->by_name.find(std::string(name));
  return found == impl_->by_name.end() ? nullptr : found->second;
}

const OpDef& OpRegistry::find(std::string_view name) const {
  if (const OpDef* op = find_or_null(name)) return *op;
  std::vector<std::string> near;
  for (const auto& [known, op] : impl_->by_name)
    if (distance(lower_case(known), lower_case(name)) <= 1 + name.size() / 6) near.push_back(known);
  std::sort(near.begin(), near.end());
  fail("there is no operator '", name, "'", near.empty() ? "" : "; near it are " + comma_separated(near));
}

const OpDef& OpRegistry::find(std::type_index params_type) const {
  const auto found = impl_->by_type.find(params_type);
  require(found != impl_->by_type.end(), "an operator's parameters are not registered: ", params_type.name());
  return *found->second;
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> ops;
  for (const OpDef& op : impl_->ops) ops.push_back(&op);
  return ops;
}

}  // namespace symbind
