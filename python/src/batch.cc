// A batch that came from Python refers to the object it was made from, its source, and a step that Python defines is
// handed that object. For such a step only arrays that need no copy are converted; ReadBatch converts the others when
// C++ reads them.
#include "batch.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "bucket_key.h"
#include "convert.h"

namespace symbind::python {

// ---- descriptions of inputs -----------------------------------------------------------------------------------------

namespace {

// Looked up once and never released: the interpreter may be finalized before static objects are destroyed.
nb::handle io_class(const char* name) { return nb::object(nb::module_::import_("symbind.io.io").attr(name)).release(); }
nb::handle desc_class() {
  static const nb::handle type = io_class("DataDesc");
  return type;
}

std::optional<PixelNormalization> normalization_from(nb::handle value) {
  if (value.is_none()) return std::nullopt;
  PixelNormalization by;
  const bool fits = nb::isinstance<nb::sequence>(value) && nb::len(value) == 3 && nb::try_cast(value[0], by.mean) &&
                    nb::try_cast(value[1], by.std) && nb::try_cast(value[2], by.scale);
  if (!fits)
    throw TypeError(
        join("the normalization of an input is (mean, std, scale), with a number per channel in mean and "
             "std, not ",
             nb::repr(value).c_str()));
  return by;
}

nb::object desc_to_python(const DataDesc& desc) {
  const auto& by = desc.normalization;
  const nb::object normalization = by ? nb::object(nb::make_tuple(by->mean, by->std, by->scale)) : nb::none();
  return desc_class()(desc.name, tuple_of(desc.shape), numpy_type(desc.dtype), desc.layout, normalization);
}

}  // namespace

DataDesc desc_from(nb::handle value) {
  const bool pair = PyTuple_Check(value.ptr()) || PyList_Check(value.ptr());
  if (!nb::hasattr(value, "shape") && !(pair && nb::len(value) >= 2))
    throw TypeError(join("an input is described by a DataDesc or (name, shape), not ", nb::repr(value).c_str()));
  const bool plain = !nb::hasattr(value, "shape");
  const nb::object name = plain ? nb::object(value[0]) : nb::object(value.attr("name"));
  const nb::object shape = plain ? nb::object(value[1]) : nb::object(value.attr("shape"));
  if (!nb::isinstance<nb::str>(name))
    throw TypeError(join("the name of an input must be text, not ", nb::repr(name).c_str()));
  DataDesc desc{.name = nb::cast<std::string>(name), .shape = Shape(dims_from(shape))};
  const nb::object dtype = plain && nb::len(value) > 2 ? nb::object(value[2]) : optional_attribute(value, "dtype");
  if (!dtype.is_none()) desc.dtype = dtype_from(dtype);
  const nb::object layout = plain && nb::len(value) > 3 ? nb::object(value[3]) : optional_attribute(value, "layout");
  if (!layout.is_none()) desc.layout = nb::cast<std::string>(layout);
  desc.normalization = normalization_from(optional_attribute(value, "normalization"));
  return desc;
}

std::vector<DataDesc> descs_from(nb::handle value) {
  if (value.is_none()) return {};
  const bool one = nb::hasattr(value, "shape") ||
                   (PyTuple_Check(value.ptr()) && nb::len(value) > 0 && nb::isinstance<nb::str>(value[0]));
  if (one) return {desc_from(value)};
  std::vector<DataDesc> descs;
  for (nb::handle item : value) descs.push_back(desc_from(item));
  return descs;
}

nb::list list_of(const std::vector<DataDesc>& descs) {
  nb::list list;
  for (const DataDesc& desc : descs) list.append(desc_to_python(desc));
  return list;
}

// ---- batches --------------------------------------------------------------------------------------------------------

namespace {

// The arrays of a batch's data or label: one, or a sequence of them. NumPy arrays, tensors of other packages and lists
// of numbers are arrays, too.
std::vector<NDArray> batch_arrays(nb::handle value, const char* what) {
  if (value.is_none() || nb::isinstance<NDArray>(value)) return arrays_from(value);
  const auto converted = [&](nb::handle item) {
    if (item.is_none()) return NDArray();
    try {
      return array_from(item, cpu());
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
      throw TypeError(join("the ", what, " of a batch must be a list of arrays: a ", class_name(item),
                           " in it is not an array (", nb::str(error.value()).c_str(), ")"));
    }
  };
  if (nb::hasattr(value, "__array__")) return {converted(value)};
  if (!nb::isinstance<nb::iterable>(value))
    throw wrong_type(join("the ", what, " of a batch is a list of arrays"), value);
  const nb::object items = nb::steal(PySequence_List(value.ptr()));
  if (!items) throw nb::python_error();
  std::vector<NDArray> arrays;
  bool all_numbers = nb::len(items) > 0;
  for (nb::handle item : items) all_numbers &= PyFloat_Check(item.ptr()) || PyLong_Check(item.ptr());
  if (all_numbers)
    arrays.push_back(converted(items));
  else
    for (nb::handle item : items) arrays.push_back(converted(item));
  return arrays;
}

// Concatenates batches that are already sliced for the devices.
DataBatch joined(nb::handle batches) {
  DataBatch whole;
  std::vector<std::vector<NDArray>> data, label;
  const auto collect = [](std::vector<std::vector<NDArray>>& all, const std::vector<NDArray>& arrays) {
    all.resize(std::max(all.size(), arrays.size()));
    for (size_t i = 0; i < arrays.size(); ++i) all[i].push_back(arrays[i].as_in_context(cpu()));
  };
  std::optional<std::vector<DataDesc>> described;
  for (nb::handle item : batches) {
    const DataBatch batch = batch_from(item);
    collect(data, batch.data);
    collect(label, batch.label);
    whole.pad += batch.pad;
    if (!described) described = batch.provide_data;
  }
  for (const auto& parts : data) whole.data.push_back(concatenate(parts));
  for (const auto& parts : label) whole.label.push_back(concatenate(parts));
  if (described && described->size() == whole.data.size()) {
    for (size_t i = 0; i < whole.data.size(); ++i) (*described)[i].shape = whole.data[i].shape();
    whole.provide_data = std::move(described);
  }
  return whole;
}

std::shared_ptr<void> source_of(nb::handle batch) {
  return {batch.inc_ref().ptr(), [](void* object) {
            if (!Py_IsInitialized()) return;
            AcquireGil acquire;
            nb::handle(static_cast<PyObject*>(object)).dec_ref();
          }};
}

// None, an array or a list of arrays: converted without a copy.
bool are_arrays(nb::handle value) {
  if (value.is_none() || nb::isinstance<NDArray>(value)) return true;
  if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) return false;
  for (nb::handle item : value)
    if (!nb::isinstance<NDArray>(item)) return false;
  return true;
}

}  // namespace

nb::handle batch_class() {
  static const nb::handle type = io_class("DataBatch");
  return type;
}

DataBatch batch_from(nb::handle value) {
  if (PyList_Check(value.ptr()) && nb::len(value) > 0) return joined(value);
  if (!nb::hasattr(value, "data"))
    throw TypeError(join("a batch needs an attribute data, a list of arrays; ", class_name(value), " has none"));
  DataBatch batch{.data = batch_arrays(value.attr("data"), "data"),
                  .label = batch_arrays(optional_attribute(value, "label"), "label")};
  if (const nb::object pad = optional_attribute(value, "pad"); !pad.is_none() && !nb::try_cast(pad, batch.pad))
    throw TypeError(join("the pad of a batch must be a whole number, not ", nb::repr(pad).c_str()));
  if (const nb::object index = optional_attribute(value, "index"); !index.is_none()) {
    const nb::object numbers = nb::hasattr(index, "tolist") ? index.attr("tolist")() : index;
    nb::try_cast(numbers, batch.index);  // scripts store other objects there, too
  }
  if (const nb::object key = optional_attribute(value, "bucket_key"); !key.is_none())
    batch.bucket_key = bucket_key_from(key);
  if (const nb::object descs = optional_attribute(value, "provide_data"); !descs.is_none())
    batch.provide_data = descs_from(descs);
  if (const nb::object descs = optional_attribute(value, "provide_label"); !descs.is_none())
    batch.provide_label = descs_from(descs);
  batch.source = source_of(value);
  return batch;
}

DataBatch batch_for_python(nb::handle value) {
  const bool is_list = PyList_Check(value.ptr());  // of batches, one per device
  if (!is_list && are_arrays(optional_attribute(value, "data")) && are_arrays(optional_attribute(value, "label"))) {
    try {
      return batch_from(value);
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) throw;  // an interrupt
    } catch (const std::exception&) {
    }
  }
  DataBatch batch{.data = {}, .source = source_of(value)};
  nb::try_cast(optional_attribute(value, "pad"), batch.pad);
  return batch;
}

bool has_only_source(const DataBatch& batch) { return batch.source && batch.data.empty(); }

std::vector<NDArray> read_label(const DataBatch& batch) {
  if (!has_only_source(batch)) return batch.label;
  AcquireGil acquire;
  const nb::handle source(static_cast<PyObject*>(batch.source.get()));
  if (PyList_Check(source.ptr())) return batch_from(source).label;
  return batch_arrays(optional_attribute(source, "label"), "label");
}

ReadBatch::ReadBatch(const DataBatch& batch) : given_(batch) {
  if (!has_only_source(batch)) return;
  AcquireGil acquire;
  read_ = batch_from(static_cast<PyObject*>(batch.source.get()));
}

nb::object batch_to_python(const DataBatch& batch) {
  if (batch.source) return nb::borrow(static_cast<PyObject*>(batch.source.get()));
  const auto descs = [](const std::optional<std::vector<DataDesc>>& given) -> nb::object {
    return given ? nb::object(list_of(*given)) : nb::none();
  };
  const nb::object index = batch.index.empty() ? nb::none() : nb::cast(batch.index);
  return batch_class()(list_of(batch.data), list_of(batch.label), batch.pad, index,
                       bucket_key_to_python(batch.bucket_key), descs(batch.provide_data), descs(batch.provide_label));
}

}  // namespace symbind::python
