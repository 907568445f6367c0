#include "symbind/ops/sparse_reg.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(IdentityAttachKLSparseReg, MovesItsAverageOnceAStepAndPullsTowardsTheTarget) {
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    const auto net = identity_attach_kl_sparse_reg(Symbol::variable("x"),
                                                   {.sparseness_target = 0.25, .penalty = 0.5, .momentum = 0.5}, "reg");
    const NDArray x = array(std::vector<double>{0.5, 0.25, 1, 0.25}, {2, 2}, cpu(), dtype);
    const DType wide = dtype == DType::bfloat16 ? DType::float32 : dtype;
    NDArray average = array(std::vector<double>{0.25, 0.25}, {2}, cpu(), wide), grad = zeros({2, 2}, cpu(), dtype);
    auto executor =
        bind(net, cpu(), {{"x", x}},
             {.args_grad = {{"x", grad}}, .grad_req = "write", .aux_states = {{"reg_moving_avg", average}}});
    executor->forward(false);
    EXPECT_EQ(average.to_vector<double>(), (std::vector<double>{0.25, 0.25})) << "a prediction leaves it";
    EXPECT_TRUE(same_bits(executor->forward(true)[0], x));
    executor->backward({ones({2, 2}, cpu(), dtype)});
    EXPECT_EQ(average.to_vector<double>(), (std::vector<double>{0.5, 0.25}));
    // 0.5 · (0.75 / 0.5 - 0.25 / 0.5), and nothing at the target.
    EXPECT_EQ(grad.to_vector<double>(), (std::vector<double>{1.5, 1, 1.5, 1}));
  }
}

TEST(IdentityAttachKLSparseReg, NeedsChannels) {
  const auto net = identity_attach_kl_sparse_reg(Symbol::variable("x"), {}, "reg");
  EXPECT_TRUE(fails_with([&] { infer_shape(net, {{"x", {5}}}); }, "[IdentityAttachKLSparseReg reg]", "(5,)"));
}

}  // namespace
}  // namespace symbind::testing
