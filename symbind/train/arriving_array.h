// An array on its way from a device to the host.
#pragma once

#include <memory>
#include <utility>

#include "symbind/core/ndarray.h"
#include "symbind/core/transfer.h"

namespace symbind {

// The values that an array has when this is made, on the host.
class ArrivingArray {
 public:
  explicit ArrivingArray(const NDArray& array);
  ArrivingArray(const Shape& shape, DType dtype, std::shared_ptr<Download> download)
      : shape_(shape), dtype_(dtype), download_(std::move(download)) {}

  bool arrived() const { return !download_ || download_->arrived(); }
  NDArray get() const;  // waits

 private:
  Shape shape_;
  DType dtype_;
  std::shared_ptr<Download> download_;
  NDArray copy_;  // of an array in host memory
};

}  // namespace symbind
