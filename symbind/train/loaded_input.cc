#include "symbind/train/loaded_input.h"

namespace symbind {

LoadedInput::Contents::Contents(const NDArray& array)
    : storage_(array.storage_ptr()),
      offset_(array.byte_offset()),
      shape_(array.shape()),
      dtype_(array.dtype()),
      version_(array.storage().version()) {}

bool LoadedInput::Contents::are_in(const NDArray& array) const {
  return array && storage_.lock() == array.storage_ptr() && offset_ == array.byte_offset() && shape_ == array.shape() &&
         dtype_ == array.dtype() && version_ == array.storage().version() && !array.storage().exported();
}

void LoadedInput::start(const NDArray& given, BatchSlice slice) {
  given_ = Contents(given);
  target_ = {};
  slice_ = slice;
}

bool LoadedInput::is_in(const NDArray& target, const NDArray& given, BatchSlice slice) const {
  return slice_ == slice && given_.are_in(given) && target_.are_in(target) && target.dtype() == given.dtype();
}

}  // namespace symbind
