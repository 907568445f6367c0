#include "keywords.h"

#include <cmath>

namespace symbind::python {

bool bool_from(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) {
    const auto text = nb::cast<std::string>(value);
    if (text == "True" || text == "true" || text == "1") return true;
    if (text == "False" || text == "false" || text == "0") return false;
    throw TypeError(join("expected True or False, not '", text, "'"));
  }
  const int truth = PyObject_IsTrue(value.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

double float_from(nb::handle value) {
  const nb::object number = nb::steal(PyNumber_Float(value.ptr()));
  if (!number) throw nb::python_error();
  return nb::cast<double>(number);
}

int64_t int_from(nb::handle value) {
  if (int64_t number = 0; nb::try_cast(value, number)) return number;
  const double number = float_from(value);
  if (number != std::floor(number) || std::abs(number) > 1e15)
    throw TypeError(join("expected a whole number, not ", nb::repr(value).c_str()));
  return static_cast<int64_t>(number);
}

nb::object sequence_from(nb::handle value) {
  nb::object found = nb::borrow(value);
  if (nb::isinstance<nb::str>(value)) found = nb::module_::import_("ast").attr("literal_eval")(value);
  if (PyNumber_Check(found.ptr()) && !PySequence_Check(found.ptr())) found = nb::make_tuple(found);
  return found;
}

}  // namespace symbind::python
