// The sum of arrays that may live on several devices, always added in the order they are listed.
#pragma once

#include <span>
#include <vector>

#include "symbind/core/ndarray.h"

namespace symbind {

// Assigns to `out` the sum of one or more arrays of its shape and type, computed on its device: each element is
// ((a0 + a1) + a2) + …, whatever the number of threads; 16-bit floats are added in float and rounded once (on a GPU:
// after each array). What the device cannot read is copied to `copies` first, which grows to one array per input and
// serves again at the next call. `out` is none of the arrays.
void sum_to(const NDArray& out, std::span<const NDArray> arrays, std::vector<NDArray>& copies);

// Can work on `context` read the array where it is?
bool readable_from(Context context, const NDArray& array);

// The array itself where `context` can read it, else a copy in `slot`, which is made at the first call.
const NDArray& brought_to(Context context, const NDArray& array, NDArray& slot);

}  // namespace symbind
