// How the public interface writes shapes that are known in part. By MXNet's convention 0 is an unknown dimension and ()
// a shape of which nothing is known. By NumPy's, which a thread turns on (MXNet's np_shape), 0 is an axis without
// elements, () has no axes, and an unknown dimension is -1.
#pragma once

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

bool uses_numpy_shapes();            // on this thread
bool use_numpy_shapes(bool active);  // returns what was in use

}  // namespace symbind
