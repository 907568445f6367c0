// Normalizations, softmaxes and moments on a GPU against the CPU's.
#include <gtest/gtest.h>

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

// Rows for a warp and for a block, of whole packs and of odd lengths.
void add_layers(std::vector<DeviceCase>& cases) {
  struct Rows {
    Shape data;
    const char* axis;
    int64_t extent;
  };
  for (const Rows& rows : std::vector<Rows>{{{7, 64}, "-1", 64},
                                            {{300, 33}, "-1", 33},
                                            {{3, 2, 2048}, "2", 2048},
                                            {{2, 3001}, "1", 3001},
                                            {{4, 12, 10}, "1", 12},
                                            {{9, 40}, "0", 9},
                                            {{0, 8}, "-1", 8}}) {
    const Shape scale{rows.extent};
    for (const char* shown : {"False", "True"})
      cases.push_back({"LayerNorm",
                       {rows.data, scale, scale},
                       {{"axis", rows.axis}, {"output_mean_var", shown}},
                       float_types,
                       -2,
                       2,
                       4});
    cases.push_back(
        {"_backward_LayerNorm", {rows.data, rows.data, scale}, {{"axis", rows.axis}}, float_types, -2, 2, 8});
  }
}

void add_channels(std::vector<DeviceCase>& cases) {
  for (const Shape& data : std::vector<Shape>{{2, 3, 8, 8}, {3, 4, 5}, {2, 4, 41, 61}, {0, 2, 4}}) {
    const Shape channels{data[1]};
    cases.push_back({"InstanceNorm", {data, channels, channels}, {}, float_types, -2, 2, 4});
    cases.push_back({"_backward_InstanceNorm", {data, data, channels}, {}, float_types, -2, 2, 8});
  }
  for (const char* groups : {"1", "2", "4"}) {
    const Shape data{3, 4, 7, 6}, scale{std::stoi(groups)};
    for (const char* shown : {"False", "True"})
      cases.push_back({"GroupNorm",
                       {data, scale, scale},
                       {{"num_groups", groups}, {"output_mean_var", shown}},
                       float_types,
                       -2,
                       2,
                       4});
    cases.push_back({"_backward_GroupNorm", {data, data, scale}, {{"num_groups", groups}}, float_types, -2, 2, 8});
  }
}

void add_lengths(std::vector<DeviceCase>& cases) {
  for (const char* mode : {"instance", "channel", "spatial"})
    for (const Shape& data : std::vector<Shape>{{3, 4, 8, 8}, {2, 7, 5, 3}, {2, 5, 30, 41}}) {
      cases.push_back({"L2Normalization", {data}, {{"mode", mode}}, float_types, -2, 2, 4});
      cases.push_back({"_backward_L2Normalization", {data, data}, {{"mode", mode}}, float_types, -2, 2, 4});
    }
  for (const char* nsize : {"1", "3", "4", "7"}) {
    const Attributes attributes{{"nsize", nsize}, {"alpha", "0.1"}, {"beta", "0.6"}, {"knorm", "1.5"}};
    cases.push_back({"LRN", {{2, 5, 3, 4}}, attributes, float_types, -2, 2, 4});
    cases.push_back({"_backward_LRN", {{2, 5, 3, 4}, {2, 5, 3, 4}}, attributes, float_types, -2, 2, 4});
  }
}

void add_moments(std::vector<DeviceCase>& cases) {
  for (const char* axes : {"0", "1", "2", "(0, 2)", "(0, 1)", "(1, 2)", "(0, 1, 2)"})
    cases.push_back({"moments", {{6, 7, 12}}, {{"axes", axes}}, float_types, 5, 8, 4});
  cases.push_back({"moments", {{3, 20000}}, {{"axes", "1"}, {"keepdims", "True"}}, float_types, 100, 101, 4});
  cases.push_back({"moments", {{4000, 6}}, {{"axes", "0"}}, float_types, -1, 1, 4});
}

void add_softmaxes(std::vector<DeviceCase>& cases) {
  for (const std::string op : {"softmax", "log_softmax", "softmin"}) {
    const std::string gradient = "_backward_" + op;
    for (const Shape& data : std::vector<Shape>{{5, 8}, {70, 33}, {3, 2048}, {2, 3001}, {3, 0}}) {
      cases.push_back({op, {data}, {{"temperature", "0.5"}}});
      cases.push_back({gradient, {data, data, data}, {{"temperature", "2"}}});
    }
    cases.push_back({op, {{3, 7, 11}}, {{"axis", "1"}}});
    cases.push_back({gradient, {{3, 7, 11}, {3, 7, 11}, {3, 7, 11}}, {{"axis", "0"}}});
    // Lengths from below zero to beyond the end.
    for (const DType of_length : {DType::int32, DType::int64, DType::uint8}) {
      const Attributes last{{"use_length", "True"}}, middle{{"use_length", "True"}, {"axis", "1"}};
      cases.push_back({op, {{6, 8}, {6}}, last, float_types, -3, 12, 1, true, {DType::none, of_length}});
      cases.push_back({op, {{6, 7, 2}, {6, 2}}, middle, float_types, -3, 12, 1, true, {DType::none, of_length}});
      const std::vector<DType> types{DType::none, DType::none, DType::none, of_length};
      cases.push_back({gradient, {{6, 8}, {6, 8}, {6, 8}, {6}}, last, float_types, -3, 5, 4, true, types});
      cases.push_back(
          {gradient, {{6, 7, 2}, {6, 7, 2}, {6, 7, 2}, {6, 2}}, middle, float_types, -3, 5, 4, true, types});
    }
    // Results of another type.
    for (const char* type : {"float32", "float64", "float16"})
      cases.push_back({op, {{6, 40}}, {{"dtype", type}}, float_types, -2, 2, 2});
    const std::vector<DType> mixed{DType::float32, DType::float32, DType::none};
    cases.push_back({gradient, {{6, 40}, {6, 40}, {6, 40}}, {}, float_types, -2, 2, 2, true, mixed});
  }
  cases.push_back({"SoftmaxActivation", {{5, 40}}});
  cases.push_back({"SoftmaxActivation", {{3, 7, 4, 5}}, {{"mode", "channel"}}});
}

}  // namespace

std::vector<DeviceCase> normalization_cases() {
  std::vector<DeviceCase> cases;
  add_layers(cases);
  add_channels(cases);
  add_lengths(cases);
  add_moments(cases);
  add_softmaxes(cases);
  return cases;
}

namespace {

using CudaNormalize = GpuTest;

TEST_F(CudaNormalize, NormalizationsAndSoftmaxesAgreeWithTheCpu) { compare_devices(normalization_cases()); }

}  // namespace
}  // namespace symbind::testing
