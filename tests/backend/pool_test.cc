// Pooling against loops over single windows: random shapes in every type, ties, NaN and infinities.
#include "symbind/ops/pool.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "symbind/core/parallel.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/transpose.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::all_close;
using testing::random_array;
using Values = std::vector<double>;

double lowest(DType dtype) {
  if (dtype == DType::float16) return -65504;
  if (dtype == DType::float64) return std::numeric_limits<double>::lowest();
  if (dtype == DType::bfloat16) return static_cast<double>(std::bit_cast<float>(0xff7f0000u));
  return static_cast<double>(std::numeric_limits<float>::lowest());
}

// The indices in a plane that a window has, and the number its mean divides by.
struct Window {
  std::vector<size_t> elements;
  double divisor = 1;
};

Window window_at(const PoolingSize& size, int64_t index) {
  Window window;
  std::array<int64_t, 3> begin{}, end{};
  for (const size_t axis : {2, 1, 0}) {
    const int64_t start = index % size.out[axis] * size.stride[axis] - size.pad[axis];
    const int64_t stop = std::min(start + size.kernel[axis], size.in[axis] + size.pad[axis]);
    index /= size.out[axis];
    begin[axis] = std::max<int64_t>(start, 0);
    end[axis] = std::min(stop, size.in[axis]);
    window.divisor *= static_cast<double>(size.count_padding ? stop - start : end[axis] - begin[axis]);
  }
  for (int64_t d = begin[0]; d < end[0]; ++d)
    for (int64_t h = begin[1]; h < end[1]; ++h)
      for (int64_t w = begin[2]; w < end[2]; ++w)
        window.elements.push_back(static_cast<size_t>((d * size.in[1] + h) * size.in[2] + w));
  return window;
}

struct Expected {
  Values output, gradient;
};

// For channels in front of the spatial axes.
Expected expected_of(const PoolingSize& size, const std::string& type, double least, const Values& x,
                     const Values& dy) {
  Expected expected{Values(dy.size()), Values(x.size())};
  const auto in = static_cast<size_t>(size.in_size()), out = static_cast<size_t>(size.out_size());
  for (size_t i = 0; i < dy.size(); ++i) {
    const size_t plane = i / out * in;
    const Window window = window_at(size, static_cast<int64_t>(i % out));
    double& y = expected.output[i];
    if (type == "max") {
      y = least;
      if (window.elements.empty()) continue;
      size_t at = plane + window.elements[0];
      for (const size_t element : window.elements) {
        y = x[plane + element] > y ? x[plane + element] : y;
        if (x[plane + element] > x[at]) at = plane + element;
      }
      expected.gradient[at] += dy[i];
      continue;
    }
    const double divisor = type == "avg" ? window.divisor : 1;
    for (const size_t element : window.elements) {
      y += x[plane + element] / divisor;
      expected.gradient[plane + element] += dy[i] / divisor;
    }
  }
  return expected;
}

void check(const NDArray& data, const Pooling& given, const std::string& what) {
  SCOPED_TRACE(what);
  const NDArray output = pooling(data, given);
  const NDArray grad = random_array(output.shape(), 5, -1, 1, data.dtype());
  Pooling params = given;  // as long as the kernel, which the reference needs
  if (params.stride.empty()) params.stride = Tuple(params.kernel.size(), 1);
  if (params.pad.empty()) params.pad = Tuple(params.kernel.size(), 0);
  const bool reads_data = params.pool_type == "max";
  const NDArray gradient =
      reads_data ? pooling_grad(grad, data, output, PoolingGrad{given}) : pooling_grad(grad, data, PoolingGrad{given});
  const PoolingSize size = size_of(params, data.shape(), output.shape());
  const Expected expected =
      expected_of(size, params.pool_type, lowest(data.dtype()), data.to_vector<double>(), grad.to_vector<double>());
  const testing::Tolerance tolerance = testing::tolerance_of(data.dtype());
  EXPECT_TRUE(all_close(output.to_vector<double>(), expected.output, tolerance, output.shape()));
  EXPECT_TRUE(all_close(gradient.to_vector<double>(), expected.gradient, tolerance, data.shape()));
}

constexpr DType types[] = {DType::float32, DType::float16, DType::bfloat16, DType::float64};

struct Case {
  Shape data;
  Pooling params;
};

Case random_case(std::mt19937& random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const int64_t axes = draw(1, 3);
  std::vector<int64_t> shape = {draw(1, 5), draw(1, 20)};
  Pooling params;
  for (int64_t axis = 0; axis < axes; ++axis) {
    shape.push_back(draw(1, axes == 1 ? 80 : axes == 2 ? 30 : 9));
    const int64_t kernel = draw(1, 7), pad = std::max(draw(0, kernel - 1), (kernel - shape.back() + 1) / 2);
    params.kernel.push_back(kernel);
    params.pad.push_back(std::min(pad, kernel - 1));
    params.stride.push_back(draw(1, 4));
  }
  params.count_include_pad = draw(0, 1) == 1;
  params.pooling_convention = draw(0, 2) == 0 ? "full" : "valid";
  return {Shape(shape), params};
}

TEST(PoolingKernels, AgreeWithSingleWindowsOnRandomShapes) {
  std::mt19937 random(3);
  for (int round = 0; round < 150; ++round) {
    auto [shape, params] = random_case(random);
    for (const char* type : {"max", "avg", "sum"})
      for (const DType dtype : types) {
        params.pool_type = type;
        check(random_array(shape, static_cast<uint64_t>(round), -1, 1, dtype), params,
              join(type, " ", dtype, " data ", shape, " kernel ", Shape(params.kernel), " stride ",
                   Shape(params.stride), " pad ", Shape(params.pad), " ", params.pooling_convention));
      }
  }
}

// More rows than one band has, windows that reach over its end, one element, and planes that fill no vector.
TEST(PoolingKernels, AgreeWithSingleWindowsOnLargeAndSmallPlanes) {
  const std::vector<Case> cases = {
      {{2, 3, 90, 61}, {.kernel = {5, 3}, .stride = {2, 1}, .pad = {2, 1}}},
      {{5, 8, 70, 40}, {.kernel = {9, 2}, .stride = {1, 3}, .pad = {4, 0}}},
      {{1, 33, 20, 18, 16}, {.kernel = {3, 3, 2}, .stride = {2, 1, 2}, .pad = {1, 1, 0}}},
      {{1, 4, 5000}, {.kernel = {4}, .stride = {3}}},
      {{1, 5, 2, 9000}, {.kernel = {2, 3}, .stride = {1, 2}}},
      {{16, 2, 39, 3}, {.kernel = {6, 9}, .stride = {3, 2}, .pad = {3, 4}}},
      {{1, 1, 1}, {.kernel = {1}}},
      {{7, 1, 1, 1}, {.kernel = {3, 3}, .pad = {1, 1}}},
  };
  for (auto [shape, params] : cases)
    for (const char* type : {"max", "avg", "sum"})
      for (const DType dtype : types) {
        params.pool_type = type;
        check(random_array(shape, 1, -1, 1, dtype), params, join(type, " ", dtype, " data ", shape));
      }
}

// Half precision rounds once, whatever the number of elements.
TEST(PoolingKernels, AgreeWithSingleWindowsOverWholePlanes) {
  for (const Shape& shape : {Shape{3, 5, 1}, {2, 3, 7}, {4, 9, 31, 3}, {2, 3, 4, 4}, {1, 2, 61, 33}, {1, 3, 7, 9, 13}})
    for (const char* type : {"max", "avg", "sum"})
      for (const DType dtype : types) {
        Pooling params{.pool_type = type};
        for (int axis = 2; axis < shape.rank(); ++axis) params.kernel.push_back(shape[axis]);
        check(random_array(shape, 1, -1, 1, dtype), params, join(type, " ", dtype, " data ", shape));
      }
}

// Of the first `kinds` numbers that maxima may treat differently.
NDArray special_numbers(std::mt19937& random, size_t kinds, const Shape& shape, DType dtype) {
  const double special[] = {NAN, -INFINITY, INFINITY, -1, 0, 2};
  Values values(static_cast<size_t>(shape.size()));
  for (double& value : values) value = special[random() % kinds];
  return array(values, shape, cpu(), dtype);
}

// A maximum leaves NaN out and is never less than the lowest number; its gradient goes to the first element where that
// is NaN, and else to the first of the largest.
TEST(PoolingKernels, NaNAndInfinitiesKeepTheirMeaningInMaxima) {
  const std::vector<Case> cases = {
      {{3, 5, 31, 3}, {.kernel = {31, 3}}},
      {{3, 5, 100}, {.kernel = {100}}},
      {{3, 5, 13, 4}, {.kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 1}}},
      {{1, 2, 9, 40}, {.kernel = {2, 3}, .stride = {1, 2}}},
      {{2, 9, 60}, {.kernel = {4}, .stride = {1}}},
  };
  std::mt19937 random(1);
  for (const size_t kinds : {1, 2, 3, 6})  // NaN alone, then more
    for (const auto& [shape, params] : cases)
      for (const DType dtype : types) {
        check(special_numbers(random, kinds, shape, dtype), params,
              join(dtype, " data ", shape, ", ", kinds, " kinds"));
      }
}

// With channels last, too, in every type: windows of NaN or -infinity alone and windows without elements among them.
TEST(PoolingKernels, MaximaAreTheSameInEveryLayout) {
  const std::vector<Case> cases = {
      {{3, 5, 13, 4}, {.kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 1}}},
      {{2, 32, 9, 8}, {.kernel = {2, 3}, .stride = {1, 2}}},
      {{1, 3, 5, 5}, {.kernel = {1, 1}, .pooling_convention = "full", .stride = {5, 5}}},
      {{2, 4, 6, 7}, {.global_pool = true}},
  };
  std::mt19937 random(2);
  for (const size_t kinds : {1, 2, 3, 6})  // NaN alone, then more
    for (const auto& [shape, params] : cases)
      for (const DType dtype : types) {
        const NDArray data = special_numbers(random, kinds, shape, dtype);
        Pooling last = params;
        last.layout = "NHWC";
        const NDArray pooled = pooling(transpose(data, {.axes = {0, 2, 3, 1}}), last);
        EXPECT_TRUE(testing::same_bits(transpose(pooled, {.axes = {0, 3, 1, 2}}), pooling(data, params)))
            << dtype << " data " << shape << ", " << kinds << " kinds";
      }
}

TEST(PoolingKernels, DoNotDependOnTheNumberOfThreads) {
  for (const DType dtype : types)
    for (const Case& each : {Case{{8, 40, 30, 14}, {.kernel = {5, 3}, .stride = {1, 1}, .pad = {2, 0}}},
                             Case{{8, 40, 30, 14}, {.kernel = {30, 14}}}}) {
      const NDArray data = random_array(each.data, 1, -1, 1, dtype);
      const auto results = [&](int threads) {
        const ThreadScope share({.threads = threads});
        const NDArray output = pooling(data, each.params);
        return std::pair(output, pooling_grad(output, data, output, PoolingGrad{each.params}));
      };
      const auto [one, one_grad] = results(1);
      const auto [three, three_grad] = results(3);
      EXPECT_TRUE(testing::same_bits(three, one)) << dtype;
      EXPECT_TRUE(testing::same_bits(three_grad, one_grad)) << dtype;
    }
}

}  // namespace
}  // namespace symbind
