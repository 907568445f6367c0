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

// A batch for steps that Python defines: these are handed the object, whatever it holds. Arrays that C++ would have to
// convert, or cannot read, are left to them: the batch then has its source and its pad alone.
DataBatch batch_for_python(nb::handle value);
bool has_only_source(const DataBatch& batch);
std::vector<NDArray> read_label(const DataBatch& batch);  // from the source if there is only this
// The same batch with what C++ reads, if it is there.
class ReadBatch {
 public:
  explicit ReadBatch(const DataBatch& batch);
  const DataBatch& operator*() const { return read_ ? *read_ : given_; }

 private:
  const DataBatch& given_;
  std::optional<DataBatch> read_;
};

// The iterator itself if it is a C++ one; for any other Python object an adapter that calls its methods (next or
// __next__, reset, provide_data, provide_label, batch_size) with the GIL held. `what` ("train_data") is named in
// errors; `keeper` will store it.
// `for_python`: its batches are those of batch_for_python, except where C++ makes them.
std::shared_ptr<DataIter> iter_from(nb::handle value, const char* what, nb::handle keeper = {},
                                    bool for_python = false);
// provide_data or provide_label as the object that iter_from was given has it; invalid if it is not from Python.
nb::object described_by_python(DataIter& iter, const char* name);
nb::object iter_to_python(DataIter* iter);  // the object that iter_from was given; None if it is not from Python

}  // namespace symbind::python
