// Operators in captured plans: the first run of an executor on a GPU queues its kernels one by one, the second records
// them, and every later one launches what was recorded. Steps that do not need each other may then run concurrently.
#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/core/random.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/graph/builder.h"
#include "symbind/passes/step_capture.h"

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"
#include "tests/support/networks.h"

namespace symbind::testing {
namespace {

using CudaCaptured = GpuTest;

// An executor of the case's operator alone, with its inputs filled.
ExecutorPtr bind_case(const DeviceCase& tried, DType dtype, Context context) {
  const OpDef& op = OpRegistry::get().find(tried.op);
  std::vector<Symbol> inputs;
  NamedShapes shapes;
  std::map<std::string, DType> types;
  for (size_t i = 0; i < tried.inputs.size(); ++i) {
    const std::string name = join("x", i);
    inputs.push_back(Symbol::variable(name));
    shapes[name] = tried.inputs[i];
    types[name] = tried.type_of(i, dtype);
  }
  const Symbol net = apply(op, inputs, op.parse_params(tried.attributes, "node"), tried.attributes, "node");
  auto executor = simple_bind(net, context, shapes, {.grad_req = "null", .type_dict = types});
  for (size_t i = 0; i < tried.inputs.size(); ++i)
    random_array(tried.inputs[i], 11 + i, tried.low, tried.high, tried.type_of(i, dtype))
        .copyto(executor->arg_arrays()[i]);
  return executor;
}

// Operators that change their inputs or draw numbers give something else at every run, and an extent of 0 is an unknown
// one to bind().
bool repeats(const DeviceCase& tried) {
  for (const Shape& shape : tried.inputs)
    if (shape.size() == 0) return false;
  const OpDef& op = OpRegistry::get().find(tried.op);
  const auto params = op.parse_params(tried.attributes, "node");
  const std::vector<bool> updated = op.updated_inputs(params.get(), tried.inputs.size());
  return !op.is_random(params.get(), tried.is_train) && std::count(updated.begin(), updated.end(), true) == 0;
}

void expect_repeated(const DeviceCase& tried, Context context) {
  SCOPED_TRACE(join(tried));
  const auto executor = bind_case(tried, tried.dtypes[0], context);
  std::vector<NDArray> first;
  for (int run = 0; run < 4; ++run) {
    executor->forward(tried.is_train);
    if (run == 0)
      for (const NDArray& output : executor->outputs()) first.push_back(output.as_copy_in(cpu()));
    for (size_t i = 0; i < first.size(); ++i)
      EXPECT_TRUE(same_bits(executor->outputs()[i].as_copy_in(cpu()), first[i])) << "output " << i << " of run " << run;
  }
}

TEST_F(CudaCaptured, RunsOfACapturedPlanGiveTheSameBits) {
  for (const auto& family : {reduction_cases(), normalization_cases(), loss_cases()})
    for (const DeviceCase& tried : family)
      if (repeats(tried)) {
        EXPECT_NO_THROW(expect_repeated(tried, gpu(0))) << tried;
      }
}

// a = x + 1 and b = x · 2, then c = a · b, and a is overwritten when c has read it.
TEST_F(CudaCaptured, StepsWaitForThoseTheyNeed) {
  const Shape shape{257, 1031};
  NDArray x = random_array(shape, 1, -1, 1, DType::float32, gpu(0));
  const NDArray a = zeros(shape, gpu(0)), b = zeros(shape, gpu(0)), c = zeros(shape, gpu(0));
  const std::vector<std::function<void()>> steps{
      [&] {
        invoke("_plus_scalar", {x}, {{"scalar", "1"}}, {.out = {a}});
      },
      [&] {
        invoke("_mul_scalar", {x}, {{"scalar", "2"}}, {.out = {b}});
      },
      [&] {
        invoke("elemwise_mul", {a, b}, {}, {.out = {c}});
      },
      [&] { a.fill(-1); },
  };
  for (const auto& step : steps) step();
  auto* const by_need = dynamic_cast<StepCapture*>(&Target::get(gpu(0)));
  ASSERT_NE(by_need, nullptr);
  const std::vector<std::vector<size_t>> waits{{}, {}, {0, 1}, {2}};
  const auto captured = by_need->capture_steps(Device::get(gpu(0)), waits, [&](size_t step) { steps[step](); });
  ASSERT_NE(captured, nullptr);
  for (int run = 0; run < 20; ++run) {
    const NDArray values = random_array(shape, 2 + static_cast<uint64_t>(run));
    values.copyto(x);
    captured->launch();
    EXPECT_TRUE(same_bits(c.as_copy_in(cpu()), (values + 1) * (values * 2))) << "run " << run;
    EXPECT_TRUE(same_bits(a.as_copy_in(cpu()), full(shape, -1))) << "run " << run;
  }
}

TEST_F(CudaCaptured, AStepThatCannotBeRecordedLeavesTheOthersToRunOneByOne) {
  auto* const by_need = dynamic_cast<StepCapture*>(&Target::get(gpu(0)));
  ASSERT_NE(by_need, nullptr);
  const NDArray array = zeros({3}, gpu(0));
  const std::vector<std::vector<size_t>> waits{{}, {0}};
  const auto captured = by_need->capture_steps(Device::get(gpu(0)), waits, [&](size_t step) {
    array.fill(static_cast<double>(step));
    if (step == 1) throw Error("not now");
  });
  EXPECT_EQ(captured, nullptr);
  array.fill(5);
  EXPECT_EQ(array.to_vector<float>(), std::vector<float>(3, 5)) << "the stream records no longer";
}

// Products of a library that all use one workspace, and recurrent layers, beside each other.
Network steps_that_run_alone() {
  const Symbol data = var("data");
  std::vector<Symbol> branches;
  for (int i = 0; i < 4; ++i) {
    const std::string name = join("weight", i);
    branches.push_back(apply("sum", apply("_linalg_gemm2", {data, var(name)}, {}, join("product", i)),
                             {{"axis", "2"}, {"keepdims", "True"}}, join("sum", i)));
    const Symbol layers = apply("RNN", {data, var(join("parameters", i)), var(join("state", i))},
                                {{"mode", "rnn_tanh"}, {"state_size", "8"}, {"num_layers", "1"}}, join("rnn", i));
    branches.push_back(apply("sum", layers, {{"axis", "2"}, {"keepdims", "True"}}, join("states", i)));
  }
  const Symbol all = apply("Concat", branches, {{"num_args", "8"}, {"dim", "2"}}, "all");
  NamedShapes shapes{{"data", {5, 3, 6}}};
  for (int i = 0; i < 4; ++i) {
    shapes[join("weight", i)] = {5, 6, 16};
    shapes[join("state", i)] = {1, 3, 8};
  }
  return {"steps_that_run_alone",
          apply("MakeLoss", apply("sum", apply("square", all, {}, "squares"), {}, "total"), {}, "loss"), shapes, 0};
}

std::vector<Network> captured_networks() {
  std::vector<Network> networks = networks_for_plans();
  networks.push_back(steps_that_run_alone());
  return networks;
}

class CapturedNetwork : public GpuTest, public ::testing::WithParamInterface<Network> {};

TEST_P(CapturedNetwork, GivesTheSameBitsAsItsStepsOneAfterTheOther) {
  const Network& network = GetParam();
  const auto concurrent = bind_with_values(network, gpu(0)),
             one_by_one = bind_with_values(network, gpu(0), {.options = {.capture = false}});
  for (int run = 0; run < 6; ++run) {
    for (const auto& executor : {concurrent, one_by_one}) {
      set_values(*executor, network.classes, 1 + static_cast<uint64_t>(run));
      seed(7);
      executor->forward(true);
      executor->backward(out_grads_for(*executor));
    }
    for (size_t i = 0; i < concurrent->outputs().size(); ++i)
      EXPECT_TRUE(same_bits(concurrent->outputs()[i].as_copy_in(cpu()), one_by_one->outputs()[i].as_copy_in(cpu())))
          << "output " << i << " of run " << run;
    for (const auto& [name, gradient] : concurrent->grad_dict())
      EXPECT_TRUE(same_bits(gradient.as_copy_in(cpu()), one_by_one->grad_dict().at(name).as_copy_in(cpu())))
          << name << " of run " << run;
  }
}

// Forward and backward as one captured plan.
TEST_P(CapturedNetwork, GivesTheSameBitsInOneLaunch) {
  const Network& network = GetParam();
  const auto together = bind_with_values(network, gpu(0)), apart = bind_with_values(network, gpu(0)),
             one_by_one = bind_with_values(network, gpu(0), {.options = {.capture = false}});
  for (int run = 0; run < 6; ++run) {
    for (const auto& executor : {together, apart, one_by_one}) {
      set_values(*executor, network.classes, 1 + static_cast<uint64_t>(run));
      seed(7);
      if (executor == together) {
        const std::string error = error_of([&] { executor->forward_backward(); });
        if (error.find("out_grads are needed") != std::string::npos) GTEST_SKIP() << "outputs that are not losses";
        ASSERT_EQ(error, "");
      } else {
        executor->forward(true);
        executor->backward();
      }
    }
    for (const auto& other : {apart, one_by_one}) {
      for (size_t i = 0; i < other->outputs().size(); ++i)
        EXPECT_TRUE(same_bits(together->outputs()[i].as_copy_in(cpu()), other->outputs()[i].as_copy_in(cpu())))
            << "output " << i << " of run " << run;
      for (const auto& [name, gradient] : other->grad_dict())
        EXPECT_TRUE(same_bits(together->grad_dict().at(name).as_copy_in(cpu()), gradient.as_copy_in(cpu())))
            << name << " of run " << run;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CapturedNetwork, ::testing::ValuesIn(captured_networks()), [](const auto& tried) {
  std::string name = join(tried.index, "_", tried.param.name);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace symbind::testing
