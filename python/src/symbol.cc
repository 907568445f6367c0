// Symbol: composing, listing, inferring, saving, binding.
#include "symbind/graph/symbol.h"

#include <algorithm>

#include <nanobind/operators.h>

#include "symbind/core/log.h"
#include "symbind/core/shape_convention.h"
#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"
#include "symbind/passes/infer.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {
namespace {

Symbol by_name(const char* op, const Symbol& a, const Symbol& b) { return apply(op, Inputs({a, b})); }
Symbol by_name(const char* op, const Symbol& a, double b) { return apply(op, Inputs(a), {{"scalar", print(b)}}); }

template <class Both, class Reversed>
void def_arithmetic(nb::class_<Symbol>& type, const char* name, const char* reversed, Both both, Reversed back) {
  type.def(
      name, [both](const Symbol& a, const Symbol& b) { return both(a, b); }, nb::is_operator());
  type.def(
      name, [both](const Symbol& a, double b) { return both(a, b); }, nb::is_operator());
  type.def(
      reversed, [back](const Symbol& a, double b) { return back(b, a); }, nb::is_operator());
}

template <class Function>
void def_comparison(nb::class_<Symbol>& type, const char* name, Function compare) {
  type.def(
      name, [compare](const Symbol& a, const Symbol& b) { return compare(a, b); }, nb::is_operator());
  type.def(
      name, [compare](const Symbol& a, double b) { return compare(a, b); }, nb::is_operator());
}

void bind_arithmetic(nb::class_<Symbol>& type) {
  def_arithmetic(
      type, "__add__", "__radd__", [](const Symbol& a, const auto& b) { return a + b; },
      [](double a, const Symbol& b) { return a + b; });
  def_arithmetic(
      type, "__sub__", "__rsub__", [](const Symbol& a, const auto& b) { return a - b; },
      [](double a, const Symbol& b) { return a - b; });
  def_arithmetic(
      type, "__mul__", "__rmul__", [](const Symbol& a, const auto& b) { return a * b; },
      [](double a, const Symbol& b) { return a * b; });
  def_arithmetic(
      type, "__truediv__", "__rtruediv__", [](const Symbol& a, const auto& b) { return a / b; },
      [](double a, const Symbol& b) { return a / b; });
  def_arithmetic(
      type, "__pow__", "__rpow__", [](const Symbol& a, const auto& b) { return pow(a, b); },
      [](double a, const Symbol& b) { return pow(a, b); });
  type.def(
      "__mod__", [](const Symbol& a, const Symbol& b) { return by_name("_mod", a, b); }, nb::is_operator());
  type.def(
      "__mod__", [](const Symbol& a, double b) { return by_name("_ModScalar", a, b); }, nb::is_operator());
  type.def(
      "__rmod__", [](const Symbol& a, double b) { return by_name("_RModScalar", a, b); }, nb::is_operator());
  type.def("__neg__", [](const Symbol& a) { return -a; });
  def_comparison(type, "__eq__", [](const Symbol& a, const auto& b) { return a == b; });
  def_comparison(type, "__ne__", [](const Symbol& a, const auto& b) { return a != b; });
  def_comparison(type, "__lt__", [](const Symbol& a, const auto& b) { return a < b; });
  def_comparison(type, "__le__", [](const Symbol& a, const auto& b) { return a <= b; });
  def_comparison(type, "__gt__", [](const Symbol& a, const auto& b) { return a > b; });
  def_comparison(type, "__ge__", [](const Symbol& a, const auto& b) { return a >= b; });
}

// The shapes given in a call: in the order of the arguments (None: not known), or by name.
NamedShapes known_shapes(const Symbol& symbol, const nb::tuple& in_order, const nb::dict& by_name) {
  if (in_order.size() > 0 && by_name.size() > 0)
    throw ValueError("shapes are given either in the order of the arguments or by name, not both");
  NamedShapes known;
  const std::vector<std::string> arguments = in_order.size() > 0 ? symbol.list_arguments() : std::vector<std::string>{};
  for (size_t i = 0; i < in_order.size(); ++i) {
    if (in_order[i].is_none()) continue;
    if (i >= arguments.size())
      throw ValueError(join("the network has ", arguments.size(), " arguments, not ", in_order.size()));
    known[arguments[i]] = Shape(dims_from(in_order[i]));
  }
  for (auto [name, shape] : by_name)
    if (!shape.is_none()) known[nb::cast<std::string>(name)] = Shape(dims_from(shape));
  return known;
}

nb::object shape_lists(const InferredShapes& inferred) {
  const auto tuples = [](const std::vector<std::vector<int64_t>>& shapes) {
    nb::list list;
    for (const auto& dims : shapes) list.append(tuple_of(dims));
    return list;
  };
  return nb::make_tuple(tuples(inferred.args), tuples(inferred.outputs), tuples(inferred.aux));
}

// Warns which arguments are undecided, since the caller may continue with None.
void warn_undecided(const char* what, const std::vector<std::string>& undecided) {
  const std::string text = join("the ", what, " of these arguments cannot be decided: ", comma_separated(undecided),
                                "; more of the inputs must be given");
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 2) != 0) throw nb::python_error();
}

nb::object shapes_or_none(const Symbol& symbol, const nb::tuple& in_order, const nb::dict& by_name) {
  const InferredShapes inferred = infer_shape_partial(symbol, known_shapes(symbol, in_order, by_name));
  if (inferred.complete) return shape_lists(inferred);
  const std::vector<std::string> arguments = symbol.list_arguments();
  std::vector<std::string> undecided;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (inferred.args[i].empty() || std::ranges::count(inferred.args[i], uses_numpy_shapes() ? unknown_dim : 0) > 0)
      undecided.push_back(arguments[i]);
  warn_undecided("shapes", undecided);
  return nb::make_tuple(nb::none(), nb::none(), nb::none());
}

InferredTypes inferred_types(const Symbol& symbol, const nb::tuple& in_order, const nb::dict& by_name) {
  NamedTypes known;
  const std::vector<std::string> arguments = symbol.list_arguments();
  for (size_t i = 0; i < in_order.size() && i < arguments.size(); ++i)
    if (!in_order[i].is_none()) known[arguments[i]] = dtype_from(in_order[i]);
  for (auto [name, dtype] : by_name)
    if (!dtype.is_none()) known[nb::cast<std::string>(name)] = dtype_from(dtype);
  return infer_type(symbol, known);
}

nb::object type_lists(const InferredTypes& inferred) {
  const auto types = [](const std::vector<DType>& list) {
    nb::list result;
    for (DType dtype : list) result.append(numpy_type(dtype));
    return result;
  };
  return nb::make_tuple(types(inferred.args), types(inferred.outputs), types(inferred.aux));
}

nb::object types_or_none(const Symbol& symbol, const nb::tuple& in_order, const nb::dict& by_name) {
  const InferredTypes inferred = inferred_types(symbol, in_order, by_name);
  const std::vector<std::string> arguments = symbol.list_arguments();
  std::vector<std::string> undecided;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (inferred.args[i] == DType::none) undecided.push_back(arguments[i]);
  if (undecided.empty()) return type_lists(inferred);
  warn_undecided("types", undecided);
  return nb::make_tuple(nb::none(), nb::none(), nb::none());
}

std::map<std::string, Context> groups_from(nb::handle group2ctx) {
  std::map<std::string, Context> groups;
  for (auto [group, context] : dict_from(group2ctx, "group2ctx"))
    groups[nb::cast<std::string>(group)] = context_or_current(context);
  return groups;
}

// A part of a network is bound with the parameters of the whole: of arrays by name, those that it has are used.
Arrays those_of(const std::vector<std::string>& names, nb::handle arrays) {
  if (!nb::isinstance<nb::dict>(arrays)) return bound_arrays_from(arrays);
  nb::dict given;
  for (auto [name, array] : nb::borrow<nb::dict>(arrays))
    if (std::ranges::count(names, nb::cast<std::string>(name)) > 0) given[name] = array;
  return bound_arrays_from(given);
}

ExecutorPtr bind_arrays(const Symbol& symbol, Context ctx, nb::handle args, nb::handle args_grad, nb::handle grad_req,
                        nb::handle aux_states, nb::handle group2ctx, ExecutorPtr shared_exec) {
  return bind(symbol, ctx, those_of(symbol.list_arguments(), args),
              {.args_grad = bound_arrays_from(args_grad),
               .grad_req = grad_reqs_from(grad_req),
               .aux_states = those_of(symbol.list_auxiliary_states(), aux_states),
               .group2ctx = groups_from(group2ctx),
               .shared_exec = std::move(shared_exec)});
}

ExecutorPtr bind_shapes(const Symbol& symbol, Context ctx, nb::handle grad_req, nb::handle type_dict, nb::handle,
                        nb::handle group2ctx, nb::handle shared_arg_names, ExecutorPtr shared_exec,
                        nb::handle shared_buffer, size_t memory_budget, const nb::dict& shapes) {
  NamedTypes types;
  for (auto [name, dtype] : dict_from(type_dict, "type_dict")) types[nb::cast<std::string>(name)] = dtype_from(dtype);
  NamedArrays buffer = named_arrays_from(shared_buffer);
  // Scripts bind a part of a network with the shapes of the whole: names that the part does not have are ignored with a
  // warning.
  NamedShapes known = known_shapes(symbol, nb::tuple(), shapes);
  const std::vector<std::string> inputs = symbol.list_inputs();
  std::erase_if(known, [&](const auto& shape) {
    if (std::ranges::count(inputs, shape.first) > 0) return false;
    log_warning("[simple_bind] the network has no argument '", shape.first, "': its shape is ignored; it has ",
                comma_separated(inputs));
    return true;
  });
  auto executor = simple_bind(symbol, ctx, known,
                              {.grad_req = grad_reqs_from(grad_req),
                               .type_dict = types,
                               .group2ctx = groups_from(group2ctx),
                               .shared_arg_names = names_from(shared_arg_names),
                               .shared_exec = std::move(shared_exec),
                               .shared_buffer = shared_buffer.is_none() ? nullptr : &buffer,
                               .options = {.memory_budget = memory_budget}});
  if (!shared_buffer.is_none())
    for (const auto& [name, array] : buffer) nb::borrow<nb::dict>(shared_buffer)[name.c_str()] = array;
  return executor;
}

// net(data=other), net(a, b): a copy with variables replaced.
Symbol compose(const Symbol& self, const nb::tuple& in_order, const nb::dict& by_name) {
  std::string name;
  std::map<std::string, Symbol> named;
  for (auto [key, value] : by_name) {
    if (nb::cast<std::string>(key) == "name") {
      if (!value.is_none()) name = nb::cast<std::string>(value);
    } else if (!nb::isinstance<Symbol>(value)) {
      throw TypeError(
          join("expected a Symbol for ", nb::str(key).c_str(), ", not ", nb::repr(nb::handle(value.type())).c_str()));
    } else {
      named.emplace(nb::cast<std::string>(key), nb::cast<Symbol>(value));
    }
  }
  if (in_order.size() == 0) return self(named, name);
  if (!named.empty()) throw TypeError("inputs are given either in order or by name, not both");
  std::vector<Symbol> symbols;
  for (nb::handle item : in_order) symbols.push_back(nb::cast<Symbol>(item));
  return self(symbols, name);
}

// Keywords that are names of a network come as a dict: nanobind takes at most 1,024 keywords, and the function that
// users call, in Python, takes any number (symbol/_methods.py).
void bind_executing(nb::class_<Symbol>& type) {
  type.def("_infer_shape", &shapes_or_none)
      .def("_infer_shape_partial",
           [](const Symbol& self, const nb::tuple& in_order, const nb::dict& by_name) {
             return shape_lists(infer_shape_partial(self, known_shapes(self, in_order, by_name)));
           })
      .def("_infer_type", &types_or_none)
      .def("_infer_type_partial",
           [](const Symbol& self, const nb::tuple& in_order, const nb::dict& by_name) {
             return type_lists(inferred_types(self, in_order, by_name));
           })
      .def("_bind", &bind_arrays, nb::arg("ctx"), nb::arg("args").none(), nb::arg("args_grad").none() = nb::none(),
           nb::arg("grad_req") = "write", nb::arg("aux_states").none() = nb::none(),
           nb::arg("group2ctx").none() = nb::none(), nb::arg("shared_exec").none() = nb::none())
      .def("_simple_bind", &bind_shapes, nb::arg("ctx"), nb::arg("grad_req"), nb::arg("type_dict").none(),
           nb::arg("stype_dict").none(), nb::arg("group2ctx").none(), nb::arg("shared_arg_names").none(),
           nb::arg("shared_exec").none(), nb::arg("shared_buffer").none(), nb::arg("memory_budget"), nb::arg("shapes"));
}

}  // namespace

void bind_symbol(nb::module_& m) {
  nb::class_<Symbol> type(m, "Symbol", nb::is_weak_referenceable(), "A network, or a part of one: a list of outputs.");
  // None: as in unpickling an MXNet symbol, which __setstate__ then fills.
  type.def(
          "__init__",
          [](Symbol* self, const Symbol* handle) { new (self) Symbol(handle ? *handle : Symbol::variable("none")); },
          nb::arg("handle").none())
      .def("_become", [](Symbol& self, const Symbol& other) { self = other; });
  type.def("_composed", &compose)
      .def("__getitem__",
           [](const Symbol& self, int64_t index) {
             const auto size = static_cast<int64_t>(self.size());
             if (index < 0) index += size;
             if (index < 0 || index >= size) throw IndexError("the network has no such output");
             return self[static_cast<size_t>(index)];
           })
      .def("__getitem__",
           [](const Symbol& self, const std::string& output) {
             try {
               return self[output];
             } catch (const Error& error) {
               throw ValueError(error.what());
             }
           })
      .def("__getitem__",
           [](const Symbol& self, nb::slice slice) {
             auto [start, stop, step, count] = slice.compute(self.size());
             std::vector<Symbol> outputs;
             for (size_t i = 0; i < count; ++i)
               outputs.push_back(self[static_cast<size_t>(start + static_cast<Py_ssize_t>(i) * step)]);
             return Symbol::group(outputs);
           })
      .def("__len__", &Symbol::size)
      .def_prop_ro(
          "name",
          [](const Symbol& self) -> nb::object {
            const std::string name = self.name();
            return name.empty() ? nb::none() : nb::cast(name);
          },
          "The name of the node; None for a group.")
      .def(
          "attr", [](const Symbol& self, const std::string& key) { return self.attr(key); }, nb::arg("key"),
          "The value of an attribute of the node, or None.")
      .def(
          "list_attr",
          [](const Symbol& self, bool recursive) {
            if (!recursive) return self.list_attr();
            PyErr_SetString(PyExc_DeprecationWarning,
                            "list_attr(recursive=True) was removed from MXNet: use attr_dict()");
            throw nb::python_error();
          },
          nb::arg("recursive") = false, "The attributes of the node, as a dict.")
      .def("attr_dict", &Symbol::attr_dict, "The attributes of all nodes: a dict by node name.")
      .def("_set_attr",
           [](Symbol& self, nb::kwargs attributes) {
             for (auto [key, value] : attributes)
               if (!nb::isinstance<nb::str>(value)) throw ValueError("attributes are texts");
             self.set_attr(attributes_of(attributes));
           })
      .def("list_arguments", &Symbol::list_arguments,
           "The names of the arguments, in the order in which the network reads them.")
      .def("list_outputs", &Symbol::list_outputs, "The names of the outputs.")
      .def("list_auxiliary_states", &Symbol::list_auxiliary_states, "The names of the auxiliary states.")
      .def("list_inputs", &Symbol::list_inputs, "The names of arguments and auxiliary states.")
      .def_prop_ro("num_outputs", &Symbol::size, "The number of outputs.")
      .def("get_internals", &Symbol::get_internals, "A symbol whose outputs are all outputs of all nodes.")
      .def("get_children", &Symbol::get_children, "A symbol of the inputs of this node; None for a variable.")
      .def("_tojson", [](const Symbol& self) { return self.tojson(); })
      .def("_save", [](const Symbol& self, const std::string& fname) { self.save(fname); })
      .def("debug_str", &Symbol::debug_str, "The nodes of the network as text.")
      .def("__copy__", [](const Symbol& self) { return Symbol::load_json(self.tojson()); })
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<intptr_t>(self.ptr()) >> 4; });
  bind_arithmetic(type);
  bind_executing(type);

  m.def(
      "_variable",
      [](const std::string& name, nb::handle attr, nb::handle shape, nb::handle lr_mult, nb::handle wd_mult,
         nb::handle dtype, const std::string& init) {
        VariableOptions options{.attr = attributes_of(attr), .init = init};
        if (!shape.is_none()) options.shape = Shape(dims_from(shape));
        if (!lr_mult.is_none()) options.lr_mult = nb::cast<double>(lr_mult);
        if (!wd_mult.is_none()) options.wd_mult = nb::cast<double>(wd_mult);
        if (!dtype.is_none()) options.dtype = dtype_from(dtype);
        return Symbol::variable(name, options);
      },
      nb::arg("name"), nb::arg("attr").none(), nb::arg("shape").none(), nb::arg("lr_mult").none(),
      nb::arg("wd_mult").none(), nb::arg("dtype").none(), nb::arg("init"));
  m.def("_group", [](const std::vector<Symbol>& symbols) { return Symbol::group(symbols); });
  m.def("_load_symbol", &Symbol::load);
  m.def("_load_symbol_json", [](const std::string& text) { return Symbol::load_json(text); });
}

}  // namespace symbind::python
