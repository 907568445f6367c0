// The GPU as a target of plans: implementation lists that end in the host's, and CUDA graphs of queued work.
#pragma once

#include <unordered_map>
#include <vector>

#include "symbind/passes/step_capture.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

class CudaTarget final : public Target, public StepCapture {
 public:
  CudaTarget();
  // Null if CUDA cannot capture the work: it then runs step by step, and reports errors itself. Other threads that
  // queue work on the device wait until it is captured.
  std::unique_ptr<Captured> capture(Device& device, const QueueWork& work,
                                    std::span<const QueueWork> following) override;
  std::unique_ptr<Captured> capture_steps(Device& device, std::span<const std::vector<size_t>> waits,
                                          const std::function<void(size_t step)>& run_step,
                                          std::span<const size_t> joined,
                                          const std::function<void(size_t step)>& run_joined,
                                          std::span<const Following> following) override;
  void* stream(Device& device) override;
  void start_random(Device& device, RandomCursor* cursor, uint64_t draws) override;

 protected:
  const std::vector<Implementation>& listed(const OpDef& op) override;
  std::vector<Implementation> own(const OpDef& op) override;

 private:
  std::unordered_map<const OpDef*, std::vector<Implementation>> lists_;
};

}  // namespace symbind::cuda_backend
