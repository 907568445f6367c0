#include "symbind/backend/cuda/host.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "symbind/backend/cuda/device.h"
#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/core/update_condition.h"
#include "symbind/ops/custom.h"

namespace symbind::cuda_backend {
namespace {

// The kernels that refused the node, with their reasons.
std::string reasons(const NodeView& node) {
  std::string text;
  for (const Implementation& each : Target::get(node.context).implementations(node.op))
    if (const std::string reason = each.refuse ? each.refuse(node) : ""; !reason.empty() && each.tier != Tier::host)
      text += join(text.empty() ? "" : "; ", each.name, ": ", reason);
  return text.empty() ? "it has no GPU kernel" : text;
}

// Warns once for each node of a network that it runs on the host, and why. Custom operators always do.
void warn_once(const NodeView& node) {
  if (!node.source || &node.op == &op_of<Custom>() || &node.op == &op_of<CustomGrad>()) return;
  static std::mutex mutex;
  static std::set<std::string> warned;
  {
    const std::lock_guard lock(mutex);
    if (!warned.insert(node.where()).second) return;
  }
  log_warning(node.where(), " runs on the host instead of ", node.context,
              ", which takes two copies and two waits in every run (", reasons(node), ")");
}

// Inputs, outputs, scratch and the random cursor are consecutive in a block of pinned memory, taken from the pool for
// each run.
class HostStep final : public Kernel {
 public:
  explicit HostStep(const NodeView& node) : device_(CudaDevice::of(node.context)), where_(node.where()) {
    warn_once(node);
    NodeView on_cpu = node;
    on_cpu.context = cpu(node.context.id);
    kernel_ = choose(on_cpu).build(on_cpu);
    in_place = kernel_->in_place;  // the host's copies do not overlap, so what the CPU kernel allows is safe
    capturable = false;

    const Names names = node.op.all_inputs(node.params);
    const std::vector<bool> updated = node.op.updated_inputs(node.params, node.inputs.size());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto& unread = node.op.shape_only;
      const bool read = i >= names.size() || std::find(unread.begin(), unread.end(), names[i]) == unread.end();
      inputs_.push_back({take(node.inputs[i].bytes()), node.inputs[i].bytes(), read, updated[i]});
    }
    for (const auto& output : node.outputs) outputs_.push_back({take(output.bytes()), output.bytes(), false, true});
    scratch_ = take(kernel_->scratch_bytes);
    cached_ = take(kernel_->cached_bytes);
    cursor_ = take(sizeof(RandomCursor));
  }

  void run(const Args& args) override {
    require(!UpdateCondition::current(), where_, " runs on the host, where a device cannot leave it out");
    device_.note(where_);
    const PoolBlock memory(device_.pinned(), total_);
    require(memory.data() != nullptr, where_, " no pinned host memory: ", total_, " bytes were asked for");
    std::byte* const base = memory.data();
    std::vector<void*> inputs(inputs_.size()), outputs(outputs_.size());
    auto* const cursor = reinterpret_cast<RandomCursor*>(base + cursor_);
    for (size_t i = 0; i < outputs_.size(); ++i) outputs[i] = base + outputs_[i].offset;
    bring(args, base, inputs, cursor);
    compute({inputs.data(), outputs.data(), base + scratch_, base + cached_, args.random ? cursor : nullptr, nullptr});
    take_back(args, base, inputs);
  }

 private:
  struct Part {
    size_t offset, bytes;
    bool read;     // is it copied to the host?
    bool written;  // is it copied back?
  };

  void bring(const Args& args, std::byte* base, std::vector<void*>& inputs, RandomCursor* cursor) {
    const Queueing queueing(device_);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Part& part = inputs_[i];
      const bool there = part.read && (args.inputs[i] || part.bytes == 0);
      inputs[i] = there ? base + part.offset : nullptr;
      if (there) to_host(base + part.offset, args.inputs[i], part.bytes);
    }
    if (args.random) to_host(cursor, args.random, sizeof(RandomCursor));
    device_.check(cudaStreamSynchronize(device_.stream()), where_);
  }

  // Other threads may queue meanwhile: the operator may be user-defined, and wait for them.
  void compute(const Args& on_host) {
    Target& target = Target::get(cpu(device_.context().id));
    const uint32_t state = target.enter();
    try {
      if (kernel_->cached_bytes > 0) kernel_->prepare(on_host);
      kernel_->run(on_host);
    } catch (...) {
      target.leave(state);
      throw;
    }
    target.leave(state);
  }

  void take_back(const Args& args, std::byte* base, const std::vector<void*>& inputs) {
    const Queueing queueing(device_);
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].written && inputs[i]) to_device(args.inputs[i], base + inputs_[i].offset, inputs_[i].bytes);
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (args.outputs[i]) to_device(args.outputs[i], base + outputs_[i].offset, outputs_[i].bytes);
    // The block goes back to the pool: the copies from it must be complete.
    device_.check(cudaStreamSynchronize(device_.stream()), where_);
  }

  size_t take(size_t bytes) {
    const size_t offset = total_;
    total_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  void to_host(void* dst, const void* src, size_t bytes) {
    if (bytes) device_.check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, device_.stream()), where_);
  }
  void to_device(void* dst, const void* src, size_t bytes) {
    if (bytes) device_.check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, device_.stream()), where_);
  }

  CudaDevice& device_;
  std::string where_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Part> inputs_, outputs_;
  size_t scratch_ = 0, cached_ = 0, cursor_ = 0, total_ = 0;
};

}  // namespace

Implementation host_implementation() {
  Implementation host;
  host.name = "host";
  host.refuse = [](const NodeView&) { return std::string(); };
  host.build = [](const NodeView& node) -> std::unique_ptr<Kernel> { return std::make_unique<HostStep>(node); };
  host.cache_when_invoked = true;
  host.tier = Tier::host;
  return host;
}

}  // namespace symbind::cuda_backend
