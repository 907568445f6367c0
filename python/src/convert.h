// Conversion of arguments that Python code passes in many forms, and of results.
#pragma once

#include <nanobind/ndarray.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/symbol.h"

#include "casters.h"
#include "held.h"

namespace symbind::python {

// The context in effect: that of the innermost `with ctx:`, else cpu(0). None means that one.
Context current_context();
void push_context(Context context);
void replace_context(Context context);  // the innermost, or the default
void pop_context();
Context context_or_current(nb::handle value);
std::vector<Context> contexts_from(nb::handle value);  // None: the current one; one, or a sequence

// A value as the text that operators, files and initializers read: "(3, 3)", "True", "float32", "None", "0.1".
std::string text_of(nb::handle value);
Attributes attributes_of(nb::handle mapping);            // a dict of texts; None is empty
nb::dict dict_from(nb::handle value, const char* what);  // None: empty; anything but a mapping is a TypeError

// A TypeError: "expected a context, not 5".
TypeError wrong_type(std::string_view expected, nb::handle value);

// The attributes that an object has itself.
inline nb::dict attributes_dict(nb::handle object) { return nb::borrow<nb::dict>(nb::object(object.attr("__dict__"))); }

nb::object optional_attribute(nb::handle object, const char* name);  // None where there is no such attribute
std::string class_name(nb::handle value);                            // the name of its class
// The integer that a number is equal to, be it a float or one of NumPy's; none for anything else.
std::optional<int64_t> integer_from(nb::handle value);

// None for an empty array.
nb::object array_or_none(const NDArray& array);
nb::list list_of(const std::vector<NDArray>& arrays);
nb::list list_of(const std::vector<std::vector<NDArray>>& arrays);
nb::dict dict_of(const NamedArrays& arrays);
nb::dict dict_in_order(const std::vector<std::string>& names, const std::vector<NDArray>& arrays);
nb::dict dict_in_order(const std::vector<std::string>& names, const NamedArrays& arrays);  // others follow
// An NDArray from one, or from anything that NumPy converts to an array.
NDArray array_from(nb::handle value, Context context);
std::vector<NDArray> arrays_from(nb::handle value);  // None: none; one array, or a sequence (None in it: empty)
NamedArrays named_arrays_from(nb::handle mapping);
Arrays bound_arrays_from(nb::handle value);             // None, a list, or a dict
GradReqs grad_reqs_from(nb::handle value);              // text, list or dict
std::vector<std::string> names_from(nb::handle value);  // None: none; one text, or a sequence

// Copies the elements of a NumPy array; shapes must agree.
void copy_from_numpy(const NDArray& array, nb::handle values);
nb::object to_numpy(const NDArray& array);
nb::dlpack::dtype dlpack_type(DType dtype);
// NumPy's view of the array's own memory, of a bfloat16 array its bits; only on a host device. Counts as one write.
nb::object numpy_view(const NDArray& array);
// An array over NumPy's memory, in row-major order: nothing is copied, and the NumPy array lives as long as any array
// over it.
NDArray over_numpy(nb::object values, const std::vector<int64_t>& shape);

}  // namespace symbind::python
