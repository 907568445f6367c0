#include "symbind/kvstore/gpu_group.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "symbind/core/device.h"
#include "symbind/core/log.h"

namespace symbind {
namespace {

GpuGroup* group_of_process(const std::vector<Context>& gpus) {
  static std::mutex mutex;
  static std::map<std::vector<Context>, std::unique_ptr<GpuGroup>> groups;
  const std::lock_guard lock(mutex);
  std::unique_ptr<GpuGroup>& group = groups[gpus];
  if (!group) group = open_gpu_group(gpus);
  return group.get();
}

}  // namespace

bool are_different_gpus(std::span<const Context> contexts) {
  std::set<int> different;
  for (const Context context : contexts)
    if (context.is_gpu()) different.insert(gpu_number(context));
  return contexts.size() > 1 && different.size() == contexts.size();
}

GpuGroups nccl_groups() {
  if (const std::string problem = nccl_problem(); !problem.empty()) {
    log_warning("[kvstore] nccl: sums as device does: ", problem);
    return nullptr;
  }
  return [](const std::vector<Context>& contexts, DType dtype) {
    return are_different_gpus(contexts) && nccl_adds(dtype) ? group_of_process(contexts) : nullptr;
  };
}

}  // namespace symbind
