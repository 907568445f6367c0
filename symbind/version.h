// The version of these headers, for the preprocessor, and of the library a program runs with. CMakeLists.txt holds the
// same number, and configuring fails when the two differ.
#pragma once

#include "symbind/core/api.h"

#define SYMBIND_VERSION_MAJOR 0
#define SYMBIND_VERSION_MINOR 1
#define SYMBIND_VERSION_PATCH 0
// For comparisons: SYMBIND_VERSION >= 10203 is 1.2.3 or newer.
#define SYMBIND_VERSION (SYMBIND_VERSION_MAJOR * 10000 + SYMBIND_VERSION_MINOR * 100 + SYMBIND_VERSION_PATCH)

namespace SYMBIND_API symbind {

// "0.1.0": of the library that was loaded, which may be newer than the headers.
const char* version();

}  // namespace symbind
