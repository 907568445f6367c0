// Conversion of batches and of the descriptions of inputs between Python and C++. Python code may pass any object with
// the right attributes.
#pragma once

#include <optional>
#include <vector>

#include "symbind/data/iterator.h"

#include "casters.h"

namespace symbind::python {

// A DataDesc from one of ours, from (name, shape), or from anything with these attributes.
DataDesc desc_from(nb::handle value);
std::vector<DataDesc> descs_from(nb::handle value);    // None: none; one or a sequence
nb::list list_of(const std::vector<DataDesc>& descs);  // of symbind.io.DataDesc

// A batch from anything with `data`; a missing label, pad, index, bucket_key or provide_… means none.
DataBatch batch_from(nb::handle value);
// A symbind.io.DataBatch. A batch that came from Python is returned unchanged, with its other attributes.
nb::object batch_to_python(const DataBatch& batch);
nb::handle batch_class();  // symbind.io.DataBatch itself

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

}  // namespace symbind::python
