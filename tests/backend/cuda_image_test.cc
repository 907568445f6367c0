// Convolutions over the few channels of an image in 16 bits and TF32, with bias and ReLU or with the statistics of
// their channels, and their weight gradients by kernels of ours (backend/cuda/conv_image.h): exactly, with whole
// numbers whose products and sums need no rounding; with float32 numbers that TF32 rounds; with infinity and NaN in the
// data, which no other result may see; and in a network against the CPU. Skipped where there is no GPU.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/activation.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/ops/conv_statistics.h"

#include "tests/backend/cuda_convolved.h"
#include "tests/backend/cuda_trained.h"
#include "tests/support/gpu_test.h"
#include "tests/support/networks.h"

namespace symbind::testing {
namespace {

using CudaImage = Tf32Test;

// The first layers of networks in small; widths for copies of 16, 4 and 2 bytes; runs that begin at odd elements, with
// and without padding; filters that do not fill a tile, and several tiles; fewer rows than a tile has; several tiles
// for each block; kernels that reach beyond the image on both sides; images that reach beyond the last position.
const std::vector<Convolved> convolutions = {
    {2, 32, 32, 3, 64, {7, 7}, {2, 2}, {3, 3}},   {3, 37, 41, 3, 64, {7, 7}, {2, 2}, {3, 3}},
    {1, 30, 33, 3, 24, {7, 7}, {2, 2}, {3, 3}},   {2, 31, 29, 3, 96, {11, 11}, {4, 4}, {2, 2}},
    {2, 28, 28, 1, 32, {5, 5}, {1, 1}, {0, 0}},   {2, 19, 22, 3, 64, {3, 3}, {1, 1}, {1, 1}},
    {2, 20, 23, 3, 40, {3, 3}, {2, 2}, {1, 1}},   {2, 17, 18, 4, 64, {3, 3}, {1, 1}, {1, 1}},
    {1, 15, 40, 2, 16, {5, 4}, {2, 3}, {2, 1}},   {2, 16, 16, 4, 72, {7, 7}, {2, 2}, {3, 3}},
    {2, 3, 64, 3, 136, {1, 1}, {1, 1}, {0, 0}},   {1, 9, 300, 3, 8, {3, 5}, {2, 2}, {0, 4}},
    {1, 7, 9, 3, 8, {7, 7}, {2, 2}, {0, 3}},      {1, 12, 64, 3, 64, {6, 8}, {3, 2}, {0, 5}},
    {300, 20, 20, 3, 16, {7, 7}, {2, 4}, {3, 3}}, {2, 21, 51, 3, 64, {5, 5}, {3, 4}, {0, 0}}};

constexpr DType types[] = {DType::float16, DType::bfloat16, DType::float32};

TEST_F(CudaImage, OfWholeNumbersIsExact) {
  for (const Convolved& c : convolutions)
    for (const DType dtype : types) {
      SCOPED_TRACE(join(c, " in ", dtype));
      const NDArray x = whole_numbers(c.data(), 1, dtype), w = whole_numbers(c.weight(), 2, dtype);
      const std::vector<double> expected = expected_output(c, x, w);
      const NDArray plain = symbind::invoke(convolution, on_gpu({x, w}), params_of(c))[0];
      EXPECT_TRUE(all_close(plain.to_vector<double>(), expected, {0, 0, 0}));

      ConvolutionFused p{params_of(c)};
      p.no_bias = false;
      p.act_type = "relu";
      const NDArray bias = whole_numbers({c.filters}, 3, dtype);
      const auto b = bias.to_vector<double>();
      std::vector<double> with_bias = expected;
      for (size_t i = 0; i < with_bias.size(); ++i) with_bias[i] = std::max(with_bias[i] + b[i % b.size()], 0.0);
      const NDArray fused = symbind::invoke(convolution_fused, on_gpu({x, w, bias}), p)[0];
      EXPECT_TRUE(all_close(fused.to_vector<double>(), with_bias, {0, 0, 0})) << "with bias and ReLU";
    }
}

TEST_F(CudaImage, AddsUpItsStatisticsExactlyAndEveryTimeTheSame) {
  for (const Convolved& c : convolutions)
    for (const DType dtype : types) {
      SCOPED_TRACE(join(c, " in ", dtype));
      const NDArray x = whole_numbers(c.data(), 1, dtype), w = whole_numbers(c.weight(), 2, dtype);
      const std::vector<double> expected = expected_output(c, x, w);
      std::vector<double> sums(static_cast<size_t>(c.filters)), squares(sums.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        sums[i % sums.size()] += expected[i];
        squares[i % sums.size()] += expected[i] * expected[i];
      }
      const auto inputs = on_gpu({x, w});
      const auto results = symbind::invoke(convolution_statistics, inputs, {params_of(c)});
      EXPECT_TRUE(all_close(results[0].to_vector<double>(), expected, {0, 0, 0}));
      EXPECT_TRUE(all_close(results[1].to_vector<double>(), sums, {0, 0, 0}));
      EXPECT_TRUE(all_close(results[2].to_vector<double>(), squares, {0, 0, 0}));

      const auto others = on_gpu({random_array(c.data(), 5, -1, 1, dtype), random_array(c.weight(), 6, -1, 1, dtype)});
      const auto first = symbind::invoke(convolution_statistics, others, {params_of(c)});
      const auto second = symbind::invoke(convolution_statistics, others, {params_of(c)});
      for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(second[i], first[i])) << "output " << i;
    }
}

TEST_F(CudaImage, HasAnExactWeightGradientOfWholeNumbers) {
  for (const Convolved& c : convolutions)
    for (const DType dtype : types) {
      SCOPED_TRACE(join(c, " in ", dtype));
      const NDArray dy = whole_numbers(c.output(), 1, dtype), x = whole_numbers(c.data(), 2, dtype);
      const std::vector<double> exact = expected_gradient(c, dy, x);
      // Large sums are rounded.
      const NDArray expected = array(exact, c.weight(), cpu(), DType::float64).astype(dtype);
      const auto inputs = on_gpu({dy, x, zeros(c.weight(), cpu(), dtype)});
      const NDArray gradient = symbind::invoke(convolution_grad_weight, inputs, {params_of(c)})[0];
      EXPECT_TRUE(all_close(gradient.to_vector<double>(), expected.to_vector<double>(), {0, 0, 0}));
      EXPECT_TRUE(same_bits(symbind::invoke(convolution_grad_weight, inputs, {params_of(c)})[0], gradient));
    }
}

// In every position of the data and next to the borders of rows, over all shapes. Products of a weight of zero with
// infinity and NaN count, those with zeros that only fill up a tile do not.
TEST_F(CudaImage, KeepsInfinityAndNanWhereTheyAre) {
  for (const Convolved& c : convolutions)
    for (const DType dtype : {DType::float16, DType::float32}) {
      SCOPED_TRACE(join(c, " in ", dtype));
      const NDArray w = whole_numbers(c.weight(), 2, dtype), dy = whole_numbers(c.output(), 3, dtype);
      std::vector<double> values = whole_numbers(c.data(), 1, dtype).to_vector<double>();
      for (size_t i = 0; i < values.size(); ++i) {
        if (i * 2654435761u / 65536 % 97 == 0) values[i] = std::numeric_limits<double>::quiet_NaN();
        if (i * 2654435761u / 65536 % 97 == 1) values[i] = std::numeric_limits<double>::infinity();
      }
      const NDArray x = array(values, c.data(), cpu(), dtype);
      const NDArray output = symbind::invoke(convolution, on_gpu({x, w}), params_of(c))[0];
      EXPECT_TRUE(all_close(output.to_vector<double>(), expected_output(c, x, w), {0, 0, 0}));
      // One column of pixels, so that most elements of the gradient see none.
      values = whole_numbers(c.data(), 1, dtype).to_vector<double>();
      const auto row = static_cast<size_t>(c.columns * c.channels);
      for (size_t i = row - 1; i < values.size(); i += row) values[i] = std::numeric_limits<double>::quiet_NaN();
      const NDArray y = array(values, c.data(), cpu(), dtype);
      const auto gradient = symbind::invoke(convolution_grad_weight, on_gpu({dy, y, w}), {params_of(c)})[0];
      const NDArray expected = array(expected_gradient(c, dy, y), c.weight(), cpu(), DType::float64).astype(dtype);
      EXPECT_TRUE(all_close(gradient.to_vector<double>(), expected.to_vector<double>(), {0, 0, 0})) << "gradient";
    }
}

// The filters of float32 fill vectors of four.
TEST_F(CudaImage, RoundsTheOperandsToTf32) {
  std::vector<Convolved> all = convolutions;
  all.push_back({2, 33, 30, 3, 36, {7, 7}, {2, 2}, {3, 3}});
  for (const Convolved& c : all) {
    SCOPED_TRACE(join(c));
    // TF32 has 10 bits of mantissa; thirds have all 23.
    const auto thirds = [](const Shape& shape, uint64_t seed) { return random_array(shape, seed) * (1.0 / 3); };
    const NDArray x = thirds(c.data(), 1), w = thirds(c.weight(), 2), dy = thirds(c.output(), 3);
    constexpr double most = 0.004;
    const std::vector<double> expected = expected_output(c, x, w);
    const auto results = symbind::invoke(convolution_statistics, on_gpu({x, w}), {params_of(c)});
    EXPECT_TRUE(all_close(results[0].to_vector<double>(), expected, {most, 0, most}));
    std::vector<double> squares(static_cast<size_t>(c.filters));
    for (size_t i = 0; i < expected.size(); ++i) squares[i % squares.size()] += expected[i] * expected[i];
    EXPECT_TRUE(all_close(results[2].to_vector<double>(), squares, {most, 0, most}));
    const auto gradient = symbind::invoke(convolution_grad_weight, on_gpu({dy, x, w}), {params_of(c)})[0];
    EXPECT_TRUE(all_close(gradient.to_vector<double>(), expected_gradient(c, dy, x), {most, 0, most}));
  }
}

// Channels second, as most networks have them; the third run is captured.
TEST_F(CudaImage, ComputesTheStatisticsOfATrainedNetwork) {
  Convolution p = params_of({1, 1, 1, 3, 64, {7, 7}, {2, 2}, {3, 3}});
  p.layout.reset();
  const Symbol net = relu(norm(convolution(var("data"), p, "conv1"), "bn1"), "relu1");
  for (const DType dtype : types) {
    SCOPED_TRACE(join(dtype));
    const Shape data{4, 3, 45, 50};
    const Trained fused = trained(net, data, gpu(0), dtype, {}), again = trained(net, data, gpu(0), dtype, {});
    const Trained plain = trained(net, data, cpu(), dtype, {});
    EXPECT_EQ(count(fused.plan, "_Convolution_Statistics"), 1) << fused.plan;
    EXPECT_EQ(count(fused.plan, " host "), 0) << fused.plan;
    expect_close(*fused.executor, *plain.executor, dtype == DType::bfloat16 ? 0.1 : 0.02);
    for (const auto& [name, gradient] : fused.executor->grad_dict())
      EXPECT_TRUE(same_bits(again.executor->grad_dict().at(name), gradient)) << name;
  }
}

}  // namespace
}  // namespace symbind::testing
