// Conversion of training callbacks between Python and C++. One that is written in C++ is called without Python; any
// other callable receives MXNet's arguments: a BatchEndParam, or (epoch, symbol, arg_params, aux_params).
#pragma once

#include "symbind/train/callback.h"

#include "casters.h"

namespace symbind::python {

// One callback; TypeError for what cannot be called.
BatchEndCallback batch_callback_from(nb::handle value);
EpochEndCallback epoch_callback_from(nb::handle value);
// None, one, or a sequence.
std::vector<BatchEndCallback> batch_callbacks_from(nb::handle value);
std::vector<EpochEndCallback> epoch_callbacks_from(nb::handle value);

// symbind.model.BatchEndParam(epoch, nbatch, eval_metric, locals): the metric is the object that fit was given, and
// locals a dict. A local that is already a Python object (nb::object, Held) is passed unchanged; null pointers are
// None; locals without a Python counterpart are omitted.
nb::object param_to_python(const BatchEndParam& param);

}  // namespace symbind::python
