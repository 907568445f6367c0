#include "symbind/core/device.h"

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "symbind/core/error.h"
#include "symbind/core/random_cursors.h"

namespace symbind {
namespace {

// Devices live until the process ends: arrays in static variables may outlast any order of destruction.
struct DeviceTable {
  std::mutex mutex;
  std::map<Context, std::unique_ptr<Device>> devices;
  std::optional<uint64_t> seed;
};

DeviceTable& table() {
  static auto* all = new DeviceTable;  // NOLINT: never destroyed
  return *all;
}

const std::string host_stream = "host";  // among the cursors, in files too

}  // namespace

Device& Device::get(Context context) {
  require(context.id >= 0, "the context ", context, " has a negative number");
  DeviceTable& all = table();
  const std::lock_guard lock(all.mutex);
  auto& device = all.devices[context];
  if (!device) {
    try {
      device = context.is_gpu() ? make_gpu_device(context) : make_cpu_device(context);
    } catch (...) {
      all.devices.erase(context);
      throw;
    }
    if (all.seed) device->random().seed(*all.seed);
  }
  return *device;
}

void* Device::allocate(size_t bytes) {
  void* data = allocate_bytes(bytes);
  const int64_t now = live_.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
  int64_t peak = peak_.load();
  while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
  }
  return data;
}

void Device::release(void* data, size_t bytes) noexcept {
  live_.fetch_sub(static_cast<int64_t>(bytes));
  release_bytes(data, bytes);
}

MemoryStats Device::memory() const { return {live_.load(), peak_.load(), pooled_bytes()}; }

void Device::reset_peak() { peak_.store(live_.load()); }

void copy_bytes(Device& dst_device, void* dst, Device& src_device, const void* src, size_t bytes) {
  if (bytes == 0) return;
  if (&dst_device == &src_device) return dst_device.copy_within(dst, src, bytes);
  if (src_device.is_host()) return dst_device.copy_from_host(dst, src, bytes);
  if (dst_device.is_host()) return src_device.copy_to_host(dst, src, bytes);
  dst_device.copy_from_device(dst, src_device, src, bytes);
}

void waitall() {
  DeviceTable& all = table();
  std::vector<Device*> devices;  // synchronized without the lock: their queued work may look up a device
  {
    const std::lock_guard lock(all.mutex);
    for (auto& [context, device] : all.devices) devices.push_back(device.get());
  }
  for (Device* device : devices) device->synchronize();
}

void seed(uint64_t value) {
  DeviceTable& all = table();
  const std::lock_guard lock(all.mutex);
  all.seed = value;
  for (auto& [context, device] : all.devices) device->random().seed(value);
  host_random().seed(value);
}

std::map<std::string, RandomCursor> random_cursors() {
  DeviceTable& all = table();
  const std::lock_guard lock(all.mutex);
  std::map<std::string, RandomCursor> cursors;
  for (auto& [context, device] : all.devices) cursors[context.str()] = device->random().peek();
  cursors[host_stream] = host_random().peek();
  return cursors;
}

void restore_random_cursors(const std::map<std::string, RandomCursor>& cursors) {
  for (const auto& [name, cursor] : cursors) {
    if (name == host_stream) {
      host_random().restore(cursor);
      continue;
    }
    const Context context = Context::from_string(name);
    if (context.is_gpu() && context.id >= count_gpu_devices()) continue;
    Device::get(context).random().restore(cursor);
  }
}

KeepRandomStreams::KeepRandomStreams(Which which) : before_(random_cursors()) {
  if (which == Which::host) std::erase_if(before_, [](const auto& entry) { return entry.first != host_stream; });
}

KeepRandomStreams::~KeepRandomStreams() { restore_random_cursors(before_); }

Storage::Storage(Device& device, size_t bytes) : device_(device), data_(device.allocate(bytes)), bytes_(bytes) {}

Storage::Storage(Device& device, void* data, size_t bytes, std::shared_ptr<void> owner)
    : device_(device), data_(data), bytes_(bytes), owner_(std::move(owner)), exported_(true) {}

std::shared_ptr<Storage> Storage::borrowed(Device& device, void* data, size_t bytes) {
  static const auto nobody = std::make_shared<char>();
  return std::make_shared<Storage>(device, data, bytes, nobody);
}

void Storage::copy_borrowed() {
  if (!owner_) return;
  void* const own = device_.allocate(bytes_);
  device_.copy_within(own, data_, bytes_);
  data_ = own;
  owner_.reset();
}

Storage::~Storage() {
  if (!owner_) device_.release(data_, bytes_);
}

}  // namespace symbind
