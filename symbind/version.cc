#include "symbind/version.h"

// Two steps, so that the numbers and not their names become text.
#define SYMBIND_TEXT_OF(number) #number
#define SYMBIND_TEXT(number) SYMBIND_TEXT_OF(number)

namespace symbind {

const char* version() {
  return SYMBIND_TEXT(SYMBIND_VERSION_MAJOR) "." SYMBIND_TEXT(SYMBIND_VERSION_MINOR) "." SYMBIND_TEXT(
      SYMBIND_VERSION_PATCH);
}

}  // namespace symbind
