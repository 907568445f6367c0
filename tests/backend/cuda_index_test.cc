// Elements and slices chosen by indices on a GPU against the CPU: indices of every type, from either end and outside of
// their axis. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "symbind/core/error_kinds.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/gather.h"

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

using Case = DeviceCase;
using CudaIndices = GpuTest;

const std::vector<DType> every_type{DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8,
                                    DType::int8,    DType::int32,   DType::int64,   DType::boolean};

// The indices are input `number` of a case: of the case's type, and of every other one.
void add_with_index_types(std::vector<Case>& cases, Case tried, size_t number) {
  cases.push_back(tried);
  tried.input_types.resize(number + 1, DType::none);
  tried.dtypes = {DType::float32};
  for (const DType type : every_type) {
    tried.input_types[number] = type;
    cases.push_back(tried);
  }
}

// Indices from -2 to 12 for an axis of nine: some are outside.
void add_slice_cases(std::vector<Case>& cases) {
  for (const char* mode : {"clip", "wrap"}) {
    const Attributes along_first{{"mode", mode}}, along_second{{"mode", mode}, {"axis", "1"}};
    add_with_index_types(cases, {"take", {{9, 5}, {4, 3}}, along_first, every_type, -2, 12}, 1);
    cases.push_back({"take", {{2, 9, 5}, {7}}, along_second, every_type, -2, 12});
    cases.push_back({"take", {{9, 64}, {33}}, along_first, every_type, -2, 12});  // rows of whole 16 bytes
    cases.push_back({"take", {{9, 4, 4}, {1}}, {{"mode", mode}, {"axis", "-1"}}, every_type, -2, 12});
    add_with_index_types(cases, {"_backward_take", {{4, 3, 5}, {4, 3}, {9, 5}}, along_first, every_type, -2, 12}, 1);
    cases.push_back({"_backward_take", {{2, 70, 5}, {70}, {2, 9, 5}}, along_second, every_type, -2, 12});
    cases.push_back({"_backward_take", {{70, 300}, {70}, {9, 300}}, along_first, float_types, -2, 12});
  }
  cases.push_back({"take", {{4, 3}, {5}}, {{"mode", "raise"}}, every_type, 0, 2});
  cases.push_back({"_backward_take", {{5, 3}, {5}, {4, 3}}, {{"mode", "raise"}}, every_type, 0, 2});
  cases.push_back({"take", {{300, 5}, {0}}, {}, every_type});
  cases.push_back({"_backward_take", {{0, 5}, {0}, {300, 5}}, {}, every_type});
  cases.push_back({"Embedding", {{6, 7}, {9, 300}}, {{"input_dim", "9"}, {"output_dim", "300"}}, every_type, -2, 12});
  cases.push_back({"Embedding", {{65}, {9, 1}}, {{"input_dim", "9"}, {"output_dim", "1"}}, every_type, -2, 12});
}

// Indices from -2 to 1 for axes of two and more: all are inside, counted from either end.
void add_nd_cases(std::vector<Case>& cases) {
  for (const Shape& whole : std::vector<Shape>{{2, 3, 4}, {2, 5, 1}, {3, 2, 33}}) {
    for (const int64_t depth : {1, 2, 3}) {
      if (depth == 3 && whole[2] == 1) continue;
      const Shape indices{depth, 3, 7};
      Shape parts{3, 7};
      for (int axis = static_cast<int>(depth); axis < 3; ++axis) parts.push_back(whole[axis]);
      const std::vector<DType> signed_types{DType::float32, DType::float64,  DType::float16,
                                            DType::int32,   DType::bfloat16, DType::int64};
      cases.push_back({"gather_nd", {whole, indices}, {}, signed_types, -2, 1});
      cases.push_back({"_backward_gather_nd", {parts, indices, whole}, {}, signed_types, -2, 1});
      cases.push_back({"scatter_nd", {parts, indices}, {{"shape", join(whole)}}, signed_types, -2, 1});
    }
  }
  add_with_index_types(cases, {"gather_nd", {{2, 3}, {2, 5}}, {}, every_type, 0, 1}, 1);
  add_with_index_types(cases, {"_backward_gather_nd", {{500}, {2, 500}, {2, 3}}, {}, float_types, 0, 1, 4}, 1);
  add_with_index_types(cases, {"scatter_nd", {{500, 3}, {1, 500}}, {{"shape", "(2, 3)"}}, every_type, 0, 1}, 1);
  cases.push_back({"gather_nd", {{2, 3}, {1, 0}}, {}, every_type});
  cases.push_back({"_backward_gather_nd", {{0, 3}, {1, 0}, {2, 3}}, {}, every_type});
  cases.push_back({"scatter_nd", {{0, 3}, {1, 0}}, {{"shape", "(2, 3)"}}, every_type});
}

void add_element_cases(std::vector<Case>& cases) {
  for (const char* mode : {"clip", "wrap"}) {
    add_with_index_types(cases, {"pick", {{7, 9}, {7}}, {{"mode", mode}}, every_type, -2, 12}, 1);
    add_with_index_types(cases, {"_backward_pick", {{7}, {7}, {7, 9}}, {{"mode", mode}}, every_type, -2, 12}, 1);
    const Attributes middle{{"axis", "1"}, {"keepdims", "True"}, {"mode", mode}};
    cases.push_back({"pick", {{3, 9, 5}, {3, 1, 5}}, middle, every_type, -2, 12});
    cases.push_back({"_backward_pick", {{3, 1, 5}, {3, 1, 5}, {3, 9, 5}}, middle, every_type, -2, 12});
  }
  cases.push_back({"pick", {{0, 9}, {0}}, {}, every_type});
  cases.push_back({"_backward_pick", {{0}, {0}, {0, 9}}, {}, every_type});
  add_with_index_types(cases, {"batch_take", {{33, 9}, {33}}, {}, every_type, -2, 12}, 1);
  add_with_index_types(cases, {"fill_element_0index", {{33, 9}, {33}, {33}}, {}, every_type, -2, 12}, 2);
  for (const char* dtype : {"float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool"})
    cases.push_back({"one_hot",
                     {{5, 3}},
                     {{"depth", "11"}, {"dtype", dtype}, {"on_value", "3"}, {"off_value", "-1"}},
                     every_type,
                     -2,
                     12});
  cases.push_back({"one_hot", {{0}}, {{"depth", "4"}}, every_type});
  cases.push_back({"one_hot", {{5}}, {{"depth", "0"}}, every_type});
  add_with_index_types(cases, {"where", {{3, 5}, {3, 5}, {3, 5}}, {}, every_type, -1, 1}, 0);
  cases.push_back({"where", {{7}, {7, 65}, {7, 65}}, {}, every_type, -1, 1});
  cases.push_back({"where", {{0}, {0, 3}, {0, 3}}, {}, every_type});
}

void add_shape_cases(std::vector<Case>& cases) {
  cases.push_back({"shape_array", {{3, 0, 5}}, {}, every_type});
  cases.push_back({"size_array", {{3, 4, 5}}, {}, every_type});
  for (const char* shape : {"(4,)", "(3, 7)", "(-1, 2, 5)"}) {
    const int64_t axes = shape[1] == '4' ? 1 : shape[1] == '3' ? 2 : 3;
    cases.push_back({"_ravel_multi_index", {{axes, 33}}, {{"shape", shape}}, every_type, -3, 6});
    cases.push_back({"_unravel_index", {{33}}, {{"shape", shape}}, every_type, -7, 60});
  }
}

}  // namespace

std::vector<DeviceCase> index_cases() {
  std::vector<Case> cases;
  add_slice_cases(cases);
  add_nd_cases(cases);
  add_element_cases(cases);
  add_shape_cases(cases);
  return cases;
}

namespace {

TEST(CudaIndexCases, AreAcceptedByTheGpu) {
  if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  expect_accepted(index_cases());
}

TEST_F(CudaIndices, ChooseWhatTheyDoOnTheCpu) { compare_devices(index_cases()); }

TEST_F(CudaIndices, OutsideOfTheirAxisAreReportedByTheNextWait) {
  const NDArray rows = counted({3, 2}, DType::float32, gpu(0));
  const NDArray indices = array({0, 3}, gpu(0));
  const NDArray taken = invoke(take, {rows, indices}, {.mode = "raise"})[0];
  EXPECT_TRUE(fails_with([&] { taken.to_vector<float>(); }, "[take]", "index 3", "length 3"));
  // Reported once; what was taken is the nearest row.
  EXPECT_EQ(taken.to_vector<float>(), (std::vector<float>{1, 2, 5, 6}));
  const NDArray gathered = gather_nd(rows, array<double>({0, 0, 1, -4}, {2, 2}, gpu(0)));
  EXPECT_THROW(gathered.to_vector<float>(), IndexError);
  EXPECT_TRUE(fails_with(
      [&] {
        const NDArray again = gather_nd(rows, array<double>({0, 0, 1, -4}, {2, 2}, gpu(0)));
        again.to_vector<float>();
      },
      "[gather_nd]", "index -4", "axis 1"));
  EXPECT_EQ(invoke(take, {rows, array({2}, gpu(0))}, {.mode = "raise"})[0].to_vector<float>(),
            (std::vector<float>{5, 6}));
}

TEST_F(CudaIndices, OutsideOfTheirAxisAreReportedFromARecordedPlan) {
  const auto net = take(Symbol::variable("a"), Symbol::variable("at"), {.mode = "raise"}, "rows");
  auto executor = simple_bind(net, gpu(0), {{"a", {3, 2}}, {"at", {2}}});
  const auto run = [&](double last) {
    executor->forward(false, {{"a", counted({3, 2})}, {"at", array({0.0, last})}});
    return executor->outputs()[0].to_vector<float>();
  };
  for (int again = 0; again < 4; ++again) EXPECT_EQ(run(2), (std::vector<float>{1, 2, 5, 6}));
  EXPECT_TRUE(fails_with([&] { run(7); }, "[take rows]", "index 7", "length 3"));
  EXPECT_EQ(run(1), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(CudaIndices, GradientsAreTheSameBitForBit) {
  const NDArray dy = random_array({5000, 33}, 1, -1, 1, DType::float32, gpu(0));
  const NDArray at = random_array({5000}, 2, 0, 40, DType::int32, gpu(0));
  const NDArray data = zeros({41, 33}, gpu(0));
  const NDArray first = invoke(take_grad, {dy, at, data}, {})[0];
  for (int again = 0; again < 3; ++again) EXPECT_TRUE(same_bits(invoke(take_grad, {dy, at, data}, {})[0], first));
}

}  // namespace
}  // namespace symbind::testing
