// Where the sources are. Only source_dir.cc is compiled with the path, so that a compiler cache serves every checkout.
#pragma once

#include <string>

namespace symbind::testing {

const std::string& source_dir();

}  // namespace symbind::testing
