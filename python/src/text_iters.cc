// The iterators over text files.
#include "symbind/data/csv_iter.h"
#include "symbind/data/libsvm_iter.h"

#include "bindings.h"
#include "def_iterator.h"
#include "keywords.h"

namespace symbind::python {
namespace {

// The options that both have.
template <class Options>
Keywords<Options> common(const char* who) {
  Keywords<Options> keywords(who);
  return keywords.add("data_shape", &Options::data_shape)
      .add("label_shape", &Options::label_shape)
      .add("batch_size", &Options::batch_size)
      .add("round_batch", &Options::round_batch)
      .add("num_parts", &Options::num_parts)
      .add("part_index", &Options::part_index)
      .add("data_name", &Options::data_name)
      .add("label_name", &Options::label_name)
      .ignore({"prefetch_buffer", "ctx", "verbose"});
}

void require_given(const nb::kwargs& given, std::initializer_list<const char*> names, const char* who) {
  for (const char* name : names)
    if (!given.contains(name)) throw TypeError(join(who, " needs the argument ", name));
}

// "NULL" is what MXNet calls a file that was not given.
std::string path_or_none(nb::handle value) {
  if (value.is_none()) return "";
  const auto path = nb::cast<std::string>(nb::str(value));
  return path == "NULL" ? "" : path;
}

template <class Iter, class Options>
void def_text_iterator(nb::class_<Iter, DataIter>& type, const Keywords<Options>& keywords, const char* data) {
  type.def("__init__", [keywords, data, who = std::string(nb::type_name(type).c_str())](Iter* self, nb::kwargs given) {
    require_given(given, {data, "data_shape", "batch_size"}, who.c_str());
    const Options options = keywords.from(given);
    const ReleaseGil release;
    new (self) Iter(options);
  });
  def_iterator(type, BatchParts::as_arrays);
  type.def_prop_ro("num_data", &Iter::num_data);
}

}  // namespace

void bind_text_iters(nb::module_& m) {
  nb::class_<CSVIter, DataIter> csv(m, "CSVIter", nb::dynamic_attr(),
                                    "Batches of comma-separated numbers: data_csv, data_shape, label_csv, label_shape, "
                                    "batch_size, round_batch, dtype, num_parts, part_index, data_name, label_name.");
  def_text_iterator(
      csv,
      common<CSVIterOptions>("CSVIter")
          .add("data_csv", &CSVIterOptions::data_csv)
          .add("label_csv", [](CSVIterOptions& to, nb::handle value) { to.label_csv = path_or_none(value); })
          .add("dtype",
               [](CSVIterOptions& to, nb::handle value) {
                 if (!value.is_none()) to.dtype = dtype_from(value);
               }),
      "data_csv");

  nb::class_<LibSVMIter, DataIter> libsvm(m, "LibSVMIter", nb::dynamic_attr(),
                                          "Batches of samples in the LibSVM format, as dense arrays: data_libsvm, "
                                          "data_shape, label_libsvm, label_shape, batch_size, round_batch, num_parts, "
                                          "part_index, data_name, label_name.");
  def_text_iterator(
      libsvm,
      common<LibSVMIterOptions>("LibSVMIter")
          .add("data_libsvm", &LibSVMIterOptions::data_libsvm)
          .add("label_libsvm", [](LibSVMIterOptions& to, nb::handle value) { to.label_libsvm = path_or_none(value); })
          .add("dtype",
               [](LibSVMIterOptions&, nb::handle value) {
                 if (!value.is_none() && dtype_from(value) != DType::float32)
                   throw TypeError("LibSVMIter: dtype must be float32");
               }),
      "data_libsvm");
}

}  // namespace symbind::python
