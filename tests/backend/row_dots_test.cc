// Dot products along rows against sums in double precision.
#include "symbind/backend/cpu/row_dots.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "symbind/backend/cpu/dot.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/core/parallel.h"
#include "symbind/ops/fully_connected.h"

#include "tests/support/test_node.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t most_vectors = 8;

template <class T>
std::vector<T> random_values(std::mt19937& random, int64_t count) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = static_cast<T>(uniform(random));
  return values;
}

// The sum for one vector and one row.
template <class T>
double dot(const RowDots& size, const std::vector<float>& x, const std::vector<T>& w, int64_t vector, int64_t row) {
  double sum = 0;
  for (int64_t k = 0; k < size.inner; ++k)
    sum += static_cast<double>(x[static_cast<size_t>(vector * size.inner + k)]) *
           static_cast<double>(static_cast<float>(w[static_cast<size_t>(row * size.inner + k)]));
  return sum;
}

template <class T>
void expect_sums(std::mt19937& random, const RowDots& size, bool with_bias) {
  const auto x = random_values<float>(random, size.vectors * size.inner);
  const auto w = random_values<T>(random, size.rows * size.inner);
  const auto bias = random_values<float>(random, size.rows);
  std::vector<float> y(static_cast<size_t>(size.vectors * size.rows), NAN);
  row_dots(size, x.data(), w.data(), with_bias ? bias.data() : nullptr, y.data());
  for (int64_t v = 0; v < size.vectors; ++v)
    for (int64_t r = 0; r < size.rows; ++r) {
      const double sum = dot(size, x, w, v, r) + (with_bias ? static_cast<double>(bias[static_cast<size_t>(r)]) : 0);
      EXPECT_NEAR(static_cast<double>(y[static_cast<size_t>(v * size.vector_step + r * size.row_step)]), sum, 2e-5)
          << size.vectors << " vectors, " << size.rows << " rows of " << size.inner;
    }
}

template <class T>
class RowDotsOf : public ::testing::Test {};
using RowTypes = ::testing::Types<float, float16, bfloat16>;
TYPED_TEST_SUITE(RowDotsOf, RowTypes);

TYPED_TEST(RowDotsOf, AgreeWithSumsInDoublePrecision) {
  if (dtype_of<TypeParam>() != DType::float32 && !has_row_kernels(dtype_of<TypeParam>()))
    GTEST_SKIP() << "the processor has no vectors for " << dtype_of<TypeParam>();
  std::mt19937 random(3);
  for (int64_t vectors = 1; vectors <= most_vectors; ++vectors)
    for (const int64_t inner : {16, 17, 31, 32, 64, 73, 128, 143, 455})
      for (const int64_t rows : {1, 2, 37})
        for (const bool with_bias : {false, true}) {
          expect_sums<TypeParam>(random, {vectors, rows, inner, rows, 1}, with_bias);
          expect_sums<TypeParam>(random, {vectors, rows, inner, 1, vectors}, with_bias);
        }
}

TYPED_TEST(RowDotsOf, AreTheSameForAnyNumberOfThreads) {
  if (dtype_of<TypeParam>() != DType::float32 && !has_row_kernels(dtype_of<TypeParam>()))
    GTEST_SKIP() << "the processor has no vectors for " << dtype_of<TypeParam>();
  std::mt19937 random(4);
  const RowDots size{6, 501, 777, 501, 1};
  const auto x = random_values<float>(random, size.vectors * size.inner);
  const auto w = random_values<TypeParam>(random, size.rows * size.inner);
  std::vector<float> expected(static_cast<size_t>(size.vectors * size.rows)), y(expected.size());
  {
    const ThreadScope one({.threads = 1});
    row_dots(size, x.data(), w.data(), nullptr, expected.data());
  }
  for (const int threads : {2, 3, 7}) {
    const ThreadScope scope({.threads = threads});
    row_dots(size, x.data(), w.data(), nullptr, y.data());
    EXPECT_EQ(y, expected) << threads << " threads";
  }
}

TYPED_TEST(RowDotsOf, AreTheSameOnEveryInstructionSet) {
  if (instruction_set() != InstructionSet::avx512) GTEST_SKIP() << "the processor has one of them";
  std::mt19937 random(5);
  for (int64_t vectors = 1; vectors <= 4; ++vectors)
    for (const int64_t inner : {16, 19, 24, 31, 160, 201}) {
      const RowDots size{vectors, 11, inner, 11, 1};
      const auto x = random_values<float>(random, size.vectors * size.inner);
      const auto w = random_values<TypeParam>(random, size.rows * size.inner);
      std::vector<float> wide(static_cast<size_t>(size.vectors * size.rows)), narrow(wide.size());
      avx512_row_kernels<TypeParam>()->dot.dots(size, 0, size.rows, x.data(), w.data(), nullptr, wide.data());
      avx2_row_kernels<TypeParam>()->dot.dots(size, 0, size.rows, x.data(), w.data(), nullptr, narrow.data());
      EXPECT_EQ(wide, narrow) << vectors << " vectors of " << inner;
    }
}

// A kernel's result as numbers in double precision.
template <class T>
std::vector<double> run_node(const testing::TestNode<float>& node, const Implementation& implementation) {
  const auto kernel = implementation.build(node.view());
  std::vector<std::vector<T>> arrays;
  for (const auto& values : node.values) arrays.emplace_back(values.begin(), values.end());
  arrays.emplace_back(static_cast<size_t>(node.outputs[0].shape.size()));
  std::vector<void*> addresses;
  for (auto& array : arrays) addresses.push_back(array.data());
  std::vector<float> scratch(kernel->scratch_bytes / sizeof(float) + 1, NAN);
  kernel->run({.inputs = addresses.data(), .outputs = &addresses.back(), .scratch = scratch.data()});
  std::vector<double> results;
  for (const T value : arrays.back()) results.push_back(static_cast<double>(static_cast<float>(value)));
  return results;
}

// The values are rounded to T first, and so is the result: the same numbers in double precision.
template <class T>
void expect_affine(const FullyConnectedActivation& params, int64_t rows, int64_t inner) {
  auto node = testing::make_test_node<float>(params, {Shape{rows, inner}}, dtype_of<T>());
  for (auto& values : node.values)
    for (float& value : values) value = static_cast<float>(static_cast<T>(value));
  const Implementation& chosen = choose(node.view());
  EXPECT_EQ(chosen.name, "row dots") << rows << " rows of " << inner;
  const std::vector<double> y = run_node<T>(node, chosen);
  const RowDots size{rows, params.num_hidden, inner, params.num_hidden, 1};
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < params.num_hidden; ++i) {
      const double sum = dot(size, node.values[0], node.values[1], row, i) +
                         (params.no_bias ? 0 : static_cast<double>(node.values[2][static_cast<size_t>(i)]));
      const double expected = std::tanh(sum), unit = dtype_of<T>() == DType::bfloat16 ? 0.0078125 : 0.0009765625;
      EXPECT_NEAR(y[static_cast<size_t>(row * params.num_hidden + i)], expected, std::abs(expected) * unit / 2 + 1e-5)
          << rows << " rows of " << inner;
    }
}

TEST(RowDots, ComputeFullyConnectedOnAFewRowsInHalfPrecision) {
  if (!has_row_kernels(DType::float16)) GTEST_SKIP() << "the processor has no vectors for it";
  for (const bool no_bias : {false, true})
    for (const int64_t inner : {16, 45, 455}) {
      FullyConnectedActivation params;
      params.num_hidden = 37;
      params.no_bias = no_bias;
      params.act_type = "tanh";
      for (const int64_t rows : {1, 2, 3, 4}) {
        expect_affine<float16>(params, rows, inner);
        expect_affine<bfloat16>(params, rows, inner);
      }
      if (inner < 128) continue;
      for (const int64_t rows : {5, 7, 8}) expect_affine<float16>(params, rows, inner);
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
  EXPECT_TRUE(as_row_dots({.rows = 500, .inner = 300, .columns = 1}, DType::float32));
  EXPECT_TRUE(as_row_dots({.transpose_b = true, .rows = 500, .inner = 300, .columns = 4}, DType::float32));
  EXPECT_TRUE(
      as_row_dots({.transpose_a = true, .transpose_b = true, .rows = 1, .inner = 300, .columns = 500}, DType::float32));
  EXPECT_FALSE(as_row_dots({.rows = 500, .inner = 300, .columns = 2}, DType::float32));
  EXPECT_FALSE(as_row_dots({.transpose_a = true, .rows = 500, .inner = 300, .columns = 1}, DType::float32));
  EXPECT_FALSE(as_row_dots({.transpose_b = true, .rows = 9, .inner = 300, .columns = 9}, DType::float32));
  EXPECT_FALSE(as_row_dots({.transpose_b = true, .rows = 8, .inner = 20, .columns = 2048}, DType::float32));
  EXPECT_FALSE(as_row_dots({.transpose_b = true, .rows = 500, .inner = 15, .columns = 1}, DType::float32));
}

}  // namespace
}  // namespace symbind::cpu_backend
