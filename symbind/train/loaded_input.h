// Which array an input of an executor was loaded from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "symbind/core/ndarray.h"
#include "symbind/train/batch_split.h"

namespace symbind {

class LoadedInput {
 public:
  // To be followed by finish() when `target` was assigned the samples `slice` of `given`.
  void start(const NDArray& given, BatchSlice slice);
  void finish(const NDArray& target) { target_ = Contents(target); }
  void forget() { target_ = {}; }

  // Is `target` the input, with the samples `slice` of this array element for element? Not if its type was converted,
  // either of them was written since, or memory of either may be written unnoticed (Storage::exported).
  bool is_in(const NDArray& target, const NDArray& given, BatchSlice slice) const;

 private:
  // An array with the elements that it had; does not keep its memory alive.
  class Contents {
   public:
    Contents() = default;  // of no array
    explicit Contents(const NDArray& array);
    bool are_in(const NDArray& array) const;

   private:
    std::weak_ptr<Storage> storage_;
    size_t offset_ = 0;
    Shape shape_;
    DType dtype_ = DType::none;
    uint64_t version_ = 0;
  };

  Contents given_, target_;  // before the one was read, and after the other was written
  BatchSlice slice_;
};

}  // namespace symbind
