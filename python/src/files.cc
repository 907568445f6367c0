#include "symbind/files/checkpoint.h"
#include "symbind/files/params.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {
namespace {

void save_arrays(const std::string& path, nb::handle data) {
  if (nb::isinstance<NDArray>(data)) return save(path, std::vector{nb::cast<NDArray>(data)});
  if (!nb::isinstance<nb::dict>(data)) return save(path, arrays_from(data));
  std::vector<std::string> names;
  std::vector<NDArray> arrays;
  for (auto [name, value] : nb::borrow<nb::dict>(data)) {
    if (!nb::isinstance<nb::str>(name) || !nb::isinstance<NDArray>(value))
      throw TypeError("save takes an NDArray, a list of them, or a dict from names to them");
    names.push_back(nb::cast<std::string>(name));
    arrays.push_back(nb::cast<NDArray>(value));
  }
  save(path, names, arrays);
}

nb::object as_python(const LoadedArrays& loaded) {
  if (loaded.names.empty()) return list_of(loaded.arrays);
  nb::dict dict;
  for (size_t i = 0; i < loaded.names.size(); ++i) dict[loaded.names[i].c_str()] = loaded.arrays[i];
  return dict;
}

}  // namespace

void bind_files(nb::module_& m) {
  m.def("save", &save_arrays, nb::arg("fname"), nb::arg("data"),
        "Writes an array, a list of arrays or a dict of them to a file, as MXNet does.");
  m.def(
      "load", [](const std::string& fname) { return as_python(load(fname)); }, nb::arg("fname"),
      "The arrays of a file: a list, or a dict where they were saved with names.");
  m.def(
      "load_frombuffer",
      [](nb::bytes buffer) { return as_python(load_from_bytes(std::string_view(buffer.c_str(), buffer.size()))); },
      nb::arg("buf"), "The same from the bytes of a file.");
  m.def(
      "_save_checkpoint",
      [](const std::string& prefix, int epoch, std::optional<Symbol> symbol, nb::handle arg_params,
         nb::handle aux_params) {
        save_checkpoint(prefix, epoch, symbol, named_arrays_from(arg_params), named_arrays_from(aux_params));
      },
      nb::arg("prefix"), nb::arg("epoch"), nb::arg("symbol").none(), nb::arg("arg_params"), nb::arg("aux_params"));
  m.def("_load_checkpoint", [](const std::string& prefix, int epoch) {
    Checkpoint checkpoint = load_checkpoint(prefix, epoch);
    return nb::make_tuple(checkpoint.symbol, dict_of(checkpoint.arg_params), dict_of(checkpoint.aux_params));
  });
  m.def("_match_states", &match_states, nb::arg("prefix"), nb::arg("epoch"));
  m.def("_load_params", [](const std::string& prefix, int epoch) {
    ModelParams params = load_params(prefix, epoch);
    return nb::make_tuple(dict_of(params.arg_params), dict_of(params.aux_params));
  });
}

}  // namespace symbind::python
