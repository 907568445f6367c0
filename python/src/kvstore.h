// Conversion of stores between Python and C++.
#pragma once

#include "symbind/kvstore/kvstore.h"
#include "symbind/train/base_module.h"

#include "casters.h"

namespace symbind::python {

// None, the name of a kind, or a KVStore; `keeper` will store it.
KVStoreArg kvstore_from(nb::handle value, nb::handle keeper = {});
// The store itself, or None.
nb::object to_python(const KVStorePtr& store);

}  // namespace symbind::python
