// One case struct per operator, and the ways every operator is checked: against a plain reference, by finite
// differences, with grad_req add, in place, on empty and odd shapes, in every type, on every available device.
//
//   INSTANTIATE_TEST_SUITE_P(Matrix, OpCaseTest, on_every_device({
//       {.name = "dot", .op = "dot", .inputs = {{"lhs", {2, 3}}, {"rhs", {3, 4}}}, .reference = plain_dot},
//   }), op_case_name);
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/core/ndarray.h"
#include "symbind/graph/symbol.h"

namespace symbind::testing {

// An array as the reference functions see it.
struct Values {
  Shape shape;
  std::vector<double> data;
};

struct OpInput {
  std::string name;
  Shape shape;
  double low = -1, high = 1;  // range of the random values
  DType dtype = DType::none;  // none: the type under test
  bool gradient = true;       // false for labels and indices
  bool aux = false;
};

struct OpCase {
  std::string name;
  std::string op;
  Attributes attributes = {};
  std::vector<OpInput> inputs = {};
  // The outputs for the inputs' values, by the definition. None: float64 (or float32) is compared with nothing, and the
  // other types with it.
  std::function<std::vector<Values>(const std::vector<Values>& inputs)> reference = nullptr;
  std::vector<DType> dtypes = {DType::float32, DType::float64, DType::float16, DType::bfloat16};
  bool differentiable = true;
  bool is_train = true;
  // Further shapes for the inputs, in order: odd ones, empty ones.
  std::vector<std::vector<Shape>> more_shapes = {};
  // Elementwise operators may write onto their first input.
  bool in_place = false;
  // For loss heads: a function of the outputs whose gradient the operator computes.
  std::function<double(const std::vector<NDArray>& outputs, const std::vector<NDArray>& inputs)> loss = nullptr;
  // float32 is allowed this many times its usual tolerance.
  double slack = 1;
  Context context = cpu();
};

std::ostream& operator<<(std::ostream& out, const OpCase& op_case);

std::vector<OpCase> devices_of(const std::vector<OpCase>& cases);
inline auto on_every_device(const std::vector<OpCase>& cases) { return ::testing::ValuesIn(devices_of(cases)); }
std::string op_case_name(const ::testing::TestParamInfo<OpCase>& info);  // "dot_transposed_on_cpu"

// Every case goes through every check; one that does not apply to a case is skipped.
class OpCaseTest : public ::testing::TestWithParam<OpCase> {
 protected:
  void SetUp() override;  // skips what the machine cannot run
};

// The operator on one variable per input, and values for them.
Symbol symbol_of(const OpCase& op_case);
std::vector<NDArray> inputs_of(const OpCase& op_case, DType dtype, const std::vector<Shape>& shapes = {});

}  // namespace symbind::testing
