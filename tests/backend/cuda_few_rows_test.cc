// Convolutions with few positions of the output in 16 bits by a kernel of ours (backend/cuda/conv_few_rows.h), where
// the GPU and the build have it: exactly, with whole numbers whose products and sums need no rounding; with infinity
// and NaN in the data; and in a network, whose launches overlap, against the CPU. Skipped where there is no GPU.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/conv_fused.h"

#include "tests/backend/cuda_convolved.h"
#include "tests/backend/cuda_trained.h"
#include "tests/support/gpu_test.h"
#include "tests/support/networks.h"

namespace symbind::testing {
namespace {

class CudaFewRows : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ::unsetenv("MXNET_CUDNN_AUTOTUNE_DEFAULT");
  }
};

// The layers of ResNet-50 for one image, and smaller ones: clusters of one to eight blocks; positions and filters that
// do not fill a tile; one position; several images; strides, dilations and kernels that reach beyond the image; more
// slices of the depth than shared memory has room for.
const std::vector<Convolved> convolutions = {{1, 56, 56, 64, 64, {3, 3}, {1, 1}, {1, 1}},
                                             {1, 28, 28, 128, 128, {3, 3}, {1, 1}, {1, 1}},
                                             {1, 28, 28, 256, 256, {3, 3}, {2, 2}, {1, 1}},
                                             {1, 7, 7, 512, 512, {3, 3}, {1, 1}, {1, 1}},
                                             {1, 14, 14, 1024, 256, {1, 1}, {1, 1}, {0, 0}},
                                             {1, 14, 14, 256, 512, {1, 1}, {2, 2}, {0, 0}},
                                             {1, 1, 1, 64, 64, {1, 1}, {1, 1}, {0, 0}},
                                             {3, 13, 9, 64, 72, {3, 3}, {2, 2}, {1, 1}},
                                             {2, 11, 17, 192, 100, {5, 5}, {1, 1}, {3, 3}, {2, 2}},
                                             {5, 9, 8, 128, 40, {2, 3}, {3, 1}, {0, 2}},
                                             {1, 33, 20, 64, 4, {7, 7}, {2, 2}, {3, 3}},
                                             {7, 5, 5, 320, 136, {3, 3}, {1, 1}, {1, 1}},
                                             {2, 1, 40, 64, 32, {1, 5}, {1, 2}, {0, 2}},
                                             {1, 3, 3, 4096, 200, {3, 3}, {1, 1}, {1, 1}}};

constexpr DType types[] = {DType::float16, DType::bfloat16};

// Large sums are rounded.
std::vector<double> rounded(const std::vector<double>& values, const Shape& shape, DType dtype) {
  return array(values, shape, cpu(), DType::float64).astype(dtype).to_vector<double>();
}

TEST_F(CudaFewRows, OfWholeNumbersIsExactWithEveryEpilogue) {
  for (const Convolved& c : convolutions) {
    const std::vector<double> products =
        expected_output(c, whole_numbers(c.data(), 1, types[0]), whole_numbers(c.weight(), 2, types[0]));
    for (const DType dtype : types)
      for (int epilogue = 0; epilogue < 8; ++epilogue) {
        ConvolutionFused p{params_of(c)};
        p.sum = epilogue & 1;
        p.no_bias = !(epilogue & 2);
        p.act_type = epilogue & 4 ? "relu" : "";
        SCOPED_TRACE(join(c, " in ", dtype, p.sum ? ", a sum" : "", p.no_bias ? "" : ", a bias", " ", p.act_type));
        std::vector<NDArray> inputs{whole_numbers(c.data(), 1, dtype), whole_numbers(c.weight(), 2, dtype)};
        const NDArray bias = whole_numbers({c.filters}, 3, dtype), residual = whole_numbers(c.output(), 4, dtype);
        if (!p.no_bias) inputs.push_back(bias);
        if (p.sum) inputs.push_back(residual);
        const auto b = bias.to_vector<double>(), r = residual.to_vector<double>();
        std::vector<double> expected = products;
        for (size_t i = 0; i < expected.size(); ++i) {
          if (!p.no_bias) expected[i] += b[i % b.size()];
          if (p.sum) expected[i] += r[i];
          if (!p.act_type.empty()) expected[i] = std::max(expected[i], 0.0);
        }
        const NDArray output = symbind::invoke(convolution_fused, on_gpu(inputs), p)[0];
        EXPECT_TRUE(all_close(output.to_vector<double>(), rounded(expected, c.output(), dtype), {0, 0, 0}));
      }
  }
}

TEST_F(CudaFewRows, HasTheSameBitsInEveryRun) {
  for (const Convolved& c : convolutions)
    for (const DType dtype : types) {
      SCOPED_TRACE(join(c, " in ", dtype));
      const auto inputs = on_gpu({random_array(c.data(), 5, -1, 1, dtype), random_array(c.weight(), 6, -1, 1, dtype)});
      const NDArray first = symbind::invoke(convolution, inputs, params_of(c))[0];
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(symbind::invoke(convolution, inputs, params_of(c))[0], first));
    }
}

// What only fills up tiles must not be multiplied with them.
TEST_F(CudaFewRows, KeepsInfinityAndNanWhereTheyAre) {
  for (const Convolved& c : convolutions) {
    SCOPED_TRACE(join(c));
    const DType dtype = DType::float16;
    const NDArray w = whole_numbers(c.weight(), 2, dtype);
    std::vector<double> values = whole_numbers(c.data(), 1, dtype).to_vector<double>();
    values.front() = std::numeric_limits<double>::quiet_NaN();
    values[values.size() / 2] = std::numeric_limits<double>::infinity();
    const NDArray x = array(values, c.data(), cpu(), dtype);
    const NDArray output = symbind::invoke(convolution, on_gpu({x, w}), params_of(c))[0];
    EXPECT_TRUE(all_close(output.to_vector<double>(), expected_output(c, x, w), {0, 0, 0}));
  }
}

// In inference norms are folded into weights once: a launch reads these while the one before it runs, except right
// after they were computed. From the third run on the plan is captured.
TEST_F(CudaFewRows, InANetworkFollowsItsWeights) {
  const auto layer = [](const Symbol& data, int64_t filters, int64_t kernel, const std::string& name) {
    return norm(convolution(data, untuned(filters, kernel), name), name + "_bn");
  };
  const Symbol first = relu(layer(var("data"), 64, 3, "conv1"), "relu1");
  const Symbol second = relu(layer(first, 64, 1, "conv2"), "relu2");
  const Symbol net = relu(layer(second, 64, 3, "conv3") + first, "relu3");
  for (const DType dtype : types) {
    SCOPED_TRACE(join(dtype));
    const auto bound = [&](Context context) {
      return simple_bind(net, context, {{"data", {1, 64, 14, 14}}},
                         {.grad_req = "null", .type_dict = {{"data", dtype}}});
    };
    const ExecutorPtr on_gpu = bound(gpu(0)), on_cpu = bound(cpu());
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      for (const ExecutorPtr& each : {on_gpu, on_cpu}) set_values(*each, 0, seed);
      on_cpu->forward(false);
      for (int run = 0; run < 4; ++run) {
        on_gpu->forward(false);
        expect_close(*on_gpu, *on_cpu, dtype == DType::bfloat16 ? 0.05 : 0.01);
      }
    }
    EXPECT_EQ(count(on_gpu->debug_str(), " host "), 0) << on_gpu->debug_str();
  }
}

}  // namespace
}  // namespace symbind::testing
