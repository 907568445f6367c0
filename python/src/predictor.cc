#include "symbind/train/predictor.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {
namespace {

PredictorOptions options_from(nb::handle ctx, int max_concurrent, size_t max_shapes, int threads,
                              nb::handle compute_dtype) {
  return {.context = context_or_current(ctx),
          .max_concurrent = max_concurrent,
          .max_shapes = max_shapes,
          .threads = threads,
          .compute_dtype = compute_dtype.is_none() ? DType::none : dtype_from(compute_dtype)};
}

// A dict, a MappingProxyType and the like. A DataFrame has keys, too, but is one array.
bool is_mapping(nb::handle value) {
  if (nb::isinstance<NDArray>(value)) return false;
  return nb::isinstance<nb::dict>(value) ||
         nb::isinstance(value, nb::module_::import_("collections.abc").attr("Mapping"));
}

NDArray input_from(nb::handle value, const std::string& name = "") {
  if (value.is_none())
    throw TypeError(join("the input", name.empty() ? "" : " '" + name + "'", " is None: an array is needed"));
  return array_from(value, cpu());
}

NamedArrays inputs_from(nb::handle mapping) {
  NamedArrays inputs;
  for (auto [key, value] : dict_from(mapping, "inputs by name")) {
    if (!nb::isinstance<nb::str>(key)) throw wrong_type("inputs are named by strings", key);
    const auto name = nb::cast<std::string>(key);
    inputs[name] = input_from(value, name);
  }
  return inputs;
}

// A single output itself, several as a list.
nb::object call(const Predictor& self, nb::args data, nb::kwargs inputs) {
  if (data.size() > 1)
    throw TypeError(
        "a predictor takes one input by position, and several by name: predict(left=…, right=…), or a dict of them");
  if (data.size() == 1 && inputs.size() > 0) throw TypeError("inputs are given by position or by name, not both");
  std::vector<NDArray> outputs;
  if (data.size() == 1 && !is_mapping(data[0])) {
    const NDArray array = input_from(data[0]);
    const ReleaseGil release;
    outputs = self(array);
  } else {
    const NamedArrays arrays = inputs_from(data.size() == 1 ? nb::handle(data[0]) : nb::handle(inputs));
    const ReleaseGil release;
    outputs = self(arrays);
  }
  return outputs.size() == 1 ? nb::cast(outputs[0]) : nb::object(list_of(outputs));
}

}  // namespace

void bind_predictor(nb::module_& m) {
  nb::class_<Predictor>(m, "Predictor", nb::dynamic_attr(), nb::is_weak_referenceable(),
                        "Predictions from any thread: one set of weights, any batch size. predict(x) returns the "
                        "output, or a list of the outputs, in arrays of the caller's own.")
      .def(
          "__init__",
          [](Predictor* self, const std::string& prefix, int epoch, nb::handle ctx, int max_concurrent,
             size_t max_shapes, int threads, nb::handle compute_dtype) {
            const PredictorOptions options = options_from(ctx, max_concurrent, max_shapes, threads, compute_dtype);
            const ReleaseGil release;
            new (self) Predictor(prefix, epoch, options);
          },
          nb::arg("prefix"), nb::arg("epoch"), nb::arg("ctx").none() = nb::none(), nb::arg("max_concurrent") = 0,
          nb::arg("max_shapes") = 16, nb::arg("threads") = 0, nb::arg("compute_dtype").none() = nb::none(),
          "From prefix-symbol.json and prefix-EPOCH.params.")
      .def(
          "__init__",
          [](Predictor* self, const Symbol& symbol, nb::handle arg_params, nb::handle aux_params, nb::handle ctx,
             int max_concurrent, size_t max_shapes, int threads, nb::handle compute_dtype) {
            new (self) Predictor(symbol, named_arrays_from(arg_params), named_arrays_from(aux_params),
                                 options_from(ctx, max_concurrent, max_shapes, threads, compute_dtype));
          },
          nb::arg("symbol"), nb::arg("arg_params"), nb::arg("aux_params").none() = nb::none(),
          nb::arg("ctx").none() = nb::none(), nb::arg("max_concurrent") = 0, nb::arg("max_shapes") = 16,
          nb::arg("threads") = 0, nb::arg("compute_dtype").none() = nb::none(), "From a network and its parameters.")
      .def("__call__", &call, nb::arg("data"), nb::arg("inputs"),
           "The outputs for one input, or for several by name or in a dict: NDArrays, or anything that NumPy converts "
           "to an array.")
      .def_prop_ro("symbol", &Predictor::symbol)
      .def_prop_ro("input_names", &Predictor::input_names)
      .def_prop_ro("output_names", &Predictor::output_names)
      .def_prop_ro("executors", &Predictor::executors, "How many executors are cached.");
}

}  // namespace symbind::python
