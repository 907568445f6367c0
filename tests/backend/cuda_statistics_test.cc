// BatchNorm's statistics from sums that the convolution before it computes: against the CPU, against the two computed
// one after the other, and where the sums are not precise enough. Skipped where there is no GPU.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv_statistics.h"

#include "tests/backend/cuda_trained.h"
#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"
#include "tests/support/networks.h"

namespace symbind::testing {
namespace {

// The engines' sums differ in the last bits from run to run: they are used if that is allowed.
class CudaStatistics : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ::setenv("MXNET_CUDNN_AUTOTUNE_DEFAULT", "2", 1);
  }
  void TearDown() override { ::unsetenv("MXNET_CUDNN_AUTOTUNE_DEFAULT"); }
};

// ---- The convolution ------------------------------------------------------------------------------------------------

struct Convolved {
  int64_t batch, channels, filters, size, kernel = 1, stride = 1, groups = 1;
};
// The first few have enough channels for a fused kernel, which others lack: a network of operators computes those.
const std::vector<Convolved> convolutions = {
    {1, 64, 256, 14}, {128, 64, 64, 7},     {8, 64, 64, 14, 3},     {128, 128, 128, 4, 3}, {4, 64, 128, 15, 1, 2},
    {2, 256, 64, 9},  {1, 64, 64, 1},       {2, 24, 40, 9},         {3, 8, 8, 5, 3},       {2, 7, 9, 5, 3},
    {2, 64, 33, 9},   {2, 3, 64, 33, 7, 2}, {2, 16, 16, 7, 3, 1, 2}};

DeviceCase statistics_case(const Convolved& c, bool last, const std::string& tune) {
  ConvolutionStatistics p{untuned(c.filters, c.kernel, c.stride)};
  p.num_group = c.groups;
  p.cudnn_tune = tune;
  const int64_t channels = c.channels / c.groups;
  DeviceCase tried{"_Convolution_Statistics",
                   {{c.batch, c.channels, c.size, c.size}, {c.filters, channels, c.kernel, c.kernel}},
                   {},
                   {DType::float16},
                   -1,
                   1,
                   8};
  if (last) {
    p.layout = "NHWC";
    tried.inputs = {{c.batch, c.size, c.size, c.channels}, {c.filters, c.kernel, c.kernel, channels}};
  }
  tried.params = std::make_shared<ConvolutionStatistics>(p);
  return tried;
}

TEST_F(CudaStatistics, OfAConvolutionAgreeWithTheCpu) {
  for (const Convolved& c : convolutions)
    for (const bool last : {true, false})
      for (const char* tune : {"off", "limited_workspace"}) {
        SCOPED_TRACE(join("batch ", c.batch, ", ", c.channels, " to ", c.filters, " channels, size ", c.size,
                          ", kernel ", c.kernel, last ? ", channels last, " : ", ", tune));
        compare_devices({statistics_case(c, last, tune)});
      }
}

TEST_F(CudaStatistics, InOtherTypesAreComputedOnTheGpuToo) {
  DeviceCase tried = statistics_case({2, 16, 24, 6, 3}, false, "off");
  tried.dtypes = {DType::float32, DType::float64, DType::bfloat16};
  compare_devices({tried});
}

// An engine may not be given such an address; the kernel then computes the sums in a pass.
TEST_F(CudaStatistics, OfAConvolutionOfAViewAtAnOddAddress) {
  const Shape data{2, 9, 9, 64}, weight{128, 1, 1, 64};
  ConvolutionStatistics p{untuned(128)};
  p.layout = "NHWC";
  const auto run = [&](Context context) {
    const NDArray whole = random_array({data.size() + 1}, 3, -1, 1, DType::float16, cpu()).as_copy_in(context);
    const NDArray x = whole.slice(1, 1 + data.size()).reshape(data);
    const NDArray w = random_array(weight, 4, -1, 1, DType::float16, cpu()).as_copy_in(context);
    return invoke(convolution_statistics, std::vector<NDArray>{x, w}, p, {.context = context});
  };
  const auto expected = run(cpu()), actual = run(gpu(0));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(all_close(actual[i].as_copy_in(cpu()), expected[i], {1e-2, 1e-2, 4e-3})) << "output " << i;
}

// ---- BatchNorm ------------------------------------------------------------------------------------------------------

// Sums of the channels of an array, in float32 or in its own type, multiplied by factors, as inexact sums would be.
struct Sums {
  NDArray sum, square_sum;
};
Sums sums_of(const NDArray& data, int axis, double sum_factor = 1, double square_factor = 1) {
  const Shape& shape = data.shape();
  const int64_t channels = shape[axis], inner = shape.size(axis + 1, shape.rank());
  const std::vector<double> values = data.to_vector<double>();
  std::vector<double> sums(static_cast<size_t>(channels)), squares(static_cast<size_t>(channels));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / inner % channels);
    sums[channel] += sum_factor * values[i];
    squares[channel] += square_factor * values[i] * values[i];
  }
  const DType dtype = data.dtype() == DType::float64 ? DType::float64 : DType::float32;
  Sums made{NDArray({channels}, cpu(), dtype), NDArray({channels}, cpu(), dtype)};
  made.sum.copy_from(sums);
  made.square_sum.copy_from(squares);
  return made;
}

// Outputs, then moving mean and variance. On a CPU the sums are not read.
std::vector<NDArray> normalized(const NDArray& data, const Sums& sums, const BatchNormGivenSums& p, Context context) {
  const int64_t channels = data.shape()[data.shape().axis(p.axis, "axis")];
  const DType type = sums.sum.dtype();
  std::vector<NDArray> inputs{data, random_array({channels}, 7, 0.5, 2, type), random_array({channels}, 8, -1, 1, type),
                              sums.sum, sums.square_sum};
  if (p.add) inputs.push_back(random_array(data.shape(), 9, -1, 1, data.dtype()));
  inputs.push_back(random_array({channels}, 10, -1, 1, type));
  inputs.push_back(random_array({channels}, 11, 0.5, 2, type));
  for (NDArray& array : inputs) array = array.as_copy_in(context);
  std::vector<NDArray> results = invoke(batch_norm_given_sums, inputs, p, {.context = context, .is_train = true});
  results.insert(results.end(), inputs.end() - 2, inputs.end());
  for (NDArray& array : results) array = array.as_copy_in(cpu());
  return results;
}

BatchNormGivenSums norm_params(bool add, bool relu, int64_t axis = 1) {
  BatchNormGivenSums p;
  p.eps = 1e-5;
  p.fix_gamma = false;
  p.output_mean_var = true;
  p.axis = axis;
  p.add = add;
  p.relu = relu;
  return p;
}

void expect_normalized_as_on_the_cpu(const NDArray& data, const Sums& sums, const BatchNormGivenSums& p) {
  const auto expected = normalized(data, sums, p, cpu()), actual = normalized(data, sums, p, gpu(0));
  ASSERT_EQ(actual.size(), expected.size());
  const Tolerance of_data = tolerance_of(data.dtype());
  for (size_t i = 0; i < actual.size(); ++i) {
    const Tolerance tolerance = i == 0 ? Tolerance{of_data.relative * 4, of_data.absolute * 4, of_data.of_largest * 4}
                                       : Tolerance{1e-4, 1e-5, 0};
    EXPECT_TRUE(all_close(actual[i], expected[i], tolerance)) << (i < 3 ? "output " : "state ") << (i < 3 ? i : i - 3);
  }
}

const std::vector<Shape> shapes = {{4, 3, 5, 7}, {2, 64, 9, 5}, {128, 64, 2, 2}, {1, 2048, 7, 7}, {1, 8, 80, 80}};

TEST_F(CudaStatistics, ABatchNormThatIsGivenThemAgreesWithTheCpu) {
  for (const Shape& shape : shapes)
    for (const DType dtype : float_types)
      for (const int axis : {1, 3})
        for (const auto& [add, relu] : {std::pair(false, false), {false, true}, {true, true}, {true, false}}) {
          SCOPED_TRACE(
              join(shape, " in ", dtype, ", axis ", axis, add ? ", with a sum" : "", relu ? ", with ReLU" : ""));
          const NDArray data = random_array(shape, 1, -2, 3, dtype);
          expect_normalized_as_on_the_cpu(data, sums_of(data, axis), norm_params(add, relu, axis));
        }
}

// Here the variance is so small a difference of the sums that it would be off by half if they are off by 4e-5.
TEST_F(CudaStatistics, OfALargeMeanAreComputedFromTheData) {
  for (const Shape& shape : {Shape{4, 16, 9, 9}, Shape{128, 64, 3, 3}})
    for (const int axis : {1, 3}) {
      NDArray data = random_array(shape, 2, 8, 8.25, DType::float16);
      SCOPED_TRACE(join(shape, ", axis ", axis));
      expect_normalized_as_on_the_cpu(data, sums_of(data, axis, 1 + 1e-6, 1 - 4e-5), norm_params(false, true, axis));
      data.fill(3);  // no variance at all
      expect_normalized_as_on_the_cpu(data, sums_of(data, axis, 1, 1 + 1e-5), norm_params(false, false, axis));
      data.fill(0);
      expect_normalized_as_on_the_cpu(data, sums_of(data, axis), norm_params(true, true, axis));
    }
}

TEST_F(CudaStatistics, ThatAreNotFiniteAreComputedFromTheData) {
  const NDArray data = random_array({4, 16, 5, 5}, 3, -1, 1, DType::float16);
  for (const double wrong : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Sums sums = sums_of(data, 1);
    sums.square_sum.slice(3, 5).fill(wrong);
    sums.sum.slice(7, 8).fill(wrong);
    expect_normalized_as_on_the_cpu(data, sums, norm_params(false, true));
  }
}

TEST_F(CudaStatistics, OfDataWithNanAreNan) {
  NDArray data = random_array({4, 16, 5, 5}, 3, -1, 1, DType::float16);
  data.slice(1, 2).fill(std::numeric_limits<double>::quiet_NaN());
  expect_normalized_as_on_the_cpu(data, sums_of(data, 1), norm_params(false, false));
}

// Sums of other data than the given: with a small mean they count, not the data.
TEST_F(CudaStatistics, AreTakenFromTheSumsElsewhere) {
  const NDArray data = random_array({4, 16, 9, 9}, 4, -1, 2, DType::float16);
  const auto from_sums = normalized(data, sums_of(data, 1, 2, 4), norm_params(false, false), gpu(0));
  const auto from_data = normalized(data, sums_of(data, 1), norm_params(false, false), cpu());
  const std::vector<double> doubled = from_sums[1].to_vector<double>(), means = from_data[1].to_vector<double>();
  for (size_t c = 0; c < means.size(); ++c) EXPECT_NEAR(doubled[c], 2 * means[c], 1e-4) << "channel " << c;
}

// ---- Both in a network ----------------------------------------------------------------------------------------------

// Two units; convolutions of one and of nine taps, a stride, a sum.
Symbol units(int64_t filters, const std::string& tune) {
  const auto conv = [&](const Symbol& x, const std::string& name, int64_t kernel, int64_t stride = 1) {
    Convolution p = untuned(filters, kernel, stride);
    p.cudnn_tune = tune;
    return convolution(x, p, name);
  };
  const Symbol first = relu(norm(conv(var("data"), "conv1", 1), "bn1"), "relu1");
  const Symbol second = relu(norm(conv(first, "conv2", 3), "bn2"), "relu2");
  const Symbol third = relu(norm(conv(second, "conv3", 1), "bn3") + first, "relu3");
  return norm(conv(third, "conv4", 1, 2), "bn4");
}

TEST_F(CudaStatistics, AreFusedIntoTheConvolutionsOfATrainedNetwork) {
  for (const Shape& data : {Shape{16, 64, 14, 14}, Shape{1, 64, 14, 14}, Shape{128, 64, 4, 4}}) {
    SCOPED_TRACE(join(data));
    const Trained with = trained(units(64, "off"), data, gpu(0), DType::float16, {}, 0);
    const Trained without = trained(units(64, "off"), data, gpu(0), DType::float16, {.fuse = false}, 0);
    EXPECT_GT(count(with.plan, "_Convolution_Statistics"), 0) << with.plan;
    EXPECT_EQ(count(with.plan, "_Convolution_Statistics"), count(with.plan, "_BatchNorm_Given_Sums") + 1)
        << "the norm of the residual unit stores signs, too\n"
        << with.plan;
    EXPECT_EQ(count(with.plan, "_BatchNorm_Signs"), 2) << "forward and backward\n" << with.plan;
    EXPECT_EQ(count(without.plan, "_Convolution_Statistics"), 0);
    EXPECT_EQ(count(with.plan, " host "), 0) << with.plan;
    expect_close(*with.executor, *without.executor, 0.02);
  }
}

TEST_F(CudaStatistics, OfATrainedNetworkAgreeWithTheCpu) {
  for (const char* tune : {"off", "limited_workspace"}) {
    const Shape data{8, 64, 8, 8};
    const Trained on_gpu = trained(units(64, tune), data, gpu(0), DType::float16, {}, 0);
    const Trained on_cpu = trained(units(64, tune), data, cpu(), DType::float16, {}, 0);
    EXPECT_EQ(count(on_gpu.plan, " host "), 0) << on_gpu.plan;
    expect_close(*on_gpu.executor, *on_cpu.executor, 0.03);
  }
}

// The first norm's channels have means of many deviations.
TEST_F(CudaStatistics, OfATrainedNetworkWithLargeMeansAgreeWithSeparateOnes) {
  const Shape data{16, 64, 14, 14};
  const Trained with = trained(units(64, "off"), data, gpu(0), DType::float16, {}, 1);
  const Trained without = trained(units(64, "off"), data, gpu(0), DType::float16, {.fuse = false}, 1);
  EXPECT_GT(count(with.plan, "_Convolution_Statistics"), 0) << with.plan;
  for (const char* state : {"bn1_moving_mean", "bn1_moving_var"})
    EXPECT_TRUE(all_close(with.executor->aux_dict().at(state).as_copy_in(cpu()),
                          without.executor->aux_dict().at(state).as_copy_in(cpu()), {1e-2, 1e-6, 0}))
        << state;
  expect_close(*with.executor, *without.executor, 0.05);
}

TEST_F(CudaStatistics, AreSeparateWhereThereIsNoFusedKernel) {
  struct Case {
    DType dtype;
    int64_t channels, filters;
  };
  for (const Case& c :
       {Case{DType::float16, 64, 33}, {DType::float16, 7, 9}, {DType::bfloat16, 64, 33}, {DType::float32, 64, 64}}) {
    SCOPED_TRACE(join(c.filters, " filters in ", c.dtype));
    const Shape data{4, c.channels, 9, 9};
    const Trained with = trained(units(c.filters, "off"), data, gpu(0), c.dtype, {}, 0);
    const Trained without = trained(units(c.filters, "off"), data, gpu(0), c.dtype, {.fuse = false}, 0);
    EXPECT_EQ(count(with.plan, "_Convolution_Statistics") + count(with.plan, "_BatchNorm_Given_Sums"), 0) << with.plan;
    EXPECT_EQ(count(with.plan, " host "), 0) << with.plan;
    expect_close(*with.executor, *without.executor, c.dtype == DType::bfloat16 ? 0.1 : 0.02);
  }
}

// In plain layouts the fused operators compute the same, by a pass over the convolution's result.
TEST_F(CudaStatistics, DoNotDependOnTheLayout) {
  const Shape data{4, 64, 9, 9};
  const Trained plain = trained(units(64, "off"), data, gpu(0), DType::float16, {.layout = false}, 0);
  const Trained without = trained(units(64, "off"), data, gpu(0), DType::float16, {.fuse = false}, 0);
  EXPECT_EQ(count(plain.plan, " host "), 0) << plain.plan;
  expect_close(*plain.executor, *without.executor, 0.02);
}

TEST_F(CudaStatistics, AreTheSameBitsAtEveryRunByDefault) {
  ::unsetenv("MXNET_CUDNN_AUTOTUNE_DEFAULT");
  const Shape data{16, 64, 14, 14};
  const Trained first = trained(units(64, "off"), data, gpu(0), DType::float16, {}, 0);
  const Trained second = trained(units(64, "off"), data, gpu(0), DType::float16, {}, 0);
  EXPECT_EQ(count(first.plan, "_Convolution_Statistics"), 2) << "those of one tap without a stride\n" << first.plan;
  for (const auto& [name, state] : first.executor->aux_dict())
    EXPECT_TRUE(same_bits(second.executor->aux_dict().at(name), state)) << name;
  for (const auto& [name, gradient] : first.executor->grad_dict())
    EXPECT_TRUE(same_bits(second.executor->grad_dict().at(name), gradient)) << name;
}

}  // namespace
}  // namespace symbind::testing
