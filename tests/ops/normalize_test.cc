#include "symbind/ops/normalize.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/slice.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

// The same numbers in double are the measure: of float32, only the result may be rounded.
TEST(LayerNorm, KeepsTheDigitsOfGammasGradientBesideALargeMean) {
  const Shape shape{7800, 12};  // a twelfth is no float: neither are the means
  const NDArray data = random_array(shape, 1, 999, 1001), out_grad = random_array(shape, 2);
  const Symbol net = layer_norm({Symbol::variable("data"), Symbol::variable("gamma"), Symbol::variable("beta")}, {});
  const auto gamma_grad = [&](DType dtype) {
    auto executor = simple_bind(net, cpu(), {{"data", shape}}, {.type_dict = {{"data", dtype}}});
    executor->arg_dict().at("gamma").fill(1);
    executor->forward(true, {{"data", data}});
    executor->backward({out_grad.astype(dtype)});
    return executor->grad_dict().at("gamma").to_vector<double>();
  };
  EXPECT_TRUE(all_close(gamma_grad(DType::float32), gamma_grad(DType::float64), {1e-6, 1e-5}));
}

TEST(LRN, PositionsDoNotDependOnEachOther) {
  const NDArray data = random_array({2, 5, 3, 30}, 1, -4, 4);
  const LRN params{.alpha = 0.5, .nsize = 3};
  const NDArray all = invoke(lrn, {data}, params)[0];
  for (int64_t column = 0; column < 30; ++column) {
    const SliceAxis one{.axis = 3, .begin = column, .end = column + 1};
    const NDArray alone = invoke(lrn, {invoke(slice_axis, {data}, one)[0]}, params)[0];
    EXPECT_TRUE(all_close(invoke(slice_axis, {all}, one)[0], alone, {1e-6, 1e-6}));
  }
}

}  // namespace
}  // namespace symbind::testing
