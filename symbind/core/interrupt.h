// Interrupts long loops. The owner of the process (Python, a program with a signal handler) supplies a check for
// interruption; loops over batches call it between batches.
#pragma once

#include <functional>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

// `check` throws if work is to stop. An empty function disables the check. Returns the previous one.
std::function<void()> set_interrupt_check(std::function<void()> check);
void check_interrupt();

}  // namespace symbind
