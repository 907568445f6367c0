#include "symbind/train/arriving_array.h"

namespace symbind {

ArrivingArray::ArrivingArray(const NDArray& array) : shape_(array.shape()), dtype_(array.dtype()) {
  download_ = start_download(array.storage().device(), array.data(), array.bytes());
  if (!download_) copy_ = array.copy();
}

NDArray ArrivingArray::get() const {
  if (!download_) return copy_;
  return NDArray::from_blob(const_cast<void*>(download_->data()), shape_, dtype_, download_);
}

}  // namespace symbind
