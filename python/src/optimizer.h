// Conversion of optimizers between Python and C++: arguments, states, and the object itself in both directions.
#pragma once

#include "symbind/optim/optimizer.h"

#include "casters.h"

namespace symbind::python {

// A dict, or pairs as in MXNet's default (("learning_rate", 0.01),). A value of None counts as not given; anything but
// a number, boolean, string or schedule is passed only to optimizers written in Python. `sym`, `param_idx2name` and
// `param_dict` are ignored: a module names its parameters itself.
// `keeper` will store them.
OptimizerParams optimizer_params_from(nb::handle value, nb::handle keeper = {});
nb::dict optimizer_params_to_python(const OptimizerParams& params);

// An Optimizer, or the name of one; `keeper` will store it.
OptimizerPtr optimizer_from(nb::handle value, nb::handle keeper = {});
// The Python object itself where there is one; one made in C++ appears under the class of its name (symbind.optimizer).
nb::object to_python(const OptimizerPtr& optimizer);

bool is_list(nb::handle value);                         // or a tuple
NDArray one_array(nb::handle value, const char* what);  // anything else is a TypeError that names it
ParamKey key_from(nb::handle value);                    // an int or a text
std::vector<ParamKey> keys_from(nb::handle value);      // one, or a list
nb::object to_python(const ParamKey& key);
StateTree state_from(nb::handle value);  // None, an NDArray, or a tuple or list of these
nb::object to_python(const StateTree& state);

}  // namespace symbind::python
