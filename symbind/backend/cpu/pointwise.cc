// Programs of elementwise operators run block by block: each instruction is the loop of its operator, over a block that
// is still in the first-level cache; the last one writes the result. Numbers are computed in the type they are stored
// in, so a program gives bit for bit the results of its operators one by one; float16 and bfloat16, which are computed
// in float, are not fused.
#include "symbind/ops/pointwise.h"

#include <algorithm>
#include <array>

#include "symbind/backend/cpu/map.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

constexpr size_t block_bytes = 4096;
constexpr size_t most_blocks = 32;  // intermediate values that are live at a time

std::optional<MapLoop> loop_of(const PointwiseInstruction& instruction, const Tensor& tensor) {
  const std::array<Tensor, max_arity + 1> tensors{tensor, tensor, tensor, tensor};
  const std::span<const Tensor> all(tensors);
  if (instruction.operands.size() > max_arity) return std::nullopt;
  const auto loop = find_loop({.op = *instruction.op,
                               .params = instruction.params.get(),
                               .name = "",
                               .inputs = all.first(instruction.operands.size()),
                               .outputs = all.last(1),
                               .context = {}});
  return loop && loop->arity == instruction.operands.size() && loop->type == tensor.dtype ? loop : std::nullopt;
}

std::string refuse(const NodeView& node) {
  for (const PointwiseInstruction& instruction : node.as<Pointwise>().instructions)
    if (!loop_of(instruction, node.outputs[0]))
      return join(instruction.op->name, " of ", node.outputs[0].dtype, " is not computed in its own type");
  return "";
}

// An instruction with its registers resolved: an operand is an input, which is read directly, or a block that holds an
// intermediate value.
struct Step {
  MapLoop loop;
  struct Operand {
    bool is_input;
    size_t index;
  };
  std::array<Operand, max_arity> operands;
  size_t block;  // where the result goes; the last step's goes to the output
};

std::vector<Step> steps_of(const NodeView& node) {
  const auto& program = node.as<Pointwise>().instructions;
  const size_t inputs = node.inputs.size();
  std::vector<size_t> last_use(inputs + program.size(), 0);  // of each register, by instruction
  for (size_t i = 0; i < program.size(); ++i)
    for (const int operand : program[i].operands) last_use[static_cast<size_t>(operand)] = i;

  std::vector<Step> steps;
  std::vector<size_t> block_of(inputs + program.size(), 0);
  std::vector<bool> taken(most_blocks, false);
  for (size_t i = 0; i < program.size(); ++i) {
    Step step{*loop_of(program[i], node.outputs[0]), {}, 0};
    for (size_t k = 0; k < program[i].operands.size(); ++k) {
      const auto from = static_cast<size_t>(program[i].operands[k]);
      step.operands[k] = {from < inputs, from < inputs ? from : block_of[from]};
      if (from >= inputs && last_use[from] == i) taken[block_of[from]] = false;  // a loop may work in place
    }
    const auto free = std::find(taken.begin(), taken.end(), false);
    require(free != taken.end(), node.where(), " holds more than ", most_blocks, " values at a time");
    *free = true;
    step.block = block_of[inputs + i] = static_cast<size_t>(free - taken.begin());
    steps.push_back(step);
  }
  return steps;
}

struct alignas(64) Block {
  std::byte bytes[block_bytes];
};

void run_range(const std::vector<Step>& steps, size_t element, const Args& args, int64_t begin, int64_t end) {
  Block blocks[most_blocks];
  const auto length = static_cast<int64_t>(block_bytes / element);
  for (int64_t at = begin; at < end; at += length) {
    const int64_t count = std::min(length, end - at);
    const size_t offset = static_cast<size_t>(at) * element;
    for (const Step& step : steps) {
      const void* operands[max_arity];
      for (size_t k = 0; k < step.loop.arity; ++k) {
        const auto [is_input, index] = step.operands[k];
        operands[k] = is_input ? args.in<std::byte>(index) + offset : blocks[index].bytes;
      }
      void* const result = &step == &steps.back() ? args.out<std::byte>() + offset : blocks[step.block].bytes;
      step.loop.run(step.loop.function, result, operands, 0, count);
    }
  }
}

// Any input may be overwritten: only the last instruction writes, after all instructions have read the block.
std::unique_ptr<Kernel> build(const NodeView& node) {
  KernelTraits traits;
  for (size_t k = 0; k < node.inputs.size(); ++k) traits.in_place.emplace_back(static_cast<int>(k), 0);
  return make_kernel(
      [steps = steps_of(node), element = size_of(node.outputs[0].dtype),
       count = node.outputs[0].shape.size()](const Args& args) {
        const auto grain = element_grain / static_cast<int64_t>(steps.size()) + 1;
        parallel_for(count, grain, [&](int64_t begin, int64_t end) { run_range(steps, element, args, begin, end); });
      },
      traits);
}

}  // namespace

void add_pointwise(ImplementationTable& table) { table.add<Pointwise>({"blocks", refuse, build}); }

}  // namespace symbind::cpu_backend
