#include "tests/support/source_dir.h"

namespace symbind::testing {

const std::string& source_dir() {
  static const std::string path = SYMBIND_SOURCE_DIR;
  return path;
}

}  // namespace symbind::testing
