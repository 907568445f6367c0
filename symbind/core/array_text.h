// Arrays as text, laid out as NumPy does it: users compare our output with MXNet's line by line.
#pragma once

#include <string>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

class NDArray;

// The values alone: "[[1.  2.5]\n [3.  4. ]]". Of more than a thousand, only the first and last are shown.
std::string values_text(const NDArray& array);

}  // namespace symbind
