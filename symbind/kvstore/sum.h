// The sum of arrays that may be on several devices, always added in the order given.
#pragma once

#include <span>
#include <vector>

#include "symbind/core/ndarray.h"

namespace symbind {

// Assigns to `out` the sum of one or more arrays of its shape and type, computed on its device: each element is
// ((a0 + a1) + a2) + …, whatever the number of threads; 16-bit floats are added in float and rounded once (on a GPU:
// after each array). Arrays that the device cannot read are copied to `copies` first, which grows to one array per
// input and is reused by the next call. `out` is none of the arrays.
void sum_to(const NDArray& out, std::span<const NDArray> arrays, std::vector<NDArray>& copies);

// Can work on `context` read the array where it is?
bool readable_from(Context context, const NDArray& array);

// The array itself where `context` can read it, else a copy in `slot`, which is allocated at the first call.
const NDArray& brought_to(Context context, const NDArray& array, NDArray& slot);

}  // namespace symbind
