#include "symbind/ops/pointwise.h"

#include <string_view>

#include "symbind/core/error.h"
#include "symbind/graph/define.h"
#include "symbind/ops/elementwise.h"

namespace symbind {
namespace {

OpDef define(Op<Pointwise> op) {
  return op.doc("Several elementwise operators as one. Executors make it; it cannot be written by hand.")
      .param(&Pointwise::num_args, "num_args", "number of input arrays; counted from the inputs when it is left out",
             at_least(1))
      .param(&Pointwise::program, "program", "the operators, in the order they run")
      .variadic(&Pointwise::num_args, "num_args")
      .check([](Pointwise& p) {
        require(!p.instructions.empty(),
                "executors make _pointwise from other operators: it cannot be written by hand");
      })
      .inputs(&Pointwise::num_args, numbered("arg"))
      .elementwise();
}

OpDef define(Op<PointwiseCell> op) {
  return op
      .doc(
          "Several elementwise operators with several results as one. Executors make it; it cannot be written by hand.")
      .param(&PointwiseCell::num_args, "num_args",
             "number of input arrays; counted from the inputs when it is left out", at_least(1))
      .param(&PointwiseCell::num_outputs, "num_outputs", "number of results", at_least(1))
      .param(&PointwiseCell::columns, "columns", "number of columns of the matrices", at_least(1))
      .param(&PointwiseCell::program, "program", "the operators, in the order they run")
      .variadic(&PointwiseCell::num_args, "num_args")
      .check([](PointwiseCell& p) {
        require(!p.instructions.empty(),
                "executors make _pointwise_cell from other operators: it cannot be written by hand");
      })
      .inputs(&PointwiseCell::num_args, numbered("arg"))
      .outputs(&PointwiseCell::num_outputs, numbered("output"))
      .infer_shape([](const PointwiseCell& p, Shapes& s) {
        for (const PointwiseCell::Window& window : p.reads) {
          const Shape& matrix = s.input(static_cast<size_t>(window.array));
          if (!matrix.known()) continue;
          for (const PointwiseCell::Result& result : p.results)
            s.output(static_cast<size_t>(result.window.array)).meet({matrix[0], result.window.stride});
        }
      });
}

std::string_view without(std::string_view text, std::string_view prefix, std::string_view suffix) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return text;
}

// "elemwise_mul" is mul, "_plus_scalar" plus, "_backward_tanh" tanh', and an Activation what it applies.
std::string short_name(const PointwiseInstruction& instruction) {
  std::string_view name = instruction.op->name;
  const bool gradient = name.starts_with("_backward_");
  name = without(without(name, "_backward_", ""), "elemwise_", "_scalar");
  std::string text(without(name, "_", ""));
  for (const ParamField& field : instruction.op->fields)
    if (field.name == "act_type") text = field.print(instruction.params.get());
  return gradient ? text + "'" : text;
}

}  // namespace

void append_instructions(const OpDef& op, const std::shared_ptr<const void>& params, const std::vector<int>& operands,
                         int next, std::vector<PointwiseInstruction>& program) {
  if (&op != &op_of<AddN>()) {
    program.push_back({&op, params, operands});
    return;
  }
  const OpDef& add = op_of<Binary<"elemwise_add">>();
  for (size_t k = 1; k < operands.size(); ++k)
    program.push_back({&add, add.make_params(), {k == 1 ? operands[0] : next++, operands[k]}});
}

std::string program_text(const std::vector<PointwiseInstruction>& instructions) {
  std::string text;
  for (size_t i = 0; i < instructions.size();) {
    const std::string name = short_name(instructions[i]);
    size_t end = i + 1;
    while (end < instructions.size() && short_name(instructions[end]) == name) ++end;
    text += join(text.empty() ? "" : ", ", end - i > 1 ? join(end - i, " ") : "", name);
    i = end;
  }
  return text;
}

void register_pointwise(OpRegistry& registry) {
  add_internal<Pointwise>(registry, "_pointwise", define);
  add_internal<PointwiseCell>(registry, "_pointwise_cell", define);
}

}  // namespace symbind
