#include "symbind/ops/deconv.h"

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

TEST(Deconvolution, RefusesExtentsThatCannotBeCounted) {
  const auto x = Symbol::variable("x"), w = Symbol::variable("w");
  const auto net = deconvolution({x, w}, {.kernel = {1}, .stride = {4}, .num_filter = 1, .no_bias = true}, "up");
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(net, {{"x", {1, 1, (int64_t{1} << 62) + 2}}});
      },
      "[Deconvolution up]", "too long", "times 4"));
}

// What a kernel derives from the weight is made for a deconvolution too, and recomputed when the weight has changed:
// by float64 there is no such kernel.
TEST(Deconvolution, GivesTheNumbersOfPlainLoopsWhateverKernelItBorrows) {
  for (const bool no_bias : {true, false}) {
    const auto net = deconvolution(Symbol::variable("data"),
                                   {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 16, .no_bias = no_bias}, "up");
    const auto run = [&](DType dtype) {
      const auto executor = simple_bind(net, cpu(), {{"data", {2, 16, 12, 12}}}, {.type_dict = {{"data", dtype}}});
      std::vector<NDArray> results;
      for (const bool is_train : {false, false, true}) {
        for (const auto& [name, array] : executor->arg_dict())
          random_array(array.shape(), 7 + results.size() + name.size(), -1, 1, dtype).copyto(array);
        results.push_back(executor->forward(is_train)[0].copy());
      }
      executor->backward(random_array(executor->outputs()[0].shape(), 5, -1, 1, dtype));
      for (const auto& [name, grad] : executor->grad_dict()) results.push_back(grad);
      return results;
    };
    const auto plain = run(DType::float64);
    for (const auto& [dtype, tolerance] : {std::pair{DType::float32, Tolerance{1e-4, 1e-3}},
                                           {DType::float16, {3e-2, 3e-2}},
                                           {DType::bfloat16, {2e-1, 2e-1}}}) {
      const auto fast = run(dtype);
      for (size_t i = 0; i < fast.size(); ++i)
        EXPECT_TRUE(all_close(fast[i].to_vector<double>(), plain[i].to_vector<double>(), tolerance, fast[i].shape()))
            << dtype << " " << i << (no_bias ? "" : " with bias");
    }
  }
}

}  // namespace
}  // namespace symbind::testing
