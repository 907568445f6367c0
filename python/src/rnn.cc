// Recurrent cells. Python classes may derive from any of them and define their own __call__, unroll, state_info and so
// on: C++ calls these first (PythonCell). A method that Python calls on a cell is always that of its C++ class, so that
// super() works as expected.
#include "symbind/core/error.h"
#include "symbind/train/rnn_cell.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {
namespace {

[[noreturn]] void not_implemented(const char* message) {
  PyErr_SetString(PyExc_NotImplementedError, message);
  throw nb::python_error();
}

// ---- values across the border ---------------------------------------------------------------------------------------

Symbol symbol_from(nb::handle value, const char* what) {
  if (!nb::isinstance<Symbol>(value)) throw wrong_type(what, value);
  return nb::cast<Symbol>(value);
}

// States may be lists of lists, as those of both directions are.
void append_states(nb::handle value, std::vector<Symbol>& states, std::vector<RNNStateRange>& directions) {
  if (nb::isinstance<Symbol>(value)) {
    const Symbol all = nb::cast<Symbol>(value);
    for (size_t i = 0; i < all.size(); ++i) states.push_back(all[i]);
    return;
  }
  if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr()))
    throw wrong_type("states are a list of symbols", value);
  for (nb::handle each : value) {
    if (nb::isinstance<Symbol>(each)) {
      states.push_back(nb::cast<Symbol>(each));
      continue;
    }
    const size_t direction = directions.size();
    directions.push_back({states.size(), states.size()});
    append_states(each, states, directions);
    directions[direction].end = states.size();
  }
}

std::vector<Symbol> states_from(nb::handle value) {
  std::vector<Symbol> states;
  std::vector<RNNStateRange> directions;
  append_states(value, states, directions);
  return states;
}

// The states of [begin, end); those of each direction are a list of their own. `next` is the first direction that
// does not begin before.
nb::list nested_states(const RNNUnrolled& unrolled, size_t begin, size_t end, size_t& next) {
  nb::list states;
  while (begin < end) {
    if (next < unrolled.directions.size() && unrolled.directions[next].begin == begin) {
      const RNNStateRange direction = unrolled.directions[next++];
      states.append(nested_states(unrolled, direction.begin, direction.end, next));
      begin = direction.end;
    } else {
      states.append(unrolled.states[begin++]);
    }
  }
  return states;
}

nb::list list_of_symbols(const std::vector<Symbol>& symbols) {
  nb::list list;
  for (const Symbol& symbol : symbols) list.append(symbol);
  return list;
}

nb::object sequence_to_python(const RNNSequence& sequence) {
  return sequence.is_merged() ? nb::cast(sequence.merged()) : nb::object(list_of_symbols(sequence.steps()));
}

RNNSequence sequence_from(nb::handle value) {
  if (nb::isinstance<Symbol>(value)) return nb::cast<Symbol>(value);
  if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr()))
    throw wrong_type("inputs are a symbol, or a list of symbols with one for each step", value);
  std::vector<Symbol> steps;
  for (nb::handle each : value) steps.push_back(symbol_from(each, "an input of a step is a symbol"));
  return steps;
}

nb::tuple to_python(const RNNStep& step) { return nb::make_tuple(step.output, list_of_symbols(step.states)); }
RNNStep step_from(const nb::object& value) {
  if (!nb::isinstance<nb::tuple>(value) || nb::len(value) != 2)
    throw wrong_type("a cell's __call__ returns (output, states)", value);
  return {symbol_from(value[0], "a cell's output is a symbol"), states_from(value[1])};
}

nb::tuple to_python(const RNNUnrolled& unrolled) {
  size_t next = 0;
  return nb::make_tuple(sequence_to_python(unrolled.outputs), nested_states(unrolled, 0, unrolled.states.size(), next));
}
RNNUnrolled unrolled_from(const nb::object& value) {
  if (!nb::isinstance<nb::tuple>(value) || nb::len(value) != 2)
    throw wrong_type("a cell's unroll returns (outputs, states)", value);
  RNNUnrolled unrolled{sequence_from(value[0]), {}};
  append_states(value[1], unrolled.states, unrolled.directions);
  return unrolled;
}

nb::list to_python(const std::vector<RNNStateInfo>& infos) {
  nb::list list;
  for (const RNNStateInfo& info : infos) {
    nb::dict each;
    each["shape"] = tuple_of(info.shape);
    if (!info.layout.empty()) each["__layout__"] = info.layout;
    list.append(each);
  }
  return list;
}
std::vector<RNNStateInfo> infos_from(nb::handle value) {
  std::vector<RNNStateInfo> infos;
  for (nb::handle each : value) {
    const nb::dict info = dict_from(each, "the state_info of a cell");
    RNNStateInfo found;
    if (info.contains("shape")) {
      const auto dims = dims_from(nb::object(info["shape"]));
      found.shape.assign(dims.begin(), dims.end());
    }
    if (info.contains("__layout__")) found.layout = nb::cast<std::string>(nb::str(nb::object(info["__layout__"])));
    infos.push_back(std::move(found));
  }
  return infos;
}

// func(name=…, shape=…, __layout__=…) with `more` keywords, which come first. Modifiers call func init_sym.
BeginState begin_state_from(nb::object func, const nb::kwargs& more) {
  nb::dict others;
  for (const auto& [key, value] : more) {
    if (nb::cast<std::string>(key) == "init_sym")
      func = nb::borrow(value);
    else
      others[key] = value;
  }
  if (func.is_none() && nb::len(others) == 0) return zero_state;
  if (func.is_none()) func = nb::module_::import_("symbind.symbol").attr("zeros");
  return [func, others](const std::string& name, const RNNStateInfo& info) {
    nb::dict keywords;
    keywords["name"] = name;
    if (!info.shape.empty()) keywords["shape"] = tuple_of(info.shape);
    if (!info.layout.empty()) keywords["__layout__"] = info.layout;
    for (const auto& [key, value] : others) keywords[key] = value;
    return symbol_from(func(**keywords), "begin_state's func returns a symbol");
  };
}

nb::object function_of(const BeginState& make) {
  return nb::cpp_function(
      [make](const std::string& name, nb::object shape, nb::kwargs more) {
        RNNStateInfo info;
        if (!shape.is_none()) {
          const auto dims = dims_from(shape);
          info.shape.assign(dims.begin(), dims.end());
        }
        if (more.contains("__layout__")) info.layout = nb::cast<std::string>(nb::object(more["__layout__"]));
        return make(name, info);
      },
      nb::arg("name"), nb::arg("shape") = nb::none(), nb::arg("more"));
}

RNNActivation activation_from(const nb::object& value, nb::handle keeper) {
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (!PyCallable_Check(value.ptr())) throw wrong_type("an activation is a name or a function of a symbol", value);
  return RNNActivation::Function([held = Held(value, keeper)](const Symbol& input, const std::string& name) {
    AcquireGil acquire;
    nb::dict keywords;
    if (!name.empty()) keywords["name"] = name;
    return symbol_from(held.get()(input, **keywords), "an activation returns a symbol");
  });
}

// ---- cells ----------------------------------------------------------------------------------------------------------

template <class Base>
class PythonCell final : public Base {
 public:
  using Base::Base;
  static constexpr bool is_abstract = std::is_abstract_v<Base>;

  RNNStep step(const Symbol& input, const std::vector<Symbol>& states) override {
    return redirected<RNNStep>(
        "__call__", [&](const nb::object& method) { return step_from(method(input, list_of_symbols(states))); },
        [&]() -> RNNStep {
          if constexpr (is_abstract)
            not_implemented("a cell has a method __call__(self, inputs, states) that returns (output, states)");
          else
            return Base::step(input, states);
        });
  }
  std::vector<RNNStateInfo> state_info() const override {
    return redirected<std::vector<RNNStateInfo>>(
        "state_info", [](const nb::object& value) { return infos_from(value); },
        [&]() -> std::vector<RNNStateInfo> {
          if constexpr (std::is_same_v<Base, BaseRNNCell>)
            not_implemented("a cell has a property state_info: a list of {'shape': (0, num_hidden)}");
          else
            return Base::state_info();
        });
  }
  std::vector<std::string> gate_names() const override {
    return redirected<std::vector<std::string>>(
        "_gate_names", [](const nb::object& value) { return names_from(value); }, [&] { return Base::gate_names(); });
  }
  RNNUnrolled unroll(int64_t length, const RNNSequence& inputs, const UnrollOptions& options) override {
    return redirected<RNNUnrolled>(
        "unroll",
        [&](const nb::object& method) {
          nb::dict keywords;
          keywords["begin_state"] =
              options.begin_state ? nb::object(list_of_symbols(*options.begin_state)) : nb::none();
          keywords["layout"] = options.layout;
          keywords["merge_outputs"] = nb::cast(options.merge_outputs);
          return unrolled_from(method(length, sequence_to_python(inputs), **keywords));
        },
        [&] { return Base::unroll(length, inputs, options); });
  }
  void reset() override {
    redirected<void>(
        "reset", [](const nb::object& method) { method(); }, [&] { Base::reset(); });
  }
  std::vector<Symbol> begin_state(const BeginState& make) override {
    return redirected<std::vector<Symbol>>(
        "begin_state",
        [&](const nb::object& method) {
          // Without an argument where it is the default: such methods often take none.
          const auto* const plain = make.template target<Symbol (*)(const std::string&, const RNNStateInfo&)>();
          return states_from(plain && *plain == &zero_state ? method() : method(nb::arg("func") = function_of(make)));
        },
        [&] { return Base::begin_state(make); });
  }
  NamedArrays unpack_weights(NamedArrays args) const override {
    return redirected<NamedArrays>(
        "unpack_weights", [&](const nb::object& method) { return named_arrays_from(method(dict_of(args))); },
        [&] { return Base::unpack_weights(args); });
  }
  NamedArrays pack_weights(NamedArrays args) const override {
    return redirected<NamedArrays>(
        "pack_weights", [&](const nb::object& method) { return named_arrays_from(method(dict_of(args))); },
        [&] { return Base::pack_weights(args); });
  }

 private:
  // The method of the Python class if it overrides that of the C++ class, else the C++ one.
  template <class Result, class InPython, class InBase>
  Result redirected(const char* name, const InPython& in_python, const InBase& in_base) const {
    AcquireGil acquire;
    const nb::object self = nb::find(static_cast<Base&>(const_cast<PythonCell&>(*this)));
    if (!self.is_valid()) return in_base();
    const nb::object native = nb::borrow(nb::type<Base>());
    if (self.type().is(native)) return in_base();
    const nb::object own = nb::getattr(self.type(), name, nb::none());
    if (own.is_none() || own.is(nb::getattr(native, name, nb::none()))) return in_base();
    return in_python(nb::getattr(self, name));
  }
};

RNNCellPtr cell_from(nb::handle value, nb::handle keeper) {
  if (!nb::isinstance<BaseRNNCell>(value)) throw wrong_type("expected a recurrent cell", value);
  return Held(nb::borrow(value), keeper).as<BaseRNNCell>();
}

nb::object cell_to_python(const RNNCellPtr& cell) {
  nb::object found = nb::find(*cell);
  return found.is_valid() ? found : nb::cast(cell);
}

UnrollOptions options_from(const nb::object& begin_state, const std::string& layout, std::optional<bool> merge) {
  UnrollOptions options{{}, layout, merge};
  if (!begin_state.is_none()) options.begin_state = states_from(begin_state);
  return options;
}

// The methods of one class; each calls that of exactly this class.
template <class Cell, class Type>
void add_methods(Type& type) {
  constexpr bool is_base = std::is_same_v<Cell, BaseRNNCell>;
  type.def(
          "__call__",
          [](Cell& self, const Symbol& inputs, const nb::object& states) -> nb::tuple {
            if constexpr (std::is_abstract_v<Cell>)
              not_implemented("a cell has a method __call__(self, inputs, states) that returns (output, states)");
            else
              return to_python(self.Cell::step(inputs, states_from(states)));
          },
          nb::arg("inputs"), nb::arg("states"),
          "One step: the output and the new states from an input and the states before.")
      .def_prop_ro(
          "state_info",
          [](Cell& self) -> nb::list {
            if constexpr (is_base)
              not_implemented("a cell has a property state_info: a list of {'shape': (0, num_hidden)}");
            else
              return to_python(self.Cell::state_info());
          },
          "Shape and layout of each state, as a list of dicts.")
      .def_prop_ro("_gate_names", [](Cell& self) { return nb::tuple(nb::cast(self.Cell::gate_names())); })
      .def(
          "unroll",
          [](Cell& self, int64_t length, const nb::object& inputs, const nb::object& begin_state,
             const std::string& layout, std::optional<bool> merge_outputs) {
            return to_python(
                self.Cell::unroll(length, sequence_from(inputs), options_from(begin_state, layout, merge_outputs)));
          },
          nb::arg("length"), nb::arg("inputs"), nb::arg("begin_state") = nb::none(), nb::arg("layout") = "NTC",
          nb::arg("merge_outputs") = nb::none(),
          "A sequence of `length` steps: (outputs, states). merge_outputs: True for one symbol, False for a list with "
          "one for each step, None for what is least work. The states of each direction of a BidirectionalCell are a "
          "list of their own.")
      .def(
          "reset", [](Cell& self) { self.Cell::reset(); }, "Numbers in names start at 0 again.")
      .def(
          "begin_state",
          [](Cell& self, const nb::object& func, const nb::kwargs& more) {
            return list_of_symbols(self.Cell::begin_state(begin_state_from(func, more)));
          },
          nb::arg("func") = nb::none(), nb::arg("more"),
          "The first states: func(name=…, shape=…) for each, zeros by default.")
      .def(
          "unpack_weights",
          [](Cell& self, const nb::object& args) {
            return dict_of(self.Cell::unpack_weights(named_arrays_from(args)));
          },
          nb::arg("args"), "The parameters with those of single gates instead of those of all gates.")
      .def(
          "pack_weights",
          [](Cell& self, const nb::object& args) { return dict_of(self.Cell::pack_weights(named_arrays_from(args))); },
          nb::arg("args"), "The reverse of unpack_weights.");
}

template <class Cell, class Parent>
auto class_of(nb::module_& m, const char* name, const char* doc) {
  nb::class_<Cell, Parent, PythonCell<Cell>> type(m, name, doc, nb::is_weak_referenceable(), nb::dynamic_attr(),
                                                  nb::type_slots(collector_slots));
  add_methods<Cell>(type);
  return type;
}

// ---- classes --------------------------------------------------------------------------------------------------------

void bind_params(nb::module_& m) {
  nb::class_<RNNParams>(m, "RNNParams",
                        "The variables of cells, each made once: cells that have one of these in common share their "
                        "parameters.")
      .def(nb::init<std::string>(), nb::arg("prefix") = "")
      .def(
          "get",
          [](RNNParams& self, const std::string& name, const nb::kwargs& more) {
            return self.get(name, [&](const std::string& full_name) {
              const nb::object make = nb::module_::import_("symbind.symbol").attr("Variable");
              return symbol_from(make(full_name, **more), "a parameter is a symbol");
            });
          },
          nb::arg("name"), nb::arg("more"), "The variable prefix + name, made with these keywords at the first call.")
      .def_prop_ro("_prefix", &RNNParams::prefix)
      .def_prop_ro("_params", &RNNParams::variables);
}

void bind_base(nb::module_& m) {
  nb::class_<BaseRNNCell, PythonCell<BaseRNNCell>> type(m, "BaseRNNCell",
                                                        "Base class of recurrent cells. A custom cell defines "
                                                        "__call__(self, inputs, states) and the property state_info.",
                                                        nb::is_weak_referenceable(), nb::dynamic_attr(),
                                                        nb::type_slots(collector_slots));
  add_methods<BaseRNNCell>(type);
  type.def(nb::init<std::string, RNNParamsPtr>(), nb::arg("prefix") = "", nb::arg("params") = nb::none())
      .def_prop_ro(
          "params", [](BaseRNNCell& self) { return self.params(); }, "The parameters of this cell.")
      .def_prop_ro(
          "state_shape",
          [](BaseRNNCell& self) {
            nb::list shapes;
            for (const Tuple& shape : self.state_shape()) shapes.append(tuple_of(shape));
            return shapes;
          },
          "The shapes of the states; 0 is the batch.")
      .def(
          "_get_activation",
          [](BaseRNNCell&, const Symbol& inputs, const nb::object& activation, const nb::kwargs& more) {
            if (!nb::isinstance<nb::str>(activation)) return activation(inputs, **more);
            const nb::object make = nb::module_::import_("symbind.symbol").attr("Activation");
            return make(inputs, nb::arg("act_type") = activation, **more);
          },
          nb::arg("inputs"), nb::arg("activation"), nb::arg("more"))
      .def_prop_ro("_prefix", &BaseRNNCell::prefix)
      .def_prop_ro("_own_params", &BaseRNNCell::has_own_params)
      .def_prop_rw("_modified", &BaseRNNCell::is_modified, &BaseRNNCell::set_modified)
      .def_prop_rw("_counter", &BaseRNNCell::counter, &BaseRNNCell::set_counter)
      .def_prop_rw("_init_counter", &BaseRNNCell::state_counter, &BaseRNNCell::set_state_counter);
}

// A member that derived Python classes read, and may replace by an attribute of the same name.
void set_field(nb::handle cell, const char* name, const nb::object& value) { attributes_dict(cell)[name] = value; }

template <class Type, class Get>
void add_field(Type& type, const char* name, Get get) {
  using Cell = typename Type::Type;
  type.def_prop_rw(
      name,
      [name, get](nb::pointer_and_handle<Cell> self) -> nb::object {
        const nb::dict own = attributes_dict(self.h);
        return own.contains(name) ? nb::object(own[name]) : nb::cast(get(*self.p));
      },
      [name](nb::pointer_and_handle<Cell> self, const nb::object& value) { set_field(self.h, name, value); },
      nb::for_setter(nb::arg("value").none()));
}

// The name of an activation, or a function of a symbol and a name. Those of Python are set by set_field.
nb::object to_python(const RNNActivation& activation) {
  if (!activation.name().empty()) return nb::cast(activation.name());
  return nb::cpp_function(
      [activation](const Symbol& input, const std::string& name) { return activation(input, name); }, nb::arg("data"),
      nb::arg("name") = "");
}

template <class Type>
void add_dense_fields(Type& type) {
  add_field(type, "_num_hidden", [](DenseRNNCell& self) { return self.num_hidden(); });
  add_field(type, "_iW", [](DenseRNNCell& self) { return self.i2h_weight(); });
  add_field(type, "_iB", [](DenseRNNCell& self) { return self.i2h_bias(); });
  add_field(type, "_hW", [](DenseRNNCell& self) { return self.h2h_weight(); });
  add_field(type, "_hB", [](DenseRNNCell& self) { return self.h2h_bias(); });
}

void bind_dense(nb::module_& m) {
  auto plain = class_of<RNNCell, BaseRNNCell>(m, "RNNCell", "A plain cell: h' = activation(W·x + b + R·h + c).");
  plain.def(
      "__init__",
      [](nb::pointer_and_handle<RNNCell> self, int64_t num_hidden, const nb::object& activation, std::string prefix,
         RNNParamsPtr params) {
        new (self.p)
            PythonCell<RNNCell>(num_hidden, activation_from(activation, self.h), std::move(prefix), std::move(params));
        set_field(self.h, "_activation", activation);
      },
      nb::arg("num_hidden"), nb::arg("activation") = "tanh", nb::arg("prefix") = "rnn_",
      nb::arg("params") = nb::none());
  add_dense_fields(plain);
  add_field(plain, "_activation", [](RNNCell& self) { return to_python(self.activation()); });
  auto lstm = class_of<LSTMCell, BaseRNNCell>(m, "LSTMCell", "An LSTM cell; its states are h and the cells.");
  lstm.def(nb::init<int64_t, std::string, RNNParamsPtr, double>(), nb::arg("num_hidden"), nb::arg("prefix") = "lstm_",
           nb::arg("params") = nb::none(), nb::arg("forget_bias") = 1.0);
  add_dense_fields(lstm);
  auto gru = class_of<GRUCell, BaseRNNCell>(m, "GRUCell", "A GRU cell, with the reset gate after the product.");
  gru.def(nb::init<int64_t, std::string, RNNParamsPtr>(), nb::arg("num_hidden"), nb::arg("prefix") = "gru_",
          nb::arg("params") = nb::none());
  add_dense_fields(gru);
}

void bind_fused(nb::module_& m) {
  auto type = class_of<FusedRNNCell, BaseRNNCell>(
      m, "FusedRNNCell",
      "Several layers as one RNN operator. It is unrolled as a whole; unfuse() is a stack of cells with the same "
      "parameters, unpacked.");
  type.def(
          "__init__",
          [](FusedRNNCell* self, int64_t num_hidden, int64_t num_layers, const std::string& mode, bool bidirectional,
             double dropout, bool get_next_state, double forget_bias, std::optional<std::string> prefix,
             RNNParamsPtr params) {
            new (self) PythonCell<FusedRNNCell>(
                num_hidden, FusedRNNOptions{num_layers, mode, bidirectional, dropout, get_next_state, forget_bias},
                std::move(prefix), std::move(params));
          },
          nb::arg("num_hidden"), nb::arg("num_layers") = 1, nb::arg("mode") = "lstm", nb::arg("bidirectional") = false,
          nb::arg("dropout") = 0.0, nb::arg("get_next_state") = false, nb::arg("forget_bias") = 1.0,
          nb::arg("prefix") = nb::none(), nb::arg("params") = nb::none())
      .def("unfuse", &FusedRNNCell::unfuse, "The same layers as a stack of cells.");
  add_field(type, "_num_hidden", [](FusedRNNCell& self) { return self.num_hidden(); });
  add_field(type, "_num_layers", [](FusedRNNCell& self) { return self.options().num_layers; });
  add_field(type, "_mode", [](FusedRNNCell& self) { return self.options().mode; });
  add_field(type, "_bidirectional", [](FusedRNNCell& self) { return self.options().bidirectional; });
  add_field(type, "_directions", [](FusedRNNCell& self) {
    return self.options().bidirectional ? std::vector<std::string>{"l", "r"} : std::vector<std::string>{"l"};
  });
  add_field(type, "_dropout", [](FusedRNNCell& self) { return self.options().dropout; });
  add_field(type, "_get_next_state", [](FusedRNNCell& self) { return self.options().get_next_state; });
  add_field(type, "_num_gates", [](FusedRNNCell& self) { return self.FusedRNNCell::gate_names().size(); });
  add_field(type, "_parameter", [](FusedRNNCell& self) { return self.parameters(); });
}

void bind_composed(nb::module_& m) {
  class_of<SequentialRNNCell, BaseRNNCell>(m, "SequentialRNNCell", "Cells on top of each other.")
      .def(nb::init<RNNParamsPtr>(), nb::arg("params") = nb::none())
      .def(
          "add",
          [](nb::pointer_and_handle<SequentialRNNCell> self, const nb::object& cell) {
            self.p->add(cell_from(cell, self.h));
          },
          nb::arg("cell"), "Puts a cell on top.")
      .def_prop_ro("_cells", [](SequentialRNNCell& self) {
        nb::list cells;
        for (const RNNCellPtr& cell : self.cells()) cells.append(cell_to_python(cell));
        return cells;
      });
  auto both = class_of<BidirectionalCell, BaseRNNCell>(
      m, "BidirectionalCell", "A cell over the sequence and one over its reverse, with their outputs concatenated.");
  both.def(
          "__init__",
          [](nb::pointer_and_handle<BidirectionalCell> self, const nb::object& l_cell, const nb::object& r_cell,
             RNNParamsPtr params, std::string output_prefix) {
            new (self.p) PythonCell<BidirectionalCell>(cell_from(l_cell, self.h), cell_from(r_cell, self.h),
                                                       std::move(params), std::move(output_prefix));
          },
          nb::arg("l_cell"), nb::arg("r_cell"), nb::arg("params") = nb::none(), nb::arg("output_prefix") = "bi_")
      .def_prop_ro("_cells", [](BidirectionalCell& self) {
        nb::list cells;
        for (const RNNCellPtr& cell : {self.left(), self.right()}) cells.append(cell_to_python(cell));
        return cells;
      });
  add_field(both, "_output_prefix", [](BidirectionalCell& self) { return self.output_prefix(); });
}

void bind_modifiers(nb::module_& m) {
  auto dropout = class_of<DropoutCell, BaseRNNCell>(m, "DropoutCell", "Dropout on the input of each step.");
  dropout.def(nb::init<double, std::string, RNNParamsPtr>(), nb::arg("dropout"), nb::arg("prefix") = "dropout_",
              nb::arg("params") = nb::none());
  add_field(dropout, "dropout", [](DropoutCell& self) { return self.dropout(); });
  class_of<ModifierCell, BaseRNNCell>(m, "ModifierCell",
                                      "Base of cells that change another's steps and have its parameters and states.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<ModifierCell> self, const nb::object& base_cell) {
            new (self.p) PythonCell<ModifierCell>(cell_from(base_cell, self.h));
          },
          nb::arg("base_cell"))
      .def_prop_ro("base_cell", [](ModifierCell& self) { return cell_to_python(self.base_cell()); });
  auto zoneout = class_of<ZoneoutCell, ModifierCell>(
      m, "ZoneoutCell", "In training, outputs and states keep their former values with these probabilities.");
  zoneout.def(
      "__init__",
      [](nb::pointer_and_handle<ZoneoutCell> self, const nb::object& base_cell, double zoneout_outputs,
         double zoneout_states) {
        new (self.p) PythonCell<ZoneoutCell>(cell_from(base_cell, self.h), zoneout_outputs, zoneout_states);
      },
      nb::arg("base_cell"), nb::arg("zoneout_outputs") = 0.0, nb::arg("zoneout_states") = 0.0);
  add_field(zoneout, "zoneout_outputs", [](ZoneoutCell& self) { return self.zoneout_outputs(); });
  add_field(zoneout, "zoneout_states", [](ZoneoutCell& self) { return self.zoneout_states(); });
  add_field(zoneout, "prev_output", [](ZoneoutCell& self) { return self.last_output(); });
  class_of<ResidualCell, ModifierCell>(m, "ResidualCell", "Adds the input to the output.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<ResidualCell> self, const nb::object& base_cell) {
            new (self.p) PythonCell<ResidualCell>(cell_from(base_cell, self.h));
          },
          nb::arg("base_cell"));
}

Tuple tuple_from(const nb::object& value) {
  const auto dims = dims_from(value);
  return Tuple(dims.begin(), dims.end());
}

// Text, None, or an initializer.
std::string initializer_text(const nb::object& value) {
  if (value.is_none()) return "";
  return nb::cast<std::string>(nb::isinstance<nb::str>(value) ? value : nb::object(value.attr("dumps")()));
}

template <class Cell>
void bind_conv_cell(nb::module_& m, const char* name, const char* prefix, const char* doc) {
  auto type = class_of<Cell, BaseConvRNNCell>(m, name, doc);
  const Tuple three{3, 3}, one{1, 1};
  type.def(
          "__init__",
          [](nb::pointer_and_handle<Cell> self, const nb::object& input_shape, int64_t num_hidden,
             const nb::object& h2h_kernel, const nb::object& h2h_dilate, const nb::object& i2h_kernel,
             const nb::object& i2h_stride, const nb::object& i2h_pad, const nb::object& i2h_dilate,
             const nb::object& i2h_weight_initializer, const nb::object& h2h_weight_initializer,
             const nb::object& i2h_bias_initializer, const nb::object& h2h_bias_initializer,
             const nb::object& activation, std::string own_prefix, RNNParamsPtr params,
             const std::string& conv_layout) {
            ConvRNNOptions options{.h2h_kernel = tuple_from(h2h_kernel),
                                   .h2h_dilate = tuple_from(h2h_dilate),
                                   .i2h_kernel = tuple_from(i2h_kernel),
                                   .i2h_stride = tuple_from(i2h_stride),
                                   .i2h_pad = tuple_from(i2h_pad),
                                   .i2h_dilate = tuple_from(i2h_dilate),
                                   .i2h_weight_initializer = initializer_text(i2h_weight_initializer),
                                   .h2h_weight_initializer = initializer_text(h2h_weight_initializer),
                                   .i2h_bias_initializer = initializer_text(i2h_bias_initializer),
                                   .h2h_bias_initializer = initializer_text(h2h_bias_initializer),
                                   .conv_layout = conv_layout};
            if (!activation.is_none()) {
              options.activation = activation_from(activation, self.h);
              set_field(self.h, "_activation", activation);
            }
            new (self.p) PythonCell<Cell>(tuple_from(input_shape), num_hidden, std::move(options),
                                          std::move(own_prefix), std::move(params));
          },
          nb::arg("input_shape"), nb::arg("num_hidden"), nb::arg("h2h_kernel") = tuple_of(three),
          nb::arg("h2h_dilate") = tuple_of(one), nb::arg("i2h_kernel") = tuple_of(three),
          nb::arg("i2h_stride") = tuple_of(one), nb::arg("i2h_pad") = tuple_of(one),
          nb::arg("i2h_dilate") = tuple_of(one), nb::arg("i2h_weight_initializer") = nb::none(),
          nb::arg("h2h_weight_initializer") = nb::none(), nb::arg("i2h_bias_initializer") = "zeros",
          nb::arg("h2h_bias_initializer") = "zeros", nb::arg("activation") = nb::none(), nb::arg("prefix") = prefix,
          nb::arg("params") = nb::none(), nb::arg("conv_layout") = "NCHW")
      .def(
          "_conv_forward",
          [](Cell& self, const Symbol& inputs, const nb::object& states, const std::string& step) {
            const std::vector<Symbol> before = states_from(states);
            require(!before.empty(), "[rnn] a step needs the state before it");
            return nb::make_tuple(self.i2h(inputs, step + "i2h"), self.h2h(before[0], step + "h2h"));
          },
          nb::arg("inputs"), nb::arg("states"), nb::arg("name"));
  add_field(type, "_num_hidden", [](Cell& self) { return self.num_hidden(); });
  add_field(type, "_num_gates", [](Cell& self) { return self.Cell::gate_names().size(); });
  add_field(type, "_activation", [](Cell& self) { return to_python(self.options().activation); });
  add_field(type, "_conv_layout", [](Cell& self) { return self.options().conv_layout; });
  add_field(type, "_state_shape", [](Cell& self) { return tuple_of(self.Cell::state_info()[0].shape); });
  add_field(type, "_h2h_kernel", [](Cell& self) { return tuple_of(self.options().h2h_kernel); });
  add_field(type, "_h2h_dilate", [](Cell& self) { return tuple_of(self.options().h2h_dilate); });
  add_field(type, "_h2h_pad", [](Cell& self) { return tuple_of(self.h2h_pad()); });
  add_field(type, "_i2h_kernel", [](Cell& self) { return tuple_of(self.options().i2h_kernel); });
  add_field(type, "_i2h_stride", [](Cell& self) { return tuple_of(self.options().i2h_stride); });
  add_field(type, "_i2h_pad", [](Cell& self) { return tuple_of(self.options().i2h_pad); });
  add_field(type, "_i2h_dilate", [](Cell& self) { return tuple_of(self.options().i2h_dilate); });
}

void bind_conv(nb::module_& m) {
  nb::class_<BaseConvRNNCell, BaseRNNCell>(m, "BaseConvRNNCell", "What cells over images have in common.");
  bind_conv_cell<ConvRNNCell>(m, "ConvRNNCell", "ConvRNN_",
                              "A plain cell over images; the default activation is LeakyReLU with the slope 0.2.");
  bind_conv_cell<ConvLSTMCell>(m, "ConvLSTMCell", "ConvLSTM_", "An LSTM cell over images.");
  bind_conv_cell<ConvGRUCell>(m, "ConvGRUCell", "ConvGRU_", "A GRU cell over images.");
}

}  // namespace

void bind_rnn(nb::module_& m) {
  bind_params(m);
  bind_base(m);
  bind_dense(m);
  bind_fused(m);
  bind_composed(m);
  bind_modifiers(m);
  bind_conv(m);
}

}  // namespace symbind::python
