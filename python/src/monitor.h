// Monitors that modules are given.
#pragma once

#include "symbind/train/monitor.h"

#include "held.h"

namespace symbind::python {

// An object of exactly the class Monitor is used from C++; a subclass, or any object with the methods install, tic and
// toc_print, through its Python methods, and stored in `keeper`, the module. The object must outlive what is returned.
std::shared_ptr<Monitor> monitor_from(nb::handle value, nb::handle keeper);
nb::object monitor_to_python(Monitor& monitor);

}  // namespace symbind::python
