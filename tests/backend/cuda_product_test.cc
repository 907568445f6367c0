// 1 × 1 convolutions with the statistics of their channels, and their data gradients with the sums of BatchNorm's, by a
// product of ours (backend/cuda/conv_product.h): exactly, with whole numbers whose products and sums need no rounding;
// against the CPU; and which convolutions are computed otherwise. Skipped where there is no GPU.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/ops/conv_statistics.h"
#include "symbind/ops/relu_signs.h"

#include "tests/backend/cuda_trained.h"
#include "tests/support/gpu_test.h"
#include "tests/support/networks.h"
#include "tests/support/relu_results.h"

namespace symbind::testing {
namespace {

const std::vector<DType> product_types = {DType::float16, DType::bfloat16, DType::float32};

using CudaProduct = Tf32Test;

struct Convolved {
  int64_t batch, size, channels, filters;
};

// Without tuning our kernel is used wherever it suits, whether it is the fastest or not; its first form has tiles of
// 128 columns, those of 64 are for no more filters than that. Gradients have tiles of 64, and fewer slices of their
// arrays in shared memory where the weight is large.
Convolution convolved(int64_t filters, const std::string& layout = "NHWC") {
  Convolution p = untuned(filters);
  p.layout = layout;
  return p;
}

// Rows, channels and filters that are not multiples of a tile's; one row; several tiles for each block; a depth of
// several slices; the layers of ResNet-50 in small.
const std::vector<Convolved> convolutions = {{1, 1, 64, 64},    {1, 3, 8, 8},     {3, 5, 24, 40},   {2, 8, 64, 256},
                                             {1, 13, 72, 136},  {5, 11, 40, 264}, {2, 17, 200, 72}, {1, 23, 264, 120},
                                             {2, 16, 128, 512}, {4, 9, 384, 128}, {3, 130, 64, 64}, {2, 150, 32, 200},
                                             {1, 6, 40, 600}};

// The fused operator alone: outputs are the result, the sums and the sums of squares.
ExecutorPtr bound(const Convolution& p, const Shape& data, DType dtype, Context context) {
  const Symbol made = convolution_statistics(var("data"), {p}, "conv");
  return simple_bind(made, context, {{"data", data}}, {.grad_req = "null", .type_dict = {{"data", dtype}}});
}
void run(Executor& executor) {
  for (int i = 0; i < 3; ++i) executor.forward(true);  // the third is a captured one
}

// Whole numbers from -most to most.
NDArray whole_numbers(const Shape& shape, int most, uint32_t seed, DType dtype) {
  std::mt19937 random(seed);
  std::vector<double> values(static_cast<size_t>(shape.size()));
  for (double& value : values) value = static_cast<int>(random() % static_cast<uint32_t>(2 * most + 1)) - most;
  NDArray array(shape, cpu(), dtype);
  array.copy_from(values);
  return array;
}

struct Expected {
  std::vector<double> output, sums, squares;
};
Expected expected_of(const std::vector<double>& data, const std::vector<double>& weight, int64_t channels,
                     int64_t filters) {
  const auto depth = static_cast<size_t>(channels), columns = static_cast<size_t>(filters);
  const size_t rows = data.size() / depth;
  Expected made{std::vector<double>(rows * columns), std::vector<double>(columns), std::vector<double>(columns)};
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (size_t k = 0; k < depth; ++k) sum += data[row * depth + k] * weight[column * depth + k];
      made.output[row * columns + column] = sum;
      made.sums[column] += sum;
      made.squares[column] += sum * sum;
    }
  return made;
}

TEST_F(CudaProduct, OfWholeNumbersIsExact) {
  for (const Convolved& c : convolutions)
    for (const DType dtype : product_types) {
      SCOPED_TRACE(
          join("batch ", c.batch, ", size ", c.size, ", ", c.channels, " to ", c.filters, " channels in ", dtype));
      const Shape data{c.batch, c.size, c.size, c.channels};
      const ExecutorPtr fused = bound(convolved(c.filters), data, dtype, gpu(0));
      const NDArray x = whole_numbers(data, 1, 1, dtype);
      const NDArray w = whole_numbers({c.filters, 1, 1, c.channels}, 1, 2, dtype);
      x.copyto(fused->arg_dict().at("data"));
      w.copyto(fused->arg_dict().at("conv_weight"));
      run(*fused);
      EXPECT_EQ(count(fused->debug_str(), " statistics "), 1) << fused->debug_str();
      const Expected expected = expected_of(x.to_vector<double>(), w.to_vector<double>(), c.channels, c.filters);
      const auto outputs = fused->outputs();
      EXPECT_TRUE(all_close(outputs[0].to_vector<double>(), expected.output, {0, 0, 0}));
      EXPECT_TRUE(all_close(outputs[1].to_vector<double>(), expected.sums, {0, 0, 0}));
      EXPECT_TRUE(all_close(outputs[2].to_vector<double>(), expected.squares, {0, 0, 0}));
    }
}

// TF32 has the 10 bits of float16. The sums are of the products before they are rounded.
TEST_F(CudaProduct, OfOtherNumbersAgreesWithTheCpu) {
  for (const Convolved& c : convolutions)
    for (const DType dtype : product_types)
      for (const char* layout : {"NHWC", "NCHW"}) {
        SCOPED_TRACE(join("batch ", c.batch, ", size ", c.size, ", ", c.channels, " to ", c.filters, " channels in ",
                          dtype, ", ", layout));
        const bool last = layout == std::string("NHWC");
        const Shape data =
            last ? Shape{c.batch, c.size, c.size, c.channels} : Shape{c.batch, c.channels, c.size, c.size};
        const ExecutorPtr on_gpu = bound(convolved(c.filters, layout), data, dtype, gpu(0));
        const ExecutorPtr on_cpu = bound(convolved(c.filters, layout), data, dtype, cpu());
        for (const ExecutorPtr& each : {on_gpu, on_cpu}) {
          set_values(*each, 0);
          run(*each);
        }
        EXPECT_EQ(count(on_gpu->debug_str(), " host "), 0) << on_gpu->debug_str();
        const double most = dtype == DType::bfloat16 ? 0.016 : 0.004;
        for (size_t i = 0; i < 3; ++i)
          EXPECT_TRUE(all_close(on_gpu->outputs()[i].as_copy_in(cpu()), on_cpu->outputs()[i], {most, 0, most}))
              << "output " << i;
      }
}

TEST_F(CudaProduct, HasTheSameBitsInEveryRun) {
  const Shape data{3, 130, 130, 64};
  for (const DType dtype : product_types) {
    std::vector<std::vector<NDArray>> results;
    for (int i = 0; i < 3; ++i) {
      const ExecutorPtr fused = bound(convolved(72), data, dtype, gpu(0));
      set_values(*fused, 0);
      run(*fused);
      auto& copies = results.emplace_back();
      for (const NDArray& output : fused->outputs()) copies.push_back(output.as_copy_in(cpu()));
    }
    for (const size_t output : {0, 1, 2})
      for (const size_t i : {1, 2})
        EXPECT_TRUE(same_bits(results[i][output], results[0][output])) << dtype << " output " << output;
  }
}

// In the last row of a tile that is not full, and in the first row.
TEST_F(CudaProduct, KeepsNanAndInfinity) {
  const Shape data{1, 1, 131, 64};
  for (const DType dtype : product_types)
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
      for (const int64_t row : {0, 130}) {
        SCOPED_TRACE(join(value, " in row ", row, " in ", dtype));
        const ExecutorPtr fused = bound(convolved(64), data, dtype, gpu(0));
        std::vector<double> x(static_cast<size_t>(data.size()), 1);
        x[static_cast<size_t>(row * 64 + 5)] = value;
        fused->arg_dict().at("data").copy_from(x);
        fused->arg_dict().at("conv_weight").fill(1);
        run(*fused);
        const std::vector<double> output = fused->outputs()[0].to_vector<double>();
        for (int64_t r = 0; r < 131; ++r) {
          const double got = output[static_cast<size_t>(r * 64 + 63)];
          const double wanted = r == row ? value : 64;
          EXPECT_TRUE(std::isnan(wanted) ? std::isnan(got) : got == wanted) << got << " in row " << r;
        }
        for (const size_t i : {1, 2})
          EXPECT_FALSE(std::isfinite(fused->outputs()[i].to_vector<double>()[63])) << "output " << i;
      }
}

// ---- The data gradient ----------------------------------------------------------------------------------------------

// The fused operator: outputs are the gradient of the ReLU and the two sums of the norm before it.
ExecutorPtr bound_gradient(const Convolved& c, DType dtype, bool signs, Context context) {
  const Symbol activation = var("activation"), results = signs ? relu_signs(activation, {-1}) : activation;
  const Symbol made =
      convolution_grad_add_relu({var("dy"), var("weight"), var("data"), var("more"), results, var("x"), var("mean")},
                                {convolved(c.filters), signs}, "conv");
  const Shape data{c.batch, c.size, c.size, c.channels};
  return simple_bind(made, context,
                     {{"dy", {c.batch, c.size, c.size, c.filters}}, {"data", data}, {"activation", data}},
                     {.grad_req = "null", .type_dict = {{"dy", dtype}, {"activation", dtype}}});
}

// Calls test(convolution, type, with signs).
template <class Test>
void for_gradients(Test test) {
  for (const Convolved& c : convolutions)
    for (const DType dtype : product_types)
      for (const bool signs : {false, true}) {
        SCOPED_TRACE(join("batch ", c.batch, ", size ", c.size, ", ", c.filters, " to ", c.channels, " channels in ",
                          dtype, signs ? " with signs" : ""));
        test(c, dtype, signs);
      }
}

Expected expected_gradient(const std::map<std::string, std::vector<double>>& in, int64_t channels, int64_t filters) {
  const auto columns = static_cast<size_t>(channels), depth = static_cast<size_t>(filters);
  const std::vector<double>&dy = in.at("dy"), &weight = in.at("weight"), &more = in.at("more"), &x = in.at("x");
  const size_t rows = dy.size() / depth;
  Expected made{std::vector<double>(rows * columns), std::vector<double>(columns), std::vector<double>(columns)};
  for (size_t row = 0; row < rows; ++row) {
    double* const sums = &made.output[row * columns];
    for (size_t k = 0; k < depth; ++k)
      for (size_t column = 0; column < columns; ++column)
        sums[column] += dy[row * depth + k] * weight[k * columns + column];
    for (size_t column = 0; column < columns; ++column) {
      const size_t at = row * columns + column;
      sums[column] = in.at("activation")[at] > 0 ? sums[column] + more[at] : 0;
      made.sums[column] += sums[column];
      made.squares[column] += sums[column] * (x[at] - in.at("mean")[column]);
    }
  }
  return made;
}

TEST_F(CudaProduct, GradientOfWholeNumbersIsExact) {
  for_gradients([](const Convolved& c, DType dtype, bool signs) {
    const ExecutorPtr fused = bound_gradient(c, dtype, signs, gpu(0));
    std::map<std::string, std::vector<double>> values;
    uint32_t seed = 1;
    for (auto [name, array] : fused->arg_dict()) {
      NDArray whole = whole_numbers(array.shape(), 1, seed++, array.dtype());
      values[name] = whole.to_vector<double>();
      if (name == "activation") {
        for (double& value : values[name]) value = std::abs(value);
        whole.copy_from(values[name]);
      }
      whole.copyto(array);
    }
    run(*fused);
    EXPECT_EQ(count(fused->debug_str(), " product "), 1) << fused->debug_str();
    const Expected expected = expected_gradient(values, c.channels, c.filters);
    const auto outputs = fused->outputs();
    EXPECT_TRUE(all_close(outputs[0].to_vector<double>(), expected.output, {0, 0, 0}));
    EXPECT_TRUE(all_close(outputs[1].to_vector<double>(), expected.sums, {0, 0, 0}));
    EXPECT_TRUE(all_close(outputs[2].to_vector<double>(), expected.squares, {0, 0, 0}));
  });
}

TEST_F(CudaProduct, GradientOfOtherNumbersAgreesWithTheCpu) {
  for_gradients([](const Convolved& c, DType dtype, bool signs) {
    const ExecutorPtr on_gpu = bound_gradient(c, dtype, signs, gpu(0)), on_cpu = bound_gradient(c, dtype, signs, cpu());
    for (const ExecutorPtr& each : {on_gpu, on_cpu}) {
      set_values(*each, 0);
      NDArray activation = each->arg_dict().at("activation");
      random_array(activation.shape(), 7, 0, 1, dtype).copyto(activation);
      run(*each);
    }
    const double most = dtype == DType::bfloat16 ? 0.016 : 0.004;
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(
          all_close(on_gpu->outputs()[i].as_copy_in(cpu()), on_cpu->outputs()[i], {most, 0, i == 0 ? most : 4 * most}))
          << "output " << i;
  });
}

// Also the signs of zeros; the bits of NaN may differ.
void expect_same_values(const NDArray& actual, const NDArray& expected) {
  const std::vector<double> a = actual.to_vector<double>(), e = expected.to_vector<double>();
  ASSERT_EQ(a.size(), e.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = std::isnan(e[i]) ? std::isnan(a[i]) : a[i] == e[i] && std::signbit(a[i]) == std::signbit(e[i]);
    ASSERT_TRUE(same) << "element " << i << ": " << a[i] << " instead of " << e[i];
  }
}

// Results of ReLU with NaN and zeros of both signs, and gradients with infinities.
TEST_F(CudaProduct, GradientIsTheSameWithSigns) {
  for (const Convolved& c : convolutions)
    for (const DType dtype : product_types) {
      SCOPED_TRACE(
          join("batch ", c.batch, ", size ", c.size, ", ", c.filters, " to ", c.channels, " channels in ", dtype));
      const ExecutorPtr of_results = bound_gradient(c, dtype, false, gpu(0));
      const ExecutorPtr of_signs = bound_gradient(c, dtype, true, gpu(0));
      for (const ExecutorPtr& each : {of_results, of_signs}) {
        set_values(*each, 0);
        for (const char* name : {"activation", "more"}) {
          NDArray array = each->arg_dict().at(name);
          relu_results(array.shape(), dtype).copyto(array);
        }
        run(*each);
      }
      for (size_t i = 0; i < 3; ++i) expect_same_values(of_signs->outputs()[i], of_results->outputs()[i]);
    }
}

// ---- In a network ---------------------------------------------------------------------------------------------------

// Calls visit(convolution, shape of the data, type) for shapes that fill tiles and others, with our product wherever it
// suits, and where it is timed to be faster.
template <class Visit>
void for_every_network(const Visit& visit) {
  for (const Shape& data : {Shape{4, 64, 14, 14}, Shape{3, 64, 9, 7}})
    for (const DType dtype : product_types)
      for (const char* tune : {"off", "limited_workspace"}) {
        SCOPED_TRACE(join(data, " in ", dtype, ", ", tune));
        Convolution p = convolved(64, "NCHW");
        p.cudnn_tune = tune;
        visit(p, data, dtype);
      }
}

Symbol unit(const Convolution& p) {
  const Symbol first = relu(norm(convolution(var("data"), p, "conv1"), "bn1"), "relu1");
  return norm(convolution(first, p, "conv2"), "bn2");
}

TEST_F(CudaProduct, GivesBatchNormItsSumsInEveryType) {
  for_every_network([](const Convolution& p, const Shape& data, DType dtype) {
    const Trained with = trained(unit(p), data, gpu(0), dtype, {});
    const Trained without = trained(unit(p), data, gpu(0), dtype, {.fuse = false});
    EXPECT_TRUE(p.cudnn_tune != "off" || count(with.plan, "_Convolution_Statistics") == 2) << with.plan;
    EXPECT_EQ(count(with.plan, "_Convolution_Statistics"), count(with.plan, "_BatchNorm_Given_Sums")) << with.plan;
    EXPECT_EQ(count(without.plan, "_Convolution_Statistics"), 0);
    EXPECT_EQ(count(with.plan, " host "), 0) << with.plan;
    expect_close(*with.executor, *without.executor, dtype == DType::bfloat16 ? 0.1 : 0.02);
  });
}

// Three units; the gradients of two arrive from the convolution of the next one and from its shortcut.
Symbol residual_units(const Convolution& p) {
  Symbol net = relu(norm(convolution(var("data"), p, "conv0"), "bn0"), "relu0");
  for (const char* name : {"1", "2", "3"})
    net = relu(norm(convolution(net, p, join("conv", name)), join("bn", name)) + net, join("relu", name));
  return net;
}

TEST_F(CudaProduct, ComputesTheGradientOfTheReluBeforeAConvolution) {
  for_every_network([](const Convolution& p, const Shape& data, DType dtype) {
    const Trained with = trained(residual_units(p), data, gpu(0), dtype, {});
    const Trained without = trained(residual_units(p), data, gpu(0), dtype, {.fuse = false});
    const int fused = count(with.plan, "_backward_Convolution_Add_Relu");
    EXPECT_TRUE(p.cudnn_tune != "off" || fused == 2) << with.plan;
    EXPECT_EQ(fused, count(with.plan, "_backward_BatchNorm_From_Sums")) << with.plan;
    EXPECT_EQ(count(with.plan, "_BatchNorm_Signs"), 6 - fused) << "of three units, forward and backward\n" << with.plan;
    EXPECT_EQ(count(with.plan, " host "), 0) << with.plan;
    expect_close(*with.executor, *without.executor, dtype == DType::bfloat16 ? 0.1 : 0.02);
    const Trained again = trained(residual_units(p), data, gpu(0), dtype, {});
    for (const auto& [name, gradient] : with.executor->grad_dict())
      EXPECT_TRUE(same_bits(again.executor->grad_dict().at(name), gradient)) << name;
  });
}

// In plain layouts the fused operators compute the same, by passes over the convolution's result.
TEST_F(CudaProduct, DoesNotDependOnTheLayout) {
  const Shape data{4, 64, 9, 9};
  for (const DType dtype : product_types) {
    const Symbol net = residual_units(convolved(64, "NCHW"));
    const Trained plain = trained(net, data, gpu(0), dtype, {.layout = false});
    const Trained without = trained(net, data, gpu(0), dtype, {.fuse = false});
    EXPECT_EQ(count(plain.plan, " host "), 0) << plain.plan;
    expect_close(*plain.executor, *without.executor, dtype == DType::bfloat16 ? 0.1 : 0.02);
  }
}

TEST_F(CudaProduct, LeavesOtherConvolutionsToTheLibrary) {
  const auto fused = [](const Convolution& p, int64_t channels, DType dtype) {
    const Shape data{2, channels, 8, 8};
    const Symbol symbol = norm(convolution(var("data"), p, "conv"), "bn");
    const Trained with = trained(symbol, data, gpu(0), dtype, {});
    const Trained without = trained(symbol, data, gpu(0), dtype, {.fuse = false});
    EXPECT_EQ(count(with.plan, " host "), 0) << with.plan;
    expect_close(*with.executor, *without.executor, 0.02);
    return count(with.plan, "_Convolution_Statistics");
  };
  const Convolution usual = convolved(64, "NCHW");
  EXPECT_EQ(fused(usual, 64, DType::float32), 1);
  EXPECT_EQ(fused(usual, 64, DType::float16), 1);
  Convolution other = usual;
  other.kernel = {3, 3};
  EXPECT_EQ(fused(other, 64, DType::float16), 0) << "of several taps";
  other = usual;
  other.stride = {2, 2};
  EXPECT_EQ(fused(other, 64, DType::float16), 0) << "with a stride";
  other = usual;
  other.pad = {1, 1};
  EXPECT_EQ(fused(other, 64, DType::float32), 0) << "with padding";
  other = usual;
  other.num_group = 2;
  EXPECT_EQ(fused(other, 64, DType::float16), 0) << "with groups";
  other = usual;
  other.no_bias = false;
  EXPECT_EQ(fused(other, 64, DType::float32), 0) << "with a bias";
  other = usual;
  other.num_filter = 36;
  EXPECT_EQ(fused(other, 64, DType::float32), 0) << "of filters that are not multiples of eight";
  EXPECT_EQ(fused(usual, 30, DType::float32), 0) << "of channels that do not fill vectors";
  EXPECT_EQ(fused(usual, 4096, DType::float32), 0) << "of a weight that does not fit into shared memory";
  EXPECT_EQ(fused(usual, 64, DType::float64), 0) << "in float64";
  ::setenv("SYMBIND_TF32", "0", 1);
  EXPECT_EQ(fused(usual, 64, DType::float32), 0) << "with products in float32";
}

}  // namespace
}  // namespace symbind::testing
