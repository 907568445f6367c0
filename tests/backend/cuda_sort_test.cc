// Sorting on a GPU against the CPU: rows of all lengths, along every axis, in every type, with NaN, zeros of both signs
// and equal elements. Skipped where there is no GPU.
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"
#include "symbind/ops/sort.h"

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

using Case = DeviceCase;
using CudaSorts = GpuTest;

const std::vector<DType> every_type{DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8,
                                    DType::int8,    DType::int32,   DType::int64,   DType::boolean};

// Rows of a warp, of a small and a large block, and longer ones.
const std::vector<std::pair<Shape, std::string>> sorted_arrays{
    {{1}, "-1"},      {{5, 7}, "-1"},     {{5, 32}, "1"}, {{7, 5}, "0"},      {{3, 33, 4}, "1"},
    {{2, 513}, "1"},  {{3, 4096}, "-1"},  {{4097}, "0"},  {{3, 5000}, "1"},   {{5000, 3}, "0"},
    {{3, 5}, "None"}, {{70, 80}, "None"}, {{0, 4}, "1"},  {{2, 4100, 2}, "1"}};

void add_topk_cases(std::vector<Case>& cases, const Shape& shape, const std::string& axis, const char* ascend) {
  for (const char* returned : {"indices", "value", "both", "mask"})
    for (const char* k : {"0", "1", "3"}) {
      const int64_t length = axis == "None" ? shape.size() : shape[shape.axis(std::stoll(axis), "")];
      if (length < std::stoll(k)) continue;
      cases.push_back({"topk",
                       {shape},
                       {{"axis", axis}, {"k", k}, {"ret_typ", returned}, {"is_ascend", ascend}, {"dtype", "int32"}},
                       every_type,
                       -100,
                       100});
    }
}

}  // namespace

std::vector<DeviceCase> sort_cases() {
  std::vector<Case> cases;
  for (const auto& [shape, axis] : sorted_arrays)
    for (const char* ascend : {"True", "False"}) {
      const Attributes attributes{{"axis", axis}, {"is_ascend", ascend}};
      cases.push_back({"sort", {shape}, attributes, every_type, -100, 100});
      cases.push_back({"sort", {shape}, attributes, every_type, -1, 1});  // many are equal
      Attributes with_type = attributes;
      with_type["dtype"] = "int32";
      cases.push_back({"argsort", {shape}, with_type, every_type, -1, 1});
      add_topk_cases(cases, shape, axis, ascend);
    }
  for (const char* dtype : {"float32", "float64", "float16", "uint8", "int32", "int64"}) {
    cases.push_back({"argsort", {{3, 40}}, {{"dtype", dtype}}});
    cases.push_back({"topk", {{3, 40}}, {{"dtype", dtype}, {"k", "5"}, {"ret_typ", "both"}}});
  }
  // Indices from -1 to 8: some are outside, and some occur twice.
  for (const Shape& indices : std::vector<Shape>{{4, 7}, {4, 1}, {0, 7}}) {
    cases.push_back({"_backward_topk", {indices, indices, {indices[0], 7}}, {{"axis", "1"}}, every_type, -1, 8});
  }
  cases.push_back({"_backward_topk", {{4, 3, 5}, {4, 3, 5}, {4, 7, 5}}, {{"axis", "1"}}, every_type, -1, 8});
  cases.push_back({"_backward_topk", {{6}, {6}, {4, 7}}, {{"axis", "None"}}, float_types, -1, 30});
  return cases;
}

namespace {

TEST(CudaSortCases, AreAcceptedByTheGpu) {
  if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  expect_accepted(sort_cases());
}

TEST_F(CudaSorts, GiveTheOrderOfTheCpu) { compare_devices(sort_cases()); }

TEST_F(CudaSorts, PutNanLastAndKeepEqualElementsInOrder) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> pattern{0.0, nan, -0.0, inf, 1, -inf, nan, -0.0, 0.0, -1, inf};
  for (const int64_t length : {11, 300, 2000, 6000})
    for (const DType type : float_types)
      for (const bool ascend : {true, false}) {
        SCOPED_TRACE(join(length, " of ", type, ascend ? " ascending" : " descending"));
        std::vector<double> values(static_cast<size_t>(length));
        for (size_t i = 0; i < values.size(); ++i) values[i] = pattern[i % pattern.size()];
        const NDArray on_cpu = array(values, {length}, cpu(), type), on_gpu = on_cpu.as_copy_in(gpu(0));
        const Argsort params{.is_ascend = ascend, .dtype = DType::int32};
        EXPECT_EQ(invoke(argsort, {on_gpu}, params)[0].to_vector<int>(),
                  invoke(argsort, {on_cpu}, params)[0].to_vector<int>());
      }
}

}  // namespace
}  // namespace symbind::testing
