// Each direction has a stream of its own, so that a copy to the host, which waits for the work before it, does not hold
// up the next batch. Events order these streams and the device's queue; they are recorded and waited for by a thread
// that holds a Queueing, since recording the queue while it is captured would make the copy part of the captured plan.
#include "symbind/core/transfer.h"

#include <cstring>
#include <optional>
#include <vector>

#include "symbind/backend/cuda/copy_arrays.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/event.h"
#include "symbind/backend/cuda/faults.h"
#include "symbind/core/error.h"
#include "symbind/core/parallel.h"

namespace symbind {
namespace cuda_backend {
namespace {

class Stream {
 public:
  explicit Stream(CudaDevice& device) {
    const CurrentDevice current(device.id());
    device.check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// The device's stream of that name.
cudaStream_t stream_for(CudaDevice& device, const char* name) {
  const auto stream = device.library(name, [&]() -> std::shared_ptr<void> { return std::make_shared<Stream>(device); });
  return static_cast<const Stream*>(stream.get())->get();  // the device keeps it
}

// A block on the device and one of the same size in pinned host memory, both from pools. Their next users rely on the
// device's queue and on the host: the owner makes both wait for its copies before it is destroyed.
class Blocks {
 public:
  Blocks(CudaDevice& device, size_t bytes) : device_(device), bytes_(bytes), pinned_(device.pinned(), bytes) {
    require(pinned_.data() != nullptr, "[", device.context(), "] no pinned host memory: ", bytes,
            " bytes were asked for");
    on_device_ = device.allocate(bytes);
  }
  ~Blocks() { device_.release(on_device_, bytes_); }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  size_t bytes() const { return bytes_; }
  std::byte* on_host() const { return pinned_.data(); }
  std::byte* on_device() const { return static_cast<std::byte*>(on_device_); }

 private:
  CudaDevice& device_;
  size_t bytes_;
  PoolBlock pinned_;
  void* on_device_ = nullptr;
};

// Copies on several threads: one alone does not use the bandwidth of the host's memory.
void copy_on_host(std::byte* dst, const void* src, size_t bytes) {
  constexpr int64_t worth_a_thread = int64_t{1} << 20;
  parallel_for(static_cast<int64_t>(bytes), worth_a_thread, [&](int64_t begin, int64_t end) {
    std::memcpy(dst + begin, static_cast<const std::byte*>(src) + begin, static_cast<size_t>(end - begin));
  });
}

// The host copies the arrays to pinned memory, the upload stream moves them to the buffer, and the queue copies them to
// where they are used. One buffer is enough: while the queue runs a step, the next batch can be on its way. A third
// batch waits until the first was taken from the buffer, so that a host which is ahead of the device stays two steps
// ahead.
class CudaUpload final : public Upload {
 public:
  explicit CudaUpload(CudaDevice& device)
      : device_(device), stream_(stream_for(device, "uploads")), copied_(device), delivered_(device) {}
  ~CudaUpload() override { release(); }

  void start(std::span<const Source> sources) override {
    offsets_.clear();
    size_t bytes = 0;
    for (const Source& source : sources) {
      bytes = (bytes + alignment - 1) / alignment * alignment;
      offsets_.push_back(bytes);
      bytes += source.bytes;
    }
    if (bytes == 0) return;
    reserve(bytes);
    device_.check(copied_.wait(), "waiting for a copy to the GPU");
    for (size_t i = 0; i < sources.size(); ++i)
      copy_on_host(blocks_->on_host() + offsets_[i], sources[i].data, sources[i].bytes);
    const Queueing queueing(device_);
    delivered_.make_wait(device_, stream_);
    device_.check(cudaMemcpyAsync(blocks_->on_device(), blocks_->on_host(), bytes, cudaMemcpyHostToDevice, stream_),
                  "copying to the GPU");
    copied_.record(stream_);
  }

  // Arrays whose type stays are copied in one launch.
  void deliver(std::span<const Target> targets) override {
    std::vector<CopiedBytes> copies;
    const Queueing queueing(device_);
    copied_.make_wait(device_, device_.stream());
    for (const Target& target : targets) {
      if (target.count == 0) continue;
      const std::byte* const source = blocks_->on_device() + offsets_.at(target.source);
      if (target.to == target.from)
        copies.push_back({target.data, source, static_cast<size_t>(target.count) * size_of(target.to)});
      else
        device_.cast(target.data, target.to, source, target.from, target.count);
    }
    device_.note("[copy of a batch]");
    queue_copies(device_.stream(), copies);
    device_.check_queued("copying a batch");
    delivered_.record(device_.stream());
  }

 private:
  static constexpr size_t alignment = 256;

  void reserve(size_t bytes) {
    if (blocks_ && blocks_->bytes() >= bytes) return;
    release();
    blocks_ = std::make_unique<Blocks>(device_, bytes);
    const Queueing queueing(device_);
    delivered_.record(device_.stream());  // work queued earlier may still use the block
  }
  void release() {
    copied_.wait();
    blocks_.reset();
  }

  CudaDevice& device_;
  cudaStream_t stream_;
  CudaEvent copied_, delivered_;
  std::unique_ptr<Blocks> blocks_;
  std::vector<size_t> offsets_;  // of the arrays in the blocks
};

// The queue copies the data to a buffer, so that later work may overwrite it, and the download stream moves it to the
// host.
class CudaDownload final : public Download {
 public:
  CudaDownload(CudaDevice& device, const void* src, size_t bytes) : device_(device), copied_(device), arrived_(device) {
    if (bytes == 0) return;
    blocks_ = std::make_unique<Blocks>(device, bytes);
    const Queueing queueing(device);
    const cudaStream_t stream = stream_for(device, "downloads");
    device.copy_within(blocks_->on_device(), src, bytes);
    copied_.record(device.stream());
    copied_.make_wait(device, stream);
    device.check(cudaMemcpyAsync(blocks_->on_host(), blocks_->on_device(), bytes, cudaMemcpyDeviceToHost, stream),
                 "copying from the GPU");
    arrived_.record(stream);
  }
  ~CudaDownload() override { arrived_.wait(); }

  bool arrived() override { return arrived_.reached(); }
  const void* data() override {
    device_.check(arrived_.wait(), "copying from the GPU");
    {
      const Queueing queueing(device_);
      throw_faults(device_);
    }
    device_.throw_faults_of_sources();
    return blocks_ ? blocks_->on_host() : nullptr;
  }

 private:
  CudaDevice& device_;
  std::unique_ptr<Blocks> blocks_;
  CudaEvent copied_, arrived_;
};

// The download stream copies the array as soon as the event is reached. Neither the queue nor its lock is needed for
// the data, so that a thread that must not wait can poll and read it.
class CudaEarlyDownload final : public Download {
 public:
  CudaEarlyDownload(CudaDevice& device, const void* src, size_t bytes, const CudaEvent& after)
      : device_(device), arrived_(device) {
    if (bytes == 0) return;
    pinned_.emplace(device.pinned(), bytes);
    require(pinned_->data() != nullptr, "[", device.context(), "] no pinned host memory: ", bytes,
            " bytes were asked for");
    const CurrentDevice current(device.id());
    const cudaStream_t stream = stream_for(device, "downloads");
    after.make_wait(device, stream);
    device.check(cudaMemcpyAsync(pinned_->data(), src, bytes, cudaMemcpyDeviceToHost, stream), "copying from the GPU");
    arrived_.record(stream);
  }
  ~CudaEarlyDownload() override { arrived_.wait(); }

  bool arrived() override { return arrived_.reached(); }
  const void* data() override {
    device_.check(arrived_.wait(), "copying from the GPU");
    return pinned_ ? pinned_->data() : nullptr;
  }

 private:
  CudaDevice& device_;
  std::optional<PoolBlock> pinned_;
  CudaEvent arrived_;
};

}  // namespace
}  // namespace cuda_backend

std::unique_ptr<Upload> make_gpu_upload(Device& device) {
  return std::make_unique<cuda_backend::CudaUpload>(cuda_backend::CudaDevice::of(device));
}

std::unique_ptr<Download> start_gpu_download(Device& device, const void* src, size_t bytes) {
  return std::make_unique<cuda_backend::CudaDownload>(cuda_backend::CudaDevice::of(device), src, bytes);
}

std::unique_ptr<Download> start_gpu_download(Device& device, const void* src, size_t bytes, const DeviceEvent& after) {
  return std::make_unique<cuda_backend::CudaEarlyDownload>(cuda_backend::CudaDevice::of(device), src, bytes,
                                                           static_cast<const cuda_backend::CudaEvent&>(after));
}

}  // namespace symbind
