// Convolution, BatchNorm, Pooling and reorders of the CUDA backend against the CPU's, over odd shapes and in both
// layouts. Skipped where there is no GPU.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <optional>
#include <tuple>

#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/passes/target.h"

#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"
#include "tests/support/temp_dir.h"

namespace symbind::testing {
namespace {

// ---- Convolution ----------------------------------------------------------------------------------------------------

struct Convolved {
  Shape data;
  std::vector<int64_t> kernel;
  int64_t filters;
  std::vector<int64_t> stride = {}, pad = {}, dilate = {};
  int64_t groups = 1;
  bool channels_last = false;  // is the layout parameter one with channels last?

  friend void PrintTo(const Convolved& c, std::ostream* out) {
    *out << c.data << " by " << join(comma_separated(c.kernel)) << " to " << c.filters;
  }
};

std::string tuple_text(const std::vector<int64_t>& numbers) { return join("(", comma_separated(numbers), ",)"); }

Attributes attributes_of(const Convolved& c, bool no_bias) {
  static const std::vector<std::string> layouts{"", "NWC", "NHWC", "NDHWC"};
  Attributes attributes{{"kernel", tuple_text(c.kernel)},
                        {"num_filter", join(c.filters)},
                        {"num_group", join(c.groups)},
                        {"no_bias", no_bias ? "True" : "False"}};
  if (!c.stride.empty()) attributes["stride"] = tuple_text(c.stride);
  if (!c.pad.empty()) attributes["pad"] = tuple_text(c.pad);
  if (!c.dilate.empty()) attributes["dilate"] = tuple_text(c.dilate);
  if (c.channels_last) attributes["layout"] = layouts[c.kernel.size()];
  return attributes;
}

Shape weight_of(const Convolved& c) {
  const int64_t channels = c.data[c.channels_last ? c.data.rank() - 1 : 1] / c.groups;
  Shape shape{c.filters};
  if (!c.channels_last) shape.push_back(channels);
  for (const int64_t extent : c.kernel) shape.push_back(extent);
  if (c.channels_last) shape.push_back(channels);
  return shape;
}

Shape output_of(const Convolved& c) {
  Shape shape = c.data;
  shape[c.channels_last ? c.data.rank() - 1 : 1] = c.filters;
  for (size_t i = 0; i < c.kernel.size(); ++i) {
    const int axis = static_cast<int>(i) + (c.channels_last ? 1 : 2);
    const int64_t pad = c.pad.empty() ? 0 : c.pad[i], stride = c.stride.empty() ? 1 : c.stride[i];
    const int64_t reach = (c.dilate.empty() ? 1 : c.dilate[i]) * (c.kernel[i] - 1) + 1;
    shape[axis] = (c.data[axis] + 2 * pad - reach) / stride + 1;
  }
  return shape;
}

const std::vector<Convolved> convolutions = {
    {{2, 3, 9, 11}, {3, 3}, 4},
    {{2, 8, 9, 11}, {3, 3}, 8, {2, 2}, {1, 1}},
    {{3, 8, 10, 9}, {3, 2}, 16, {1, 2}, {2, 0}, {2, 3}},
    {{2, 8, 5, 5}, {1, 1}, 16},
    {{2, 16, 8, 7}, {1, 1}, 8, {2, 2}},
    {{2, 3, 33, 35}, {7, 7}, 64, {2, 2}, {3, 3}},
    {{4, 1, 28, 28}, {5, 5}, 20},
    {{4, 20, 12, 12}, {5, 5}, 50},
    {{2, 4, 7, 7}, {3, 3}, 6, {}, {1, 1}, {}, 2},
    {{2, 16, 7, 6}, {3, 3}, 24, {}, {1, 1}, {}, 2},
    {{2, 8, 7, 7}, {3, 3}, 8, {}, {1, 1}, {}, 8},
    {{1, 64, 6, 6}, {3, 3}, 64, {}, {1, 1}},
    {{2, 3, 10}, {3}, 5, {2}, {1}},
    {{2, 8, 10}, {3}, 8},
    {{1, 2, 5, 6, 7}, {2, 3, 2}, 3, {1, 2, 1}, {0, 1, 1}},
    {{2, 8, 4, 5, 6}, {3, 3, 3}, 8, {}, {1, 1, 1}},
    {{2, 9, 11, 8}, {3, 3}, 4, {2, 1}, {1, 1}, {}, 1, true},
    {{2, 10, 4}, {3}, 5, {}, {}, {}, 1, true},
};

std::vector<DeviceCase> convolution_cases(const Convolved& c) {
  const Attributes with_bias = attributes_of(c, false), without = attributes_of(c, true);
  const Shape weight = weight_of(c), output = output_of(c), bias{c.filters};
  std::vector<DeviceCase> cases;
  cases.push_back({"Convolution", {c.data, weight, bias}, with_bias, float_types, -1, 1, 4});
  cases.push_back({"Convolution", {c.data, weight}, without, float_types, -1, 1, 4});
  cases.push_back({"_backward_Convolution_data", {output, weight, c.data}, with_bias, float_types, -1, 1, 4});
  cases.push_back({"_backward_Convolution_weight", {output, c.data, weight}, with_bias, float_types, -1, 1, 4});
  cases.push_back({"_backward_Convolution_weight", {output, c.data, weight}, without, float_types, -1, 1, 4});
  return cases;
}

using CudaLayers = GpuTest;

// With data and results channels-last, and the weight and its gradient plain.
void compare_with_channels_last(const DeviceCase& tried, DType dtype) {
  const bool weight_grad = tried.op == "_backward_Convolution_weight";
  EXPECT_NO_THROW(compare_channels_last(tried, dtype, weight_grad ? std::vector<size_t>{0, 1} : std::vector<size_t>{0},
                                        weight_grad ? std::vector<size_t>{} : std::vector<size_t>{0}))
      << tried;
}

// A test for each shape: the library's engines are measured for each, which takes long.
class OneConvolution : public GpuTest, public ::testing::WithParamInterface<Convolved> {};

TEST_P(OneConvolution, AgreesWithTheCpu) { compare_devices(convolution_cases(GetParam())); }

TEST_P(OneConvolution, WithItsChannelsLastAgreesWithTheCpu) {
  if (GetParam().channels_last) GTEST_SKIP() << "its layout parameter says so already";
  for (const DeviceCase& tried : convolution_cases(GetParam())) {
    for (const DType dtype : float_types) compare_with_channels_last(tried, dtype);
  }
}

// Weights too, as the layout pass offers them in training.
TEST_P(OneConvolution, WithChannelsLastWeightsAgreesWithTheCpu) {
  if (GetParam().channels_last) GTEST_SKIP() << "its layout parameter says so already";
  for (const DeviceCase& tried : convolution_cases(GetParam()))
    for (const DType dtype : float_types) EXPECT_NO_THROW(compare_channels_last(tried, dtype, {0, 1}, {0})) << tried;
}

INSTANTIATE_TEST_SUITE_P(Cuda, OneConvolution, ::testing::ValuesIn(convolutions));

// Few channels and a stride, as the first layer of a network: these can also run over cells of stride × stride
// positions, which is the fastest form for the larger of them, and their weight gradient in TF32 has its own kernel.
const std::vector<Convolved> first_layers = {{{8, 3, 224, 224}, {7, 7}, 64, {2, 2}, {3, 3}},
                                             {{16, 3, 64, 63}, {7, 7}, 64, {2, 2}, {3, 3}},
                                             {{16, 1, 61, 64}, {5, 5}, 32, {2, 2}, {2, 2}},
                                             {{16, 4, 65, 63}, {3, 3}, 100, {2, 2}, {1, 1}},
                                             {{16, 2, 60, 61}, {4, 6}, 16, {2, 3}, {0, 1}},
                                             {{4, 3, 30, 29}, {5, 5}, 20},
                                             {{8, 3, 227, 227}, {11, 11}, 96, {4, 4}, {0, 0}},
                                             {{8, 3, 64, 64}, {4, 4}, 32, {4, 4}, {0, 0}},
                                             {{64, 1, 28, 28}, {5, 5}, 20},
                                             {{4, 1, 9, 9}, {5, 5}, 8}};

void compare_first_layer(const Convolved& c, const std::vector<DType>& dtypes, double slack) {
  for (DeviceCase tried : convolution_cases(c)) {
    if (tried.op == "_backward_Convolution_data") continue;
    tried.slack *= slack;
    for (const DType dtype : dtypes) compare_with_channels_last(tried, dtype);
  }
}

class OneFirstLayer : public GpuTest, public ::testing::WithParamInterface<Convolved> {};

TEST_P(OneFirstLayer, AgreesWithTheCpu) {
  compare_first_layer(GetParam(), {DType::float32, DType::float16, DType::bfloat16}, 1);
}

TEST_P(OneFirstLayer, InTf32AgreesWithTheCpu) {
  setenv("SYMBIND_TF32", "1", 1);
  compare_first_layer(GetParam(), {DType::float32}, 250);  // TF32 has the 10 bits of float16
  setenv("SYMBIND_TF32", "0", 1);
}

INSTANTIATE_TEST_SUITE_P(Cuda, OneFirstLayer, ::testing::ValuesIn(first_layers));

// What is taken into a convolution: all forms of it for one shape. The bits of `norms` are a norm after the convolution
// and one before it.
struct FusedForms {
  bool wide_weights = false;  // float32 ones for data of 16 bits
  std::vector<std::string> act_types = {"", "relu", "sigmoid", "softrelu", "softsign", "tanh"};
  std::vector<int> norms = {0, 1, 2, 3};
};
std::vector<DeviceCase> fused_cases(const Convolved& c, DType dtype, const FusedForms& forms = {}) {
  std::vector<DeviceCase> cases;
  const Shape weight = weight_of(c);
  for (const std::string& act_type : forms.act_types)
    for (const bool no_bias : {true, false})
      for (const bool sum : {true, false})
        for (const int norms : forms.norms) {
          ConvolutionFused p;
          p.kernel = c.kernel;
          p.stride = c.stride;
          p.pad = c.pad;
          p.num_filter = c.filters;
          p.num_group = c.groups;
          p.no_bias = no_bias;
          p.norm = norms & 1;
          p.norm_before = norms & 2;
          p.norm_eps = p.norm_before_eps = 1e-3;
          p.norm_fix_gamma = no_bias;
          p.sum = sum;
          p.act_type = act_type;
          if (p.norm_before && !c.pad.empty()) continue;                               // not taken in with padding
          if (p.has_norms() && dtype == DType::float64) continue;                      // nor in float64
          if (p.has_norms() && !p.act_type.empty() && p.act_type != "relu") continue;  // enough is enough
          const double low = p.has_norms() ? 0.25 : -1.5;                              // variances are positive
          DeviceCase tried{"_Convolution_Fused", {c.data, weight}, {}, {dtype}, low, 1.5, 8, false};
          if (!no_bias) tried.inputs.push_back({c.filters});
          if (p.norm_before) tried.inputs.insert(tried.inputs.end(), 4, {c.data[1]});
          if (p.norm) tried.inputs.insert(tried.inputs.end(), 4, {c.filters});
          // The parameters of norms are float32, and so may be weight and bias.
          tried.input_types.assign(tried.inputs.size(), p.has_norms() ? DType::float32 : DType::none);
          tried.input_types[0] = DType::none;
          const size_t of_convolution = no_bias ? 2 : 3;
          for (size_t i = 1; i < of_convolution; ++i)
            tried.input_types[i] = forms.wide_weights ? DType::float32 : DType::none;
          if (sum) tried.inputs.push_back(output_of(c));
          tried.params = std::make_shared<ConvolutionFused>(p);
          cases.push_back(tried);
        }
  return cases;
}

const std::vector<Convolved> fused_convolutions = {{{2, 4, 6, 5}, {3, 3}, 8},
                                                   {{2, 4, 6, 5}, {3, 3}, 8, {}, {1, 1}},
                                                   {{2, 3, 6, 5}, {2, 2}, 5},
                                                   {{2, 8, 6, 5}, {1, 1}, 8},
                                                   {{2, 8, 6, 5}, {3, 3}, 8, {2, 2}, {}, {}, 2}};

class WhatAConvolutionTakesIn : public GpuTest, public ::testing::WithParamInterface<std::tuple<Convolved, DType>> {};

TEST_P(WhatAConvolutionTakesIn, AgreesWithTheCpu) {
  const auto& [c, dtype] = GetParam();
  compare_devices(fused_cases(c, dtype));
}

void compare_fused_channels_last(const Convolved& c, DType dtype, const FusedForms& forms = {}) {
  for (const DeviceCase& tried : fused_cases(c, dtype, forms)) {
    std::vector<size_t> last{0};
    const int sum = inputs_of(*static_cast<const ConvolutionFused*>(tried.params.get())).sum;
    if (sum >= 0) last.push_back(static_cast<size_t>(sum));
    EXPECT_NO_THROW(compare_channels_last(tried, dtype, last, {0})) << tried;
  }
}

TEST_P(WhatAConvolutionTakesIn, WithItsChannelsLastAgreesWithTheCpu) {
  const auto& [c, dtype] = GetParam();
  compare_fused_channels_last(c, dtype);
}

INSTANTIATE_TEST_SUITE_P(Cuda, WhatAConvolutionTakesIn,
                         ::testing::Combine(::testing::ValuesIn(fused_convolutions), ::testing::ValuesIn(float_types)));

// Large enough for the library's engines that apply sum, bias and ReLU themselves; some with odd numbers of channels.
const std::vector<Convolved> larger_convolutions = {
    {{4, 64, 14, 14}, {1, 1}, 128},        {{2, 64, 9, 7}, {3, 3}, 64, {}, {1, 1}},
    {{2, 64, 9, 7}, {1, 1}, 64, {2, 2}},   {{2, 24, 9, 7}, {1, 1}, 40},
    {{2, 7, 9, 5}, {3, 3}, 9, {}, {1, 1}}, {{2, 3, 33, 35}, {7, 7}, 64, {2, 2}, {3, 3}}};
const FusedForms epilogues{.act_types = {"", "relu"}, .norms = {0, 1}};

class LargerConvolution : public GpuTest, public ::testing::WithParamInterface<Convolved> {};

TEST_P(LargerConvolution, AgreesWithTheCpuWithItsEpilogues) {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    compare_devices(fused_cases(GetParam(), dtype, epilogues));
    compare_fused_channels_last(GetParam(), dtype, epilogues);
  }
}

TEST_P(LargerConvolution, Of16BitsRoundsItsWeightsItself) {
  FusedForms forms = epilogues;
  forms.wide_weights = true;
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    compare_devices(fused_cases(GetParam(), dtype, forms));
    compare_fused_channels_last(GetParam(), dtype, forms);
  }
}

// TF32 has the 10 bits of float16.
TEST_P(LargerConvolution, InTf32AgreesWithTheCpuWithItsEpilogues) {
  setenv("SYMBIND_TF32", "1", 1);
  for (DeviceCase tried : fused_cases(GetParam(), DType::float32, epilogues)) {
    tried.slack = 1000;
    std::vector<size_t> last{0};
    const int sum = inputs_of(*static_cast<const ConvolutionFused*>(tried.params.get())).sum;
    if (sum >= 0) last.push_back(static_cast<size_t>(sum));
    EXPECT_NO_THROW(compare_channels_last(tried, DType::float32, last, {0})) << tried;
  }
  setenv("SYMBIND_TF32", "0", 1);
}

INSTANTIATE_TEST_SUITE_P(Cuda, LargerConvolution, ::testing::ValuesIn(larger_convolutions));

ConvolutionFused with_epilogue(const Convolved& c) {
  ConvolutionFused p;
  p.kernel = c.kernel;
  p.num_filter = c.filters;
  p.layout = "NHWC";
  p.sum = true;
  p.act_type = "relu";
  return p;
}

TEST_F(CudaLayers, EpiloguesWorkOnViewsAtOddAddresses) {
  const Convolved c{{2, 5, 5, 16}, {1, 1}, 16, {}, {}, {}, 1, true};
  for (const DType dtype : {DType::float32, DType::float16}) {
    const std::vector<Shape> shapes{c.data, weight_of(c), {c.filters}, output_of(c)};
    for (size_t odd = 0; odd < shapes.size(); ++odd) {
      const auto run = [&](Context context) {
        std::vector<NDArray> inputs;
        for (size_t i = 0; i < shapes.size(); ++i) {
          const int64_t first = i == odd ? 1 : 0, size = shapes[i].size();
          const NDArray whole = random_array({size + 1}, 3 + i, -1, 1, dtype, cpu()).as_copy_in(context);
          inputs.push_back(whole.slice(first, first + size).reshape(shapes[i]));
        }
        return invoke(convolution_fused, inputs, with_epilogue(c), {.context = context})[0].as_copy_in(cpu());
      };
      const Tolerance tolerance = tolerance_of(dtype);
      EXPECT_TRUE(all_close(run(gpu(0)), run(cpu()),
                            {tolerance.relative * 4, tolerance.absolute * 4, tolerance.of_largest * 4}))
          << "input " << odd << " in " << dtype;
    }
  }
}

TEST_F(CudaLayers, EpiloguesKeepNan) {
  const Convolved c{{2, 14, 14, 64}, {1, 1}, 64, {}, {}, {}, 1, true};
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    NDArray data = random_array(c.data, 1, -1, 1, dtype, cpu());
    data.slice(1, 2).fill(std::numeric_limits<double>::quiet_NaN());
    const NDArray weight = random_array(weight_of(c), 2, -1, 1, dtype, cpu());
    const NDArray bias = random_array({c.filters}, 3, -1, 1, dtype, cpu()), sum = zeros(output_of(c), cpu(), dtype);
    std::vector<NDArray> inputs;
    for (const NDArray& array : {data, weight, bias, sum}) inputs.push_back(array.as_copy_in(gpu(0)));
    const NDArray result =
        invoke(convolution_fused, inputs, with_epilogue(c), {.context = gpu(0)})[0].as_copy_in(cpu());
    const std::vector<double> values = result.to_vector<double>();
    const auto is_nan = [](double value) { return std::isnan(value); };
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    EXPECT_TRUE(std::none_of(values.begin(), middle, is_nan)) << dtype;
    EXPECT_TRUE(std::all_of(middle, values.end(), is_nan)) << dtype;
  }
}

TEST_F(CudaLayers, ConvolutionsAreTunedAsAsked) {
  for (const char* tune : {"off", "limited_workspace", "fastest"})
    compare_devices({{"Convolution",
                      {{2, 8, 9, 9}, {8, 8, 3, 3}},
                      {{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"no_bias", "True"}, {"cudnn_tune", tune}},
                      {DType::float32},
                      -1,
                      1,
                      4}});
}

// Each process runs this test from the beginning: only the first one, in which the mark is not set, makes the folder.
TEST_F(CudaLayers, TheNextProcessFindsTheChoiceOfEngines) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::optional<TempDir> folder;
  constexpr const char* mark = "SYMBIND_TEST_OF_STORED_CHOICES";
  if (!std::getenv(mark)) {
    folder.emplace();
    setenv(mark, "1", 1);
    setenv("SYMBIND_CACHE_DIR", folder->file("cache").c_str(), 1);
    setenv("SYMBIND_EXPLAIN", "2", 1);  // read once, by the other processes
  }
  const auto convolve = [] {
    const Convolved c{{4, 14, 14, 64}, {1, 1}, 64, {}, {}, {}, 1, true};
    std::vector<NDArray> inputs;
    for (const Shape& shape : {c.data, weight_of(c), Shape{c.filters}, output_of(c)})
      inputs.push_back(random_array(shape, 1 + inputs.size(), -1, 1, DType::float16, gpu(0)));
    const NDArray result = invoke(convolution_fused, inputs, with_epilogue(c), {.context = gpu(0)})[0];
    const bool finite = std::isfinite(result.to_vector<double>()[0]);
    std::clog.flush();
    std::_Exit(finite ? 0 : 1);
  };
  EXPECT_EXIT(convolve(), ::testing::ExitedWithCode(0), "cuDNN.*: [0-9.]+ us");
  EXPECT_EXIT(convolve(), ::testing::ExitedWithCode(0), "cuDNN.*: found in");
  if (!folder) return;
  unsetenv(mark);
  setenv("SYMBIND_CACHE_DIR", "off", 1);
  unsetenv("SYMBIND_EXPLAIN");
}

TEST_F(CudaLayers, ConvolutionsWorkOnViewsAtOddAddresses) {
  const NDArray data = random_array({41 * 25}, 1), weight = random_array({1 + 8 * 4 * 9}, 2);
  const auto run = [&](Context context) {
    const NDArray x = data.as_copy_in(context).slice(1, 1 + 2 * 4 * 25).reshape({2, 4, 5, 5});
    const NDArray w = weight.as_copy_in(context).slice(1, 1 + 8 * 4 * 9).reshape({8, 4, 3, 3});
    return invoke("Convolution", {x, w}, {{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"no_bias", "True"}})[0];
  };
  EXPECT_TRUE(all_close(run(gpu(0)).as_copy_in(cpu()), run(cpu()), {1e-5, 1e-5, 1e-5}));
}

TEST_F(CudaLayers, AnEmptyBatchGoesThroughTheHost) {
  const NDArray data({0, 4, 5, 5}, gpu(0)), weight = random_array({8, 4, 3, 3}, 2, -1, 1, DType::float32, gpu(0));
  const NDArray result =
      invoke("Convolution", {data, weight}, {{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"no_bias", "True"}})[0];
  EXPECT_EQ(result.shape(), (Shape{0, 8, 3, 3}));
  EXPECT_EQ(invoke("Pooling", {data}, {{"kernel", "(2, 2)"}})[0].shape(), (Shape{0, 4, 4, 4}));
}

TEST_F(CudaLayers, TransposedConvolutionsAgreeWithTheCpu) {
  const std::vector<DType> types{DType::float32, DType::float64, DType::float16};
  for (const int64_t groups : {1, 2}) {
    const Shape data{2, 4, 5, 6}, weight{4, 6 / groups, 3, 3}, output{2, 6, 9, 11};
    Attributes attributes{{"kernel", "(3, 3)"},
                          {"stride", "(2, 2)"},
                          {"pad", "(1, 1)"},
                          {"num_filter", "6"},
                          {"num_group", join(groups)}};
    compare_devices({
        {"Deconvolution", {data, weight}, attributes, types, -1, 1, 10},
        {"_backward_Deconvolution_data", {output, weight, data}, attributes, types, -1, 1, 10},
        {"_backward_Deconvolution_weight", {output, data, weight}, attributes, types, -1, 1, 10},
    });
    attributes["no_bias"] = "False";
    compare_devices({{"Deconvolution", {data, weight, {6}}, attributes, types, -1, 1, 10}});
  }
}

// ---- BatchNorm ------------------------------------------------------------------------------------------------------

std::vector<DeviceCase> batch_norm_cases(const Shape& shape, const std::string& axis) {
  std::vector<DeviceCase> cases;
  const Shape channels{shape[axis == "1" ? 1 : shape.rank() - 1]};
  for (const bool is_train : {true, false})
    for (const char* fix_gamma : {"True", "False"})
      for (const char* global : {"False", "True"}) {
        const Attributes attributes{
            {"fix_gamma", fix_gamma}, {"use_global_stats", global}, {"output_mean_var", "True"}, {"axis", axis}};
        const DType parameter = DType::float32;
        DeviceCase forward{
            "BatchNorm", {shape, channels, channels, channels, channels}, attributes, float_types, 0.25, 2, 4};
        DeviceCase backward{
            "_backward_BatchNorm", {shape, shape, channels, channels, channels}, attributes, float_types, 0.25, 2, 4};
        forward.is_train = backward.is_train = is_train;
        // With ReLU after it; the data's gradient may have another array added to it.
        DeviceCase relu = forward, relu_grad = backward, relu_sum = backward;
        relu.op = "_BatchNorm_Relu";
        relu_grad.op = relu_sum.op = "_backward_BatchNorm_Relu";
        relu_grad.inputs.push_back(channels);
        relu_sum.inputs = relu_grad.inputs;
        relu_sum.inputs.push_back(shape);
        relu_sum.attributes["with_sum"] = "True";
        DeviceCase recompute = forward;
        recompute.op = "_BatchNorm_recompute";
        recompute.attributes = {{"fix_gamma", fix_gamma}, {"axis", axis}, {"relu", global}};
        // With a sum and ReLU after it; the gradient may arrive as two arrays, and passes where the result was above
        // zero.
        DeviceCase add_relu = forward, add_relu_grad = backward;
        add_relu.op = "_BatchNorm_Add_Relu";
        add_relu.inputs.insert(add_relu.inputs.begin() + 3, shape);
        add_relu_grad.op = "_backward_BatchNorm_Add_Relu";
        add_relu_grad.inputs.insert(add_relu_grad.inputs.begin(), shape);
        add_relu_grad.low = -2;
        DeviceCase two_grads = add_relu_grad;
        two_grads.inputs.push_back(shape);
        two_grads.attributes["two_grads"] = "True";
        DeviceCase relu_output = relu_grad, relu_sum_output = relu_sum;  // which also return the result of ReLU
        relu_output.op = relu_sum_output.op = "_backward_BatchNorm_Relu_Output";
        DeviceCase recompute_add = recompute, recompute_pair = recompute;
        recompute_add.op = recompute_pair.op = "_BatchNorm_Add_Relu_recompute";
        recompute_add.inputs = {shape, channels, channels, shape, channels, channels};
        recompute_pair.inputs = recompute_add.inputs;
        recompute_pair.inputs.insert(recompute_pair.inputs.end(), 4, channels);
        for (DeviceCase* const each : {&recompute_add, &recompute_pair})
          each->attributes = {{"fix_gamma", fix_gamma}, {"axis", axis}}, each->low = -2;
        recompute_pair.attributes["pair"] = "True";
        for (DeviceCase each : {forward, backward, relu, relu_grad, relu_sum, relu_output, relu_sum_output, recompute,
                                recompute_add, recompute_pair, add_relu, add_relu_grad, two_grads}) {
          each.dtypes = {DType::float32, DType::float64};
          cases.push_back(each);
          each.dtypes = {DType::float16, DType::bfloat16};
          const bool grad = each.op.starts_with("_backward");
          each.input_types.assign(each.inputs.size(), parameter);
          for (size_t i = 0; i < each.inputs.size(); ++i)
            if (each.inputs[i] == shape && (i == 0 || i == 3 || grad)) each.input_types[i] = DType::none;
          cases.push_back(each);
        }
      }
  return cases;
}

const std::vector<Shape> normalized = {{4, 3, 5, 7},  {2, 8, 6, 6},    {3, 64, 9, 5},
                                       {70, 5, 3, 3}, {2, 4, 3, 2, 5}, {1, 40, 80, 80}};

TEST_F(CudaLayers, BatchNormAgreesWithTheCpu) {
  for (const Shape& shape : normalized) compare_devices(batch_norm_cases(shape, "1"));
  compare_devices(batch_norm_cases({50, 12}, "1"));
  compare_devices(batch_norm_cases({4, 5, 7, 8}, "3"));
  compare_devices(batch_norm_cases({4, 5, 7, 3}, "-1"));
}

std::vector<size_t> large_inputs(const DeviceCase& tried, const Shape& shape) {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < tried.inputs.size(); ++i)
    if (tried.inputs[i] == shape) numbers.push_back(i);
  return numbers;
}

std::vector<size_t> large_outputs(const DeviceCase& tried) {
  if (tried.op == "_backward_BatchNorm_Add_Relu" || tried.op == "_backward_BatchNorm_Relu_Output") return {0, 3};
  return {0};
}

TEST_F(CudaLayers, BatchNormWithItsChannelsLastAgreesWithTheCpu) {
  for (const Shape& shape : normalized)
    for (const DeviceCase& tried : batch_norm_cases(shape, "1"))
      for (const DType dtype : tried.dtypes)
        EXPECT_NO_THROW(compare_channels_last(tried, dtype, large_inputs(tried, shape), large_outputs(tried))) << tried;
}

// More rows than all blocks of a kernel read at a time, and a number that does not fill the last batch of them.
TEST_F(CudaLayers, BatchNormOfManyRowsAgreesWithTheCpu) {
  for (DeviceCase tried : batch_norm_cases({70001, 24}, "1")) {
    const bool is_usual = tried.is_train && tried.attributes["fix_gamma"] == "False";
    if (!is_usual || tried.attributes["use_global_stats"] != "False" || tried.op == "_BatchNorm_recompute") continue;
    tried.dtypes = {tried.dtypes[0]};  // float32 or float16
    compare_devices({tried});
  }
}

// Numbers of channels that cannot be read 16 bytes at a time.
TEST_F(CudaLayers, BatchNormReadsItsParametersAtOddAddresses) {
  const Shape shape{300, 16};
  for (const DType dtype : {DType::float32, DType::float16}) {
    const auto run = [&](int64_t offset) {
      std::vector<NDArray> inputs{random_array(shape, 1, -1, 1, dtype, gpu(0)),
                                  random_array(shape, 2, -1, 1, dtype, gpu(0))};
      for (int i = 0; i < 4; ++i) {  // gamma, beta, mean, reciprocal deviation
        const NDArray given = random_array({16}, 3 + i, 0.25, 2, DType::float32, gpu(0));
        NDArray part = NDArray({16 + offset}, gpu(0), DType::float32).slice(offset, 16 + offset);
        given.copyto(part);
        inputs.push_back(part);
      }
      return invoke(batch_norm_relu_grad, inputs, {{.fix_gamma = false}}, {.is_train = true});
    };
    const auto expected = run(0), actual = run(1);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(all_close(actual[i].as_copy_in(cpu()), expected[i].as_copy_in(cpu()), tolerance_of(dtype)))
          << "output " << i << " in " << dtype;
  }
}

// The CPU computes the sums itself.
TEST_F(CudaLayers, TheGradientOfBatchNormFromGivenSumsAgreesWithTheCpu) {
  for (const auto& [shape, axis] :
       {std::pair(Shape{3, 64, 9, 5}, 1), {{3, 9, 5, 64}, 3}, {{70, 5, 3, 3}, 1}, {{50, 7}, 1}})
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
      for (const bool fix_gamma : {false, true}) {
        SCOPED_TRACE(join(shape, " in ", dtype, ", axis ", axis));
        const int64_t channels = shape[axis], inner = shape.size(axis + 1, shape.rank());
        const NDArray dy = random_array(shape, 1, -1, 1, dtype), x = random_array(shape, 2, -1, 2, dtype);
        std::vector<NDArray> inputs{dy, x};
        for (int i = 0; i < 3; ++i) inputs.push_back(random_array({channels}, 3 + i, 0.25, 2, DType::float32));
        const auto of_dy = dy.to_vector<double>(), of_x = x.to_vector<double>(), means = inputs[3].to_vector<double>();
        std::vector<double> sums(static_cast<size_t>(channels)), away_sums(static_cast<size_t>(channels));
        for (size_t i = 0; i < of_dy.size(); ++i) {
          const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / inner % channels);
          sums[channel] += of_dy[i];
          away_sums[channel] += of_dy[i] * (of_x[i] - means[channel]);
        }
        for (const auto& values : {sums, away_sums}) {
          inputs.emplace_back(Shape{channels}, cpu(), DType::float32);
          inputs.back().copy_from(values);
        }
        const auto run = [&](Context context) {
          std::vector<NDArray> there;
          for (const NDArray& input : inputs) there.push_back(input.as_copy_in(context));
          return invoke(batch_norm_grad_from_sums, there, {{.fix_gamma = fix_gamma, .axis = axis}}, {.is_train = true});
        };
        const auto expected = run(cpu()), actual = run(gpu(0));
        const Tolerance of_data = tolerance_of(dtype);
        for (size_t i = 0; i < 3; ++i)
          EXPECT_TRUE(all_close(actual[i].as_copy_in(cpu()), expected[i],
                                {of_data.relative * 4, of_data.absolute * 4, of_data.of_largest * 4}))
              << "output " << i;
      }
}

TEST_F(CudaLayers, BatchNormKeepsSmallDeviationsFarFromZero) {
  // A mean of 1000 and a deviation of a hundredth.
  std::vector<float> values(4 * 4 * 30 * 30);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1000.0f + 0.01f * static_cast<float>(i % 7);
  const NDArray data = array(values, {4, 4, 30, 30});
  const auto run = [&](Context context) {
    std::vector<NDArray> inputs{data.as_copy_in(context)};
    for (int i = 0; i < 4; ++i) inputs.push_back(ones({4}, context));
    return invoke("BatchNorm", inputs, {{"fix_gamma", "False"}, {"eps", "1e-5"}}, {.is_train = true})[0];
  };
  EXPECT_TRUE(all_close(run(gpu(0)).as_copy_in(cpu()), run(cpu()), {1e-2, 1e-2, 0}));
}

// ---- Pooling --------------------------------------------------------------------------------------------------------

struct Pooled {
  Shape data, output;
  Attributes attributes;
};

const std::vector<Pooled> poolings = {
    {{2, 3, 9, 11}, {2, 3, 4, 5}, {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}}},
    {{2, 8, 9, 11}, {2, 8, 5, 6}, {{"kernel", "(3, 3)"}, {"stride", "(2, 2)"}, {"pad", "(1, 1)"}}},
    {{2, 8, 8, 8}, {2, 8, 4, 4}, {{"kernel", "(3, 3)"}, {"stride", "(2, 2)"}, {"pooling_convention", "full"}}},
    {{2, 8, 7, 7}, {2, 8, 1, 1}, {{"global_pool", "True"}, {"kernel", "(1, 1)"}}},
    {{3, 264, 7, 7}, {3, 264, 1, 1}, {{"global_pool", "True"}, {"kernel", "(1, 1)"}}},
    {{2, 5, 3, 4}, {2, 5, 1, 1}, {{"global_pool", "True"}, {"kernel", "(1, 1)"}}},
    {{1, 8, 30, 40}, {1, 8, 1, 1}, {{"kernel", "(30, 40)"}}},
    {{2, 16, 6, 5}, {2, 16, 1, 1}, {{"kernel", "(8, 7)"}, {"pad", "(1, 1)"}}},
    {{2, 16, 6, 5}, {2, 16, 1, 1}, {{"kernel", "(5, 5)"}, {"stride", "(2, 2)"}}},
    {{1, 16, 3, 4, 5}, {1, 16, 1, 1, 1}, {{"kernel", "(3, 4, 5)"}}},
    {{2, 5, 10}, {2, 5, 4}, {{"kernel", "(4,)"}, {"stride", "(2,)"}}},
    {{1, 4, 5, 6, 7}, {1, 4, 4, 3, 3}, {{"kernel", "(2, 3, 3)"}, {"stride", "(1, 2, 2)"}, {"pad", "(0, 1, 0)"}}},
};

std::vector<DeviceCase> pooling_cases(const Pooled& p) {
  std::vector<DeviceCase> cases;
  for (const char* type : {"max", "avg", "sum"})
    for (const char* count : {"True", "False"}) {
      Attributes attributes = p.attributes;
      attributes["pool_type"] = type;
      attributes["count_include_pad"] = count;
      cases.push_back({"Pooling", {p.data}, attributes});
      if (std::string(type) == "max")
        cases.push_back({"_backward_Pooling", {p.output, p.data, p.output}, attributes, float_types, -2, 2, 2});
      else
        cases.push_back({"_backward_Pooling", {p.output, p.data}, attributes, float_types, -2, 2, 2});
    }
  return cases;
}

TEST_F(CudaLayers, PoolingsAgreeWithTheCpu) {
  for (const Pooled& p : poolings) compare_devices(pooling_cases(p));
  compare_devices({{"Pooling", {{2, 6, 7, 8}}, {{"kernel", "(3, 2)"}, {"pad", "(1, 0)"}, {"layout", "NHWC"}}}});
}

TEST_F(CudaLayers, PoolingsWithTheirChannelsLastAgreeWithTheCpu) {
  for (const Pooled& p : poolings)
    for (const DeviceCase& tried : pooling_cases(p)) {
      std::vector<size_t> all(tried.inputs.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      for (const DType dtype : tried.dtypes) EXPECT_NO_THROW(compare_channels_last(tried, dtype, all, {0})) << tried;
    }
}

// ---- Reorders -------------------------------------------------------------------------------------------------------

TEST_F(CudaLayers, ReordersMoveEveryElement) {
  for (const Shape& shape :
       std::vector<Shape>{{2, 3, 5, 7}, {1, 64, 33, 31}, {3, 40, 1, 1}, {2, 1, 8, 8}, {2, 100, 3, 5}, {0, 3, 2, 2}}) {
    for (const DType dtype : {DType::float32, DType::float64, DType::float16}) {
      const DeviceCase tried{"_reorder", {shape}, {}, {dtype}};
      // The CPU's reorder of arrays that are both plain does not exist, so the copy is compared instead.
      const NDArray values = random_array(shape, 3, -2, 2, dtype);
      const NDArray on_gpu = values.as_copy_in(gpu(0));
      NDArray there(shape, gpu(0), dtype), back(shape, gpu(0), dtype);
      const OpDef& op = OpRegistry::get().find(tried.op);
      const auto params = op.parse_params({}, "node");
      const auto run = [&](const NDArray& from, const NDArray& to, Layout first, Layout second) {
        const std::vector<Tensor> in{{shape, dtype, first}}, out{{shape, dtype, second}};
        const NodeView node{op, params.get(), "node", in, out, false, -1, gpu(0)};
        const auto kernel = Target::get(gpu(0)).implementations(op).front().build(node);
        void* addresses[] = {const_cast<void*>(from.data()), to.mutable_data()};
        Args args{addresses, addresses + 1};
        args.stream = Target::get(gpu(0)).stream(Device::get(gpu(0)));
        kernel->run(args);
      };
      run(on_gpu, there, Layout::plain, Layout::channels_last);
      run(there, back, Layout::channels_last, Layout::plain);
      EXPECT_TRUE(same_bits(back, values)) << shape << " " << dtype;
      const auto plain = values.to_vector<double>(), last = there.to_vector<double>();
      const int64_t channels = shape[1], space = shape.size(2, shape.rank());
      for (int64_t i = 0; i < shape.size(); ++i) {
        const int64_t n = i / (channels * space), c = i / space % channels, s = i % space;
        ASSERT_EQ(last[static_cast<size_t>((n * space + s) * channels + c)], plain[static_cast<size_t>(i)])
            << shape << " at " << i;
      }
    }
  }
}

}  // namespace
}  // namespace symbind::testing
