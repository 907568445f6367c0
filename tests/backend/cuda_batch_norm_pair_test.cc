// Two BatchNorms, their sum and ReLU in one operator on a GPU, and the gradients of both in one: against the CPU, and
// against plans in which they are separate. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "symbind/ops/conv.h"

#include "tests/backend/cuda_trained.h"
#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"
#include "tests/support/networks.h"
#include "tests/support/norm_pair.h"
#include "tests/support/relu_results.h"

namespace symbind::testing {
namespace {

using CudaBatchNormPair = GpuTest;

const std::vector<Shape> shapes = {{4, 8, 5, 8}, {2, 64, 9, 64}, {1, 256, 7, 256}, {3, 24, 24}, {128, 8, 3, 8}};
// Channels that 16 bytes do not divide: of these no signs are stored.
const std::vector<Shape> odd_shapes = {{4, 3, 5, 3}, {2, 12, 9, 12}, {50, 7}};

bool has_signs(const Shape& shape, DType dtype, int axis) { return shape[axis] % 8 == 0 && dtype != DType::float64; }

// The type of each result decides how close it must be.
void expect_close(const std::vector<NDArray>& actual, const std::vector<NDArray>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const NDArray wanted = expected[i].as_copy_in(cpu());
    const Tolerance of_type = tolerance_of(wanted.dtype());
    EXPECT_TRUE(all_close(actual[i].as_copy_in(cpu()), wanted,
                          {of_type.relative * 8, of_type.absolute * 8, of_type.of_largest * 8}))
        << "result " << i;
  }
}

template <class Check>
void for_every_case(Check check) {
  for (const auto& list : {shapes, odd_shapes})
    for (const Shape& shape : list)
      for (const DType dtype : float_types)
        for (const int axis : {1, shape.rank() - 1}) {
          SCOPED_TRACE(join(shape, " in ", dtype, ", axis ", axis));
          check(shape, dtype, axis);
        }
}

// ---- The operators --------------------------------------------------------------------------------------------------

// Signs are compared with those of the GPU's own output, of which a few elements round differently than on the CPU.
TEST_F(CudaBatchNormPair, AgreesWithTheCpu) {
  for_every_case([](const Shape& shape, DType dtype, int axis) {
    const PairArrays on_cpu(shape, dtype, axis), on_gpu(shape, dtype, axis, gpu(0));
    for (const bool is_train : {true, false})
      for (const int form : {0, 1, 2, 3}) {
        if (form > 0 && !is_train) continue;
        SCOPED_TRACE(join("form ", form, is_train ? " in training" : ""));
        BatchNormPair params{{.fix_gamma = form == 1, .axis = axis}, form % 2 == 1, form / 2 == 1};
        const auto expected = forward_of_each(on_cpu, params, is_train);
        expect_close(forward_of_pair(on_gpu, params, is_train), expected);
        if (!has_signs(shape, dtype, axis)) continue;
        params.signs = true;
        auto with_signs = forward_of_pair(on_gpu, params, is_train);
        const NDArray signs = with_signs[5];
        EXPECT_TRUE(same_bits(signs.as_copy_in(cpu()), relu_signs(with_signs[0].as_copy_in(cpu()), {axis})));
        with_signs.erase(with_signs.begin() + 5);
        expect_close(with_signs, expected);
      }
  });
}

TEST_F(CudaBatchNormPair, StoresTheSignsOfNanAndZeros) {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    for (const int axis : {1, 3}) {
      PairArrays arrays({2, 64, 9, 64}, dtype, axis, gpu(0));
      relu_results({2, 64, 9, 64}, dtype, 3).copyto(arrays.norms[1].data);
      const BatchNormPair params{{.fix_gamma = false, .use_global_stats = true, .axis = axis}, false, false, true};
      const auto made = forward_of_pair(arrays, params);
      EXPECT_TRUE(same_bits(made[5].as_copy_in(cpu()), relu_signs(made[0].as_copy_in(cpu()), {axis}))) << dtype;
    }
}

TEST_F(CudaBatchNormPair, ItsGradientsAgreeWithTheCpuAndWithSeparateOnes) {
  for_every_case([](const Shape& shape, DType dtype, int axis) {
    const PairArrays on_cpu(shape, dtype, axis), on_gpu(shape, dtype, axis, gpu(0));
    const NDArray output = random_array(shape, 60, -1, 1, dtype);
    for (const bool signs : {false, true})
      for (const bool two_grads : {false, true}) {
        if (signs && !has_signs(shape, dtype, axis)) continue;
        SCOPED_TRACE(join(signs ? "with signs " : "", two_grads ? "of two gradients" : ""));
        const BatchNormPairGrad params{{.fix_gamma = two_grads, .axis = axis}, signs, two_grads};
        const NDArray positive = activation(output, {.act_type = act_type::relu});
        const NDArray results = signs ? relu_signs(positive, {axis}) : positive;
        const auto actual = gradients_of_pair(on_gpu, params, results.as_copy_in(gpu(0)));
        expect_close(actual, gradients_of_each(on_cpu, params, results));
        expect_close(actual, gradients_of_each(on_gpu, params, results.as_copy_in(gpu(0))));
      }
  });
}

TEST_F(CudaBatchNormPair, ItsGradientsFromSumsAgreeWithTheCpu) {
  for_every_case([](const Shape& shape, DType dtype, int axis) {
    const PairArrays on_cpu(shape, dtype, axis), on_gpu(shape, dtype, axis, gpu(0));
    for (const bool global : {false, true})
      for (const bool other_sum : {false, true}) {
        const BatchNorm norm{.fix_gamma = false, .use_global_stats = global, .axis = axis};
        expect_close(gradients_from_sums(on_gpu, {norm, other_sum}), gradients_of_two(on_cpu, norm));
      }
  });
}

// Data that does not start at a multiple of 16 bytes: single elements are read and written.
TEST_F(CudaBatchNormPair, DoesNotDependOnTheAlignment) {
  const Shape shape{3, 5, 16};
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const PairArrays aligned(shape, dtype, -1, gpu(0));
    PairArrays other = aligned;
    NDArray whole({shape.size() + 1}, gpu(0), dtype);
    NDArray part = whole.slice(1, 1 + shape.size()).reshape(shape);
    aligned.norms[1].data.copyto(part);
    other.norms[1].data = part;
    const BatchNormPair params{{.fix_gamma = false, .axis = -1}, false, false, true};
    expect_close(forward_of_pair(other, params), forward_of_pair(aligned, params));
    const NDArray output = forward_of_pair(aligned, params)[0];
    const BatchNormPairGrad grad{params, false, false};
    expect_close(gradients_of_pair(other, grad, output), gradients_of_pair(aligned, grad, output));
  }
}

// ---- In a network ---------------------------------------------------------------------------------------------------

Symbol convolved(const Symbol& data, const std::string& name, int64_t filters, int64_t kernel, int64_t stride) {
  return norm(convolution(data, untuned(filters, kernel, stride), name), name + "_bn");
}

// Units with a convolution as their shortcut, without and with a stride, each before a unit without one.
Symbol units(int64_t filters, int64_t kernel) {
  Symbol net = relu(convolved(var("data"), "first", filters, 1, 1), "relu0");
  for (const int64_t stride : {1, 2}) {
    const std::string name = join("unit", stride);
    const Symbol inside = relu(convolved(net, name + "_a", filters, kernel, stride), name + "_relu");
    net = relu(convolved(inside, name + "_b", filters, 1, 1) + convolved(net, name + "_s", filters, 1, stride),
               name + "_end");
    net = relu(convolved(net, name + "_c", filters, kernel, 1) + net, name + "_next");
  }
  return net;
}

double allowed(DType dtype) { return dtype == DType::float32 ? 1e-3 : dtype == DType::float16 ? 0.02 : 0.1; }

TEST_F(CudaBatchNormPair, IsUsedInATrainedNetwork) {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    for (const int64_t kernel : {1, 3})
      for (const bool layout : {true, false}) {
        SCOPED_TRACE(join(dtype, ", kernel ", kernel, layout ? "" : ", in plain layouts"));
        const Shape data{8, 64, 12, 12};
        const Trained with = trained(units(64, kernel), data, gpu(0), dtype, {.layout = layout});
        const Trained without = trained(units(64, kernel), data, gpu(0), dtype, {.fuse = false, .layout = layout});
        EXPECT_EQ(count(with.plan, "_BatchNorm_Pair"), 4) << "forward and backward\n" << with.plan;
        EXPECT_EQ(count(with.plan, "_backward_BatchNorm_Pair"), 2) << with.plan;
        EXPECT_EQ(count(without.plan, "_BatchNorm_Pair"), 0);
        EXPECT_EQ(count(with.plan, " host "), 0) << with.plan;
        testing::expect_close(*with.executor, *without.executor, allowed(dtype));
        const Trained again = trained(units(64, kernel), data, gpu(0), dtype, {.layout = layout});
        for (const auto& [name, gradient] : with.executor->grad_dict())
          EXPECT_TRUE(same_bits(again.executor->grad_dict().at(name), gradient)) << name;
        for (const auto& [name, state] : with.executor->aux_dict())
          EXPECT_TRUE(same_bits(again.executor->aux_dict().at(name), state)) << name;
      }
}

// Within a memory budget results are recomputed for backward, and all operators stay fused. Those of single norms come
// first; how many of the others follow depends on the budget.
TEST_F(CudaBatchNormPair, IsRecomputedWithinABudget) {
  Symbol net = relu(convolved(var("data"), "first", 64, 1, 1), "relu0");
  for (int i = 0; i < 8; ++i) {
    const std::string name = join("unit", i);
    const Symbol inside = relu(convolved(net, name + "_a", 64, 3, 1), name + "_relu");
    net = relu(convolved(inside, name + "_b", 64, 1, 1) + (i % 2 ? net : convolved(net, name + "_s", 64, 1, 1)),
               name + "_end");
  }
  for (const DType dtype : {DType::float32, DType::float16}) {
    SCOPED_TRACE(dtype);
    const Shape data{8, 64, 24, 24};
    constexpr size_t unlimited = size_t{1} << 40;  // a budget, so that tensors share memory in a plan of any size
    const Trained usual = trained(net, data, gpu(0), dtype, {.memory_budget = unlimited});
    bool has_pair = false;
    for (const size_t percent : {85, 80, 75, 70}) {
      if (has_pair) break;
      SCOPED_TRACE(percent);
      const size_t budget = usual.executor->memory().arena * percent / 100;
      const Trained recomputing = trained(net, data, gpu(0), dtype, {.memory_budget = budget});
      EXPECT_LE(recomputing.executor->memory().arena, budget);
      EXPECT_EQ(count(recomputing.plan, " host "), 0) << recomputing.plan;
      for (const char* op : {"_BatchNorm_Pair", "_backward_BatchNorm_Pair", "_BatchNorm_Signs"})
        EXPECT_EQ(count(recomputing.plan, op), count(usual.plan, op)) << op << '\n' << recomputing.plan;
      // The table shortens long names: _backward_BatchNorm_Relu_Output, and _BatchNorm_Add_Relu_recompute below.
      const int with_output = count(recomputing.plan, "lu_Output");
      EXPECT_GT(with_output, 0) << recomputing.plan;
      EXPECT_EQ(count(recomputing.plan, "_backward_BatchNorm_Relu ") + with_output,
                count(usual.plan, "_backward_BatchNorm_Relu "))
          << recomputing.plan;
      testing::expect_close(*recomputing.executor, *usual.executor, allowed(dtype));
      has_pair = count(recomputing.plan, "lu_recompute") > 0;
    }
    EXPECT_TRUE(has_pair);
  }
}

TEST_F(CudaBatchNormPair, OfATrainedNetworkAgreesWithTheCpu) {
  for (const int64_t filters : {64, 12, 7}) {
    SCOPED_TRACE(filters);
    const Shape data{4, 16, 9, 9};
    const Trained on_gpu = trained(units(filters, 3), data, gpu(0), DType::float32, {});
    const Trained on_cpu = trained(units(filters, 3), data, cpu(), DType::float32, {});
    EXPECT_EQ(count(on_gpu.plan, "_BatchNorm_Pair"), 4) << on_gpu.plan;
    EXPECT_EQ(count(on_cpu.plan, "_BatchNorm_Pair"), 0) << on_cpu.plan;
    EXPECT_EQ(count(on_gpu.plan, " host "), 0) << on_gpu.plan;
    testing::expect_close(*on_gpu.executor, *on_cpu.executor, 2e-3);
  }
}

}  // namespace
}  // namespace symbind::testing
