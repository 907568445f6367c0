// Max pooling on a GPU in every bit as plain loops on the CPU compute it: windows with kernels of their own and others,
// in both layouts, with ties, NaN and infinities. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/pool_indices.h"

#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"
#include "tests/support/networks.h"
#include "tests/support/pooled_arrays.h"

namespace symbind::testing {
namespace {

using CudaMaxPool = GpuTest;

// Compares with the CPU; with channels last, the data is read in that order.
void expect_as_on_the_cpu(const NDArray& data, const Pooling& params) {
  const auto expected = invoke(pooling_indices, {data}, {params});
  const NDArray grad = random_array(expected[0].shape(), 3, -1, 1, data.dtype());
  const NDArray expected_grad = pooling_indices_grad(grad, expected[1], data, {params});
  const NDArray x = data.as_copy_in(gpu(0)), dy = grad.as_copy_in(gpu(0));
  const auto actual = invoke(pooling_indices, {x}, {params});
  const NDArray output = pooling(x, params);
  EXPECT_TRUE(same_bits(actual[0].as_copy_in(cpu()), expected[0])) << "maxima with indices";
  EXPECT_TRUE(same_bits(actual[1].as_copy_in(cpu()), expected[1])) << "indices";
  EXPECT_TRUE(same_bits(output.as_copy_in(cpu()), expected[0])) << "maxima";
  EXPECT_TRUE(same_bits(pooling_indices_grad(dy, actual[1], x, {params}).as_copy_in(cpu()), expected_grad))
      << "gradient by indices";
  EXPECT_TRUE(same_bits(pooling_grad(dy, x, output, {params}).as_copy_in(cpu()), expected_grad)) << "gradient";
}

struct Windows {
  int64_t kernel, stride, pad;
  const char* convention = "valid";
};

std::vector<Windows> all_windows() {
  std::vector<Windows> windows;
  for (const int64_t kernel : {1, 2, 3, 4, 5})
    for (const int64_t stride : {1, 2, 3})
      for (int64_t pad = 0; pad < kernel; ++pad)
        for (const char* convention : {"valid", "full"}) windows.push_back({kernel, stride, pad, convention});
  return windows;
}

TEST_F(CudaMaxPool, OfSquareWindowsIsThatOfTheCpu) {
  for (const Windows& w : all_windows())
    for (const char* layout : {"NHWC", "NCHW"})
      for (const Shape& shape : {Shape{2, 7, 9, 16}, {1, 8, 6, 8}, {2, 5, 8, 6}}) {
        const Pooling params{.kernel = {w.kernel, w.kernel},
                             .pooling_convention = w.convention,
                             .stride = {w.stride, w.stride},
                             .pad = {w.pad, w.pad},
                             .layout = layout};
        for (const DType dtype : float_types)
          for (const size_t kinds : {0, 1, 2, 7}) {
            SCOPED_TRACE(join(dtype, " data ", shape, " ", layout, " kernel ", w.kernel, " stride ", w.stride, " pad ",
                              w.pad, " ", w.convention, ", ", kinds, " kinds"));
            expect_as_on_the_cpu(kinds > 0 ? pooled_array(shape, kinds, dtype) : random_array(shape, 1, -1, 1, dtype),
                                 params);
            if (HasFailure()) return;
          }
      }
}

TEST_F(CudaMaxPool, OfOtherWindowsIsThatOfTheCpu) {
  struct Case {
    Shape data;
    Pooling params;
  };
  const std::vector<Case> cases = {
      {{2, 9, 12, 16}, {.kernel = {3, 2}, .stride = {2, 2}, .pad = {1, 0}, .layout = "NHWC"}},
      {{2, 9, 12, 16}, {.kernel = {3, 3}, .stride = {2, 2}, .pad = {0, 1}, .layout = "NHWC"}},
      {{2, 9, 12, 16}, {.kernel = {3, 3}, .stride = {2, 2}, .pad = {0, 2}, .layout = "NHWC"}},
      {{2, 9, 12, 16}, {.kernel = {3, 3}, .stride = {1, 2}, .pad = {1, 1}, .layout = "NHWC"}},
      {{2, 1, 1, 16}, {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .layout = "NHWC"}},
      {{1, 2, 1, 8}, {.kernel = {2, 2}, .stride = {2, 2}, .pad = {1, 1}, .layout = "NHWC"}},
      {{2, 3, 6, 7, 16}, {.kernel = {1, 3, 3}, .stride = {1, 2, 2}, .pad = {0, 1, 1}, .layout = "NDHWC"}},
      {{2, 3, 6, 7, 16}, {.kernel = {2, 3, 3}, .stride = {1, 2, 2}, .pad = {1, 1, 1}, .layout = "NDHWC"}},
      {{2, 15, 16}, {.kernel = {3}, .stride = {2}, .pad = {1}, .layout = "NWC"}},
      {{2, 3, 3, 16}, {.global_pool = true, .layout = "NHWC"}},
      {{2, 112, 112, 64}, {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .layout = "NHWC"}},
      {{0, 6, 6, 16}, {.kernel = {3, 3}, .stride = {2, 2}, .layout = "NHWC"}},
  };
  for (const auto& [shape, params] : cases)
    for (const DType dtype : float_types)
      for (const size_t kinds : {0, 2, 7}) {
        SCOPED_TRACE(join(dtype, " data ", shape, " kernel ", Shape(params.kernel), ", ", kinds, " kinds"));
        expect_as_on_the_cpu(kinds > 0 ? pooled_array(shape, kinds, dtype) : random_array(shape, 1, -1, 1, dtype),
                             params);
      }
}

// Data that does not start at a multiple of 16 bytes.
TEST_F(CudaMaxPool, DoesNotDependOnTheAlignment) {
  const Shape shape{2, 6, 7, 16};
  const Pooling params{.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .layout = "NHWC"};
  for (const DType dtype : float_types) {
    const NDArray whole = random_array({shape.size() + 1}, 1, -1, 1, dtype);
    const auto run = [&](const NDArray& from) {
      const NDArray x = from.slice(1, 1 + shape.size()).reshape(shape);
      auto results = invoke(pooling_indices, {x}, {params});
      results.push_back(pooling_indices_grad(results[0], results[1], x, {params}));
      return results;
    };
    const auto actual = run(whole.as_copy_in(gpu(0))), expected = run(whole);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(same_bits(actual[i].as_copy_in(cpu()), expected[i])) << dtype << " array " << i;
  }
}

// The start of a residual network, in which the arrays between the layers are channels-last; the third run is captured.
TEST_F(CudaMaxPool, ReadsIndicesInATrainedNetwork) {
  Convolution params{.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 16, .no_bias = true};
  params.cudnn_tune = "off";  // the same engine in every network
  const Symbol made = convolution(var("data"), params, "conv");
  const Symbol first = relu(batch_norm(made, {.fix_gamma = false}, "bn"), "relu");
  const Symbol net = pooling(first, {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}}, "pool");
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const auto trained = [&](Context context, bool fuse) {
      auto executor = simple_bind(net, context, {{"data", {4, 16, 15, 14}}},
                                  {.type_dict = {{"data", dtype}}, .options = {.fuse = fuse}});
      set_values(*executor, 0);
      for (int run = 0; run < 3; ++run) {
        executor->forward(true);
        executor->backward(out_grads_for(*executor));
      }
      return executor;
    };
    const auto fused = trained(gpu(0), true), plain = trained(gpu(0), false);
    EXPECT_NE(fused->debug_str().find("_backward_Pooling_Indices"), std::string::npos) << fused->debug_str();
    EXPECT_EQ(plain->debug_str().find("_Pooling_Indices"), std::string::npos);
    EXPECT_EQ(fused->debug_str().find(" host "), std::string::npos) << fused->debug_str();
    EXPECT_TRUE(same_bits(fused->outputs()[0].as_copy_in(cpu()), plain->outputs()[0].as_copy_in(cpu()))) << dtype;
    for (const auto& [name, gradient] : plain->grad_dict()) {
      const Tolerance tolerance = tolerance_of(dtype);
      EXPECT_TRUE(all_close(fused->grad_dict().at(name).as_copy_in(cpu()), gradient.as_copy_in(cpu()),
                            {tolerance.relative * 8, tolerance.absolute * 8, tolerance.of_largest * 8}))
          << dtype << " " << name;
    }
  }
}

}  // namespace
}  // namespace symbind::testing
