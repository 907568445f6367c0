// Operators that are composed of others (ops/composition.h), on any device.
#pragma once

#include "symbind/passes/target.h"

namespace symbind {

// Adds an implementation of each to the table of a device.
void add_composed(ImplementationTable& table);

}  // namespace symbind
