// Conversion of bucket keys between Python and C++.
#pragma once

#include "symbind/data/bucket_key.h"

#include "casters.h"

namespace symbind::python {

// A bucket's key: any hashable object; None is none. Keys that are equal in Python are equal in C++.
BucketKey bucket_key_from(nb::handle value);
nb::object bucket_key_to_python(const BucketKey& key);

}  // namespace symbind::python
