// A way out of long loops. The owner of the process (Python, a program with a signal handler) says how to notice that
// it is to stop; loops over batches ask between them.
#pragma once

#include <functional>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

// `check` throws when work is to stop. An empty one asks nothing. Returns the one before.
std::function<void()> set_interrupt_check(std::function<void()> check);
void check_interrupt();

}  // namespace symbind
