#include "symbind/backend/cpu/packed_product.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace symbind::cpu_backend {
namespace {

template <class T>
std::vector<T> random_numbers(int64_t count, unsigned seed) {
  std::mt19937 dice(seed);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = uniform(dice);
  return values;
}

// Every array ends where its last element does, so that a sanitizer sees what is read or written beyond.
template <class T>
void compare(int64_t rows, int64_t columns, int64_t inner, bool transposed, bool accumulate) {
  SCOPED_TRACE(testing::Message() << rows << " x " << inner << " x " << columns << (transposed ? ", transposed" : "")
                                  << (accumulate ? ", added" : ""));
  const int64_t a_step = inner + 3, c_step = columns + 5;
  const auto a = random_numbers<T>((rows - 1) * a_step + inner, 1), b = random_numbers<T>(inner * columns, 2);
  const auto old = random_numbers<T>((rows - 1) * c_step + columns, 3);
  std::vector<T> packed(static_cast<size_t>(packed_count<T>(inner, columns))), c = old;
  pack<T>(inner, columns, {b.data(), transposed ? inner : columns, transposed}, packed.data());
  multiply_packed<T>(rows, columns, inner, {a.data(), a_step}, packed.data(), {c.data(), c_step}, accumulate);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < c_step && row * c_step + column < static_cast<int64_t>(c.size()); ++column) {
      const auto at = static_cast<size_t>(row * c_step + column);
      double expected = column >= columns || accumulate ? old[at] : 0;
      for (int64_t k = 0; column < columns && k < inner; ++k)
        expected += static_cast<double>(a[static_cast<size_t>(row * a_step + k)]) *
                    b[static_cast<size_t>(transposed ? column * inner + k : k * columns + column)];
      ASSERT_NEAR(c[at], expected, sizeof(T) == 4 ? 1e-4 : 1e-12) << row << " " << column;
    }
}

template <class T>
void compare_all() {
  for (const int64_t rows : {1, 2, 3, 5, 7, 8, 9, 16, 21})
    for (const int64_t columns : {1, 7, 8, 15, 16, 17, 31, 32, 33, 100})
      for (const int64_t inner : {1, 5, 64, 256, 257, 600})
        for (const bool transposed : {false, true})
          compare<T>(rows, columns, inner, transposed, (rows + columns) % 2 == 0);
}

TEST(PackedProduct, AgreesWithTheDefinitionInFloat32) { compare_all<float>(); }
TEST(PackedProduct, AgreesWithTheDefinitionInFloat64) { compare_all<double>(); }

TEST(PackedProduct, ASumOfNothingIsZeroOrWhatWasThere) {
  for (const bool accumulate : {false, true}) {
    std::vector<float> c{1, 2, 3};
    multiply_packed<float>(1, 3, 0, {nullptr, 0}, nullptr, {c.data(), 3}, accumulate);
    EXPECT_EQ(c, accumulate ? (std::vector<float>{1, 2, 3}) : (std::vector<float>{0, 0, 0}));
  }
}

}  // namespace
}  // namespace symbind::cpu_backend
