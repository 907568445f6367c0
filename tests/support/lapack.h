// Where LAPACK is missing, tests that factorize matrices on the CPU are skipped. `make` installs it into .venv in the
// source tree: there they always run, and fail without it.
#pragma once

#include <filesystem>
#include <string>

#include "symbind/backend/cpu/lapack.h"

#include "tests/support/source_dir.h"

namespace symbind::testing {

inline bool lapack_is_missing() {
  static const bool missing = !std::filesystem::exists(source_dir() + "/.venv") && !cpu_backend::lapack::part().usable;
  return missing;
}

inline constexpr const char* without_lapack = "LAPACK cannot be opened here: pip install scipy-openblas32";

// An operator that runs on a CPU and may factorize.
inline bool lacks_lapack(const std::string& op, Context context) {
  return op.starts_with("_linalg_") && !context.is_gpu() && lapack_is_missing();
}

}  // namespace symbind::testing
