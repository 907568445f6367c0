// The interface of a device for passes: its implementations of an operator, in order of preference, and what each
// accepts, prefers and needs. The backends implement this; nothing above them knows more.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "symbind/core/context.h"
#include "symbind/core/device.h"
#include "symbind/core/random.h"
#include "symbind/graph/op.h"
#include "symbind/graph/symbol.h"
#include "symbind/passes/tensor.h"

namespace symbind {

// A node as an implementation sees it: shapes, types and layouts are resolved.
struct NodeView {
  const OpDef& op;
  const void* params;
  std::string_view name;
  std::span<const Tensor> inputs;  // auxiliary states last
  std::span<const Tensor> outputs;
  bool is_train = false;
  int random_slot = -1;
  Context context;
  const Node* source = nullptr;    // none when an operator is invoked on arrays
  NodeObjects* objects = nullptr;  // objects that the executor's kernels share, if there is an executor

  template <class P>
  const P& as() const {
    return *static_cast<const P*>(params);
  }
  std::string where() const;  // "[Convolution conv1]"
};

// The addresses of one run. The address of an input that is read only for its shape, or of an output that is not read
// and that the kernel does not require, may be null.
struct Args {
  void* const* inputs;
  void* const* outputs;
  void* scratch = nullptr;
  void* cached = nullptr;                // what prepare() has written
  const RandomCursor* random = nullptr;  // in the device's memory
  void* stream = nullptr;                // the device's queue, null on a CPU

  template <class T>
  const T* in(size_t index) const {
    return static_cast<const T*>(inputs[index]);
  }
  template <class T>
  T* state(size_t index) const {  // an auxiliary state, which may be written
    return static_cast<T*>(inputs[index]);
  }
  template <class T>
  T* out(size_t index = 0) const {
    return static_cast<T*>(outputs[index]);
  }
};

// One step, ready to run: shapes, layouts and library primitives are resolved. Outputs are assigned, never added to.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const Args& args) = 0;
  // Writes to args.cached the data derived from the inputs `cached_from` alone: reordered weights, folded statistics.
  // Called if cached_bytes is not 0: in inference, where these are the user's arrays, only when they have changed;
  // otherwise before every run. Outputs and other inputs are undefined; scratch is available.
  virtual void prepare(const Args& /*args*/) {}

  size_t scratch_bytes = 0;
  size_t cached_bytes = 0;
  std::vector<int> cached_from;
  // Pairs (input, output) that may be the same memory.
  std::vector<std::pair<int, int>> in_place;
  // May its work be captured and replayed? (GPU; a step on the host may not.)
  bool capturable = true;
};

// A kernel from a function of Args.
template <class Function>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(Function function) : function_(std::move(function)) {}
  void run(const Args& args) override { function_(args); }

 private:
  Function function_;
};
struct KernelTraits {
  std::vector<std::pair<int, int>> in_place = {};
  size_t scratch_bytes = 0;
  bool capturable = true;
};
template <class Function>
std::unique_ptr<Kernel> make_kernel(Function function, KernelTraits traits = {}) {
  auto kernel = std::make_unique<FunctionKernel<Function>>(std::move(function));
  kernel->in_place = std::move(traits.in_place);
  kernel->scratch_bytes = traits.scratch_bytes;
  kernel->capturable = traits.capturable;
  return kernel;
}

// The layouts that an implementation prefers for its arrays.
struct PreferredLayouts {
  std::vector<Layout> inputs, outputs;
};

// The order in which implementations of one operator are tried.
enum class Tier : uint8_t {
  specialised,  // faster than the libraries for the shapes it accepts
  library,      // oneDNN, cuDNN, cuBLASLt
  converted,    // in another type, by another implementation
  optimised,    // our own, for the shapes it accepts
  plain,        // our own, for every shape
  generated,    // compiled when it is first needed
  host,         // a GPU node that runs on the CPU
};

struct Implementation {
  std::string name;  // "plain", "onednn", "cublaslt", "host"
  // Empty if the node can be run, else the reason of the refusal.
  std::function<std::string(const NodeView&)> refuse;
  std::function<std::unique_ptr<Kernel>(const NodeView&)> build;
  // None: plain arrays. The node's inputs have their current layouts, for implementations that follow them. Elementwise
  // operators always follow their inputs.
  std::function<std::optional<PreferredLayouts>(const NodeView&)> preferred_layouts = nullptr;
  // Building is slow enough that invoke() should cache the kernel.
  bool cache_when_invoked = false;
  Tier tier = Tier::plain;
};

// The implementations a device has of each operator, in the order of their tiers. Filled once by the backend.
class ImplementationTable {
 public:
  void add(const OpDef& op, Implementation implementation);
  template <class P>
  void add(Implementation implementation) {
    add(op_of<P>(), std::move(implementation));
  }
  const std::vector<Implementation>& of(const OpDef& op) const;

 private:
  std::unordered_map<const OpDef*, std::vector<Implementation>> lists_;
};

using QueueWork = std::function<void()>;  // queues work on a device

// A piece of queued work that can be launched again, with the work that follows it.
class Captured {
 public:
  virtual ~Captured() = default;
  virtual void launch() = 0;
  // Later launches queue this instead of the following work of that index. False, and nothing has changed, if the
  // device cannot replace it: it can if both queue the same kernels, with other arguments.
  virtual bool replace_following(size_t /*index*/, const QueueWork& /*work*/) { return false; }
};

class Target {
 public:
  virtual ~Target() = default;
  // The target of a context: cpu and gpu contexts share one each.
  static Target& get(Context context);

  // Ends in an implementation that accepts everything.
  const std::vector<Implementation>& implementations(const OpDef& op);
  // Records what `work` queues on the device, and after it, one after the other, what follows; null if the device does
  // not support it. Work that follows uses no memory but its arrays: the device refuses to allocate any.
  virtual std::unique_ptr<Captured> capture(Device&, const QueueWork& /*work*/,
                                            std::span<const QueueWork> /*following*/ = {}) {
    return nullptr;
  }
  virtual void* stream(Device&) { return nullptr; }
  // Makes the cursor of the next `draws` draws visible to kernels at `cursor` (device memory).
  virtual void start_random(Device& device, RandomCursor* cursor, uint64_t draws) = 0;
  // Called around a run on the calling thread: a CPU flushes denormals in between and restores the caller's state.
  virtual uint32_t enter() { return 0; }
  virtual void leave(uint32_t /*state*/) {}

 protected:
  // Built-in implementations; empty for a user-defined operator.
  virtual const std::vector<Implementation>& listed(const OpDef& op) = 0;
  // A user's kernel as an implementation, and its fallback, if the device has one.
  virtual std::vector<Implementation> own(const OpDef& op) = 0;

 private:
  std::mutex own_mutex_;
  std::unordered_map<const OpDef*, std::vector<Implementation>> own_;  // created on first use
};

// The first implementation on the node's device that accepts the node; fails if there is none. `refused` is called with
// those before it and their reasons.
using RefusalListener = std::function<void(const Implementation&, const std::string& reason)>;
const Implementation& choose(const NodeView& node, const RefusalListener& refused = nullptr);
// The last one, which accepts every node.
const Implementation& last_resort(const OpDef& op, Context context);
// Does the device have an implementation of its own, for some nodes at least?
bool runs_on_device(const OpDef& op, Context context);

// Supplied by the backends when linking.
std::unique_ptr<Target> make_cpu_target();
std::unique_ptr<Target> make_gpu_target();

}  // namespace symbind
