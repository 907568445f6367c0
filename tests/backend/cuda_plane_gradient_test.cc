// Weight gradients of 3 × 3 convolutions in TF32 by a kernel of ours (backend/cuda/conv_plane_gradient.h), where the
// GPU and the build have it: exactly, with whole numbers whose products and sums need no rounding; with numbers that
// TF32 rounds; with infinity and NaN in the data, which no other result may see. Skipped where there is no GPU.
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/exec/arithmetic.h"
#include "symbind/exec/invoke.h"

#include "tests/backend/cuda_convolved.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

using CudaPlaneGradient = Tf32Test;

// Pieces of some rows, of several images, the last of them incomplete, and of a part of the columns; one piece; tiles
// that filters and channels do not fill; strides, of which the second skips pixels or ends beyond the image; padding
// of none and of more than the kernel needs; positions that do not fill a step, also with fewer of them than a step
// has.
const std::vector<Convolved> convolutions = {
    {2, 14, 14, 64, 64, {3, 3}, {1, 1}, {1, 1}}, {3, 13, 17, 68, 100, {3, 3}, {1, 1}, {1, 1}},
    {2, 16, 16, 64, 64, {3, 3}, {2, 2}, {1, 1}}, {2, 15, 19, 32, 72, {3, 3}, {2, 2}, {1, 1}},
    {2, 12, 20, 64, 36, {3, 3}, {1, 2}, {0, 0}}, {2, 12, 20, 36, 64, {3, 3}, {2, 1}, {2, 3}},
    {17, 7, 7, 128, 64, {3, 3}, {1, 1}, {1, 1}}, {40, 3, 3, 64, 128, {3, 3}, {1, 1}, {1, 1}},
    {5, 3, 3, 64, 64, {3, 3}, {1, 1}, {0, 0}},   {1, 6, 150, 64, 64, {3, 3}, {1, 1}, {1, 1}},
    {1, 4, 333, 32, 32, {3, 3}, {1, 2}, {1, 1}}, {1, 3, 201, 32, 32, {3, 3}, {1, 1}, {1, 1}},
    {140, 5, 6, 32, 32, {3, 3}, {1, 1}, {1, 1}}};

NDArray gradient_of(const Convolved& c, const NDArray& dy, const NDArray& x) {
  return symbind::invoke(convolution_grad_weight, on_gpu({dy, x, zeros(c.weight())}), {params_of(c)})[0];
}

TEST_F(CudaPlaneGradient, OfWholeNumbersIsExactAndEveryTimeTheSame) {
  for (const Convolved& c : convolutions) {
    SCOPED_TRACE(join(c));
    const NDArray dy = whole_numbers(c.output(), 1, DType::float32), x = whole_numbers(c.data(), 2, DType::float32);
    const NDArray gradient = gradient_of(c, dy, x);
    EXPECT_TRUE(all_close(gradient.to_vector<double>(), expected_gradient(c, dy, x), {0, 0, 0}));
    EXPECT_TRUE(same_bits(gradient_of(c, dy, x), gradient));
  }
}

TEST_F(CudaPlaneGradient, RoundsTheOperandsToTf32) {
  for (const Convolved& c : convolutions) {
    SCOPED_TRACE(join(c));
    // TF32 has 10 bits of mantissa; thirds have all 23.
    const NDArray dy = random_array(c.output(), 1) * (1.0 / 3), x = random_array(c.data(), 2) * (1.0 / 3);
    constexpr double most = 0.004;
    EXPECT_TRUE(all_close(gradient_of(c, dy, x).to_vector<double>(), expected_gradient(c, dy, x), {most, 0, most}));
  }
}

// In one pixel each: the first, which is read for positions that only fill up a step, those at the ends of the last row
// and of the first one, beside which pieces end, and one inside.
TEST_F(CudaPlaneGradient, KeepsInfinityAndNanWhereTheyAre) {
  for (const Convolved& c : convolutions)
    for (const auto& [row, column] : {std::pair(int64_t{0}, int64_t{0}), std::pair(c.rows - 1, c.columns / 2),
                                      std::pair(int64_t{0}, c.columns - 1), std::pair(c.rows / 2, c.columns / 2)}) {
      SCOPED_TRACE(join(c, ", row ", row, ", column ", column));
      const NDArray dy = whole_numbers(c.output(), 1, DType::float32);
      std::vector<double> values = whole_numbers(c.data(), 2, DType::float32).to_vector<double>();
      const int64_t pixel = ((c.batch - 1) * c.rows + row) * c.columns + column;
      const auto first = static_cast<size_t>((column == 0 ? 0 : pixel) * c.channels);
      values[first] = std::numeric_limits<double>::infinity();
      values[first + 1] = std::numeric_limits<double>::quiet_NaN();
      const NDArray x = array(values, c.data());
      EXPECT_TRUE(all_close(gradient_of(c, dy, x).to_vector<double>(), expected_gradient(c, dy, x), {0, 0, 0}));
    }
}

}  // namespace
}  // namespace symbind::testing
