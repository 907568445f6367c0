// Images enlarged, sampled, compared and pooled on a GPU against the CPU. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"
#include "symbind/ops/spatial.h"

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

using Case = DeviceCase;
using CudaVision = GpuTest;

const std::vector<DType> every_type{DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8,
                                    DType::int8,    DType::int32,   DType::int64,   DType::boolean};

void add_enlarging_cases(std::vector<Case>& cases) {
  const Shape small{2, 3, 2, 3}, large{2, 1, 4, 6};
  for (const char* mode : {"concat", "sum"}) {
    const bool sums = std::string(mode) == "sum";
    const Attributes nearest{{"scale", "4"}, {"sample_type", "nearest"}, {"num_args", "2"}, {"multi_input_mode", mode}};
    const Shape second{2, sums ? 3 : 1, 4, 6}, result{2, sums ? 3 : 4, 8, 12};
    cases.push_back({"UpSampling", {small, second}, nearest, every_type});
    cases.push_back({"_backward_UpSampling", {result, small, second}, nearest, every_type, -2, 2, 2});
  }
  const Attributes twice{{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "1"}};
  cases.push_back({"UpSampling", {{1, 5, 7, 3}}, twice, every_type});
  cases.push_back({"_backward_UpSampling", {{1, 5, 14, 6}, {1, 5, 7, 3}}, twice, every_type, -2, 2, 2});
  // Rows of whole packs and of others, blocks of any width.
  for (const int64_t scale : {1, 2, 3, 4})
    for (const int64_t columns : {3, 8, 12}) {
      const Shape data{2, 3, 5, columns}, result{2, 3, 5 * scale, columns * scale};
      const Attributes by{{"scale", std::to_string(scale)}, {"sample_type", "nearest"}, {"num_args", "1"}};
      cases.push_back({"UpSampling", {data}, by, every_type});
      cases.push_back({"_backward_UpSampling", {result, data}, by, every_type, -2, 2, 2});
    }
  for (const char* mode : {"concat", "sum"}) {
    const bool sums = std::string(mode) == "sum";
    const Attributes both{{"scale", "4"}, {"sample_type", "nearest"}, {"num_args", "2"}, {"multi_input_mode", mode}};
    const Shape first{2, 3, 2, 4}, second{2, sums ? 3 : 1, 4, 8}, result{2, sums ? 3 : 4, 8, 16};
    cases.push_back({"UpSampling", {first, second}, both, every_type});
    cases.push_back({"_backward_UpSampling", {result, first, second}, both, every_type, -2, 2, 4});
  }
  for (const char* scale : {"2", "3"})
    cases.push_back({"UpSampling",
                     {{2, 3, 5, 4}, {3, 1, scale[0] == '2' ? 4 : 5, scale[0] == '2' ? 4 : 5}},
                     {{"scale", scale}, {"sample_type", "bilinear"}, {"num_filter", "3"}, {"num_args", "2"}},
                     float_types,
                     -1,
                     1,
                     4});
}

// Every interpolation of images that become larger, smaller, half as large, or larger along one axis alone.
void add_resizing_cases(std::vector<Case>& cases) {
  const std::vector<DType> pixels(all_types.begin(), all_types.end() - 1);
  for (const char* interp : {"0", "1", "2", "3", "4"}) {
    for (const char* size : {"(13, 11)", "(5, 3)", "(4, 6)", "(16, 5)", "(8, 12)"})
      cases.push_back({"_image_resize", {{2, 12, 8, 3}}, {{"size", size}, {"interp", interp}}, pixels, 0, 120});
    cases.push_back({"_image_resize", {{9, 7, 1}}, {{"size", "4"}, {"interp", interp}}, {DType::uint8}, 0, 255});
    cases.push_back({"_image_resize", {{1, 1, 4}}, {{"size", "(3, 2)"}, {"interp", interp}}, pixels, 0, 120});
  }
}

void add_unfolding_cases(std::vector<Case>& cases) {
  for (const int64_t columns : {8, 9, 3}) {
    const Shape image{2, 3, 5, columns};
    cases.push_back({"im2col", {image}, {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}}});
    cases.push_back({"im2col", {image}, {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pad", "(1, 2)"}}});
    cases.push_back({"im2col", {image}, {{"kernel", "(2, 3)"}, {"dilate", "(2, 2)"}, {"pad", "(0, 2)"}}});
  }
  cases.push_back({"im2col", {{2, 3, 17}}, {{"kernel", "(3,)"}, {"pad", "(1,)"}}});
}

// Regions from -1 to 8 in images of 7 × 9: some are outside, and so are some of their images.
void add_region_cases(std::vector<Case>& cases) {
  const Attributes pooled{{"pooled_size", "(2, 3)"}, {"spatial_scale", "0.75"}};
  cases.push_back({"ROIPooling", {{3, 4, 7, 9}, {6, 5}}, pooled, float_types, -1, 8});
  const std::vector<DType> types{DType::none, DType::int32};
  cases.push_back({"_backward_ROIPooling",
                   {{6, 4, 2, 3}, {6, 4, 2, 3}, {6, 5}, {3, 4, 7, 9}},
                   pooled,
                   float_types,
                   -1,
                   8,
                   2,
                   true,
                   types});
}

// Coordinates from -1.25 to 1.25: some are outside of the images.
void add_sampling_cases(std::vector<Case>& cases) {
  for (const Shape& grid : std::vector<Shape>{{2, 2, 4, 5}, {2, 2, 9, 3}}) {
    const Shape data{2, 3, 6, 7}, result{2, 3, grid[2], grid[3]};
    cases.push_back({"BilinearSampler", {data, grid}, {}, float_types, -1.25, 1.25, 4});
    cases.push_back({"_backward_BilinearSampler", {result, data, grid}, {}, float_types, -1.25, 1.25, 16});
  }
  const Attributes affine{{"transform_type", "affine"}, {"target_shape", "(4, 5)"}};
  cases.push_back({"GridGenerator", {{3, 6}}, affine, float_types, -1, 1, 4});
  cases.push_back({"_backward_GridGenerator", {{3, 2, 4, 5}, {3, 6}}, affine, float_types, -1, 1, 4});
  const Attributes warp{{"transform_type", "warp"}};
  cases.push_back({"GridGenerator", {{2, 2, 5, 7}}, warp, float_types, -2, 2, 4});
  cases.push_back({"_backward_GridGenerator", {{2, 2, 5, 7}, {2, 2, 5, 7}}, warp, float_types, -2, 2, 4});
  const Attributes transformer{{"transform_type", "affine"}, {"sampler_type", "bilinear"}, {"target_shape", "(4, 5)"}};
  cases.push_back({"SpatialTransformer", {{2, 3, 6, 7}, {2, 6}}, transformer, float_types, -1, 1, 8});
  cases.push_back(
      {"_backward_SpatialTransformer", {{2, 3, 4, 5}, {2, 3, 6, 7}, {2, 6}}, transformer, float_types, -1, 1, 32});
}

void add_comparing_cases(std::vector<Case>& cases) {
  for (const char* multiply : {"True", "False"}) {
    const Shape image{2, 3, 8, 9};
    const Attributes small{{"kernel_size", "1"}, {"max_displacement", "2"}, {"stride1", "1"},
                           {"stride2", "1"},     {"pad_size", "2"},         {"is_multiply", multiply}};
    cases.push_back({"Correlation", {image, image}, small, float_types, -1, 1, 4});
    cases.push_back({"_backward_Correlation", {{2, 25, 8, 9}, image, image}, small, float_types, -1, 1, 16});
    const Attributes large{{"kernel_size", "3"}, {"max_displacement", "2"}, {"stride1", "2"},
                           {"stride2", "2"},     {"pad_size", "3"},         {"is_multiply", multiply}};
    cases.push_back({"Correlation", {image, image}, large, float_types, -1, 1, 4});
    cases.push_back({"_backward_Correlation", {{2, 9, 4, 5}, image, image}, large, float_types, -1, 1, 16});
  }
}

void add_pooling_cases(std::vector<Case>& cases) {
  for (const char* type : {"max", "avg", "sum", "lp"})
    for (const char* convention : {"valid", "full"})
      for (const char* p : {"1", "2", "3"}) {
        if (std::string(type) != "lp" && p[0] != '2') continue;
        const int64_t rows = convention[0] == 'v' ? 3 : 4;
        const Attributes flat{{"kernel", "(3, 2)"},
                              {"stride", "(2, 1)"},
                              {"pad", "(1, 0)"},
                              {"pool_type", type},
                              {"pooling_convention", convention},
                              {"p_value", p}};
        const Shape data{2, 3, 6, 5}, result{2, 3, rows, 4};
        const bool reads = type[0] == 'm' || type[0] == 'l';
        const std::vector<Shape> inputs = reads ? std::vector{result, data, result} : std::vector{result, data};
        cases.push_back({"Pooling", {data}, flat, float_types, 0.25, 2, 4});
        cases.push_back({"_backward_Pooling", inputs, flat, float_types, 0.25, 2, 8});
      }
  for (const char* type : {"max", "avg", "sum", "lp"}) {
    const Attributes deep{{"kernel", "(2, 2, 3)"},
                          {"pad", "(1, 0, 1)"},
                          {"pool_type", type},
                          {"p_value", "2"},
                          {"count_include_pad", "False"}};
    cases.push_back({"Pooling", {{2, 3, 3, 4, 5}}, deep, float_types, 0.25, 2, 4});
    cases.push_back({"Pooling", {{0, 3, 3, 4, 5}}, deep, float_types});
    const Attributes line{{"kernel", "(3,)"}, {"pool_type", type}, {"p_value", "2"}};
    cases.push_back({"Pooling", {{2, 3, 9}}, line, float_types, 0.25, 2, 4});
    const Attributes whole{{"kernel", "(1, 1)"}, {"global_pool", "True"}, {"pool_type", type}, {"p_value", "3"}};
    cases.push_back({"Pooling", {{2, 3, 5, 6}}, whole, float_types, 0.25, 2, 4});
    cases.push_back({"Pooling", {{2, 3, 17, 31}}, whole, float_types, 0.25, 2, 4});
  }
}

void add_dropout_cases(std::vector<Case>& cases) {
  for (const char* axes : {"(0,)", "(1,)", "(0, 2)"})
    for (const bool is_train : {true, false})
      cases.push_back({"Dropout", {{7, 13, 5}}, {{"p", "0.3"}, {"axes", axes}}, float_types, -2, 2, 1, is_train});
  cases.push_back({"Dropout", {{77, 3}}, {{"p", "0.3"}, {"mode", "always"}}, float_types, -2, 2, 1, false});
}

}  // namespace

std::vector<DeviceCase> vision_cases() {
  std::vector<Case> cases;
  add_enlarging_cases(cases);
  add_resizing_cases(cases);
  add_unfolding_cases(cases);
  add_region_cases(cases);
  add_sampling_cases(cases);
  add_comparing_cases(cases);
  add_pooling_cases(cases);
  add_dropout_cases(cases);
  return cases;
}

namespace {

TEST(CudaVisionCases, AreAcceptedByTheGpu) {
  if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  expect_accepted(vision_cases());
}

TEST_F(CudaVision, IsAsOnTheCpu) { compare_devices(vision_cases()); }

TEST_F(CudaVision, GradientsOfSampledImagesAreTheSameBitForBit) {
  const NDArray dy = random_array({2, 3, 40, 40}, 1, -1, 1, DType::float32, gpu(0));
  const NDArray data = random_array({2, 3, 9, 11}, 2, -1, 1, DType::float32, gpu(0));
  const NDArray grid = random_array({2, 2, 40, 40}, 3, -1, 1, DType::float32, gpu(0));
  const NDArray first = invoke(bilinear_sampler_grad, {dy, data, grid}, {})[0];
  for (int again = 0; again < 3; ++again)
    EXPECT_TRUE(same_bits(invoke(bilinear_sampler_grad, {dy, data, grid}, {})[0], first));
}

}  // namespace
}  // namespace symbind::testing
