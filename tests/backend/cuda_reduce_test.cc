// Reductions and broadcasts on a GPU against the CPU's, in every type and along every combination of axes.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"
#include "symbind/ops/broadcast.h"

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

struct Axes {
  Shape shape;
  std::string axis;
  bool exclude = false;
};

// Rows and columns, few and many, long and short, of whole packs and of odd lengths; axes in turn.
const std::vector<Axes>& all_axes() {
  static const std::vector<Axes> axes = {{{3000}, "None"},
                                         {{70001}, "None"},
                                         {{3, 20000}, "1"},
                                         {{9, 64}, "1"},
                                         {{5, 37}, "-1"},
                                         {{300, 2}, "1"},
                                         {{3000, 3}, "0"},
                                         {{2000, 64}, "0"},
                                         {{4, 70, 33}, "1"},
                                         {{4, 7, 32}, "1"},
                                         {{2, 3, 4, 5}, "(1, 3)"},
                                         {{2, 3, 4, 5}, "(0, 2)"},
                                         {{2, 3, 4, 5}, "(1, 2)", true},
                                         {{2, 3, 4, 5}, "(0, 3)", true},
                                         {{1, 6, 1}, "0"},
                                         {{1}, "None"},
                                         {{3, 0}, "0"}};
  return axes;
}

Attributes attributes_of(const Axes& axes, bool may_exclude = true) {
  Attributes attributes{{"axis", axes.axis}};
  if (axes.exclude && may_exclude) attributes["exclude"] = "True";
  return attributes;
}

void add_folds(std::vector<DeviceCase>& cases) {
  for (const Axes& axes : all_axes()) {
    for (const char* op : {"max", "min"})
      cases.push_back({op, {axes.shape}, attributes_of(axes), all_types, -100, 100});
    // Few different numbers, so that sums and products stay within every type: integers are 0, 1 and 2, and wrap.
    for (const char* op : {"sum", "mean", "nansum"})
      cases.push_back({op, {axes.shape}, attributes_of(axes), all_types, -1, 1, 4});
    if (axes.shape.size() < 1000)
      for (const char* op : {"prod", "nanprod"})
        cases.push_back({op, {axes.shape}, attributes_of(axes), all_types, 0.9, 1.1, 16});
    for (const char* ord : {"1", "2"}) {
      Attributes attributes = attributes_of(axes, false);
      attributes["ord"] = ord;
      if (axes.shape.size() < 60000) cases.push_back({"norm", {axes.shape}, attributes, all_types, -1, 1, 4});
    }
  }
  for (const char* op : {"max", "min", "sum", "prod"})
    cases.push_back({op, {{4, 0}}, {{"axis", "1"}, {"keepdims", "True"}}, all_types});
  for (const char* type : {"float64", "float32", "float16", "int32"})
    cases.push_back({"norm", {{6, 33}}, {{"axis", "1"}, {"out_dtype", type}}, all_types, -4, 4, 4});
}

void add_arg_reductions(std::vector<DeviceCase>& cases) {
  for (const char* op : {"argmax", "argmin"}) {
    for (const Axes& axes : std::vector<Axes>{{{3000}, "None"},
                                              {{3, 20000}, "1"},
                                              {{5, 37}, "None"},
                                              {{300, 2}, "-1"},
                                              {{3000, 3}, "0"},
                                              {{4, 70, 33}, "1"},
                                              {{4, 7, 32}, "1"}}) {
      // Many equal numbers: the first counts. 16-bit and 8-bit types hold no large index, so they are compared on small
      // arrays.
      const bool small = axes.shape.size() < 200;
      const std::vector<DType> types =
          small ? all_types : std::vector<DType>{DType::float32, DType::float64, DType::int32, DType::int64};
      cases.push_back({op, {axes.shape}, {{"axis", axes.axis}}, types, -3, 3});
    }
  }
  cases.push_back({"argmax", {{6, 9}}, {{"axis", "0"}, {"keepdims", "True"}}, all_types, -3, 3});
  cases.push_back({"argmax_channel", {{6, 9}}, {}, all_types, -3, 3});
  cases.push_back({"argmax_channel", {{2, 9, 5}}, {}, all_types, -3, 3});
}

void add_broadcasts(std::vector<DeviceCase>& cases) {
  // The last axis is whole packs in some.
  const std::vector<std::pair<Shape, Shape>> shapes = {{{2, 3, 8}, {1, 3, 1}}, {{5, 16}, {16}},  {{4, 1, 8}, {4, 6, 8}},
                                                       {{7, 16}, {7, 1}},      {{3, 5}, {3, 5}}, {{1}, {9}}};
  for (const auto& [a, b] : shapes) {
    for (const char* op : {"broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_equal", "broadcast_lesser",
                           "broadcast_maximum", "broadcast_minimum", "broadcast_mod", "broadcast_logical_and",
                           "broadcast_logical_or", "broadcast_logical_xor"})
      cases.push_back({op, {a, b}, {}, all_types, -4, 4});
    cases.push_back({"broadcast_div", {a, b}, {}, all_types, 0.25, 4});
    for (const char* op : {"broadcast_power", "broadcast_hypot"})
      cases.push_back({op, {a, b}, {}, float_types, 0.25, 2});
    cases.push_back({op_of<SumToLike>().name, {{2, 3, 8}, {1, 3, 1}}, {}, all_types, -2, 2, 4});
  }
  for (const char* op : {"_backward_sum", "_backward_mean"}) {
    cases.push_back({op, {{4, 1, 8}, {4, 5, 8}}, {{"axis", "1"}, {"keepdims", "True"}}, all_types, -30, 30});
    cases.push_back({op, {{5}, {4, 5, 8}}, {{"axis", "(0, 2)"}}, all_types, -30, 30});
    cases.push_back({op, {{8}, {4, 5, 8}}, {{"axis", "2"}, {"exclude", "True"}}, all_types, -30, 30});
  }
  cases.push_back({op_of<SpreadLike>().name, {{3, 1}, {2, 3, 8}}, {}, all_types});
}

}  // namespace

std::vector<DeviceCase> reduction_cases() {
  std::vector<DeviceCase> cases;
  add_folds(cases);
  add_arg_reductions(cases);
  add_broadcasts(cases);
  return cases;
}

namespace {

using CudaReduce = GpuTest;

TEST_F(CudaReduce, ReductionsAndBroadcastsAgreeWithTheCpu) { compare_devices(reduction_cases()); }

TEST_F(CudaReduce, NaNIsAnExtremeAndItsFirstIndexCounts) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(1000, 1);
  values[700] = values[900] = nan;
  NDArray data({1000}, cpu(), DType::float32);
  data.copy_from(values);
  const NDArray on_gpu = data.as_copy_in(gpu(0));
  for (const char* op : {"max", "min"})
    EXPECT_TRUE(std::isnan(invoke(op, {on_gpu}, {})[0].as_copy_in(cpu()).to_vector<float>()[0])) << op;
  for (const char* op : {"argmax", "argmin"})
    EXPECT_EQ(invoke(op, {on_gpu}, {})[0].as_copy_in(cpu()).to_vector<float>()[0], 700) << op;
  EXPECT_EQ(invoke("nansum", {on_gpu}, {})[0].as_copy_in(cpu()).to_vector<float>()[0], 998);
  EXPECT_EQ(invoke("nanprod", {on_gpu}, {})[0].as_copy_in(cpu()).to_vector<float>()[0], 1);
}

TEST_F(CudaReduce, ReductionsAreTheSameBitForBit) {
  const NDArray data = random_array({1000, 333}, 1, -1, 1, DType::float32, gpu(0));
  for (const char* op : {"sum", "norm", "nansum"})
    for (const char* axis : {"None", "0", "1"}) {
      const NDArray first = invoke(op, {data}, {{"axis", axis}})[0];
      for (int again = 0; again < 3; ++again)
        EXPECT_TRUE(same_bits(invoke(op, {data}, {{"axis", axis}})[0], first)) << op << " along " << axis;
    }
}

}  // namespace
}  // namespace symbind::testing
