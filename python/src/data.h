// Conversion of batches and iterators between Python and C++. Python code may pass any object with the right
// attributes.
#pragma once

#include "symbind/data/iterator.h"

#include "casters.h"

namespace symbind::python {

// A DataDesc from one of ours, from (name, shape), or from anything with these attributes.
DataDesc desc_from(nb::handle value);
std::vector<DataDesc> descs_from(nb::handle value);    // None: none; one or a sequence
nb::list list_of(const std::vector<DataDesc>& descs);  // of symbind.io.DataDesc
nb::object desc_to_python(const DataDesc& desc);

// A bucket's key: any hashable object; None is none. Keys that are equal in Python are equal in C++.
BucketKey bucket_key_from(nb::handle value);
nb::object bucket_key_to_python(const BucketKey& key);

// A batch from anything with `data`; a missing label, pad, index, bucket_key or provide_… means none.
DataBatch batch_from(nb::handle value);
nb::object batch_to_python(const DataBatch& batch);  // a symbind.io.DataBatch

// The iterator itself if it is a C++ one; for any other Python object an adapter that calls its methods (next or
// __next__, reset, provide_data, provide_label, batch_size) with the GIL held. `what` ("train_data") is named in
// errors; `keeper` will store it.
std::shared_ptr<DataIter> iter_from(nb::handle value, const char* what, nb::handle keeper = {});
nb::object iter_to_python(DataIter* iter);  // the object that iter_from was given; None if it is not from Python

}  // namespace symbind::python
