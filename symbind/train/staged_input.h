// An input of the next batch, on its way to a device while the device still works on earlier ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "symbind/core/ndarray.h"
#include "symbind/core/transfer.h"
#include "symbind/train/executor_group.h"

namespace symbind {

class StagedInput {
 public:
  using MakeUpload = std::function<std::unique_ptr<Upload>(Device&)>;
  explicit StagedInput(MakeUpload make = make_upload) : make_upload_(std::move(make)) {}

  // Starts to copy `part`, the samples `slice` of `given`, to the device of `target`. Does nothing if the target is in
  // host memory, or the array is not, or its memory may be written unnoticed (Storage::exported).
  void start(const NDArray& given, BatchSlice slice, const NDArray& part, const NDArray& target);
  // Queues the copy of the staged samples to `target`, converted to its type, and returns true, if they are those of
  // this array and it was not written since. Returns false otherwise. Either way the samples are no longer staged.
  bool deliver(const NDArray& given, BatchSlice slice, const NDArray& target);

 private:
  MakeUpload make_upload_;
  std::unique_ptr<Upload> upload_;
  const Device* device_ = nullptr;  // of upload_
  NDArray given_;                   // none: nothing is staged
  BatchSlice slice_;
  Shape shape_;           // of the part
  uint64_t version_ = 0;  // of the memory of given_, before it was copied
};

}  // namespace symbind
