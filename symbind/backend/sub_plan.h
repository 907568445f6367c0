// A network inside a kernel: composed operators, and the bodies of loops. It is compiled when the kernel is built, for
// arrays of known shapes on one context, and runs in scratch memory that the kernel requests.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "symbind/graph/symbol.h"
#include "symbind/passes/lower.h"
#include "symbind/passes/target.h"

namespace symbind {

struct SubPlanOptions {
  Context context = {};
  bool is_train = false;
  int random_slot = 0;                 // of its first random operator
  std::vector<size_t> gradients = {};  // of these variables; none: forward only
  std::vector<bool> adds = {};         // which of them are added to their arrays; empty: none
  bool may_lack_outputs = true;        // may a run leave outputs and gradients without addresses?
};

// The addresses of one run. Those of arrays that the network does not use may be null; an output or a gradient without
// an address is written to scratch memory.
struct SubPlanArrays {
  std::span<void* const> inputs;          // by variable
  std::span<void* const> outputs;         // by output
  std::span<void* const> out_grads = {};  // by output, for backward
  std::span<void* const> gradients = {};  // in the order of SubPlanOptions::gradients; added ones must have an address
};

// Serves one thread at a time.
class SubPlan {
 public:
  // `variables` are the inputs of `network`, and `tensors` their shapes and types. Fails if they do not fit.
  SubPlan(const Symbol& network, std::span<const Symbol> variables, std::span<const Tensor> tensors,
          const SubPlanOptions& options);

  size_t scratch_bytes() const { return scratch_bytes_; }
  bool capturable() const { return capturable_; }
  int random_slots() const { return plan_.graph.random_slots; }
  Tensor output(size_t index) const { return plan_.graph.tensor(plan_.graph.outputs[index]); }
  bool needs_out_grad(size_t index) const { return index < out_grads_.size() && out_grads_[index] >= 0; }

  // `outer` supplies stream, random cursor and scratch. backward() reads what forward() left in scratch.
  void forward(const Args& outer, const SubPlanArrays& arrays);
  void backward(const Args& outer, const SubPlanArrays& arrays);

 private:
  struct Step {
    Kernel* kernel;
    const GraphNode* node;
    size_t first_address;
    bool prepares;
  };
  enum class Role : uint8_t { none, input, output, out_grad, gradient, old_grad };
  static constexpr size_t no_spare = ~size_t{0};
  struct Outside {
    Role role = Role::none;
    size_t index = 0;
    size_t spare = no_spare;  // offset in scratch for results that are not read
  };

  void find_roles(std::span<const Symbol> variables);
  void make_steps();
  void make_spares(bool may_lack_outputs);
  void run(size_t begin, size_t end, const Args& outer, const SubPlanArrays& arrays);
  void take_bases(const Args& outer, const SubPlanArrays& arrays);
  void* address(const Location& location, std::byte* scratch) const;

  Lowered plan_;
  std::vector<Outside> outside_;
  std::vector<void*> bases_;    // of the outside arrays, in this run
  std::vector<int> out_grads_;  // the outside array of each output's gradient, -1: not read
  std::vector<Step> steps_;
  std::vector<void*> addresses_;
  size_t forward_steps_ = 0;
  size_t arena_bytes_ = 0, scratch_bytes_ = 0;
  bool capturable_ = true;
};

}  // namespace symbind
