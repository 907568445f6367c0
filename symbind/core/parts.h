// What this build can use, and what of that is usable on this machine: for reports of problems, and for programs that
// ask before they use a part.
#pragma once

#include <string>
#include <vector>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

struct Part {
  std::string name;  // "cuDNN"
  bool usable = false;
  std::string details;  // its version or file; or why it cannot be used, and what to do
};

// All parts, those of the CPU first. Opens the optional libraries.
std::vector<Part> parts();

}  // namespace symbind
