// Conversion of metrics between Python and C++.
#pragma once

#include "symbind/train/metric.h"

#include "casters.h"

namespace symbind::python {

// The metric itself if its class is a C++ one. For any other object with update() and get(), including classes written
// in Python, an adapter that calls its methods with the GIL held. A name, a list or a function is first passed to
// symbind.metric.create. `keeper` will store it.
EvalMetricPtr metric_from(nb::handle value, nb::handle keeper = {});
nb::object metric_to_python(EvalMetric* metric);  // the object that metric_from was given; None for none

// What get() returns, (name, value) or (names, values), and back.
EvalMetric::NameValues name_values_from(nb::handle value);
nb::list list_of(const EvalMetric::NameValues& values);  // of (name, value)

}  // namespace symbind::python
