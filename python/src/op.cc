// Calls operators of the registry: on symbols and on arrays, with arguments as Python gives them.
#include "symbind/graph/op.h"

#include <algorithm>
#include <stdexcept>

#include "symbind/exec/invoke.h"
#include "symbind/graph/builder.h"
#include "symbind/ops/custom.h"

#include "bindings.h"
#include "control_flow.h"
#include "convert.h"

namespace symbind::python {
namespace {

// The parsed arguments of a call: inputs by position (a gap is an omitted one) and by name, parameters as text.
template <class Value>
struct Call {
  std::vector<std::optional<Value>> positional;
  std::vector<std::pair<std::string, Value>> named;
  Attributes attributes;
  // By position after everything else: the name of a node, or the array of the result.
  nb::object last = nb::none();
};

template <class Value>
bool is_sequence_of(nb::handle value) {
  if (!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr())) return false;
  size_t count = 0;
  for (nb::handle item : value) {
    if (!nb::isinstance<Value>(item)) return false;
    ++count;
  }
  return count > 0;
}

// An array instead of a symbol, or the other way round, would be misread as a parameter.
template <class Value>
void reject_other_inputs(const OpDef& op, nb::handle value) {
  const bool numpy = std::string_view(Py_TYPE(value.ptr())->tp_name) == "numpy.ndarray";
  if (!nb::isinstance<NDArray>(value) && !nb::isinstance<Symbol>(value) && !numpy) return;
  throw TypeError(join("[", op.name, "] its inputs are ", std::is_same_v<Value, Symbol> ? "Symbols" : "NDArrays",
                       ", not ", Py_TYPE(value.ptr())->tp_name));
}

// The input names of a call with default parameters. There is no such call if the number of inputs is a required
// parameter.
Names input_names(const OpDef& op) {
  try {
    return op.inputs(op.make_params().get());
  } catch (const std::length_error&) {
    return {};
  }
}

bool has_field(const OpDef& op, const std::string& name) {
  return std::ranges::any_of(op.fields, [&](const ParamField& field) { return field.name == name; });
}

// data=3 must be reported as a wrong input, not as an unknown parameter.
template <class Value>
void reject_as_input(const OpDef& op, const std::string& name, nb::handle value) {
  if (has_field(op, name)) return;
  for (const std::string& input : input_names(op))
    if (input == name)
      throw TypeError(join("[", op.name, "] its input ", name, " must be ",
                           std::is_same_v<Value, Symbol> ? "a Symbol" : "an NDArray", ", not ",
                           Py_TYPE(value.ptr())->tp_name));
}

// Inputs come first, then parameters in the order of their fields. The caller handles the names in `apart`.
template <class Value>
Call<Value> sort_out(const OpDef& op, nb::handle args, nb::handle kwargs,
                     std::initializer_list<std::string_view> apart) {
  Call<Value> call;
  size_t field = 0;
  for (nb::handle value : args) {
    const auto has_all = [&] {
      if (field < op.fields.size() || !call.last.is_none() || !op.count_field.empty()) return false;
      return field > 0 || (!call.positional.empty() && call.positional.size() == input_names(op).size());
    };
    if (nb::isinstance<Value>(value)) {
      if (std::is_same_v<Value, NDArray> && has_all()) {
        call.last = nb::borrow(value);
        continue;
      }
      if (field > 0) throw TypeError(join("[", op.name, "] an input follows parameters; pass it by name"));
      call.positional.emplace_back(nb::cast<Value>(value));
    } else if (field == 0 && value.is_none()) {
      if (!op.count_field.empty())
        throw TypeError(
            join("[", op.name, "] None among its inputs; leave inputs out at the end, or pass them by name"));
      call.positional.emplace_back(std::nullopt);
    } else if (field == 0 && is_sequence_of<Value>(value)) {
      for (nb::handle item : value) call.positional.emplace_back(nb::cast<Value>(item));
    } else if (std::is_same_v<Value, Symbol> && nb::isinstance<nb::str>(value) && has_all()) {
      call.last = nb::borrow(value);
    } else {
      reject_other_inputs<Value>(op, value);
      if (field >= op.fields.size())
        throw TypeError(join("[", op.name, "] cannot tell what ", nb::repr(value).c_str(), " is; it takes ",
                             comma_separated(op.inputs(op.make_params().get())), " and parameters by name"));
      call.attributes[op.fields[field++].name] = text_of(value);
    }
  }
  for (auto [key, value] : nb::borrow<nb::dict>(kwargs)) {
    const auto name = nb::cast<std::string>(key);
    bool skip = false;
    for (std::string_view reserved : apart) skip |= name == reserved;
    if (skip) continue;
    if (nb::isinstance<Value>(value)) {
      call.named.emplace_back(name, nb::cast<Value>(value));
    } else if (is_sequence_of<Value>(value)) {
      for (nb::handle item : value) call.positional.emplace_back(nb::cast<Value>(item));
    } else if (!value.is_none()) {
      reject_as_input<Value>(op, name, value);
      if (!has_field(op, name)) reject_other_inputs<Value>(op, value);
      if (!call.attributes.emplace(name, text_of(value)).second)
        throw TypeError(join("[", op.name, "] '", name, "' is given by position and by name"));
    } else if (&op == &op_of<Custom>()) {  // for a custom operator, which gets all arguments as text
      call.attributes[name] = "None";
    } else {
      for (const ParamField& each : op.fields)
        if (each.name == name && each.type.find("None") != std::string::npos) call.attributes[name] = "None";
    }
  }
  while (!call.positional.empty() && !call.positional.back()) call.positional.pop_back();
  return call;
}

// An input that is given by position and by name, or more inputs by position than there are.
template <class Value>
void reject_surplus_inputs(const OpDef& op, const Names& names, const Call<Value>& call) {
  if (call.positional.size() > names.size())
    throw TypeError(join("[", op.name, "] ", call.positional.size(), " inputs are given by position, it has ",
                         comma_separated(names)));
  for (const auto& [name, value] : call.named) {
    const auto at = static_cast<size_t>(std::ranges::find(names, name) - names.begin());
    if (at < call.positional.size() && call.positional[at])
      throw TypeError(join("[", op.name, "] its input '", name, "' is given by position and by name"));
  }
}

nb::object keyword(nb::handle kwargs, const char* name, nb::object otherwise = nb::none()) {
  PyObject* value = PyDict_GetItemString(kwargs.ptr(), name);
  return value ? nb::borrow(value) : otherwise;
}

// Names a node after what the operator was called by, which need not be one of its names: mx.sym.contrib.Proposal.
class CalledName final : public NameManager {
 public:
  CalledName(NameManager& outer, const std::string& called) : outer_(outer), hint_(lower_case(called)) {}
  std::string get(const std::string& given, const std::string&) override { return outer_.get(given, hint_); }

 private:
  NameManager& outer_;
  std::string hint_;
};

// `called` is the name it was called by: an alias names the node after itself.
Symbol call_on_symbols(const OpDef& op, nb::handle args, nb::handle kwargs, const std::string& called) {
  Call<Symbol> call = sort_out<Symbol>(op, args, kwargs, {"name", "attr", "out", "ctx"});
  const nb::object name = keyword(kwargs, "name", call.last), attr = keyword(kwargs, "attr"),
                   ctx = keyword(kwargs, "ctx");
  for (const ParamField& field : op.fields)
    if (field.name == "ctx" && !ctx.is_none()) call.attributes["ctx"] = text_of(ctx);
  if (!attr.is_none())
    for (auto [key, value] : dict_from(attr, "attr")) {
      if (!nb::isinstance<nb::str>(value)) throw ValueError("attributes are texts");
      const auto attribute = nb::cast<std::string>(key);
      call.attributes[is_steering(attribute) ? hidden_key(attribute) : attribute] = nb::cast<std::string>(value);
    }
  std::vector<Symbol> positional;
  bool gaps = false;
  for (const auto& input : call.positional) gaps |= !input;
  const bool in_both_ways = !call.positional.empty() && !call.named.empty() && op.count_field.empty();
  Names names;
  if (gaps || in_both_ways) names = op.all_inputs(op.parse_params(call.attributes, "").get());
  if (in_both_ways) reject_surplus_inputs(op, names, call);
  if (!gaps)
    for (auto& input : call.positional) positional.push_back(std::move(*input));
  Inputs inputs(std::move(positional));
  if (gaps) {
    for (size_t i = 0; i < call.positional.size(); ++i)
      if (call.positional[i] && i < names.size()) inputs.add(names[i], *call.positional[i]);
  }
  for (auto& [input, symbol] : call.named) inputs.add(input, symbol);
  const std::string given = name.is_none() ? "" : nb::cast<std::string>(name);
  if (called.empty()) return apply(op.name, inputs, call.attributes, given);
  const CalledName naming(NameManager::current(), called);
  return apply(op.name, inputs, call.attributes, given);
}

nb::object call_on_arrays(const OpDef& op, nb::handle args, nb::handle kwargs) {
  Call<NDArray> call = sort_out<NDArray>(op, args, kwargs, {"name", "attr", "out", "ctx"});
  const nb::object out = keyword(kwargs, "out", call.last), ctx = keyword(kwargs, "ctx");
  if (!op.count_field.empty() && !call.attributes.count(op.count_field))
    call.attributes[op.count_field] = std::to_string(call.positional.size() + call.named.size());
  const std::shared_ptr<const void> params = op.parse_params(call.attributes, "");
  std::vector<NDArray> inputs;
  if (call.named.empty()) {
    for (const auto& input : call.positional)
      if (input) inputs.push_back(*input);
  } else {
    const Names names = op.all_inputs(params.get());
    reject_surplus_inputs(op, names, call);
    inputs.resize(names.size());
    for (size_t i = 0; i < call.positional.size(); ++i)
      if (call.positional[i]) inputs[i] = *call.positional[i];
    for (const auto& [name, array] : call.named) {
      const auto found = std::find(names.begin(), names.end(), name);
      require(found != names.end(), "[", op.name, "] has no input '", name, "'; its inputs are ",
              comma_separated(names));
      inputs[static_cast<size_t>(found - names.begin())] = array;
    }
    for (size_t i = 0; i < names.size(); ++i)
      require(bool(inputs[i]), "[", op.name, "] its input '", names[i], "' is missing");
  }
  InvokeOptions options;
  options.context = context_or_current(ctx);
  if (nb::isinstance<NDArray>(out) || !out.is_none()) options.out = arrays_from(out);
  std::vector<NDArray> results;
  {
    const KeeperScope nobody({});
    ReleaseGil release;
    results = invoke(op, inputs, params.get(), options);
  }
  if (!out.is_none()) return out;
  if (results.size() == 1) return nb::cast(results[0]);
  return list_of(results);
}

nb::list describe(const OpDef& op) {
  nb::list fields;
  for (const ParamField& field : op.fields)
    fields.append(nb::make_tuple(field.name, field.type, field.is_required ? nb::none() : nb::cast(field.default_text),
                                 field.doc));
  return fields;
}

}  // namespace

void bind_op(nb::module_& m) {
  bind_control_flow(m);
  nb::class_<OpDef>(m, "_Op", "An operator of the registry.")
      .def_ro("name", &OpDef::name)
      .def_ro("aliases", &OpDef::aliases)
      .def_ro("doc", &OpDef::doc)
      .def_prop_ro("fields", &describe, "(name, type, default or None where it must be given, doc) of each parameter.")
      .def_prop_ro("inputs", &input_names)
      .def_prop_ro("aux", [](const OpDef& op) { return op.aux ? op.aux(op.make_params().get()) : Names{}; })
      .def_prop_ro("takes_any", [](const OpDef& op) { return !op.count_field.empty(); })
      .def("on_symbols", &call_on_symbols, nb::arg("args"), nb::arg("kwargs"), nb::arg("called") = "")
      .def("on_arrays", &call_on_arrays);
  m.def(
      "_find_op",
      [](const std::string& name) {
        const OpDef* op = OpRegistry::get().find_or_null(name);
        return op && !op->internal ? op : nullptr;
      },
      nb::rv_policy::reference);
  m.def(
      "_require_op", [](const std::string& name) { return &OpRegistry::get().find_public(name); },
      nb::rv_policy::reference);
  m.def("_list_ops", [] {
    std::vector<std::string> names;
    for (const OpDef* op : OpRegistry::get().all_public()) {
      names.push_back(op->name);
      names.insert(names.end(), op->aliases.begin(), op->aliases.end());
    }
    return names;
  });
}

}  // namespace symbind::python
