#include "symbind/train/staged_input.h"

namespace symbind {

void StagedInput::start(const NDArray& given, BatchSlice slice, const NDArray& part, const NDArray& target) {
  given_ = {};
  const Storage& from = given.storage();
  Device& device = target.storage().device();
  if (device.is_host() || !from.device().is_host() || from.exported()) return;
  if (&device != device_) {
    upload_ = make_upload_(device);
    device_ = &device;
  }
  if (!upload_) return;
  version_ = from.version();
  upload_->start(part.data(), part.bytes());
  given_ = given;
  slice_ = slice;
  shape_ = part.shape();
}

bool StagedInput::deliver(const NDArray& given, BatchSlice slice, const NDArray& target) {
  const NDArray staged = std::exchange(given_, {});
  if (!staged || !staged.same_array(given) || slice_ != slice) return false;
  if (staged.storage().version() != version_ || staged.storage().exported()) return false;
  if (shape_ != target.shape() || &target.storage().device() != device_) return false;
  upload_->deliver(target.mutable_data(), target.dtype(), given.dtype(), target.size());
  return true;
}

}  // namespace symbind
