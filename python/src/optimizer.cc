// Optimizers. A Python optimizer of any class is one C++ object with rates, names and counts, and with an update rule:
// a built-in one, or one that delegates to Python.
#include "optimizer.h"

#include <cmath>

#include "symbind/core/error.h"
#include "symbind/files/states.h"
#include "symbind/kvstore/optimizer_text.h"
#include "symbind/optim/clip_global_norm.h"
#include "symbind/optim/rule_optimizer.h"

#include "bindings.h"
#include "convert.h"
#include "lr_scheduler.h"
#include "nanobind_versions.h"

namespace symbind::python {
namespace {

// ---- The object ----------------------------------------------------------------------------------------------------

// Where Python does the arithmetic itself.
class PythonRule final : public UpdateRule {
 public:
  std::string name() const override { return "optimizer"; }
  Counting counting() const override { return Counting::never; }
  StateTree create_state(const std::string&, const NDArray&) const override { return {}; }
  void update(const Step&, const StepOptions&) override {
    AcquireGil acquire;
    PyErr_SetString(PyExc_NotImplementedError, "an optimizer has a method update(self, index, weight, grad, state)");
    throw nb::python_error();
  }
};

// Is it None, an array, or tuples and lists of these?
bool is_state(nb::handle value) {
  if (value.is_none() || nb::isinstance<NDArray>(value)) return true;
  if (!is_list(value)) return false;
  for (nb::handle item : value)
    if (!is_state(item)) return false;
  return true;
}

bool has_list(const StateTree& state) {
  if (state.is_list) return true;
  for (const StateTree& part : state.tuple)
    if (has_list(part)) return true;
  return false;
}

class PyOptimizer final : public RuleOptimizer {
 public:
  PyOptimizer() : RuleOptimizer(std::make_unique<PythonRule>(), {}) {}
  // A built-in rule by name, or none. Without a name, the optimizer has that of the rule.
  void set(const std::string& rule, const OptimizerParams& params, std::string name) {
    static_cast<RuleOptimizer&>(*this) =
        RuleOptimizer(rule.empty() ? std::make_unique<PythonRule>() : make_update_rule(rule), params);
    has_rule_ = !rule.empty();
    name_ = name.empty() ? RuleOptimizer::name() : std::move(name);
  }

  std::string name() const override { return name_; }
  bool any_state() const override { return !has_rule_ || overrides(create_) || overrides(create_multi_precision_); }

  StateTree create_state(const ParamKey& key, const NDArray& weight) override {
    if (auto state = created(create_, key, weight)) return std::move(*state);
    return own_create_state(key, weight);
  }
  StateTree create_state_multi_precision(const ParamKey& key, const NDArray& weight) override {
    if (auto state = created(create_multi_precision_, key, weight)) return std::move(*state);
    return own_create_state_multi_precision(key, weight);
  }
  void update(const Update& one) override {
    if (!updated(update_, one)) own_update(one);
  }
  void update_multi_precision(const Update& one) override {
    if (!updated(update_multi_precision_, one)) own_update_multi_precision(one);
  }
  void update_many(std::span<const Update> updates) override {
    if (has_own_form() || overrides(update_multi_precision_)) return Optimizer::update_many(updates);
    RuleOptimizer::update_many(updates);
  }

  // What a Python class may decide about alone: learning rates and decays.
  double step_lr(const ParamKey& key, const std::string& parameter, double rate) const override {
    const auto lr = asked(get_lr_, get_lrs_, key);
    return lr ? *lr : RuleOptimizer::step_lr(key, parameter, rate);
  }
  double step_wd(const ParamKey& key, const std::string& parameter) const override {
    const auto decay = asked(get_wd_, get_wds_, key);
    return decay ? *decay : RuleOptimizer::step_wd(key, parameter);
  }

  // Its methods ask which of them a Python class overrides.
  bool updates_by_rule() const override { return true; }
  UpdateUnit own_update_unit() const override {
    bool python = any_state();
    for (const char* name : {update_, update_multi_precision_, get_lr_, get_lrs_, get_wd_, get_wds_})
      python = python || overrides(name);
    return python ? UpdateUnit::parameter : RuleOptimizer::own_update_unit();
  }

  // For super() in a Python class: the same without its own methods. A float32 copy depends on the methods of the
  // class, not on the rule.
  StateTree own_create_state(const ParamKey& key, const NDArray& weight) {
    return RuleOptimizer::create_state(key, weight);
  }
  StateTree own_create_state_multi_precision(const ParamKey& key, const NDArray& weight) {
    return has_own_form() ? Optimizer::create_state_multi_precision(key, weight)
                          : RuleOptimizer::create_state_multi_precision(key, weight);
  }
  void own_update(const Update& one) { RuleOptimizer::update(one); }
  void own_update_multi_precision(const Update& one) {
    has_own_form() ? Optimizer::update_multi_precision(one) : RuleOptimizer::update_multi_precision(one);
  }

 private:
  // With a float32 copy of the weight the state is then the copy and what the class makes for it, instead of the form
  // that the rule's own operators update.
  bool has_own_form() const { return overrides(create_) || overrides(update_); }
  bool overrides(const char* name) const { return static_cast<bool>(Override(trampoline_, name)); }
  // The answer of the method for one parameter, or of that for several.
  std::optional<double> asked(const char* one, const char* several, const ParamKey& key) const {
    if (const Override method(trampoline_, one); method) return nb::cast<double>(method(to_python(key)));
    const Override method(trampoline_, several);
    if (!method) return std::nullopt;
    return nb::cast<double>(nb::object(method(nb::make_tuple(to_python(key)))[0]));
  }
  std::optional<StateTree> created(const char* name, const ParamKey& key, const NDArray& weight) const {
    const Override method(trampoline_, name);
    if (!method) return std::nullopt;
    const nb::object state = method(to_python(key), weight);
    if (is_state(state)) return state_from(state);
    states_in_python()[to_python(key)] = state;
    return StateTree();
  }
  bool updated(const char* name, const Update& one) const {
    const Override method(trampoline_, name);
    if (!method) return false;
    const nb::object key = to_python(one.key);
    if (one.state->empty() && nb::hasattr(trampoline_.base(), states_attribute_) && states_in_python().contains(key)) {
      method(key, one.weight, one.grad, nb::object(states_in_python()[key]));
      return true;
    }
    const nb::object state = to_python(*one.state);
    method(key, one.weight, one.grad, state);
    if (has_list(*one.state)) *one.state = state_from(state);  // its items may have been replaced
    return true;
  }
  // States that do not consist of arrays only (numbers, dicts) are stored in Python, with the optimizer; they are not
  // saved to files.
  nb::dict states_in_python() const {
    const nb::handle self = trampoline_.base();
    if (!nb::hasattr(self, states_attribute_)) self.attr(states_attribute_) = nb::dict();
    return nb::cast<nb::dict>(self.attr(states_attribute_));
  }

  static constexpr const char* states_attribute_ = "_states_in_python";
  // Compared by address.
  static constexpr const char *create_ = "create_state", *create_multi_precision_ = "create_state_multi_precision",
                              *update_ = "update", *update_multi_precision_ = "update_multi_precision",
                              *get_lr_ = "_get_lr", *get_lrs_ = "_get_lrs", *get_wd_ = "_get_wd",
                              *get_wds_ = "_get_wds";
  bool has_rule_ = false;
  std::string name_ = "optimizer";
  Trampoline<8> trampoline_{this};
};

PyOptimizer* python_part(Optimizer& self) { return dynamic_cast<PyOptimizer*>(&self); }

// ---- What its methods take -----------------------------------------------------------------------------------------

// One parameter, or lists of equal length.
std::vector<Update> updates_from(nb::handle index, nb::handle weight, nb::handle grad, std::vector<StateTree>& states,
                                 nb::handle state) {
  if (!is_list(index)) {
    states.push_back(state_from(state));
    return {{key_from(index), one_array(weight, "weight"), one_array(grad, "grad"), &states[0]}};
  }
  const std::vector<ParamKey> keys = keys_from(index);
  const std::vector<NDArray> weights = arrays_from(weight), grads = arrays_from(grad);
  for (nb::handle item : state) states.push_back(state_from(item));
  require(weights.size() == keys.size() && grads.size() == keys.size() && states.size() == keys.size(),
          "[optimizer] update takes one weight, gradient and state per index: ", keys.size(), " indices, ",
          weights.size(), " weights, ", grads.size(), " gradients, ", states.size(), " states");
  std::vector<Update> updates;
  for (size_t i = 0; i < keys.size(); ++i) updates.push_back({keys[i], weights[i], grads[i], &states[i]});
  return updates;
}

template <bool multi_precision>
void update(Optimizer& self, nb::handle index, nb::handle weight, nb::handle grad, nb::handle state) {
  std::vector<StateTree> states;
  const std::vector<Update> updates = updates_from(index, weight, grad, states, state);
  PyOptimizer* python = python_part(self);
  ReleaseGil release;
  for (const Update& each : updates) {
    if constexpr (multi_precision)
      python ? python->own_update_multi_precision(each) : self.update_multi_precision(each);
    else
      python ? python->own_update(each) : self.update(each);
  }
}

template <bool multi_precision>
nb::object create_state(Optimizer& self, nb::handle index, nb::handle weight) {
  const ParamKey key = key_from(index);
  const NDArray array = one_array(weight, "weight");
  PyOptimizer* python = python_part(self);
  if constexpr (multi_precision)
    return to_python(python ? python->own_create_state_multi_precision(key, array)
                            : self.create_state_multi_precision(key, array));
  else
    return to_python(python ? python->own_create_state(key, array) : self.create_state(key, array));
}

std::map<ParamKey, double> multipliers_from(const nb::dict& dict) {
  std::map<ParamKey, double> multipliers;
  for (auto [key, value] : dict) multipliers[key_from(key)] = nb::cast<double>(value);
  return multipliers;
}

template <class Value>
nb::dict dict_from(const std::map<ParamKey, Value>& values) {
  nb::dict dict;
  for (const auto& [key, value] : values) dict[to_python(key)] = value;
  return dict;
}

nb::dict idx2name_of(const Optimizer& self) {
  nb::dict dict;
  for (const auto& [number, name] : self.idx2name()) dict[nb::cast(number)] = name;
  return dict;
}

// Counts are changed in the same way as by loading states.
template <class Change>
void change_counts(Optimizer& self, Change change) {
  ResumeState state = self.resume_state();
  change(state);
  self.restore(state);
}

nb::tuple progress_of(const Optimizer& self) {
  const ResumeState state = self.resume_state();
  return nb::make_tuple(state.num_update, state.begin_num_update, dict_from(state.index_update_count), state.numbers);
}

void set_progress(Optimizer& self, int64_t num_update, int64_t begin_num_update, const nb::dict& counts,
                  std::map<std::string, double> numbers) {
  ResumeState state{.num_update = num_update, .begin_num_update = begin_num_update, .numbers = std::move(numbers)};
  for (auto [key, count] : counts) state.index_update_count[key_from(key)] = nb::cast<int64_t>(count);
  self.restore(state);
}

// ---- Arguments -----------------------------------------------------------------------------------------------------

OptimizerValue value_from(nb::handle value, nb::handle keeper) {
  if (PyBool_Check(value.ptr())) return value.is(Py_True);
  if (PyLong_Check(value.ptr())) return nb::cast<int64_t>(value);
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance(value, numpy_module().attr("generic"))) return value_from(nb::object(value.attr("item")()), {});
  return OptimizerObject{Held(nb::borrow(value), keeper)};
}

// An integral value is returned as an int, which also works as a float.
nb::object value_to_python(const OptimizerValue& value) {
  return std::visit(
      []<class T>(const T& held) -> nb::object {
        if constexpr (std::is_same_v<T, OptimizerObject>)
          return std::any_cast<const Held&>(held.value).get();
        else if constexpr (std::is_same_v<T, LRSchedulerPtr>)
          return scheduler_to_python(held);
        else
          return nb::cast(held);
      },
      value.get());
}

// In the type of the rule's field: a count is an int, a bound that is not set None.
nb::object argument_of(const Optimizer& self, const std::string& name) {
  if (const auto* with_rule = dynamic_cast<const RuleOptimizer*>(&self))
    for (const UpdateRule::Argument& argument : with_rule->rule().arguments())
      if (argument.name == name) return std::visit([](const auto* field) { return nb::cast(*field); }, argument.field);
  return value_to_python(self.argument(name));
}

void set_argument(nb::pointer_and_handle<Optimizer> self, const std::string& name, nb::handle value) {
  self.p->set_argument(name, value.is_none() ? OptimizerValue("None") : value_from(value, keeper_of(self.h)));
}

void take(OptimizerParams& params, nb::handle key, nb::handle value, double base_lr, nb::handle keeper) {
  if (!nb::isinstance<nb::str>(key)) throw wrong_type("expected the name of an optimizer's argument", key);
  const auto name = nb::cast<std::string>(key);
  if (value.is_none() || name == "sym" || name == "param_idx2name" || name == "param_dict") return;
  params.insert_or_assign(name, name == "lr_scheduler" ? OptimizerValue(scheduler_from(value, base_lr, keeper))
                                                       : value_from(value, keeper));
}

void register_class(const std::string& name, nb::object type) {
  register_optimizer(name, [held = Held(std::move(type))](const OptimizerParams& params) -> OptimizerPtr {
    AcquireGil acquire;
    const nb::object made = held.get()(**optimizer_params_to_python(params));
    if (!nb::isinstance<Optimizer>(made)) throw wrong_type("a registered optimizer must be an Optimizer", made);
    return nb::cast<OptimizerPtr>(made);
  });
}

}  // namespace

// ---- Across the border ---------------------------------------------------------------------------------------------

bool is_list(nb::handle value) { return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()); }

NDArray one_array(nb::handle value, const char* what) {
  if (!nb::isinstance<NDArray>(value)) throw wrong_type(join(what, " must be an NDArray").c_str(), value);
  return nb::cast<NDArray>(value);
}

std::vector<ParamKey> keys_from(nb::handle value) {
  if (!is_list(value)) return {key_from(value)};
  std::vector<ParamKey> keys;
  for (nb::handle item : value) keys.push_back(key_from(item));
  return keys;
}

ParamKey key_from(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr()))
    throw wrong_type("a parameter is known by an int or a text", value);
  const Py_ssize_t number = PyNumber_AsSsize_t(value.ptr(), PyExc_OverflowError);
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  return static_cast<int64_t>(number);
}

nb::object to_python(const ParamKey& key) { return key.is_number() ? nb::cast(key.number()) : nb::cast(key.name()); }

StateTree state_from(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<NDArray>(value)) return nb::cast<NDArray>(value);
  if (!is_list(value)) throw wrong_type("an optimizer's state is None, an NDArray, or a tuple or list of these", value);
  std::vector<StateTree> parts;
  for (nb::handle item : value) parts.push_back(state_from(item));
  StateTree tree = StateTree::of(std::move(parts));
  tree.is_list = PyList_Check(value.ptr());
  return tree;
}

nb::object to_python(const StateTree& state) {
  if (!state.is_tuple) return array_or_none(state.array);
  nb::list parts;
  for (const StateTree& part : state.tuple) parts.append(to_python(part));
  return state.is_list ? nb::object(parts) : nb::object(nb::tuple(parts));
}

OptimizerParams optimizer_params_from(nb::handle value, nb::handle keeper) {
  OptimizerParams params;
  if (value.is_none()) return params;
  const nb::dict dict = nb::borrow<nb::dict>(nb::object(nb::handle(reinterpret_cast<PyObject*>(&PyDict_Type))(value)));
  double base_lr = 0.01;
  if (dict.contains("learning_rate")) nb::try_cast(nb::object(dict["learning_rate"]), base_lr);
  for (auto [key, item] : dict) take(params, key, item, base_lr, keeper);
  return params;
}

nb::dict optimizer_params_to_python(const OptimizerParams& params) {
  nb::dict dict;
  for (const auto& [name, value] : params) {
    const auto* number = std::get_if<double>(&value.get());
    const bool whole = number && std::abs(*number) < 1e15 && *number == std::floor(*number);
    dict[name.c_str()] = whole ? nb::cast(static_cast<int64_t>(*number)) : value_to_python(value);
  }
  return dict;
}

OptimizerPtr optimizer_from(nb::handle value, nb::handle keeper) {
  if (nb::isinstance<Optimizer>(value)) return Held(nb::borrow(value), keeper).as<Optimizer>();
  if (nb::isinstance<nb::str>(value)) return Optimizer::create(nb::cast<std::string>(value));
  throw wrong_type("expected an optimizer (mx.optimizer.SGD(...), or a name)", value);
}

nb::object to_python(const OptimizerPtr& optimizer) {
  if (!optimizer) return nb::none();
  if (nb::object known = nb::find(*optimizer); known.is_valid()) return known;
  const nb::object base = nb::module_::import_("symbind.optimizer").attr("Optimizer");
  const nb::object type = base.attr("opt_registry").attr("get")(optimizer->name(), base);
  nb::object made = nb::inst_reference(type, optimizer.get());
  delete_with(made, new OptimizerPtr(optimizer));
  return made;
}

namespace {

// Optimizers of any class are sent to servers as pickles.
void send_as_pickles() {
  set_optimizer_texts(
      {.write =
           [](const OptimizerPtr& optimizer) {
             AcquireGil acquire;
             const auto text = nb::bytes(nb::module_::import_("pickle").attr("dumps")(to_python(optimizer)));
             return std::string(text.c_str(), text.size());
           },
       .read = [](const std::string& text) -> OptimizerPtr {
         AcquireGil acquire;
         try {
           return optimizer_from(nb::module_::import_("pickle").attr("loads")(nb::bytes(text.data(), text.size())));
         } catch (const nb::python_error& error) {
           fail("the optimizer cannot be read: ", error.what(), "; its class must be in a module that ",
                "servers can import, not in the script, which they do not run");
         }
       }});
}

}  // namespace

void bind_optimizer(nb::module_& m) {
  send_as_pickles();
  nb::class_<Optimizer, PyOptimizer>(m, "Optimizer", nb::is_weak_referenceable(), nb::type_slots(collector_slots))
      .def("__init__", [](Optimizer* self) { new (self) PyOptimizer(); })
      .def("_set",
           [](nb::pointer_and_handle<Optimizer> self, const std::string& rule, nb::handle arguments, std::string name) {
             PyOptimizer* python = python_part(*self.p);
             require(python != nullptr, "[optimizer] one made in C++ cannot be initialised again");
             python->set(rule, optimizer_params_from(arguments, self.h), std::move(name));
           })
      .def("create_state", &create_state<false>, nb::arg("index").none(), nb::arg("weight").none(),
           "What the optimizer remembers of this parameter: None, an array, or a tuple.")
      .def("create_state_multi_precision", &create_state<true>, nb::arg("index").none(), nb::arg("weight").none(),
           "The same; with multi_precision and a 16-bit weight a float32 copy of the weight is part of it.")
      .def("update", &update<false>, nb::arg("index").none(), nb::arg("weight").none(), nb::arg("grad").none(),
           nb::arg("state").none(), "Changes the weight, and the state, by one step. Lists update several parameters.")
      .def("update_multi_precision", &update<true>, nb::arg("index").none(), nb::arg("weight").none(),
           nb::arg("grad").none(), nb::arg("state").none(), "The same with the state of create_state_multi_precision.")
      .def_prop_rw("lr", &Optimizer::own_lr, &Optimizer::set_own_lr, "The learning rate where no schedule decides.")
      .def_prop_ro("learning_rate", &Optimizer::learning_rate, "The learning rate in effect.")
      .def(
          "set_learning_rate",
          [](Optimizer& self, double lr) {
            if (self.lr_scheduler) {  // MXNet raises the warning
              PyErr_Format(PyExc_UserWarning,
                           "[%s] set_learning_rate has no effect: a schedule decides; set the schedule's base_lr, or "
                           "leave lr_scheduler out",
                           self.name().c_str());
              throw nb::python_error();
            }
            self.set_learning_rate(lr);
          },
          nb::arg("lr"), "Sets the learning rate; raises UserWarning if a schedule determines it.")
      .def_rw("wd", &Optimizer::wd, "Weight decay.")
      .def_rw("rescale_grad", &Optimizer::rescale_grad, "Factor of the gradients.")
      .def_rw("multi_precision", &Optimizer::multi_precision, "Whether 16-bit weights have a float32 copy.")
      .def_prop_rw(
          "clip_gradient", [](const Optimizer& self) { return self.clip_gradient; },
          [](Optimizer& self, std::optional<double> bound) { self.clip_gradient = bound; }, nb::arg().none(),
          "Bound of each element of the rescaled gradient, or None.")
      .def_prop_rw(
          "clip_global_norm", [](const Optimizer& self) { return self.clip_global_norm; },
          [](Optimizer& self, std::optional<double> bound) { self.clip_global_norm = bound; }, nb::arg().none(),
          "Bound of the norm of all gradients of a step together, or None.")
      .def_prop_rw(
          "lr_scheduler", [](const Optimizer& self) { return scheduler_to_python(self.lr_scheduler); },
          [](nb::pointer_and_handle<Optimizer> self, nb::handle value) {
            self.p->lr_scheduler = scheduler_from(value, self.p->own_lr(), keeper_of(self.h));
          },
          nb::arg().none(), "The schedule of the learning rate, or None.")
      .def_prop_rw(
          "num_update", &Optimizer::num_update,
          [](Optimizer& self, int64_t count) {
            change_counts(self, [&](ResumeState& state) { state.num_update = count; });
          },
          "The number of updates so far: the largest over all parameters.")
      .def_prop_rw(
          "begin_num_update", [](const Optimizer& self) { return self.resume_state().begin_num_update; },
          [](Optimizer& self, int64_t count) {
            change_counts(self, [&](ResumeState& state) { state.begin_num_update = count; });
          })
      .def("_get_counts", [](const Optimizer& self) { return dict_from(self.resume_state().index_update_count); })
      .def("_set_counts",
           [](Optimizer& self, const nb::dict& counts) {
             change_counts(self, [&](ResumeState& state) {
               state.index_update_count.clear();
               for (auto [key, count] : counts) state.index_update_count[key_from(key)] = nb::cast<int64_t>(count);
             });
           })
      .def("_get_progress", &progress_of)
      .def("_set_progress", &set_progress)
      .def_prop_rw(
          "idx2name", &idx2name_of,
          [](Optimizer& self, std::map<int64_t, std::string> names) {
            self.set_names(std::move(names), self.attributes());
          },
          "The names of numbered parameters.")
      .def("_get_attributes", [](const Optimizer& self) { return self.attributes(); })
      .def("_set_names",
           [](Optimizer& self, std::map<int64_t, std::string> names, std::map<std::string, Attributes> attributes) {
             self.set_names(std::move(names), std::move(attributes));
           })
      .def("_decays", &Optimizer::decays)
      .def("_get_lr_mult", [](const Optimizer& self) { return dict_from(self.lr_mult()); })
      .def("_get_wd_mult", [](const Optimizer& self) { return dict_from(self.wd_mult()); })
      .def(
          "set_lr_mult", [](Optimizer& self, const nb::dict& mult) { self.set_lr_mult(multipliers_from(mult)); },
          nb::arg("args_lr_mult"), "Multipliers of the learning rate, by name or number of the parameter.")
      .def(
          "set_wd_mult", [](Optimizer& self, const nb::dict& mult) { self.set_wd_mult(multipliers_from(mult)); },
          nb::arg("args_wd_mult"), "Multipliers of the weight decay, by name or number of the parameter.")
      .def(
          "_update_count",
          [](Optimizer& self, nb::handle index) {
            for (const ParamKey& key : keys_from(index)) self.update_count(key);
          },
          nb::arg("index").none())
      .def(
          "_get_lr", [](const Optimizer& self, nb::handle index) { return self.lr_of(key_from(index)); },
          nb::arg("index").none())
      .def(
          "_get_wd", [](const Optimizer& self, nb::handle index) { return self.wd_of(key_from(index)); },
          nb::arg("index").none())
      .def(
          "_get_lrs",
          [](const Optimizer& self, nb::handle indices) {
            std::vector<double> rates;
            for (const ParamKey& key : keys_from(indices)) rates.push_back(self.lr_of(key));
            return rates;
          },
          nb::arg("indices").none())
      .def(
          "_get_wds",
          [](const Optimizer& self, nb::handle indices) {
            std::vector<double> decays;
            for (const ParamKey& key : keys_from(indices)) decays.push_back(self.wd_of(key));
            return decays;
          },
          nb::arg("indices").none())
      .def("_argument_names", &Optimizer::argument_names)
      .def("_get_argument", &argument_of)
      .def("_set_argument", &set_argument, nb::arg("name"), nb::arg("value").none());
  m.def(
      "clip_global_norm",
      [](nb::handle arrays, double max_norm, bool check_isfinite) {
        const std::vector<NDArray> all = arrays_from(arrays);
        ReleaseGil release;
        return clip_global_norm(all, max_norm, check_isfinite);
      },
      nb::arg("arrays"), nb::arg("max_norm"), nb::arg("check_isfinite") = true,
      "Scales the arrays in place where the norm of all their elements exceeds max_norm; the norm they had.");
  m.def("_register_optimizer", &register_class);
  m.def("_create_optimizer", [](const std::string& name, nb::handle arguments) {
    return to_python(Optimizer::create(name, optimizer_params_from(arguments)));
  });
}

}  // namespace symbind::python
