// Where the random state of every device stands, so that a run that is resumed draws what it would have drawn.
#pragma once

#include <map>
#include <string>

#include "symbind/core/random.h"

namespace symbind {

// By context ("cpu(0)"), of all devices in use; "host" is the generator of shuffles and initializers.
std::map<std::string, RandomCursor> random_cursors();
// Contexts that this machine does not have are passed over.
void restore_random_cursors(const std::map<std::string, RandomCursor>& cursors);

}  // namespace symbind
