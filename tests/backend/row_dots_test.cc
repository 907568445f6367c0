// Dot products along rows against sums in double precision.
#include "symbind/backend/cpu/row_dots.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/backend/cpu/dot.h"

namespace symbind::cpu_backend {
namespace {

std::vector<float> random_values(std::mt19937& random, int64_t count) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

TEST(RowDots, AgreeWithSumsInDoublePrecision) {
  std::mt19937 random(3);
  for (int64_t vectors = 1; vectors <= most_row_dots; ++vectors)
    for (const int64_t inner : {16, 17, 31, 32, 64, 73, 128, 143, 455})
      for (const int64_t rows : {1, 2, 37}) {
        const std::vector<float> x = random_values(random, vectors * inner), w = random_values(random, rows * inner);
        const std::vector<float> bias = random_values(random, rows);
        for (const bool with_bias : {false, true})
          for (const bool turned : {false, true}) {
            const int64_t vector_step = turned ? 1 : rows, row_step = turned ? vectors : 1;
            std::vector<float> y(static_cast<size_t>(vectors * rows), NAN);
            row_dots({vectors, rows, inner, vector_step, row_step}, x.data(), w.data(),
                     with_bias ? bias.data() : nullptr, y.data());
            for (int64_t v = 0; v < vectors; ++v)
              for (int64_t r = 0; r < rows; ++r) {
                double sum = with_bias ? static_cast<double>(bias[static_cast<size_t>(r)]) : 0;
                for (int64_t k = 0; k < inner; ++k)
                  sum += static_cast<double>(x[static_cast<size_t>(v * inner + k)]) *
                         static_cast<double>(w[static_cast<size_t>(r * inner + k)]);
                EXPECT_NEAR(static_cast<double>(y[static_cast<size_t>(v * vector_step + r * row_step)]), sum, 2e-5)
                    << vectors << " vectors, " << rows << " rows of " << inner;
              }
          }
      }
}

TEST(RowDots, CountAnInfinityOnce) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const size_t at : {size_t{0}, size_t{5}, size_t{15}, size_t{16}, size_t{20}}) {
    std::vector<float> x(21, 1.0f), w(21, 0.5f);
    w[at] = infinity;
    float y = 0;
    row_dots({1, 1, 21, 1, 1}, x.data(), w.data(), nullptr, &y);
    EXPECT_EQ(y, infinity) << "at " << at;
  }
}

TEST(RowDots, AreProductsWithFewRowsOrColumnsThatAreContiguousAlongTheSum) {
  EXPECT_TRUE(as_row_dots({.rows = 500, .inner = 300, .columns = 1}));
  EXPECT_TRUE(as_row_dots({.transpose_b = true, .rows = 500, .inner = 300, .columns = 4}));
  EXPECT_TRUE(as_row_dots({.transpose_a = true, .transpose_b = true, .rows = 1, .inner = 300, .columns = 500}));
  EXPECT_FALSE(as_row_dots({.rows = 500, .inner = 300, .columns = 2}));
  EXPECT_FALSE(as_row_dots({.transpose_a = true, .rows = 500, .inner = 300, .columns = 1}));
  EXPECT_FALSE(as_row_dots({.transpose_b = true, .rows = 5, .inner = 300, .columns = 5}));
  EXPECT_FALSE(as_row_dots({.transpose_b = true, .rows = 500, .inner = 15, .columns = 1}));
}

}  // namespace
}  // namespace symbind::cpu_backend
