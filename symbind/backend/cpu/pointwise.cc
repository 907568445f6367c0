// Programs of elementwise operators run block by block: each instruction is the loop of its operator, over a block that
// is still in the first-level cache; the last one writes the result. Numbers are computed in the type they are stored
// in, so a program gives bit for bit the results of its operators one by one; float16 and bfloat16, which are computed
// in float, are not fused.
#include "symbind/ops/pointwise.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

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

template <class Program>
std::string refuse(const NodeView& node) {
  for (const PointwiseInstruction& instruction : node.as<Program>().instructions)
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

// ---- Programs with several results, over matrices that are columns of arrays ----------------------------------------

// The elements of a matrix of the program: a block, or those of an array.
struct CellValue {
  enum class Kind : uint8_t { block, input, output } kind = Kind::block;
  size_t index = 0;
};

// One of: columns of an input are copied to a block, a function is computed, a value is copied to columns of an output.
struct CellStep {
  enum class Kind : uint8_t { gather, compute, scatter } kind;
  std::optional<MapLoop> loop = std::nullopt;
  std::array<CellValue, max_arity> operands = {};  // of a scatter: the first
  CellValue result = {};                           // of a gather: a block
  PointwiseCell::Window window = {};
};

// Assigns blocks to values. A result that is a whole output is computed there; what is read from it later is read
// there.
class CellCompiler {
 public:
  explicit CellCompiler(const NodeView& node)
      : node_(node),
        cell_(node.as<PointwiseCell>()),
        values_(cell_.reads.size() + cell_.instructions.size()),
        last_use_(values_.size(), 0),
        taken_(most_blocks, false) {
    for (size_t i = 0; i < cell_.instructions.size(); ++i)
      for (const int operand : cell_.instructions[i].operands) last_use_[static_cast<size_t>(operand)] = i;
  }

  std::vector<CellStep> steps() {
    for (size_t i = 0; i < cell_.instructions.size(); ++i) compute(i);
    return std::move(steps_);
  }

  // A whole output may be written where a whole input was, if no later instruction reads the input.
  std::vector<std::pair<int, int>> in_place() const {
    std::vector<std::pair<int, int>> pairs;
    for (size_t k = 0; k < cell_.reads.size(); ++k) {
      if (!cell_.is_whole(cell_.reads[k])) continue;
      for (const PointwiseCell::Result& result : cell_.results)
        if (cell_.is_whole(result.window) && last_use_[k] + cell_.reads.size() <= static_cast<size_t>(result.source))
          pairs.emplace_back(cell_.reads[k].array, result.window.array);
    }
    return pairs;
  }

 private:
  size_t free_block() {
    const auto free = std::find(taken_.begin(), taken_.end(), false);
    require(free != taken_.end(), node_.where(), " holds more than ", most_blocks, " values at a time");
    *free = true;
    return static_cast<size_t>(free - taken_.begin());
  }

  CellValue read(size_t from) {
    if (from >= cell_.reads.size() || is_read_[from]) return values_[from];
    is_read_[from] = true;
    const PointwiseCell::Window& window = cell_.reads[from];
    if (cell_.is_whole(window)) return values_[from] = {CellValue::Kind::input, static_cast<size_t>(window.array)};
    values_[from] = {CellValue::Kind::block, free_block()};
    steps_.push_back({.kind = CellStep::Kind::gather, .result = values_[from], .window = window});
    return values_[from];
  }

  void compute(size_t i) {
    const PointwiseInstruction& instruction = cell_.instructions[i];
    CellStep step{.kind = CellStep::Kind::compute, .loop = loop_of(instruction, node_.outputs[0])};
    for (size_t k = 0; k < instruction.operands.size(); ++k)
      step.operands[k] = read(static_cast<size_t>(instruction.operands[k]));
    for (const int operand : instruction.operands) {  // a loop may work in place
      const auto from = static_cast<size_t>(operand);
      if (values_[from].kind == CellValue::Kind::block && last_use_[from] == i) taken_[values_[from].index] = false;
    }
    const size_t made = cell_.reads.size() + i;
    std::optional<CellValue> output;
    for (const PointwiseCell::Result& result : cell_.results)
      if (static_cast<size_t>(result.source) == made && cell_.is_whole(result.window))
        output = {CellValue::Kind::output, static_cast<size_t>(result.window.array)};
    values_[made] = step.result = output ? *output : CellValue{CellValue::Kind::block, free_block()};
    steps_.push_back(step);
    for (const PointwiseCell::Result& result : cell_.results)
      if (static_cast<size_t>(result.source) == made && !cell_.is_whole(result.window))
        steps_.push_back({.kind = CellStep::Kind::scatter, .operands = {values_[made]}, .window = result.window});
    if (!output && last_use_[made] <= i) taken_[values_[made].index] = false;  // nothing reads it any more
  }

  const NodeView& node_;
  const PointwiseCell& cell_;
  std::vector<CellValue> values_;  // by register
  std::vector<size_t> last_use_;   // of each register, by instruction
  std::vector<bool> taken_;        // by block
  std::vector<bool> is_read_ = std::vector<bool>(cell_.reads.size(), false);
  std::vector<CellStep> steps_;
};

// Runs all steps over a range of rows, so many rows at a time as blocks hold; of longer rows, a range of columns.
class CellRun {
 public:
  CellRun(const std::vector<CellStep>& steps, int64_t columns, size_t element, const Args& args)
      : steps_(steps), columns_(columns), element_(element), args_(args) {}

  void run(int64_t first_row, int64_t end_row) {
    const auto length = static_cast<int64_t>(block_bytes / element_);
    const int64_t rows = std::max<int64_t>(length / columns_, 1), width = std::min(columns_, length);
    for (row_ = first_row; row_ < end_row; row_ += rows)
      for (column_ = 0; column_ < columns_; column_ += width) {
        rows_ = std::min(rows, end_row - row_);
        width_ = std::min(width, columns_ - column_);
        for (const CellStep& step : steps_) run(step);
      }
  }

 private:
  size_t bytes(int64_t elements) const { return static_cast<size_t>(elements) * element_; }

  std::byte* address(const CellValue& value) {
    if (value.kind == CellValue::Kind::block) return blocks_[value.index].bytes;
    void* const* const arrays = value.kind == CellValue::Kind::input ? args_.inputs : args_.outputs;
    return static_cast<std::byte*>(arrays[value.index]) + bytes(row_ * columns_ + column_);
  }

  // Row `i` of the current rows, in the columns of an array.
  std::byte* row_of(void* array, const PointwiseCell::Window& window, int64_t i) const {
    return static_cast<std::byte*>(array) + bytes((row_ + i) * window.stride + window.offset + column_);
  }

  void run(const CellStep& step) {
    const auto window_array = static_cast<size_t>(step.window.array);
    if (step.kind == CellStep::Kind::compute) {
      const void* operands[max_arity];
      for (size_t k = 0; k < step.loop->arity; ++k) operands[k] = address(step.operands[k]);
      step.loop->run(step.loop->function, address(step.result), operands, 0, rows_ * width_);
    } else if (step.kind == CellStep::Kind::gather) {
      std::byte* const to = address(step.result);
      for (int64_t i = 0; i < rows_; ++i)
        std::memcpy(to + bytes(i * width_), row_of(args_.inputs[window_array], step.window, i), bytes(width_));
    } else {
      const std::byte* const from = address(step.operands[0]);
      for (int64_t i = 0; i < rows_; ++i)
        std::memcpy(row_of(args_.outputs[window_array], step.window, i), from + bytes(i * width_), bytes(width_));
    }
  }

  const std::vector<CellStep>& steps_;
  const int64_t columns_;
  const size_t element_;
  const Args& args_;
  int64_t row_ = 0, rows_ = 0, column_ = 0, width_ = 0;  // the rows and columns of this round
  Block blocks_[most_blocks];
};

std::unique_ptr<Kernel> build_cell(const NodeView& node) {
  CellCompiler compiler(node);
  std::vector<CellStep> steps = compiler.steps();
  const auto& cell = node.as<PointwiseCell>();
  return make_kernel(
      [steps = std::move(steps), element = size_of(node.outputs[0].dtype), columns = cell.columns,
       rows = node.outputs[0].shape[0]](const Args& args) {
        const auto grain = element_grain / (static_cast<int64_t>(steps.size()) * columns) + 1;
        parallel_for(rows, grain,
                     [&](int64_t begin, int64_t end) { CellRun(steps, columns, element, args).run(begin, end); });
      },
      {.in_place = compiler.in_place()});
}

}  // namespace

void add_pointwise(ImplementationTable& table) {
  table.add<Pointwise>({"blocks", refuse<Pointwise>, build});
  table.add<PointwiseCell>({"blocks", refuse<PointwiseCell>, build_cell});
}

}  // namespace symbind::cpu_backend
