// Every operator that a GPU compiles into programs, against the CPU. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"

#include "tests/support/arrays.h"
#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

using CudaPointwise = GpuTest;

// -op(x0, x1, …) on a context, with the same numbers everywhere.
ExecutorPtr run_negated(const OpDef& op, const Attributes& attributes, const std::vector<std::string>& names,
                        Context context, double low, double high) {
  std::vector<Symbol> inputs;
  NamedShapes shapes;
  for (const std::string& name : names) {
    inputs.push_back(Symbol::variable(name));
    shapes[name] = {3, 347};
  }
  // By its definition: internal operators have no public name.
  const Symbol function = apply(op, inputs, op.parse_params(attributes, "function"), attributes, "function");
  const Symbol net = apply("negative", function, {}, "end");
  auto executor = simple_bind(net, context, shapes, {.grad_req = "null"});
  for (size_t i = 0; i < executor->arg_arrays().size(); ++i)
    random_array({3, 347}, i + 1, low, high).copyto(executor->arg_arrays()[i]);
  executor->forward(false);
  return executor;
}

int compare(const OpDef& op, const Attributes& attributes) {
  const std::shared_ptr<const void> params = op.parse_params(attributes, "node");
  if (op.outputs(params.get()).size() != 1 || op.is_random(params.get(), true)) return 0;
  const Names names = op.inputs(params.get());
  int compiled = 0;
  for (const auto& [low, high] : {std::pair(-2.0, 2.0), std::pair(0.125, 0.875), std::pair(1.0, 30.0)}) {
    const auto on_gpu = run_negated(op, attributes, names, gpu(0), low, high);
    if (on_gpu->debug_str().find("nvrtc") == std::string::npos) return 0;
    const auto on_cpu = run_negated(op, attributes, names, cpu(), low, high);
    EXPECT_TRUE(all_close(on_gpu->outputs()[0], on_cpu->outputs()[0], {3e-5, 3e-6}))
        << op.name << " of numbers between " << low << " and " << high;
    compiled = 1;
  }
  return compiled;
}

// Compiling each program takes a third of a second: the operators are divided, so that processes can share the work.
class EveryProgram : public GpuTest, public ::testing::WithParamInterface<size_t> {
 public:
  static constexpr size_t parts = 8;
};

TEST_P(EveryProgram, AgreesWithTheCpu) {
  int compiled = 0;
  const std::vector<const OpDef*> all = OpRegistry::get().all();
  for (size_t i = GetParam(); i < all.size(); i += parts) {
    const OpDef* const op = all[i];
    if (op->name == "_pointwise") continue;
    const bool leaky = op->name.find("LeakyReLU") != std::string::npos;
    if (!op->elementwise && !leaky) continue;
    bool has_type = false;
    Attributes attributes;
    for (const ParamField& field : op->fields) {
      has_type |= field.name == "act_type";
      if (field.name == "scalar") attributes["scalar"] = "1.5";
      if (field.name == "a_min") attributes["a_min"] = "-0.5";
      if (field.name == "a_max") attributes["a_max"] = "0.75";
    }
    const std::vector<std::string> types =
        leaky ? std::vector<std::string>{"leaky", "elu", "selu", "gelu"}
              : std::vector<std::string>{"relu", "sigmoid", "tanh", "softrelu", "softsign"};
    if (!has_type) compiled += compare(*op, attributes);
    if (has_type)
      for (const std::string& type : types) compiled += compare(*op, {{"act_type", type}});
  }
  EXPECT_GT(compiled, 8) << "of some 150 in all parts";
}

INSTANTIATE_TEST_SUITE_P(Cuda, EveryProgram, ::testing::Range(size_t{0}, EveryProgram::parts));

TEST_F(CudaPointwise, AnOperatorWithoutAKernelIsItsOwnProgram) {
  const std::vector<DType> types{DType::float32, DType::float16, DType::bfloat16};
  for (const char* type : {"leaky", "elu", "selu", "gelu"}) {
    compare_devices({{"LeakyReLU", {{3, 347}}, {{"act_type", type}}, types, -3, 3, 8}});
    compare_devices({{"_backward_LeakyReLU", {{3, 347}, {3, 347}}, {{"act_type", type}}, types, -3, 3, 8}});
  }
}

ExecutorPtr run_gate(DType dtype, bool fuse) {
  const Symbol x = Symbol::variable("x"), y = Symbol::variable("y");
  const Symbol net = apply("tanh", x * 1.7 + y) * apply("sigmoid", y) - x;
  auto executor =
      simple_bind(net, gpu(0), {{"x", {3, 347}}, {"y", {3, 347}}},
                  {.grad_req = "null", .type_dict = {{"x", dtype}, {"y", dtype}}, .options = {.fuse = fuse}});
  for (size_t i = 0; i < 2; ++i) random_array({3, 347}, i + 1, -3, 3).copyto(executor->arg_arrays()[i]);
  executor->forward(false);
  EXPECT_EQ(executor->debug_str().find("nvrtc") != std::string::npos, fuse) << dtype;
  return executor;
}

TEST_F(CudaPointwise, EveryTypeIsRoundedAsItsOperatorsRoundIt) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float64}) {
    const auto fused = run_gate(dtype, true), plain = run_gate(dtype, false);
    EXPECT_TRUE(same_bits(fused->outputs()[0].as_copy_in(cpu()), plain->outputs()[0].as_copy_in(cpu()))) << dtype;
  }
}

}  // namespace
}  // namespace symbind::testing
