// Writes what the GPU runs to the file KERNEL_TRACE names: a line per kernel, copy and fill with its begin and end in
// nanoseconds, tab-separated. CUDA loads this library into a program whose CUDA_INJECTION64_PATH names it;
// kernel_trace.py sets both and sums up.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include <cupti.h>

namespace {

struct Entry {
  uint64_t begin, end;
  std::string name;
};

struct Trace {
  std::mutex mutex;
  std::vector<Entry> entries;
};
// Never destroyed: CUPTI may call until the process has ended.
Trace& trace() {
  static auto* const all = new Trace;
  return *all;
}

void offer_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *size = size_t{8} << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *most_records = 0;  // as many as fit
}

// The structures are those of CUDA 12; later versions add members at the end.
void take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t used) {
  const std::lock_guard lock(trace().mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, used, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto* const kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
      const std::string shape = " <" + std::to_string(kernel->gridX) + "," + std::to_string(kernel->gridY) + "," +
                                std::to_string(kernel->gridZ) + "> r" + std::to_string(kernel->registersPerThread);
      trace().entries.push_back({kernel->start, kernel->end, kernel->name + shape});
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto* const copy = reinterpret_cast<const CUpti_ActivityMemcpy5*>(record);
      trace().entries.push_back({copy->start, copy->end, "copy of " + std::to_string(copy->bytes) + " bytes"});
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      const auto* const fill = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      trace().entries.push_back({fill->start, fill->end, "fill of " + std::to_string(fill->bytes) + " bytes"});
    }
  }
  std::free(buffer);
}

void write_trace() {
  cuptiActivityFlushAll(1);
  const std::lock_guard lock(trace().mutex);
  std::vector<Entry>& entries = trace().entries;
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
  const char* const path = std::getenv("KERNEL_TRACE");
  std::FILE* const file = path ? std::fopen(path, "w") : nullptr;
  if (!file) return;
  for (const Entry& entry : entries)
    std::fprintf(file, "%llu\t%llu\t%s\n", static_cast<unsigned long long>(entry.begin),
                 static_cast<unsigned long long>(entry.end), entry.name.c_str());
  std::fclose(file);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (cuptiActivityRegisterCallbacks(offer_buffer, take_buffer) != CUPTI_SUCCESS) return 0;
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET})
    if (cuptiActivityEnable(kind) != CUPTI_SUCCESS) return 0;
  std::atexit(write_trace);
  return 1;
}
