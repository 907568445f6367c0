// Initializers. A Python initializer of any class is one C++ object with a rule: a built-in initializer, or none if
// Python fills the arrays itself.
#include "initializer.h"

#include "symbind/core/error.h"

#include "bindings.h"
#include "convert.h"
#include "nanobind_versions.h"

namespace symbind::python {
namespace {

class PyInitializer final : public Initializer {
 public:
  // `whole`: the rule decides for every name; else it is called only for weights.
  void set_rule(InitializerPtr rule, bool whole) {
    rule_ = std::move(rule);
    whole_ = whole;
  }

  void operator()(const InitDesc& desc, NDArray& array) const override {
    if (!called(call_, desc, array)) own_call(desc, array);
  }
  void operator()(const std::string& name, NDArray& array) const override {
    const Override method(trampoline_, call_);
    if (!method) return own_call(name, array);
    method(name, array);
  }
  std::string dumps() const override {
    AcquireGil acquire;
    return nb::cast<std::string>(trampoline_.base().attr("dumps")());
  }

  // For super() in a Python class: the same without its own methods.
  void own_call(const InitDesc& desc, NDArray& array) const {
    whole_ ? (*rule_)(desc, array) : Initializer::operator()(desc, array);
    tell(desc, array);
  }
  void own_call(const std::string& name, NDArray& array) const {
    whole_ ? (*rule_)(name, array) : Initializer::operator()(name, array);
    tell({name}, array);
  }
  void own_weight(const InitDesc& desc, NDArray& array) const {
    if (rule_) return rule_->as_weight(desc, array);
    AcquireGil acquire;
    PyErr_SetString(PyExc_NotImplementedError, "an initializer has a method _init_weight(self, desc, arr)");
    throw nb::python_error();
  }
  void own_bias(const InitDesc& desc, NDArray& array) const { Initializer::init_bias(desc, array); }
  void own_gamma(const InitDesc& desc, NDArray& array) const { Initializer::init_gamma(desc, array); }
  void own_beta(const InitDesc& desc, NDArray& array) const { Initializer::init_beta(desc, array); }
  void own_default(const InitDesc& desc, NDArray& array) const { Initializer::init_default(desc, array); }

 protected:
  void init_weight(const InitDesc& desc, NDArray& array) const override {
    if (!called(weight_, desc, array)) own_weight(desc, array);
  }
  void init_bias(const InitDesc& desc, NDArray& array) const override {
    if (!called(bias_, desc, array)) own_bias(desc, array);
  }
  void init_gamma(const InitDesc& desc, NDArray& array) const override {
    if (!called(gamma_, desc, array)) own_gamma(desc, array);
  }
  void init_beta(const InitDesc& desc, NDArray& array) const override {
    if (!called(beta_, desc, array)) own_beta(desc, array);
  }
  void init_default(const InitDesc& desc, NDArray& array) const override {
    if (!called(default_, desc, array)) own_default(desc, array);
  }

 private:
  bool called(const char* name, const InitDesc& desc, const NDArray& array) const {
    const Override method(trampoline_, name);
    if (!method) return false;
    method(to_python(desc), array);
    return true;
  }
  // Prints what set_verbosity requested.
  void tell(const InitDesc& desc, const NDArray& array) const {
    AcquireGil acquire;
    const nb::handle self = trampoline_.base();
    if (nb::cast<bool>(self.attr("_verbose"))) self.attr("_verbose_print")(to_python(desc), nb::none(), array);
  }

  // Compared by address.
  static constexpr const char *call_ = "__call__", *weight_ = "_init_weight", *bias_ = "_init_bias",
                              *gamma_ = "_init_gamma", *beta_ = "_init_beta", *default_ = "_init_default";
  InitializerPtr rule_;
  bool whole_ = false;
  Trampoline<6> trampoline_{this};
};

// A function of (desc, array), for every name.
class CallableInitializer final : public Initializer {
 public:
  explicit CallableInitializer(Held function) : function_(std::move(function)) {}
  void operator()(const InitDesc& desc, NDArray& array) const override {
    AcquireGil acquire;
    function_.get()(to_python(desc), array);
  }
  void operator()(const std::string& name, NDArray& array) const override {
    AcquireGil acquire;
    function_.get()(name, array);
  }
  std::string dumps() const override { fail("[initializer] there is no text for a function"); }

 protected:
  void init_weight(const InitDesc& desc, NDArray& array) const override { (*this)(desc, array); }

 private:
  Held function_;
};

// ---- Rules ---------------------------------------------------------------------------------------------------------

template <class T>
T argument(const nb::dict& arguments, const char* name) {
  return nb::cast<T>(nb::object(arguments[name]));
}

InitializerPtr load_from(const nb::dict& arguments, nb::handle keeper) {
  const nb::object params = arguments["param"];
  const InitializerPtr otherwise = initializer_from(nb::object(arguments["default_init"]), keeper);
  const bool verbose = argument<bool>(arguments, "verbose");
  if (nb::isinstance<nb::str>(params))
    return std::make_shared<init::Load>(nb::cast<std::string>(params), otherwise, verbose);
  if (!nb::isinstance<nb::dict>(params)) throw wrong_type("Load takes a file or a dict of arrays", params);
  return std::make_shared<init::Load>(named_arrays_from(params), otherwise, verbose);
}

InitializerPtr mixed_from(const nb::dict& arguments, nb::handle keeper) {
  std::vector<InitializerPtr> initializers;
  for (nb::handle each : nb::object(arguments["initializers"])) initializers.push_back(initializer_from(each, keeper));
  return std::make_shared<init::Mixed>(names_from(nb::object(arguments["patterns"])), initializers);
}

// A built-in initializer, even if its name was registered again.
InitializerPtr make_rule(const std::string& kind, const nb::dict& arguments, nb::handle keeper) {
  if (kind == "zero") return std::make_shared<init::Zero>();
  if (kind == "one") return std::make_shared<init::One>();
  if (kind == "constant") return std::make_shared<init::Constant>(argument<double>(arguments, "value"));
  if (kind == "uniform") return std::make_shared<init::Uniform>(argument<double>(arguments, "scale"));
  if (kind == "normal") return std::make_shared<init::Normal>(argument<double>(arguments, "sigma"));
  if (kind == "bilinear") return std::make_shared<init::Bilinear>();
  if (kind == "lstmbias") return std::make_shared<init::LSTMBias>(argument<double>(arguments, "forget_bias"));
  if (kind == "orthogonal")
    return std::make_shared<init::Orthogonal>(argument<double>(arguments, "scale"),
                                              argument<std::string>(arguments, "rand_type"));
  if (kind == "xavier")
    return std::make_shared<init::Xavier>(
        init::XavierOptions{.rnd_type = argument<std::string>(arguments, "rnd_type"),
                            .factor_type = argument<std::string>(arguments, "factor_type"),
                            .magnitude = argument<double>(arguments, "magnitude")});
  if (kind == "msraprelu")
    return std::make_shared<init::MSRAPrelu>(argument<std::string>(arguments, "factor_type"),
                                             argument<double>(arguments, "slope"));
  if (kind == "fusedrnn")
    return std::make_shared<init::FusedRNN>(
        init::FusedRNNOptions{.init = initializer_from(nb::object(arguments["init"]), keeper),
                              .num_hidden = argument<int64_t>(arguments, "num_hidden"),
                              .num_layers = argument<int64_t>(arguments, "num_layers"),
                              .mode = argument<std::string>(arguments, "mode"),
                              .bidirectional = argument<bool>(arguments, "bidirectional"),
                              .forget_bias = argument<double>(arguments, "forget_bias")});
  if (kind == "load") return load_from(arguments, keeper);
  if (kind == "mixed") return mixed_from(arguments, keeper);
  fail("unknown initializer '", kind, "'");
}

PyInitializer& python_part(Initializer& self) {
  auto* python = dynamic_cast<PyInitializer*>(&self);
  require(python != nullptr, "[initializer] one made in C++ has no such method");
  return *python;
}

NDArray array_to_fill(nb::handle value) {
  if (!nb::isinstance<NDArray>(value)) throw wrong_type("an initializer fills an NDArray", value);
  return nb::cast<NDArray>(value);
}

void call(Initializer& self, nb::handle desc, nb::handle arr) {
  if (!nb::isinstance<nb::str>(desc)) throw wrong_type("an initializer is called with a name or an InitDesc", desc);
  NDArray array = array_to_fill(arr);
  const bool described = nb::hasattr(desc, "attrs");
  const InitDesc what = init_desc_from(desc);
  auto* python = dynamic_cast<PyInitializer*>(&self);
  ReleaseGil release;
  if (described)
    python ? python->own_call(what, array) : self(what, array);
  else
    python ? python->own_call(what.name, array) : self(what.name, array);
}

using Method = void (PyInitializer::*)(const InitDesc&, NDArray&) const;

template <Method method>
void call_method(Initializer& self, nb::handle desc, nb::handle arr) {
  NDArray array = array_to_fill(arr);
  const InitDesc what = init_desc_from(desc);
  const PyInitializer& python = python_part(self);
  ReleaseGil release;
  (python.*method)(what, array);
}

void register_class(const std::string& name, nb::object type) {
  register_initializer(name, [held = Held(std::move(type))](const std::string& arguments) -> InitializerPtr {
    AcquireGil acquire;
    const nb::object kwargs = nb::module_::import_("json").attr("loads")(arguments);
    return initializer_from(held.get()(**nb::borrow<nb::dict>(kwargs)));
  });
}

}  // namespace

InitializerPtr initializer_from(nb::handle value, nb::handle keeper) {
  if (value.is_none()) return nullptr;
  if (nb::isinstance<Initializer>(value)) return Held(nb::borrow(value), keeper).as<Initializer>();
  if (nb::isinstance<nb::str>(value)) return create_initializer(nb::cast<std::string>(value));
  if (!PyCallable_Check(value.ptr()))
    throw wrong_type("expected an initializer (mx.init.Xavier(), a name, or a function of (desc, array))", value);
  return std::make_shared<CallableInitializer>(Held(nb::borrow(value), keeper));
}

nb::object to_python(const InitDesc& desc) {
  nb::object global = nb::none();
  if (desc.global_init) {
    nb::object found = nb::find(*const_cast<Initializer*>(desc.global_init));
    if (found.is_valid()) global = found;
  }
  return nb::module_::import_("symbind.initializer").attr("InitDesc")(desc.name, desc.attrs, global);
}

InitDesc init_desc_from(nb::handle value) {
  InitDesc desc{nb::cast<std::string>(nb::str(value))};
  if (!nb::hasattr(value, "attrs")) return desc;
  desc.attrs = attributes_of(nb::object(value.attr("attrs")));
  const nb::object global = nb::getattr(value, "global_init", nb::none());
  if (nb::isinstance<Initializer>(global)) desc.global_init = nb::cast<Initializer*>(global);
  return desc;
}

void bind_initializer(nb::module_& m) {
  const auto with_names = [](auto& type, const char* name, auto method) {
    type.def(name, method, nb::arg("desc").none(), nb::arg("arr").none());
  };
  nb::class_<Initializer, PyInitializer> type(m, "Initializer", nb::is_weak_referenceable(),
                                              nb::type_slots(collector_slots));
  type.def("__init__", [](Initializer* self) { new (self) PyInitializer(); })
      .def("_set_rule",
           [](nb::pointer_and_handle<Initializer> self, const std::string& kind, const nb::dict& arguments) {
             python_part(*self.p).set_rule(make_rule(kind, arguments, self.h), kind == "load" || kind == "mixed");
           });
  with_names(type, "__call__", &call);
  with_names(type, "_init_weight", &call_method<&PyInitializer::own_weight>);
  with_names(type, "_init_bias", &call_method<&PyInitializer::own_bias>);
  with_names(type, "_init_gamma", &call_method<&PyInitializer::own_gamma>);
  with_names(type, "_init_beta", &call_method<&PyInitializer::own_beta>);
  with_names(type, "_init_default", &call_method<&PyInitializer::own_default>);
  m.def("_register_initializer", &register_class);
}

}  // namespace symbind::python
