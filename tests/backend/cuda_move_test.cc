// Operators that move elements on a GPU against the CPU's: axes turned and repeated, parts taken out and put back,
// arrays joined and split. Shapes are odd ones and ones whose rows fill 16 bytes. Skipped where there is no GPU.
#include <set>

#include <gtest/gtest.h>

#include "symbind/backend/concat.h"
#include "symbind/backend/movements.h"
#include "symbind/ops/concat.h"
#include "symbind/ops/slice.h"

#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

using Case = DeviceCase;
using CudaMoves = GpuTest;

const std::vector<DType> sizes{DType::float32, DType::float64, DType::float16, DType::uint8, DType::int64};

std::vector<Case> turning_cases() {
  std::vector<Case> cases;
  for (const Shape& shape : std::vector<Shape>{{7}, {64, 48}, {3, 5}, {1, 9}, {0, 4}})
    cases.push_back({"transpose", {shape}, {}, sizes});
  for (const char* axes : {"(0, 2, 1)", "(1, 0, 2)", "(2, 0, 1)", "(0, 1, 2)"})
    for (const Shape& shape : std::vector<Shape>{{3, 40, 33}, {5, 3, 16}})
      cases.push_back({"transpose", {shape}, {{"axes", axes}}, sizes});
  cases.push_back({"transpose", {{2, 3, 4, 5, 6, 7}}, {{"axes", "(5, 3, 1, 0, 2, 4)"}}, sizes});
  cases.push_back({"SwapAxis", {{4, 3, 8}}, {{"dim1", "0"}, {"dim2", "2"}}, sizes});
  for (const char* axis : {"0", "(0, 1)", "2"}) cases.push_back({"reverse", {{3, 4, 8}}, {{"axis", axis}}, sizes});
  cases.push_back({"depth_to_space", {{2, 8, 3, 5}}, {{"block_size", "2"}}, sizes});
  cases.push_back({"space_to_depth", {{2, 2, 6, 4}}, {{"block_size", "2"}}, sizes});
  return cases;
}

std::vector<Case> repeating_cases() {
  return {
      {"tile", {{3, 4}}, {{"reps", "(2, 3)"}}, sizes},
      {"tile", {{2, 3, 2, 3}}, {{"reps", "(2, 3, 1, 2)"}}, sizes},
      {"repeat", {{3, 5}}, {{"repeats", "3"}, {"axis", "1"}}, sizes},
      {"repeat", {{3, 8}}, {{"repeats", "2"}, {"axis", "0"}}, sizes},
      {"broadcast_to", {{3, 1, 8}}, {{"shape", "(3, 5, 8)"}}, sizes},
      {"broadcast_axis", {{1, 4, 1}}, {{"axis", "(0, 2)"}, {"size", "(3, 7)"}}, sizes},
      {"broadcast_like", {{1, 4}, {3, 4}}, {}, sizes},
  };
}

std::vector<Case> part_cases() {
  std::vector<Case> cases;
  struct Range {
    const char *begin, *end, *step;
    Shape part;
  };
  const Shape whole{4, 6, 8};
  for (const Range& range : std::vector<Range>{
           {"(0, 0, 0)", "(4, 6, 8)", "(1, 1, 1)", whole},
           {"(1, 2, 4)", "(3, 5, 8)", "(1, 1, 1)", {2, 3, 4}},
           {"(None, 5, 1)", "(None, 0, 7)", "(2, -2, 3)", {2, 3, 2}},
       }) {
    const Attributes attributes{{"begin", range.begin}, {"end", range.end}, {"step", range.step}};
    cases.push_back({"slice", {whole}, attributes, sizes});
    cases.push_back({op_of<SliceGrad>().name, {range.part, whole}, attributes, sizes});
  }
  const Attributes rows{{"axis", "1"}, {"begin", "1"}, {"end", "5"}};
  cases.push_back({"slice_axis", {{3, 6, 4}}, rows, sizes});
  cases.push_back({op_of<SliceAxisGrad>().name, {{3, 4, 4}, {3, 6, 4}}, rows, sizes});
  cases.push_back({"slice_like", {{5, 6}, {3, 4}}, {}, sizes});
  cases.push_back({op_of<SliceLikeGrad>().name, {{3, 4}, {5, 6}, {3, 4}}, {}, sizes});
  const Attributes window{{"offset", "(1, 2)"}, {"h_w", "(3, 4)"}, {"num_args", "1"}};
  cases.push_back({"Crop", {{2, 3, 6, 8}}, window, sizes});
  cases.push_back({op_of<CropGrad>().name, {{2, 3, 3, 4}, {2, 3, 6, 8}}, window, sizes});
  const std::vector<DType> real{DType::float32, DType::float64};
  cases.push_back({"_linalg_extractdiag", {{2, 5, 5}}, {{"offset", "-2"}}, real});
  cases.push_back({"_linalg_makediag", {{2, 3}}, {{"offset", "1"}}, real});
  return cases;
}

std::vector<Case> joining_cases() {
  std::vector<Case> cases;
  const std::vector<Shape> odd{{3, 1, 5}, {3, 4, 5}, {3, 0, 5}, {3, 2, 5}}, even{{2, 4, 8}, {2, 12, 8}};
  for (const auto& [parts, whole] :
       std::vector<std::pair<std::vector<Shape>, Shape>>{{odd, {3, 7, 5}}, {even, {2, 16, 8}}}) {
    const Attributes attributes{{"num_args", join(parts.size())}, {"dim", "1"}};
    cases.push_back({"Concat", parts, attributes, sizes});
    std::vector<Shape> of_gradient{whole};
    of_gradient.insert(of_gradient.end(), parts.begin(), parts.end());
    cases.push_back({op_of<ConcatGrad>().name, of_gradient, attributes, sizes});
  }
  // More than one launch takes.
  const std::vector<Shape> many(70, {3, 2});
  cases.push_back({"Concat", many, {{"num_args", "70"}, {"dim", "1"}}, sizes});
  cases.push_back({"Concat", many, {{"num_args", "70"}, {"dim", "0"}}, sizes});
  cases.push_back({"stack", {{3, 4}, {3, 4}}, {{"num_args", "2"}, {"axis", "1"}}, sizes});
  cases.push_back({op_of<StackGrad>().name, {{3, 2, 4}}, {{"num_args", "2"}, {"axis", "1"}}, sizes});
  for (const Shape& shape : std::vector<Shape>{{3, 6, 5}, {32, 12, 16}}) {
    const Attributes attributes{{"num_outputs", "3"}, {"axis", "1"}};
    cases.push_back({"SliceChannel", {shape}, attributes, sizes});
    const Shape part{shape[0], shape[1] / 3, shape[2]};
    cases.push_back({op_of<SliceChannelGrad>().name, {part, part, part, shape}, attributes, sizes});
  }
  return cases;
}

TEST_F(CudaMoves, AxesAreTurnedAsOnTheCpu) { compare_devices(turning_cases()); }
TEST_F(CudaMoves, ElementsAreRepeatedAsOnTheCpu) { compare_devices(repeating_cases()); }
TEST_F(CudaMoves, PartsAreTakenAndPutAsOnTheCpu) { compare_devices(part_cases()); }
TEST_F(CudaMoves, ArraysAreJoinedAndSplitAsOnTheCpu) { compare_devices(joining_cases()); }

TEST(CudaMoveCases, CoverEveryOperatorThatMoves) {
  std::set<std::string> tried;
  for (const auto& cases : {turning_cases(), repeating_cases(), part_cases(), joining_cases()})
    for (const Case& each : cases) tried.insert(OpRegistry::get().find(each.op).name);
  for (const auto& list : {taking_operators(), putting_operators()})
    for (const auto& moving : list) EXPECT_TRUE(tried.contains(moving.op->name)) << moving.op->name;
  for (const auto& list : {joining_operators(), splitting_operators()})
    for (const auto& joining : list) EXPECT_TRUE(tried.contains(joining.op->name)) << joining.op->name;
}

TEST_F(CudaMoves, ImagesAreJoinedWithTheirChannelsLast) {
  const Attributes attributes{{"num_args", "3"}, {"dim", "1"}};
  const Shape a{2, 3, 4, 5}, b{2, 8, 4, 5}, c{2, 1, 4, 5}, whole{2, 12, 4, 5};
  for (const DType dtype : {DType::float32, DType::float16}) {
    compare_channels_last({"Concat", {a, b, c}, attributes}, dtype, {0, 1, 2}, {0});
    compare_channels_last({op_of<ConcatGrad>().name, {whole, a, b, c}, attributes}, dtype, {0, 1, 2, 3}, {0, 1, 2});
  }
}

}  // namespace
}  // namespace symbind::testing
