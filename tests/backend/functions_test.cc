// The functions of backend/functions.h: every elementwise operator gives the same bits alone, as a program of one and
// among others in a program, on every device.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <tuple>

#include <gtest/gtest.h>

#include "symbind/backend/function_tables.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/pointwise.h"
#include "symbind/passes/target.h"

#include "tests/support/arrays.h"
#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

// ---- Every entry of the tables --------------------------------------------------------------------------------------

// An operator with parameters for which an entry is taken.
struct Case {
  const OpDef* op;
  std::shared_ptr<const void> params;
  size_t arity;
  std::string function;
  std::string name() const { return join(op->name, " as ", function); }
};

// Values of an operator's parameters; the first that an entry takes are used.
std::vector<Attributes> attributes_of(const OpDef& op) {
  std::vector<Attributes> tried{{}};
  const std::map<std::string, std::vector<std::string>> values{
      {"scalar", {"1.7", "2"}},
      {"a_min", {"-0.5"}},
      {"a_max", {"0.75"}},
      {"slope", {"0.3"}},
      {"act_type",
       {"relu", "sigmoid", "tanh", "softrelu", "softsign", "leaky", "elu", "selu", "gelu", "rrelu", "prelu"}}};
  for (const ParamField& field : op.fields) {
    const auto found = values.find(field.name);
    if (found == values.end()) continue;
    std::vector<Attributes> with;
    for (const Attributes& attributes : tried)
      for (const std::string& value : found->second) {
        Attributes more = attributes;
        more[field.name] = value;
        with.push_back(more);
      }
    tried = with;
  }
  return tried;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  functions::for_each_elementwise([&]<class Entry>(Entry) {
    const OpDef& op = OpRegistry::get().find(Entry::name.view());
    const std::string function(functions::name_in_source<typename Entry::Function>());
    for (const Attributes& attributes : attributes_of(op)) {
      std::shared_ptr<const void> params;
      if (!error_of([&] { params = op.parse_params(attributes, "node"); }).empty()) continue;
      if (!Entry::holds(params.get())) continue;
      all.push_back({&op, params, Entry::arity, function});
      return;
    }
    ADD_FAILURE() << op.name << ": no parameters for which it is " << function;
  });
  return all;
}

// ---- Numbers --------------------------------------------------------------------------------------------------------

constexpr int64_t count = 4099;  // not a whole number of packs, nor of a CPU's blocks

// Numbers of all sizes, and those at which functions change.
NDArray numbers(uint64_t seed, DType dtype, Context context) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> special{nan,   infinity, -infinity, 0.0,   -0.0,   1e-40,    -1e-40, 6e-8, -6e-8, 1e-45,
                                    65504, -65504,   3.4e38,    -1e38, 1e30,   8388609., 1.0,    -1.0, 0.5,   -0.5,
                                    2.0,   -2.0,     20.0,      -20.,  0.625f, 88.7,     -103.9, 3.0,  -3.0};
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) {
    const uint64_t kind = engine() % 8;
    if (kind == 0)
      value = special[engine() % special.size()];
    else if (kind == 1)
      value = normal(engine) * std::exp2(static_cast<double>(engine() % 40) - 20.0);
    else
      value = normal(engine) * (kind < 5 ? 1.0 : 4.0);
  }
  return array(values, {count}, context, dtype);
}

std::vector<NDArray> three_arrays(DType dtype, Context context) {
  return {numbers(1, dtype, context), numbers(2, dtype, context), numbers(3, dtype, context)};
}

// ---- One by one and as programs -------------------------------------------------------------------------------------

using Instructions = std::vector<PointwiseInstruction>;

PointwiseInstruction binary(const char* name, int a, int b) {
  const OpDef& op = OpRegistry::get().find(name);
  return {&op, op.make_params(), {a, b}};
}
Instructions alone(const Case& c) {
  PointwiseInstruction only{c.op, c.params, {}};
  for (size_t k = 0; k < c.arity; ++k) only.operands.push_back(static_cast<int>(k));
  return {only};
}
// Among products and sums: f(x·z, …)·y + x.
Instructions among_others(const Case& c) {
  PointwiseInstruction middle = alone(c)[0];
  middle.operands[0] = 3;
  return {binary("elemwise_mul", 0, 2), middle, binary("elemwise_mul", 4, 1), binary("elemwise_add", 5, 0)};
}

NDArray one_by_one(const Instructions& program, std::vector<NDArray> registers) {
  for (const PointwiseInstruction& instruction : program) {
    std::vector<NDArray> operands;
    for (const int operand : instruction.operands) operands.push_back(registers[static_cast<size_t>(operand)]);
    registers.push_back(invoke(*instruction.op, operands, instruction.params.get())[0]);
  }
  return registers.back();
}

// Each has a text of its own: invoke() caches kernels by the text of their parameters.
Pointwise as_program(const Instructions& instructions, size_t inputs) {
  static int made = 0;
  Pointwise program{.num_args = static_cast<int64_t>(inputs), .program = join("program ", ++made)};
  program.instructions = instructions;
  return program;
}

NDArray fused(const Instructions& instructions, const std::vector<NDArray>& inputs) {
  const Pointwise program = as_program(instructions, inputs.size());
  return invoke(op_of<Pointwise>(), inputs, &program)[0];
}

// Empty if the device runs the program itself.
std::string refusal(const Instructions& instructions, size_t inputs, DType dtype, Context context) {
  const Pointwise program = as_program(instructions, inputs);
  const std::vector<Tensor> tensors(inputs + 1, Tensor{{count}, dtype, Layout::plain});
  const std::span<const Tensor> all(tensors);
  const OpDef& op = op_of<Pointwise>();
  return Target::get(context).implementations(op).front().refuse({.op = op,
                                                                  .params = &program,
                                                                  .name = "program",
                                                                  .inputs = all.first(inputs),
                                                                  .outputs = all.last(1),
                                                                  .context = context});
}

std::string bits_at(const NDArray& array, int64_t index) {
  std::ostringstream text;
  const size_t size = size_of(array.dtype());
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(array.data()) + static_cast<size_t>(index) * size, size);
  text << array.to_vector<double>()[static_cast<size_t>(index)] << " (" << std::hex << bits << ")";
  return text.str();
}

// Bit for bit, and where not, of which numbers.
void expect_same_bits(const NDArray& program, const NDArray& single, const std::vector<NDArray>& inputs,
                      const std::string& what) {
  const NDArray a = program.as_copy_in(cpu()), b = single.as_copy_in(cpu());
  a.wait_to_read();
  b.wait_to_read();
  const size_t size = size_of(a.dtype());
  int64_t different = 0, first = -1;
  for (int64_t i = 0; i < count; ++i)
    if (std::memcmp(static_cast<const std::byte*>(a.data()) + static_cast<size_t>(i) * size,
                    static_cast<const std::byte*>(b.data()) + static_cast<size_t>(i) * size, size) != 0) {
      ++different;
      if (first < 0) first = i;
    }
  if (different == 0) return;
  std::string of;
  for (const NDArray& input : inputs) {
    const NDArray here = input.as_copy_in(cpu());
    here.wait_to_read();
    of += " " + bits_at(here, first);
  }
  ADD_FAILURE() << what << ": " << different << " of " << count << " differ, the first: " << bits_at(a, first)
                << ", alone " << bits_at(b, first) << ", of" << of;
}

class Functions : public ::testing::TestWithParam<DType> {};

// A CPU leaves half precision to the operators themselves.
bool has_programs(DType dtype, Context context) { return context.is_gpu() || dtype == DType::float32; }

TEST_P(Functions, EveryOperatorCanBePartOfAProgram) {
  for (const Context context : all_devices()) {
    if (!has_programs(GetParam(), context)) continue;
    for (const Case& c : cases()) EXPECT_EQ(refusal(alone(c), c.arity, GetParam(), context), "") << c.name();
  }
}

// A GPU compiles two programs for each function, a third of a second each: the functions are divided, so that processes
// can share the work.
class FunctionsOfAPart : public ::testing::TestWithParam<std::tuple<DType, size_t>> {
 public:
  static constexpr size_t parts = 8;
};

TEST_P(FunctionsOfAPart, AreTheSameBitsAloneAndInPrograms) {
  const auto [dtype, part] = GetParam();
  const std::vector<Case> all = cases();
  for (const Context context : all_devices()) {
    if (!has_programs(dtype, context)) continue;
    const std::vector<NDArray> arrays = three_arrays(dtype, context);
    for (size_t i = part; i < all.size(); i += parts) {
      const Case& c = all[i];
      const std::vector<NDArray> own(arrays.begin(), arrays.begin() + static_cast<ptrdiff_t>(c.arity));
      const std::string where = join(c.name(), " of ", dtype, " on ", context);
      expect_same_bits(fused(alone(c), own), one_by_one(alone(c), own), own, where);
      expect_same_bits(fused(among_others(c), arrays), one_by_one(among_others(c), arrays), arrays,
                       where + " among others");
    }
  }
}

TEST_P(Functions, SumsOfManyAreTheSameBitsAsChainsOfSums) {
  const Instructions chain{binary("elemwise_add", 0, 1), binary("elemwise_add", 3, 2)};
  for (const Context context : all_devices()) {
    if (!has_programs(GetParam(), context)) continue;
    const std::vector<NDArray> arrays = three_arrays(GetParam(), context);
    const AddN sum{.num_args = 3};
    expect_same_bits(fused(chain, arrays), invoke(op_of<AddN>(), arrays, &sum)[0], arrays, "add_n");
  }
}

// Arrays that begin at any element are read as those that begin where 16 bytes can be read.
TEST_P(Functions, AreTheSameBitsAtEveryAlignment) {
  const Instructions program{binary("elemwise_mul", 0, 1), binary("elemwise_add", 3, 2)};
  for (const Context context : all_devices()) {
    if (!has_programs(GetParam(), context)) continue;
    const std::vector<NDArray> arrays = three_arrays(GetParam(), context);
    const NDArray whole = fused(program, arrays);
    for (const int64_t begin : {1, 2, 3, 7, 8}) {
      std::vector<NDArray> views;
      for (const NDArray& array : arrays) views.push_back(array.slice(begin, count));
      EXPECT_TRUE(same_bits(fused(program, views), whole.slice(begin, count))) << "from " << begin << " on " << context;
    }
  }
}

// ---- Integers -------------------------------------------------------------------------------------------------------

NDArray whole_numbers(uint64_t seed, DType dtype) {
  std::mt19937_64 engine(seed);
  std::vector<double> values(count);
  // Larger results of int64 have more digits than a double, whose last ones differ.
  const uint64_t most = dtype == DType::int64 ? 6 : 16;
  for (double& value : values) {
    value = static_cast<double>(engine() % (2 * most + 1)) - static_cast<double>(most);
    if (dtype != DType::int64 && engine() % 4 == 0) value *= static_cast<double>(engine() % 100000000);
  }
  return array(values, {count}, cpu(), dtype);
}

// A type and a part of the functions: each kernel takes a while to compile.
class GpuIntegers : public GpuTest, public ::testing::WithParamInterface<std::tuple<DType, size_t>> {
 public:
  static constexpr size_t parts = 4;
};

TEST_P(GpuIntegers, AreTheCpusForEveryFunction) {
  const auto [dtype, part] = GetParam();
  const std::vector<NDArray> arrays{whole_numbers(1, dtype), whole_numbers(2, dtype), whole_numbers(3, dtype)};
  const std::vector<Case> all = cases();
  for (size_t i = part; i < all.size(); i += parts) {
    const Case& c = all[i];
    std::vector<NDArray> here(arrays.begin(), arrays.begin() + static_cast<ptrdiff_t>(c.arity)), there;
    for (const NDArray& each : here) there.push_back(each.as_copy_in(gpu(0)));
    NDArray expected;
    if (!error_of([&] { expected = invoke(*c.op, here, c.params.get())[0]; }).empty()) continue;  // not of integers
    EXPECT_EQ(refusal(alone(c), c.arity, dtype, gpu(0)), "") << c.name();
    expect_same_bits(invoke(*c.op, there, c.params.get())[0], expected, here, join(c.name(), " of ", dtype));
  }
}

TEST(IntegerFunctions, HaveExactPowers) {
  const functions::Power power;
  EXPECT_EQ(power(3, 19), 1162261467);
  EXPECT_EQ(power(-3, 19), -1162261467);
  EXPECT_EQ(power(int64_t{10}, int64_t{15}), 1000000000000000);
  EXPECT_EQ(power(int64_t{3}, int64_t{39}), int64_t{4052555153018976256});  // the nearest double
  EXPECT_EQ(power(0, 0), 1);
  EXPECT_EQ(power(2, -1), 0);
  EXPECT_EQ(power(-1, -3), -1);
  for (const int32_t base : {0, 2, 46341})
    EXPECT_EQ(power(base, base == 0 ? -1 : 31), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(power(int64_t{-2}, int64_t{63}), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(power(int64_t{2}, int64_t{64}), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(power(1, std::numeric_limits<int32_t>::max()), 1);
}

// MXNet computes them in double.
TEST(IntegerFunctions, AreTruncated) {
  EXPECT_EQ(functions::Exp{}(16), 8886110);
  EXPECT_EQ(functions::InFloating<functions::floating::Sinh>{}(17), 12077476);
  EXPECT_EQ(functions::InFloating<functions::floating::Log10>{}(1000), 3);
  EXPECT_EQ(functions::InFloating<functions::floating::Cbrt>{}(343), 7);
  EXPECT_EQ(functions::InFloating<functions::floating::Gamma>{}(13), 479001600);
  EXPECT_EQ(functions::Tanh{}(10), 0);
  EXPECT_EQ(functions::Degrees{}(10000001), 572957824);  // in float
  EXPECT_EQ(functions::Hypot{}(16777217, 1), 16777216);
  EXPECT_EQ(functions::Log{}(0), std::numeric_limits<int32_t>::min());
}

const auto name_of_part = [](const auto& tried) {
  return join(name_of(std::get<0>(tried.param)), "_part", std::get<1>(tried.param));
};
const auto types_of_programs = ::testing::Values(DType::float32, DType::float16, DType::bfloat16);
INSTANTIATE_TEST_SUITE_P(Types, Functions, types_of_programs,
                         [](const auto& type) { return std::string(name_of(type.param)); });
INSTANTIATE_TEST_SUITE_P(Types, FunctionsOfAPart,
                         ::testing::Combine(types_of_programs, ::testing::Range(size_t{0}, FunctionsOfAPart::parts)),
                         name_of_part);
INSTANTIATE_TEST_SUITE_P(, GpuIntegers,
                         ::testing::Combine(::testing::ValuesIn(integer_types),
                                            ::testing::Range(size_t{0}, GpuIntegers::parts)),
                         name_of_part);

TEST(FunctionTables, NameEachFunctionAsItsSourceDoes) {
  EXPECT_TRUE(functions::name_in_source<functions::Add>().ends_with("Add"));
  const std::string_view reverse = functions::name_in_source<functions::Swapped<functions::Divide>>();
  EXPECT_NE(reverse.find("Swapped<"), std::string_view::npos) << reverse;
  EXPECT_TRUE(reverse.ends_with("Divide>")) << reverse;
}

// What is elementwise and in no table has a reason.
TEST(FunctionTables, HoldEveryElementwiseOperator) {
  const std::vector<std::string> others{"_copy",      "BlockGrad", "make_loss",
                                        "zeros_like", "ones_like",  // nothing is computed
                                        "add_n",                    // a chain of elemwise_add
                                        "_pointwise"};
  std::vector<std::string> in_tables;
  for (const Case& c : cases()) in_tables.push_back(c.op->name);
  for (const OpDef* op : OpRegistry::get().all()) {
    if (!op->elementwise) continue;
    const bool known = std::count(in_tables.begin(), in_tables.end(), op->name) > 0 ||
                       std::count(others.begin(), others.end(), op->name) > 0;
    EXPECT_TRUE(known) << op->name;
  }
}

}  // namespace
}  // namespace symbind::testing
