// The folder for files that can be recreated: measured choices of kernels.
#pragma once

#include <string>

namespace symbind {

// SYMBIND_CACHE_DIR; else symbind in XDG_CACHE_HOME, or in .cache of the user's folder. Empty if nothing is to be
// stored: the variable is `off`, or there is no such folder. The folder need not exist.
std::string cache_folder();

}  // namespace symbind
