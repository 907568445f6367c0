#include "symbind/backend/cuda/pointwise_source.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "symbind/backend/convert.h"
#include "symbind/backend/function_tables.h"
#include "symbind/core/error.h"

namespace symbind::cuda_backend {
namespace {

// An entry of backend/function_tables.h, type-erased.
struct Function {
  std::string_view name;
  size_t arity;
  bool (*holds)(const void* params);
  std::vector<double> (*numbers)(const void* params);
  bool scalar_is_element;
};

const std::unordered_map<std::string_view, std::vector<Function>>& functions_of_operators() {
  static const auto table = [] {
    std::unordered_map<std::string_view, std::vector<Function>> all;
    const auto add = [&]<class Entry>(Entry) {
      static constexpr auto name = Entry::name;
      all[name.view()].push_back({functions::name_in_source<typename Entry::Function>(), Entry::arity, Entry::holds,
                                  [](const void* params) {
                                    const auto numbers = Entry::numbers(params);
                                    return std::vector<double>(numbers.begin(), numbers.end());
                                  },
                                  Entry::scalar_is_element});
    };
    functions::for_each_elementwise(add);
    functions::for_each(functions::BroadcastTable{}, add);
    functions::for_each(functions::ChoiceBroadcastTable{}, add);
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

// How the text names elements, and the numbers that they are computed in.
struct TypeNames {
  const char *element, *computed;
};
TypeNames names_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return {"float", "float"};
    case DType::float64:
      return {"double", "double"};
    case DType::float16:
      return {"symbind::float16", "float"};
    case DType::bfloat16:
      return {"symbind::bfloat16", "float"};
    case DType::uint8:
      return {"unsigned char", "int"};
    case DType::int8:
      return {"signed char", "int"};
    case DType::int32:
      return {"int", "int"};
    case DType::int64:
      return {"long long", "long long"};
    case DType::boolean:
      return {"bool", "int"};
    case DType::none:
      break;
  }
  fail_unknown_dtype(dtype);
}

// A number of the type that elements are computed in, bit for bit, including infinities and NaN. `is_element`: it
// becomes an element first, as on a CPU.
std::string literal(double number, DType dtype, bool is_element) {
  char text[64];
  if (dtype == DType::float64) {
    std::snprintf(text, sizeof text, "__longlong_as_double(0x%016llxll)",
                  static_cast<unsigned long long>(std::bit_cast<uint64_t>(number)));
  } else if (is_floating(dtype)) {
    std::snprintf(text, sizeof text, "__uint_as_float(0x%08xu)", std::bit_cast<uint32_t>(static_cast<float>(number)));
  } else if (dtype == DType::int64) {
    std::snprintf(text, sizeof text, "static_cast<long long>(0x%016llxull)",
                  static_cast<unsigned long long>(convert<int64_t>(number)));
  } else {
    const int32_t whole =
        is_element
            ? visit_dtype(dtype,
                          [&](auto type) { return convert<int32_t>(convert<typename decltype(type)::type>(number)); })
            : convert<int32_t>(number);
    std::snprintf(text, sizeof text, "static_cast<int>(0x%08xu)", static_cast<uint32_t>(whole));
  }
  return text;
}

// "Clip{}(r0, low, high)"
std::string call(const PointwiseInstruction& instruction, DType dtype) {
  const Function& function = *function_of(instruction);
  std::string text = join(function.name, "{}(");
  for (size_t k = 0; k < instruction.operands.size(); ++k) text += join(k ? ", r" : "r", instruction.operands[k]);
  for (const double number : function.numbers(instruction.params.get()))
    text += ", " + literal(number, dtype, function.scalar_is_element);
  return text + ")";
}

// "name0, name1": something for each input.
std::string for_inputs(const Pointwise& program, std::string_view name) {
  std::string text;
  for (int64_t k = 0; k < program.num_args; ++k) text += join(k ? ", " : "", name, k);
  return text;
}

// "const Input0* in0, const Input1* in1": the same with a type for each.
std::string declarations(const Pointwise& program, std::string_view before, std::string_view after) {
  std::string text;
  for (int64_t k = 0; k < program.num_args; ++k) text += join(k ? ", " : "", before, "Input", k, after, k);
  return text;
}

// One element of the result. Each intermediate value is rounded to the element type, so that a program gives the
// results of its operators one by one.
std::string element_function(const Pointwise& program, DType dtype) {
  std::string source = "struct Program {\n";
  source += join("  __device__ Element operator()(", declarations(program, "", " x"), ") const {\n");
  for (int64_t k = 0; k < program.num_args; ++k)
    source += join("    const Computed r", k, " = number<Computed>(load(x", k, "));\n");
  int64_t next = program.num_args;
  for (const PointwiseInstruction& instruction : program.instructions)
    source += join("    const Computed r", next++, " = load(store<Element>(", call(instruction, dtype), "));\n");
  return source + join("    return store<Element>(r", next - 1, ");\n  }\n};\n");
}

std::string kernel(const Pointwise& program, std::string_view name, std::string_view width) {
  return join("extern \"C\" __global__ void ", name, "(", declarations(program, "const ", "* in"),
              ", Element* out, long long count) {\n  map_packs<", width, ">(Program{}, out, count, ",
              for_inputs(program, "in"), ");\n}\n");
}

// The common beginning of all programs.
std::string beginning(DType dtype) {
  const TypeNames names = names_of(dtype);
  return join("#include \"symbind/backend/cuda/elements.cuh\"\n#include \"symbind/backend/functions.h\"\n",
              "using namespace symbind::cuda_backend;\nusing namespace symbind::functions;\nusing Element = ",
              names.element, ";\nusing Computed = ", names.computed, ";\n");
}

std::string program_source(const Pointwise& program, DType dtype, std::span<const DType> input_types) {
  std::string source = beginning(dtype);
  for (size_t k = 0; k < input_types.size(); ++k)
    source += join("using Input", k, " = ", names_of(input_types[k]).element, ";\n");
  return source + element_function(program, dtype);
}

// ---- Programs with several results ----------------------------------------------------------------------------------

// "in0 + row * 800 + 200 + column"
std::string address(std::string_view array, const PointwiseCell::Window& window) {
  return join(array, window.array, " + row * ", window.stride, "ll + ", window.offset, "ll + column");
}

// A thread reads all of its elements before it writes any.
std::string cell_kernel(const PointwiseCell& cell, DType dtype, std::string_view name, int64_t width) {
  const int64_t per_row = cell.columns / width;
  std::string source = join("extern \"C\" __global__ void ", name, "(");
  for (int64_t k = 0; k < cell.num_args; ++k) source += join("const Element* in", k, ", ");
  for (int64_t k = 0; k < cell.num_outputs; ++k) source += join("Element* out", k, ", ");
  source +=
      join("long long rows) {\n  using Elements = Pack<Element, ", width, ">;\n",
           "  for (long long i = first_element(); i < rows * ", per_row, "ll; i += element_step()) {\n",
           "    const long long row = i / ", per_row, "ll, column = (i - row * ", per_row, "ll) * ", width, ";\n");
  for (size_t k = 0; k < cell.reads.size(); ++k)
    source +=
        join("    const Elements x", k, " = *reinterpret_cast<const Elements*>(", address("in", cell.reads[k]), ");\n");
  for (size_t k = 0; k < cell.results.size(); ++k) source += join("    Elements y", k, ";\n");
  source += join("#pragma unroll\n    for (int k = 0; k < ", width, "; ++k) {\n");
  for (size_t k = 0; k < cell.reads.size(); ++k)
    source += join("      const Computed r", k, " = load(x", k, ".element[k]);\n");
  size_t next = cell.reads.size();
  for (const PointwiseInstruction& instruction : cell.instructions)
    source += join("      const Computed r", next++, " = load(store<Element>(", call(instruction, dtype), "));\n");
  for (size_t k = 0; k < cell.results.size(); ++k)
    source += join("      y", k, ".element[k] = store<Element>(r", cell.results[k].source, ");\n");
  source += "    }\n";
  for (size_t k = 0; k < cell.results.size(); ++k)
    source += join("    *reinterpret_cast<Elements*>(", address("out", cell.results[k].window), ") = y", k, ";\n");
  return source + "  }\n}\n";
}

// The axes of the result from the last to the first, with 32-bit divisions.
constexpr const char* broadcast_kernel = R"(
extern "C" __global__ void broadcast(const Input0* in0, const Input1* in1, Element* out, long long count,
                                     BroadcastSteps steps) {
  for (long long i = first_element(); i < count; i += element_step()) {
    unsigned index = static_cast<unsigned>(i), a = 0, b = 0;
    for (int axis = steps.rank - 1; axis >= 0; --axis) {
      const unsigned rest = index / steps.extent[axis], at = index - rest * steps.extent[axis];
      a += at * steps.step_a[axis];
      b += at * steps.step_b[axis];
      index = rest;
    }
    out[i] = Program{}(in0[a], in1[b]);
  }
}
)";

}  // namespace

bool has_function(const PointwiseInstruction& instruction) {
  const Function* const function = function_of(instruction);
  return function && function->arity == instruction.operands.size();
}

bool has_functions(const OpDef& op) { return functions_of_operators().contains(op.name); }

bool is_broadcast(const OpDef& op) {
  bool found = false;
  const auto compare = [&]<class Entry>(Entry) {
    static constexpr auto name = Entry::name;
    found |= op.name == name.view();
  };
  functions::for_each(functions::BroadcastTable{}, compare);
  functions::for_each(functions::ChoiceBroadcastTable{}, compare);
  return found;
}

bool has_packs(DType dtype, std::span<const DType> input_types) {
  return dtype != DType::int8 &&
         std::all_of(input_types.begin(), input_types.end(), [&](DType input) { return input == dtype; });
}

std::string pointwise_source(const Pointwise& program, DType dtype, std::span<const DType> input_types) {
  const std::string source = program_source(program, dtype, input_types) + kernel(program, "pointwise", "1");
  return has_packs(dtype, input_types) ? source + kernel(program, "pointwise_packs", "widest<Element>") : source;
}

std::string broadcast_source(const Pointwise& program, DType dtype, std::span<const DType> input_types) {
  return join(program_source(program, dtype, input_types), "struct BroadcastSteps {\n  int rank;\n  unsigned extent[",
              Shape::max_rank, "], step_a[", Shape::max_rank, "], step_b[", Shape::max_rank, "];\n};\n",
              broadcast_kernel);
}

std::string cell_source(const PointwiseCell& cell, DType dtype) {
  return join(beginning(dtype), cell_kernel(cell, dtype, "cell", 1),
              cell_kernel(cell, dtype, "cell_packs", cell_width(cell, dtype)));
}

int cell_width(const PointwiseCell& cell, DType dtype) {
  auto common = is_floating(dtype) ? static_cast<int64_t>(16 / size_of(dtype)) : 1;
  const auto divide = [&](const PointwiseCell::Window& window) {
    common = std::gcd(std::gcd(common, window.offset), window.stride);
  };
  for (const PointwiseCell::Window& window : cell.reads) divide(window);
  for (const PointwiseCell::Result& result : cell.results) divide(result.window);
  return static_cast<int>(std::gcd(common, cell.columns));
}

std::span<const SourceHeader> pointwise_headers() {
  static constexpr SourceHeader headers[] = {
#include "symbind/embedded/pointwise_headers.inc"
  };
  return headers;
}

}  // namespace symbind::cuda_backend
