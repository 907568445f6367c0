// The inputs of the next batch, on their way to a device while the device still works on earlier ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/core/transfer.h"
#include "symbind/train/batch_split.h"

namespace symbind {

class StagedBatch {
 public:
  using MakeUpload = std::function<std::unique_ptr<Upload>(Device&)>;
  explicit StagedBatch(MakeUpload make = make_upload) : make_upload_(std::move(make)) {}

  // An input of an executor: it gets the samples `slice` of `given`.
  struct Input {
    std::string name;
    NDArray given;
    BatchSlice slice;
    NDArray target;
  };
  // Starts to copy `parts`, the samples of these inputs, to the devices of their targets. Leaves out those whose target
  // is in host memory, whose array is not, or whose memory may be written unnoticed (Storage::exported).
  void start(std::span<const Input> inputs, std::span<const NDArray> parts);
  // Queues the copies of staged samples to their targets, converted to the targets' types, and returns which inputs
  // have them: those whose array is the staged one and was not written since. Nothing is staged any more.
  std::vector<bool> deliver(std::span<const Input> inputs);

 private:
  struct OnDevice {
    Device* device;
    std::unique_ptr<Upload> upload;
  };
  struct Staged {
    NDArray given;
    BatchSlice slice;
    Shape shape;        // of the part
    uint64_t version;   // of the memory of `given`, before it was copied
    size_t at, source;  // in devices_, and in the upload
  };
  size_t index_of(Device& device);
  bool is_in(const Staged& staged, const Input& input) const;

  MakeUpload make_upload_;
  std::vector<OnDevice> devices_;  // most executors have one
  std::map<std::string, Staged> staged_;
};

}  // namespace symbind
