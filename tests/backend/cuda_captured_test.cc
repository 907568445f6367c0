// Operators in captured plans: the first run of an executor on a GPU queues its kernels one by one, the second records
// them, and every later one launches what was recorded.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"

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

}  // namespace
}  // namespace symbind::testing
