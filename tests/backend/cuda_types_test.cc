// Functions of elements on a GPU in every type, alone and of two arrays brought to one shape, against the CPU. Skipped
// where there is no GPU.
#include <gtest/gtest.h>

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

using Case = DeviceCase;
using CudaTypes = GpuTest;

void add_alone(std::vector<Case>& cases) {
  const Shape shape{7, 19};
  for (const char* op :
       {"negative", "relu", "square", "abs", "sign", "round", "rint", "ceil", "floor", "fix", "trunc", "logical_not"})
    cases.push_back({op, {shape}, {}, all_types, -7, 7});
  for (const char* op : {"elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "_equal", "_not_equal",
                         "_greater", "_greater_equal", "_lesser", "_lesser_equal", "_maximum", "_minimum", "_mod",
                         "_logical_and", "_logical_or", "_logical_xor", "_backward_abs", "_backward_relu"})
    cases.push_back({op, {shape, shape}, {}, all_types, -7, 7});
  for (const char* op : {"_backward_maximum_lhs", "_backward_maximum_rhs", "_backward_minimum_lhs",
                         "_backward_minimum_rhs", "_backward_div_rhs"})
    cases.push_back({op, {shape, shape, shape}, {}, all_types, 1, 7});
  for (const char* op : {"_plus_scalar", "_minus_scalar", "_rminus_scalar", "_mul_scalar", "_div_scalar",
                         "_equal_scalar", "_greater_scalar", "_lesser_scalar", "_maximum_scalar", "_minimum_scalar",
                         "_mod_scalar", "_rmod_scalar", "_hypot_scalar", "_power_scalar", "_rpower_scalar",
                         "_logical_and_scalar", "_logical_or_scalar", "_logical_xor_scalar"})
    for (const char* is_int : {"True", "False"})
      cases.push_back({op, {shape}, {{"scalar", "2.5"}, {"is_int", is_int}}, all_types, 1, 7, 4});
  // Of (out_grad, data), where the data of other types than the result's are integers.
  for (const char* op :
       {"_backward_maximum_scalar", "_backward_minimum_scalar", "_backward_hypot_scalar", "_backward_mod_scalar",
        "_backward_rmod_scalar", "_backward_rdiv_scalar", "_backward_power_scalar"})
    for (const DType data : integer_types)
      cases.push_back({.op = op,
                       .inputs = {shape, shape},
                       .attributes = {{"scalar", "2.5"}, {"is_int", "False"}},
                       .dtypes = {DType::float64},
                       .low = 1,
                       .high = 7,
                       .input_types = {DType::none, data}});
  // More than a program has inputs.
  for (const size_t count : {1, 2, 16, 17, 31, 32, 40})
    cases.push_back({"add_n", std::vector<Shape>(count, shape), {{"num_args", join(count)}}, all_types, -1, 1, 16});
  cases.push_back({"clip", {shape}, {{"a_min", "-1.5"}, {"a_max", "3.25"}}, all_types, -7, 7});
  cases.push_back({"_backward_clip", {shape, shape}, {{"a_min", "-1.5"}, {"a_max", "3.25"}}, all_types, -7, 7});
  for (const char* op :
       {"sin", "cos", "arctan", "sinh", "cbrt", "log1p", "expm1", "erf", "gammaln", "rsqrt", "softsign"})
    cases.push_back({op, {shape}, {}, all_types, 0.25, 2, 8});
  for (const char* op : {"exp", "log", "sqrt", "tanh", "sigmoid", "degrees", "radians"})
    cases.push_back({op, {shape}, {}, integer_types, -7, 17});
  for (const char* op : {"_hypot", "_power"}) cases.push_back({op, {shape, shape}, {}, all_types, 0.25, 2, 4});
}

void add_broadcast(std::vector<Case>& cases) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{2, 3, 4}, {1, 3, 1}},
                                                                 {{5, 1}, {1, 7}},
                                                                 {{4}, {3, 4}},
                                                                 {{1}, {1}},
                                                                 {{6, 5}, {6, 5}},
                                                                 {{3, 0}, {1, 1}},
                                                                 {{2, 1, 3, 1, 2}, {1, 4, 1, 5, 2}}}) {
    for (const char* op : {"broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_div", "broadcast_equal",
                           "broadcast_not_equal", "broadcast_greater", "broadcast_greater_equal", "broadcast_lesser",
                           "broadcast_lesser_equal", "broadcast_maximum", "broadcast_minimum", "broadcast_mod",
                           "broadcast_logical_and", "broadcast_logical_or", "broadcast_logical_xor"})
      cases.push_back({op, {a, b}, {}, all_types, -7, 7});
    cases.push_back({"broadcast_hypot", {a, b}, {}, all_types, 0.25, 2, 4});
    cases.push_back({"broadcast_power", {a, b}, {}, all_types, 0.25, 2, 4});
    cases.push_back({"broadcast_power", {a, b}, {}, integer_types, -7, 7});
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  add_alone(cases);
  add_broadcast(cases);
  return cases;
}

TEST(CudaTypeCases, AreAcceptedByTheGpu) {
  if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  expect_accepted(all_cases());
}

TEST_F(CudaTypes, HaveTheFunctionsOfTheCpu) { compare_devices(all_cases()); }

}  // namespace
}  // namespace symbind::testing
