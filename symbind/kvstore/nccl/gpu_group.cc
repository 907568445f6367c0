#include "symbind/kvstore/gpu_group.h"

#include <algorithm>
#include <map>

#include "symbind/core/device_queue.h"
#include "symbind/core/error.h"
#include "symbind/kvstore/nccl/functions.h"

namespace symbind {
namespace nccl {

namespace {

// Holds the queues of several GPUs, taken in the order of their numbers by every thread, so that no two threads wait
// for each other, and all GPUs get the operations of several groups in one order.
class Queues {
 public:
  explicit Queues(std::span<const Context> gpus) {
    std::vector<Context> sorted(gpus.begin(), gpus.end());
    std::sort(sorted.begin(), sorted.end());
    std::map<Context, cudaStream_t> streams;
    for (const Context gpu : sorted) {
      held_.push_back(hold_queue(Device::get(gpu)));
      streams[gpu] = static_cast<cudaStream_t>(held_.back().stream);
    }
    for (const Context gpu : gpus) streams_.push_back(streams[gpu]);
  }
  ~Queues() {
    while (!held_.empty()) held_.pop_back();
  }
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  cudaStream_t operator[](size_t index) const { return streams_[index]; }

 private:
  std::vector<DeviceQueue> held_;
  std::vector<cudaStream_t> streams_;  // in the order of the group
};

// The communicators are never destroyed: they exist as long as the process, at whose end the driver may be unloaded.
class NcclGroup final : public GpuGroup {
 public:
  explicit NcclGroup(std::span<const Context> gpus) : gpus_(gpus.begin(), gpus.end()), comms_(gpus.size()) {
    std::vector<int> ids;
    for (const Context gpu : gpus_) ids.push_back(gpu_number(gpu));
    const Queues queues(gpus_);
    check(CommInitAll(comms_.data(), static_cast<int>(ids.size()), ids.data()), "connecting GPUs");
  }

  void reduce(std::span<const Sum> sums) override {
    in_batches(sums, "summing over GPUs", [&](const Sum& sum, const Queues& queues) {
      const size_t root = index_of(sum.to.context());
      const auto count = static_cast<size_t>(sum.to.size());
      const ncclDataType_t type = *type_of(sum.to.dtype());
      void* const to = sum.to.mutable_data();
      for (size_t i = 0; i < gpus_.size(); ++i)
        check(Reduce(sum.from[i].data(), i == root ? to : nullptr, count, type, ncclSum, static_cast<int>(root),
                     comms_[i], queues[i]),
              "summing over GPUs");
    });
  }

  void broadcast(std::span<const Copy> copies) override {
    in_batches(copies, "copying to GPUs", [&](const Copy& copy, const Queues& queues) {
      const size_t root = index_of(copy.from.context());
      for (size_t i = 0; i < gpus_.size(); ++i) {
        void* const to = copy.to[i].mutable_data();
        check(Broadcast(i == root ? copy.from.data() : to, to, copy.from.bytes(), ncclUint8, static_cast<int>(root),
                        comms_[i], queues[i]),
              "copying to GPUs");
      }
    });
  }

 private:
  size_t index_of(Context gpu) const {
    const auto found = std::find(gpus_.begin(), gpus_.end(), gpu);
    require(found != gpus_.end(), "[NCCL] ", gpu, " is not one of the GPUs of this group");
    return static_cast<size_t>(found - gpus_.begin());
  }

  template <class Item, class Queue>
  void in_batches(std::span<const Item> items, const char* doing, const Queue& queue) {
    const size_t most = std::max<size_t>(1, most_operations / gpus_.size());
    const Queues queues(gpus_);
    for (size_t begin = 0; begin < items.size(); begin += most)
      grouped(doing, [&] {
        for (const Item& item : items.subspan(begin, std::min(most, items.size() - begin))) queue(item, queues);
      });
  }

  const std::vector<Context> gpus_;
  std::vector<ncclComm_t> comms_;
};

}  // namespace
}  // namespace nccl

std::unique_ptr<GpuGroup> open_gpu_group(std::span<const Context> gpus) {
  return std::make_unique<nccl::NcclGroup>(gpus);
}

}  // namespace symbind
