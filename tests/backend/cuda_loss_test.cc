// Losses, rectifiers and products of many matrices on a GPU against the CPU's.
#include <gtest/gtest.h>

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

void add_losses(std::vector<DeviceCase>& cases) {
  for (const Shape& shape : std::vector<Shape>{{6, 8}, {33, 7}, {2, 3000}, {0, 4}}) {
    const Shape label{shape[0]};
    for (const char* linear : {"False", "True"})
      cases.push_back({"_backward_SVMOutput",
                       {shape, label},
                       {{"margin", "0.5"}, {"regularization_coefficient", "2"}, {"use_linear", linear}},
                       float_types,
                       -1,
                       3});
    // Labels from -1 to 7: some are no class.
    cases.push_back({"softmax_cross_entropy", {shape, label}, {}, float_types, -1, 7, 8});
    cases.push_back({"_backward_softmax_cross_entropy", {{1}, shape, label}, {}, float_types, -1, 7, 4});
    for (const char* op : {"_backward_LinearRegressionOutput", "_backward_MAERegressionOutput"})
      cases.push_back({op, {shape, shape}, {{"grad_scale", "3"}}});
    cases.push_back({"LogisticRegressionOutput", {shape, shape}});
    for (const char* normalization : {"null", "batch", "valid"})
      cases.push_back({"_backward_MakeLoss",
                       {shape},
                       {{"normalization", normalization}, {"grad_scale", "2"}, {"valid_thresh", "0.5"}}});
  }
  for (const char* normalization : {"null", "batch", "valid"})
    for (const char* ignore : {"False", "True"})
      cases.push_back({"_backward_SoftmaxOutput",
                       {{3, 5, 4, 2}, {3, 8}},
                       {{"multi_output", "True"},
                        {"normalization", normalization},
                        {"use_ignore", ignore},
                        {"ignore_label", "2"},
                        {"grad_scale", "0.5"}},
                       float_types,
                       -1,
                       4});
  cases.push_back({"SoftmaxOutput", {{3, 4, 5}, {3, 4}}, {{"preserve_shape", "True"}}});
}

void add_regularizer(std::vector<DeviceCase>& cases) {
  const Attributes attributes{{"sparseness_target", "0.2"}, {"penalty", "0.01"}, {"momentum", "0.8"}};
  for (const Shape& shape : std::vector<Shape>{{6, 8}, {5, 7}, {2, 3, 4, 5}}) {
    const std::vector<DType> states{DType::none, DType::float32};
    const std::vector<DType> single{DType::float32, DType::float16, DType::bfloat16};
    for (const bool is_train : {true, false}) {
      cases.push_back(
          {"IdentityAttachKLSparseReg", {shape, {shape[1]}}, attributes, single, 0.1, 0.9, 1, is_train, states});
      cases.push_back(
          {"IdentityAttachKLSparseReg", {shape, {shape[1]}}, attributes, {DType::float64}, 0.1, 0.9, 1, is_train});
    }
    cases.push_back(
        {"_backward_IdentityAttachKLSparseReg", {shape, {shape[1]}}, attributes, single, 0.1, 0.9, 1, true, states});
  }
}

void add_rectifiers(std::vector<DeviceCase>& cases) {
  for (const char* type : {"leaky", "elu", "selu", "gelu"}) {
    cases.push_back({"LeakyReLU", {{5, 9}}, {{"act_type", type}, {"slope", "0.3"}}});
    cases.push_back({"_backward_LeakyReLU", {{5, 9}, {5, 9}}, {{"act_type", type}, {"slope", "0.3"}}});
  }
  const Attributes prelu{{"act_type", "prelu"}}, rrelu{{"act_type", "rrelu"}};
  for (const Shape& data : std::vector<Shape>{{6, 8}, {5, 7}, {2, 3, 4, 5}, {9}, {300, 33}, {0, 3}})
    for (const bool shared : {false, true}) {
      const Shape gamma{shared ? 1 : data[data.rank() > 1 ? 1 : 0]};
      cases.push_back({"LeakyReLU", {data, gamma}, prelu});
      cases.push_back({"_backward_LeakyReLU", {data, data, gamma}, prelu, float_types, -2, 2, 4});
    }
  for (const bool is_train : {true, false})
    cases.push_back({"LeakyReLU", {{7, 31}}, rrelu, float_types, -2, 2, 1, is_train});
  cases.push_back({"_backward_LeakyReLU", {{7, 31}, {7, 31}, {7, 31}}, rrelu});
}

void add_products(std::vector<DeviceCase>& cases) {
  const std::vector<DType> whole{DType::int32, DType::int64, DType::int8, DType::uint8, DType::boolean};
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const std::vector<DType>& types : {float_types, whole}) {
        const Attributes attributes{{"transpose_a", ta ? "True" : "False"}, {"transpose_b", tb ? "True" : "False"}};
        for (const auto& [rows, inner, columns] :
             std::vector<std::tuple<int64_t, int64_t, int64_t>>{{8, 16, 24}, {3, 5, 7}, {1, 33, 1}, {2, 0, 3}}) {
          const Shape lhs = ta ? Shape{inner, rows} : Shape{rows, inner};
          const Shape rhs = tb ? Shape{columns, inner} : Shape{inner, columns};
          const Shape many_lhs{4, lhs[0], lhs[1]}, many_rhs{4, rhs[0], rhs[1]};
          cases.push_back({"batch_dot", {many_lhs, many_rhs}, attributes, types, -2, 2, 4});
          if (!is_floating(types[0])) cases.push_back({"dot", {lhs, rhs}, attributes, types, -2, 2});
        }
      }
  cases.push_back({"batch_dot", {{2, 3, 4, 5}, {2, 3, 5, 6}}, {}, float_types, -2, 2, 4});
  cases.push_back({"batch_dot", {{0, 4, 5}, {0, 5, 6}}, {}, float_types});
}

}  // namespace

std::vector<DeviceCase> loss_cases() {
  std::vector<DeviceCase> cases;
  add_losses(cases);
  add_regularizer(cases);
  add_rectifiers(cases);
  add_products(cases);
  return cases;
}

namespace {

using CudaLoss = GpuTest;

TEST_F(CudaLoss, LossesRectifiersAndProductsAgreeWithTheCpu) { compare_devices(loss_cases()); }

}  // namespace
}  // namespace symbind::testing
