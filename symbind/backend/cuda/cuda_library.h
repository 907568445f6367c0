// Where the libraries of CUDA are looked for: as Python packages and in the system's folders first, which is the
// loader's work, and then where CUDA is usually installed.
#pragma once

#include "symbind/core/shared_library.h"

namespace symbind::cuda_backend {

constexpr SharedLibraryName cuda_library(const char* title, const char* file, int version, const char* remedy) {
  return {.title = title,
          .file = file,
          .version = version,
          .remedy = remedy,
          .usual_folder = "/usr/local/cuda/lib64",
          .home = &environment::text("CUDA_HOME")};
}

}  // namespace symbind::cuda_backend
