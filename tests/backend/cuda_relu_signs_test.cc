// Signs of ReLU's results on a GPU, alone and with BatchNorm: in every bit what the operators without signs compute, in
// both layouts, with NaN and zeros of both signs. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "symbind/backend/relu_signs.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/relu_signs.h"

#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"
#include "tests/support/networks.h"
#include "tests/support/relative_distance.h"
#include "tests/support/relu_results.h"

namespace symbind::testing {
namespace {

using CudaReluSigns = GpuTest;

void expect_same(const NDArray& actual, const NDArray& expected, const std::string& what) {
  EXPECT_TRUE(same_bits(actual.as_copy_in(cpu()), expected.as_copy_in(cpu()))) << what;
}

// Every bit pattern that a result of ReLU may have, at every position.
template <class Half>
void expect_signs_of_every_result() {
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    Half result;
    result.bits = static_cast<uint16_t>(bits);
    const float value = result;
    if (value < 0) continue;
    for (int position = 0; position < 8; ++position) {
      uint16_t halves[8] = {0, 0x8000, 1, 0x7fff, 0, 0x8000, 1, 0x7fff};
      halves[position] = result.bits;
      uint32_t words[4] = {}, expected = 0;
      for (int k = 0; k < 8; ++k) {
        Half half;
        half.bits = halves[k];
        words[k / 2] |= uint32_t{halves[k]} << k % 2 * 16;
        expected |= sign_of(static_cast<float>(half)) << k * bits_per_sign;
      }
      ASSERT_EQ(signs_of_eight<Half>(words), expected) << "bits " << bits << " at " << position;
    }
  }
}
TEST(ReluSignsOfEight, AreThoseOfEach) {
  expect_signs_of_every_result<float16>();
  expect_signs_of_every_result<bfloat16>();
}

TEST_F(CudaReluSigns, AreThoseOfTheCpu) {
  for (const Shape& shape : {Shape{3, 8, 5, 4}, {2, 64, 7, 8}, {1, 4, 4}, {50, 12}, {0, 8, 4}})
    for (const DType dtype : float_types)
      for (const int64_t axis : {1, -1}) {
        SCOPED_TRACE(join(shape, " in ", dtype, ", axis ", axis));
        const NDArray output = relu_results(shape, dtype), grad = relu_results(shape, dtype, 2);
        const NDArray signs = relu_signs(output, {axis});
        expect_same(relu_signs(output.as_copy_in(gpu(0)), {axis}), signs, "signs");
        const NDArray actual =
            relu_signs_grad(grad.as_copy_in(gpu(0)), signs.as_copy_in(gpu(0)), ReluSignsGrad{{axis}});
        EXPECT_TRUE(
            all_close(actual.as_copy_in(cpu()), relu_signs_grad(grad, signs, ReluSignsGrad{{axis}}), {0, 0, 0}));
      }
}

const std::vector<Shape> shapes = {{4, 8, 5, 8}, {2, 64, 9, 64}, {1, 256, 7, 256},
                                   {3, 24, 24},  {50, 16},       {128, 8, 3, 8}};
const std::vector<DType> types = {DType::float32, DType::float16, DType::bfloat16};

// Axis 1 is in the middle of the array, and a separate kernel computes the signs; the last one is that of the kernels
// for channels-last arrays.
TEST_F(CudaReluSigns, OfABatchNormAreThoseOfItsOutput) {
  for (const Shape& shape : shapes)
    for (const DType dtype : types)
      for (const int axis : {1, shape.rank() - 1})
        for (const bool given_sums : {false, true})
          for (const bool is_train : {true, false}) {
            if (given_sums && !is_train) continue;
            SCOPED_TRACE(join(shape, " in ", dtype, ", axis ", axis, given_sums ? ", given sums" : ""));
            NormArrays arrays(shape, dtype, axis, gpu(0));
            relu_results(shape, dtype, 3).copyto(arrays.sum);  // with NaN and infinities
            const BatchNormSigns params{{.fix_gamma = false, .output_mean_var = true, .axis = axis}, given_sums};
            const auto made =
                invoke(batch_norm_signs, arrays.forward_inputs(given_sums), params, {.is_train = is_train});
            const auto expected = given_sums ? invoke(batch_norm_given_sums, arrays.forward_inputs(true),
                                                      {params, true, true}, {.is_train = is_train})
                                             : invoke(batch_norm_add_relu, arrays.forward_inputs(false), {params},
                                                      {.is_train = is_train});
            for (size_t i = 0; i < 3; ++i) expect_same(made[i], expected[i], join("output ", i));
            expect_same(made[3], relu_signs(made[0].as_copy_in(cpu()), {axis}), "signs");
          }
}

TEST_F(CudaReluSigns, MakeTheGradientOfABatchNormTheSameInEveryBit) {
  for (const Shape& shape : shapes)
    for (const DType dtype : types)
      for (const int axis : {1, shape.rank() - 1})
        for (const bool two_grads : {false, true})
          for (const bool special : {false, true}) {
            SCOPED_TRACE(join(shape, " in ", dtype, ", axis ", axis, two_grads ? ", two gradients" : ""));
            NormArrays arrays(shape, dtype, axis, gpu(0));
            if (special) relu_results(shape, dtype, 5).copyto(arrays.out_grad);
            const std::vector<NDArray> statistics{arrays.sum, arrays.moving_mean, arrays.moving_var};
            const NDArray output = special ? relu_results(shape, dtype, 4).as_copy_in(gpu(0))
                                           : random_array(shape, 11, 0, 1, dtype, gpu(0));
            const BatchNormAddReluGrad params{{.fix_gamma = false, .axis = axis}, two_grads};
            const NDArray signs = relu_signs(output, {axis});
            const auto actual = invoke(batch_norm_signs_grad, arrays.backward_inputs(statistics, signs, two_grads),
                                       {params}, {.is_train = true});
            const auto expected =
                invoke(batch_norm_add_relu_grad, arrays.backward_inputs(statistics, output, two_grads), params,
                       {.is_train = true});
            for (size_t i = 0; i < 4; ++i) expect_same(actual[i], expected[i], join("gradient ", i));
          }
}

// Data that does not start at a multiple of 16 bytes: forward and backward read and write single elements.
TEST_F(CudaReluSigns, DoNotDependOnTheAlignment) {
  const Shape shape{3, 5, 16};
  for (const DType dtype : types) {
    NormArrays aligned(shape, dtype, -1, gpu(0)), other = aligned;
    const auto moved = [&](const NDArray& array) {
      NDArray whole({shape.size() + 1}, gpu(0), dtype);
      NDArray part = whole.slice(1, 1 + shape.size()).reshape(shape);
      array.copyto(part);
      return part;
    };
    other.data = moved(aligned.data);
    other.out_grad = moved(aligned.out_grad);
    const BatchNormSigns params{{.fix_gamma = false, .output_mean_var = true, .axis = -1}, false};
    const auto made = invoke(batch_norm_signs, other.forward_inputs(false), params, {.is_train = true});
    expect_same(made[3], relu_signs(made[0].as_copy_in(cpu()), {-1}), "signs");
    const BatchNormAddReluGrad grad{params, false};
    const auto actual =
        invoke(batch_norm_signs_grad, other.backward_inputs(made, made[3], false), {grad}, {.is_train = true});
    const auto expected =
        invoke(batch_norm_add_relu_grad, other.backward_inputs(made, made[0], false), grad, {.is_train = true});
    for (size_t i = 0; i < 4; ++i) expect_same(actual[i], expected[i], join("gradient ", i));
  }
}

// Two residual units, in which the arrays between the layers are channels-last; the third run is captured.
TEST_F(CudaReluSigns, AreReadInATrainedNetwork) {
  const auto norm = [](const Symbol& data, const std::string& name) {
    Convolution params{.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 16, .no_bias = true};
    params.cudnn_tune = "off";  // the same engine in every network
    return batch_norm(convolution(data, params, "conv" + name), {.fix_gamma = false}, "bn" + name);
  };
  const Symbol first = relu(norm(var("data"), "1"), "relu1");
  const Symbol second = relu(norm(first, "2") + first, "relu2");
  const Symbol net = relu(norm(second, "3") + second, "relu3");
  for (const DType dtype : types)
    for (const bool layout : {true, false}) {
      SCOPED_TRACE(join(dtype, layout ? "" : " in plain layouts"));
      const auto trained = [&](bool fuse) {
        auto executor = simple_bind(net, gpu(0), {{"data", {4, 16, 9, 7}}},
                                    {.type_dict = {{"data", dtype}}, .options = {.fuse = fuse, .layout = layout}});
        set_values(*executor, 0);
        for (int run = 0; run < 3; ++run) {
          executor->forward(true);
          executor->backward(out_grads_for(*executor));
        }
        return executor;
      };
      const auto fused = trained(true), plain = trained(false);
      EXPECT_NE(fused->debug_str().find("_backward_BatchNorm_Signs"), std::string::npos) << fused->debug_str();
      EXPECT_EQ(fused->debug_str().find(" host "), std::string::npos) << fused->debug_str();
      // Between the fused operators nothing is rounded, so that some elements of 16 bits are on the other side of zero:
      // the gradients of a few parameters differ by them. Wrong signs would change all of them.
      const double allowed = dtype == DType::float32 ? 1e-4 : 0.15;
      EXPECT_LE(relative_distance(fused->outputs()[0], plain->outputs()[0]), allowed);
      for (const auto& [name, gradient] : plain->grad_dict())
        EXPECT_LE(relative_distance(fused->grad_dict().at(name), gradient), allowed) << name;
    }
}

}  // namespace
}  // namespace symbind::testing
