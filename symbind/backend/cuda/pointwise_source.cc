#include "symbind/backend/cuda/pointwise_source.h"

#include <bit>
#include <cstdio>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbind/backend/function_tables.h"
#include "symbind/core/error.h"

namespace symbind::cuda_backend {
namespace {

// An entry of backend/function_tables.h, with its type forgotten.
struct Function {
  std::string_view name;
  size_t arity;
  bool (*holds)(const void* params);
  std::vector<double> (*numbers)(const void* params);
};

const std::unordered_map<std::string_view, std::vector<Function>>& functions_of_operators() {
  static const auto table = [] {
    std::unordered_map<std::string_view, std::vector<Function>> all;
    functions::for_each_elementwise([&]<class Entry>(Entry) {
      static constexpr auto name = Entry::name;
      all[name.view()].push_back(
          {functions::name_in_source<typename Entry::Function>(), Entry::arity, Entry::holds, [](const void* params) {
             const auto numbers = Entry::numbers(params);
             return std::vector<double>(numbers.begin(), numbers.end());
           }});
    });
    return all;
  }();
  return table;
}

const Function* function_of(const PointwiseInstruction& instruction) {
  const auto found = functions_of_operators().find(instruction.op->name);
  if (found == functions_of_operators().end()) return nullptr;
  for (const Function& function : found->second)
    if (function.holds(instruction.params.get())) return &function;
  return nullptr;
}

const char* element_of(DType dtype) {
  if (dtype == DType::float16) return "symbind::float16";
  return dtype == DType::bfloat16 ? "symbind::bfloat16" : "float";
}

// A float to the bit, infinities and NaN among them.
std::string literal(double number) {
  char text[64];
  std::snprintf(text, sizeof text, "__uint_as_float(0x%08xu)", std::bit_cast<uint32_t>(static_cast<float>(number)));
  return text;
}

// "Clip{}(r0, low, high)"
std::string call(const PointwiseInstruction& instruction) {
  const Function& function = *function_of(instruction);
  std::string text = join(function.name, "{}(");
  for (size_t k = 0; k < instruction.operands.size(); ++k) text += join(k ? ", r" : "r", instruction.operands[k]);
  for (const double number : function.numbers(instruction.params.get())) text += ", " + literal(number);
  return text + ")";
}

// "name0, name1": something for each input.
std::string for_inputs(const Pointwise& program, std::string_view name) {
  std::string text;
  for (int64_t k = 0; k < program.num_args; ++k) text += join(k ? ", " : "", name, k);
  return text;
}

// One element of the result. Each value in between is rounded as an array would round it, so that a program gives what
// its operators give one by one.
std::string element_function(const Pointwise& program) {
  std::string source = "struct Program {\n";
  source += join("  __device__ Element operator()(", for_inputs(program, "Element x"), ") const {\n");
  for (int64_t k = 0; k < program.num_args; ++k) source += join("    const float r", k, " = load(x", k, ");\n");
  int64_t next = program.num_args;
  for (const PointwiseInstruction& instruction : program.instructions)
    source += join("    const float r", next++, " = load(store<Element>(", call(instruction), "));\n");
  return source + join("    return store<Element>(r", next - 1, ");\n  }\n};\n");
}

std::string kernel(const Pointwise& program, std::string_view name, std::string_view width) {
  return join("extern \"C\" __global__ void ", name, "(", for_inputs(program, "const Element* in"),
              ", Element* out, long long count) {\n  map_packs<", width, ">(Program{}, out, count, ",
              for_inputs(program, "in"), ");\n}\n");
}

}  // namespace

bool has_function(const PointwiseInstruction& instruction) {
  const Function* const function = function_of(instruction);
  return function && function->arity == instruction.operands.size();
}

bool has_functions(const OpDef& op) { return functions_of_operators().contains(op.name); }

std::string pointwise_source(const Pointwise& program, DType dtype) {
  return join("#include \"symbind/backend/cuda/elements.cuh\"\n#include \"symbind/backend/functions.h\"\n",
              "using namespace symbind::cuda_backend;\nusing namespace symbind::functions;\nusing Element = ",
              element_of(dtype), ";\n", element_function(program), kernel(program, "pointwise", "1"),
              kernel(program, "pointwise_packs", "widest<Element>"));
}

std::span<const SourceHeader> pointwise_headers() {
  static constexpr SourceHeader headers[] = {
#include "symbind/embedded/pointwise_headers.inc"
  };
  return headers;
}

}  // namespace symbind::cuda_backend
