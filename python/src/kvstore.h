// Stores across the border.
#pragma once

#include "symbind/kvstore/kvstore.h"
#include "symbind/train/base_module.h"

#include "casters.h"

namespace symbind::python {

// None, the name of a kind, or a KVStore.
KVStoreArg kvstore_from(nb::handle value);
// The store itself, or None.
nb::object to_python(const KVStorePtr& store);

}  // namespace symbind::python
