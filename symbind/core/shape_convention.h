// How the public interface writes partly known shapes. In MXNet's convention 0 is an unknown dimension and () an
// entirely unknown shape. In NumPy's, which is enabled per thread (MXNet's np_shape), 0 is an axis without elements, ()
// has no axes, and an unknown dimension is -1.
#pragma once

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

bool uses_numpy_shapes();            // on this thread
bool use_numpy_shapes(bool active);  // returns the previous setting

}  // namespace symbind
