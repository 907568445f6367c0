// Conversion of iterators between Python and C++. Python code may pass any iterable, or any object with a method next.
#pragma once

#include <memory>

#include "symbind/data/iterator.h"

#include "casters.h"

namespace symbind::python {

// The iterator itself if it is a C++ one; for any other Python object an adapter that calls its methods (next or
// __next__, reset, provide_data, provide_label, batch_size) with the GIL held. `what` ("train_data") is named in
// errors; `keeper` will store it.
// `for_python`: its batches are those of batch_for_python, except where C++ makes them.
std::shared_ptr<DataIter> iter_from(nb::handle value, const char* what, nb::handle keeper = {},
                                    bool for_python = false);
// provide_data or provide_label as the object that iter_from was given has it; invalid if it is not from Python.
nb::object described_by_python(DataIter& iter, const char* name);
nb::object iter_to_python(DataIter* iter);  // the object that iter_from was given; None if it is not from Python

}  // namespace symbind::python
