// Updates of weights beyond single rules, and questions about whole arrays, on a GPU against the CPU's.
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/multi_optimizer.h"

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

// More arrays than one launch takes.
void add_questions(std::vector<DeviceCase>& cases) {
  std::vector<Shape> shapes;
  for (int64_t i = 0; i < 200; ++i) shapes.push_back(i == 3 ? Shape{0} : i == 40 ? Shape{40001} : Shape{i % 70 + 1, 5});
  const Attributes count{{"num_arrays", "200"}};
  cases.push_back({"multi_sum_sq", shapes, count});
  std::vector<DType> mixed;
  for (size_t i = 0; i < shapes.size(); ++i) mixed.push_back(float_types[i % float_types.size()]);
  cases.push_back({"multi_sum_sq", shapes, count, {DType::float32}, -2, 2, 1, true, mixed});
  cases.push_back({"multi_all_finite", shapes, count, {DType::float32}, -2, 2, 1, true, mixed});
  cases.push_back({"all_finite", {{700, 31}}, {}, all_types});
  const std::vector<DType> scale_types{DType::float32, DType::float64};
  cases.push_back({"_adapt_loss_scale", {{1}, {2}}, {}, {DType::float32}, 0.5, 2, 1, true, scale_types});
  cases.push_back({"_contrib_allclose", {{40, 7}, {40, 7}}, {{"rtol", "10"}}, float_types});
  cases.push_back({"_contrib_allclose", {{40, 7}, {40, 7}}, {}, all_types});
  cases.push_back(
      {"multi_lars", std::vector<Shape>(4, {37}), {{"eta", "0.1"}, {"eps", "0.01"}}, {DType::float32}, 0, 2});
}

void add_lamb(std::vector<DeviceCase>& cases) {
  const Shape weight{501}, one{1};
  for (const Attributes& bounds : std::vector<Attributes>{{}, {{"lower_bound", "0.5"}, {"upper_bound", "1.5"}}}) {
    Attributes attributes = bounds;
    attributes["lr"] = "0.1";
    cases.push_back({"lamb_update_phase2", {weight, weight, one, one}, attributes, float_types, 0, 2, 4});
    // With a master in float32 the arithmetic is float32, whatever the weight.
    cases.push_back({"mp_lamb_update_phase2",
                     {weight, weight, one, one, weight},
                     attributes,
                     {DType::float32, DType::float16, DType::bfloat16},
                     0,
                     2,
                     4,
                     true,
                     {DType::none, DType::float32, DType::float32, DType::float32, DType::float32}});
  }
  cases.push_back({"mp_lamb_update_phase1",
                   std::vector<Shape>(5, weight),
                   {{"t", "2"}, {"wd", "0.01"}, {"clip_gradient", "0.5"}},
                   float_types,
                   0.1,
                   2,
                   4,
                   true,
                   {DType::none, DType::none, DType::float32, DType::float32, DType::float32}});
  for (const Shape& matrix : std::vector<Shape>{{7, 64}, {5, 33}, {2, 3000}, {3, 0}})
    cases.push_back({"_contrib_group_adagrad_update",
                     {matrix, matrix, {matrix[0], 1}},
                     {{"lr", "0.1"}, {"clip_gradient", "1"}},
                     float_types,
                     0.1,
                     2,
                     4});
  cases.push_back({"_sgld_update", {{501}, {501}}, {{"lr", "0.1"}, {"wd", "0.01"}}, float_types, -2, 2, 4});
}

}  // namespace

std::vector<DeviceCase> update_cases() {
  std::vector<DeviceCase> cases;
  add_questions(cases);
  add_lamb(cases);
  return cases;
}

namespace {

using CudaUpdate = GpuTest;

TEST_F(CudaUpdate, UpdatesAndQuestionsAgreeWithTheCpu) { compare_devices(update_cases()); }

// As many arrays as a launch with few arguments takes, more than that, and more than one launch takes, of all sizes:
// none, a few blocks, and more elements than all blocks of an array take in one pass.
TEST_F(CudaUpdate, ArraysOfAllSizesAreUpdatedTogetherAsOneByOne) {
  const auto compare = [](size_t arrays, DType dtype) {
    SCOPED_TRACE(arrays);
    std::vector<int64_t> sizes{0, 1, 255, 256, 257, 1023, 1025, 4096, 3'000'001};
    for (int64_t i = 0; sizes.size() < arrays; ++i) sizes.push_back(17 * i * i % 20000);
    std::vector<NDArray> inputs, weights;
    MultiSgdMomUpdate together;
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (uint64_t k = 0; k < 3; ++k) inputs.push_back(random_array({sizes[i]}, 3 * i + k, -1, 1, dtype, gpu(0)));
      weights.push_back(inputs[3 * i]);
      together.lrs.push_back(0.1 + 0.01 * static_cast<double>(i));
      together.wds.push_back(0.001 * static_cast<double>(i));
    }
    together.momentum = 0.9;
    together.rescale_grad = 0.5;
    together.num_weights = static_cast<int64_t>(sizes.size());
    std::vector<NDArray> expected;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) continue;
      const NDArray weight = inputs[3 * i].copy(), momentum = inputs[3 * i + 2].copy();
      invoke(
          "sgd_mom_update", {weight, inputs[3 * i + 1], momentum},
          {{"lr", join(together.lrs[i])}, {"wd", join(together.wds[i])}, {"momentum", "0.9"}, {"rescale_grad", "0.5"}},
          {.out = {weight}});
      expected.insert(expected.end(), {weight, momentum});
    }
    invoke(multi_sgd_mom_update, inputs, together, {.out = weights});
    size_t next = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) continue;
      for (const size_t input : {3 * i, 3 * i + 2})
        EXPECT_TRUE(all_close(inputs[input].as_copy_in(cpu()), expected[next++].as_copy_in(cpu()), tolerance_of(dtype)))
            << (input % 3 ? "momentum" : "weight") << " of " << sizes[i] << " in " << dtype;
    }
  };
  for (const size_t arrays : {32, 33, 192, 450}) compare(arrays, DType::float32);
  compare(49, DType::float16);
}

float all_finite(const std::vector<NDArray>& arrays) {
  const Attributes count{{"num_arrays", std::to_string(arrays.size())}};
  return invoke("multi_all_finite", arrays, count)[0].as_copy_in(cpu()).to_vector<float>()[0];
}

TEST_F(CudaUpdate, AnInfiniteElementOrNaNIsFoundWhereverItIs) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : float_types)
    for (const int64_t at : {0, 9999, 19998, 19999, 20000})
      for (const double bad : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
        std::vector<double> values(20001, 1);
        values[static_cast<size_t>(at)] = bad;
        NDArray data({20001}, cpu(), DType::float64);
        data.copy_from(values);
        const NDArray on_gpu = data.astype(dtype).as_copy_in(gpu(0)),
                      fine = random_array({33}, 1, -1, 1, dtype, gpu(0));
        EXPECT_EQ(invoke("all_finite", {on_gpu}, {})[0].as_copy_in(cpu()).to_vector<float>()[0], 0)
            << bad << " at " << at << " in " << dtype;
        EXPECT_EQ(all_finite({fine, on_gpu}), 0) << dtype;
        EXPECT_EQ(all_finite({fine, fine}), 1) << dtype;
        // Not aligned to 16 bytes, without the first element.
        EXPECT_EQ(all_finite({on_gpu.slice(1, 20001)}), at == 0 ? 1 : 0) << bad << " at " << at << " in " << dtype;
      }
}

TEST_F(CudaUpdate, TheLargestNumbersAreFinite) {
  for (const auto& [dtype, largest] :
       std::vector<std::pair<DType, double>>{{DType::float16, 65504},
                                             {DType::bfloat16, 3.3895313892515355e38},
                                             {DType::float32, 3.4028234663852886e38},
                                             {DType::float64, std::numeric_limits<double>::max()}}) {
    NDArray data({5}, cpu(), DType::float64);
    data.copy_from(std::vector<double>{largest, -largest, 0, -0.0, largest});
    EXPECT_EQ(all_finite({data.astype(dtype).as_copy_in(gpu(0))}), 1) << dtype;
  }
}

// An array after those that one launch takes.
TEST_F(CudaUpdate, EveryOneOfManyArraysIsTestedForInfiniteElements) {
  std::vector<NDArray> arrays;
  for (uint64_t i = 0; i < 400; ++i) arrays.push_back(random_array({7}, i, -1, 1, DType::float32, gpu(0)));
  EXPECT_EQ(all_finite(arrays), 1);
  for (const size_t at : {0, 179, 180, 359, 360, 399}) {
    const NDArray before = arrays[at];
    arrays[at] = before / 0;
    EXPECT_EQ(all_finite(arrays), 0) << at;
    arrays[at] = before;
  }
}

}  // namespace
}  // namespace symbind::testing
