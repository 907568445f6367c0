// Softmax and norms by the row kernels against the plain implementations in double precision: the same node, the same
// random numbers, in every element type, with rows of every kind of length.
// The kernels of the instruction sets are compared with each other.
#include "symbind/backend/cpu/row_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/row_implementations.h"
#include "symbind/core/error.h"
#include "symbind/core/parallel.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/loss.h"
#include "symbind/ops/normalize.h"
#include "symbind/ops/softmax.h"
#include "symbind/passes/target.h"

#include "tests/support/test_node.h"

namespace symbind {
namespace {

using Values = std::vector<double>;
using TestNode = testing::TestNode<double>;

constexpr DType types[] = {DType::float32, DType::float16, DType::bfloat16};
constexpr size_t guard = 64;

struct Memory {
  DType dtype;
  size_t bytes;
  std::vector<std::byte> data;

  Memory(DType type, size_t elements) : dtype(type), bytes(elements * size_of(type)), data(bytes + guard) {
    std::memset(data.data(), 0xff, data.size());
  }
  void expect_guard_is_whole() const {
    for (size_t i = bytes; i < data.size(); ++i) ASSERT_EQ(data[i], std::byte{0xff}) << "written past the end";
  }
};

void write(Memory& memory, const Values& values) {
  visit_dtype(memory.dtype, [&]<class T>(std::type_identity<T>) {
    for (size_t i = 0; i < values.size(); ++i) {
      const T value = static_cast<T>(values[i]);
      std::memcpy(memory.data.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
}
Values read(const Memory& memory) {
  return visit_dtype(memory.dtype, [&]<class T>(std::type_identity<T>) {
    Values values(memory.bytes / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, memory.data.data() + i * sizeof(T), sizeof(T));
      values[i] = static_cast<double>(value);
    }
    return values;
  });
}

// The outputs, and after them the inputs (states may be written). `in_place`: where the kernel allows it.
std::vector<Values> run(const TestNode& node, const Implementation& implementation, bool in_place = false) {
  const auto kernel = implementation.build(node.view());
  std::vector<Memory> memory;
  for (const auto* tensors : {&node.outputs, &node.inputs})
    for (const Tensor& tensor : *tensors) memory.emplace_back(tensor.dtype, static_cast<size_t>(tensor.shape.size()));
  std::vector<size_t> of_output(node.outputs.size());
  for (size_t i = 0; i < of_output.size(); ++i) of_output[i] = i;
  if (in_place && !kernel->in_place.empty())
    of_output[static_cast<size_t>(kernel->in_place.front().second)] =
        node.outputs.size() + static_cast<size_t>(kernel->in_place.front().first);
  std::vector<void*> inputs, outputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    write(memory[node.outputs.size() + i], node.values[i]);
    inputs.push_back(memory[node.outputs.size() + i].data.data());
  }
  for (const size_t at : of_output) outputs.push_back(memory[at].data.data());
  Memory scratch(DType::uint8, kernel->scratch_bytes + 64);
  const Args args{inputs.data(), outputs.data(), scratch.data.data()};
  kernel->run(args);
  for (const Memory& each : memory) each.expect_guard_is_whole();
  std::vector<Values> results;
  for (const size_t at : of_output) results.push_back(read(memory[at]));
  return results;
}

const Implementation& rows_of(const OpDef& op) {
  static ImplementationTable table = [] {
    ImplementationTable all;
    cpu_backend::add_l2_rows(all);
    cpu_backend::add_softmax_rows(all);
    cpu_backend::add_norm_rows(all);
    cpu_backend::add_batch_norm_rows(all);
    return all;
  }();
  return table.of(op).front();
}
const Implementation& plain_of(const OpDef& op) { return Target::get(cpu()).implementations(op).back(); }

// The values as the type holds them, so that both implementations get the same.
void round_to(TestNode& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    Memory memory(node.inputs[i].dtype, node.values[i].size());
    write(memory, node.values[i]);
    node.values[i] = read(memory);
  }
}

TestNode in_double(TestNode node) {
  for (auto* tensors : {&node.inputs, &node.outputs})
    for (Tensor& tensor : *tensors) tensor.dtype = DType::float64;
  return node;
}

double tolerance_of(DType dtype) { return dtype == DType::float32 ? 4e-6 : dtype == DType::float16 ? 1e-3 : 8e-3; }

void expect_close(const TestNode& node, const std::vector<Values>& actual, const std::vector<Values>& expected) {
  for (size_t array = 0; array < actual.size(); ++array) {
    double largest = 0;
    for (const double value : expected[array]) largest = std::max(largest, std::abs(value));
    // A mean near zero is one of larger numbers.
    const double tolerance = tolerance_of(node.outputs[array].dtype) * std::max(largest, array > 0 ? 1 : 1e-3);
    for (size_t i = 0; i < actual[array].size(); ++i)
      if (!(std::abs(actual[array][i] - expected[array][i]) <= tolerance)) {
        ADD_FAILURE() << node.op.name << " " << node.inputs[0].shape << " " << node.inputs[0].dtype << ": output "
                      << array << " element " << i << ": " << actual[array][i] << ", plain says " << expected[array][i];
        return;
      }
  }
}

template <class P>
void compare(const P& params, const std::vector<Shape>& shapes, double offset = 0) {
  if (!cpu_backend::row_kernels<float>()) GTEST_SKIP() << "the processor has no row kernels";
  for (const DType dtype : types)
    for (const bool is_train : {true, false}) {
      TestNode node = testing::make_test_node<double>(params, shapes, dtype);
      node.is_train = is_train;
      for (double& value : node.values[0]) value = value * 3 + offset;
      if (node.op.name.find("BatchNorm") != std::string::npos && dtype == DType::float32) continue;
      for (double& value : node.values.back()) value = std::abs(value) + 0.1;  // a variance, where there is one
      round_to(node);
      const Implementation& rows = rows_of(node.op);
      ASSERT_EQ(rows.refuse(node.view()), "") << node.op.name << " " << shapes[0];
      const auto expected = run(in_double(node), plain_of(node.op));
      const auto alone = [&] {
        const ThreadScope share({.threads = 1});
        return run(node, rows);
      }();
      expect_close(node, alone, expected);
      const ThreadScope share({.threads = 3});
      EXPECT_EQ(run(node, rows, true), alone) << node.op.name << ": threads or in place change the result";
    }
}

const std::vector<int64_t> lengths{1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 48, 63, 64, 65, 130, 1000, 9001};

TEST(RowKernels, SoftmaxAlongRows) {
  for (const int64_t length : lengths) {
    const Shape shape{length > 100 ? 3 : 1200, length};
    compare(SoftmaxLike<"softmax">{}, {shape});
    compare(SoftmaxLike<"log_softmax">{}, {shape});
    compare(SoftmaxLike<"softmin">{.temperature = 0.7}, {shape});
    compare(SoftmaxLike<"_backward_softmax">{}, {shape, shape, shape});
    compare(SoftmaxLike<"_backward_log_softmax">{.temperature = 2}, {shape, shape, shape});
  }
}

TEST(RowKernels, SoftmaxAlongColumns) {
  for (const int64_t length : {1, 2, 70, 700})
    for (const int64_t step : {2, 8, 15, 17, 64, 67, 150}) {
      const Shape shape{3, length, step};
      compare(SoftmaxLike<"softmax">{.axis = 1}, {shape});
      compare(SoftmaxLike<"log_softmax">{.axis = 1}, {shape});
      compare(SoftmaxLike<"_backward_softmax">{.axis = 1}, {shape, shape, shape});
      compare(SoftmaxLike<"_backward_log_softmax">{.axis = 1}, {shape, shape, shape});
    }
}

TEST(RowKernels, SoftmaxOfTheLossAndOfTheActivation) {
  compare(SoftmaxActivation{.mode = "channel"}, {{3, 5, 4, 6}});
  compare(SoftmaxActivation{}, {{30, 19}});
  compare(SoftmaxOutput{}, {{30, 19}});
  compare(SoftmaxOutput{.multi_output = true}, {{3, 5, 4, 6}});
}

Values softmax_of(const Values& row, DType dtype, bool logarithm, bool as_column) {
  const auto length = static_cast<int64_t>(row.size());
  const Shape shape = as_column ? Shape{length, 3} : Shape{3, length};
  TestNode node =
      logarithm ? testing::make_test_node<double>(SoftmaxLike<"log_softmax">{.axis = as_column ? 0 : 1}, {shape}, dtype)
                : testing::make_test_node<double>(SoftmaxLike<"softmax">{.axis = as_column ? 0 : 1}, {shape}, dtype);
  for (size_t k = 0; k < row.size(); ++k) node.values[0][as_column ? 3 * k + 1 : row.size() + k] = row[k];
  const Values all = run(node, rows_of(node.op)).front();
  Values result;
  for (size_t k = 0; k < row.size(); ++k) result.push_back(all[as_column ? 3 * k + 1 : row.size() + k]);
  for (size_t k = 0; k < row.size(); ++k)
    EXPECT_FALSE(std::isnan(all[as_column ? 3 * k : k])) << "a neighbour is not a number";
  return result;
}

TEST(RowKernels, InfinitiesAndNanKeepTheirMeaningInSoftmax) {
  if (!cpu_backend::row_kernels<float>()) GTEST_SKIP() << "the processor has no row kernels";
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : types)
    for (const bool as_column : {false, true})
      for (const size_t length : {5, 100}) {
        Values row(length, 0);
        row[1] = -infinity;
        const double share = 1 / static_cast<double>(length - 1);
        const Values masked = softmax_of(row, dtype, false, as_column);
        EXPECT_EQ(masked[1], 0);
        EXPECT_NEAR(masked[2], share, share * tolerance_of(dtype));
        const Values logarithms = softmax_of(row, dtype, true, as_column);
        EXPECT_EQ(logarithms[1], -infinity);
        EXPECT_NEAR(logarithms[2], std::log(share), 5 * tolerance_of(dtype));
        row[length - 1] = 30000;  // the others vanish beside it
        EXPECT_EQ(softmax_of(row, dtype, false, as_column)[0], 0);
        EXPECT_EQ(softmax_of(row, dtype, false, as_column)[length - 1], 1);
        for (const Values& bad : {Values(length, -infinity), Values(length, infinity)})
          for (const double value : softmax_of(bad, dtype, false, as_column)) EXPECT_TRUE(std::isnan(value));
        row[2] = std::numeric_limits<double>::quiet_NaN();
        for (const bool logarithm : {false, true})
          for (const double value : softmax_of(row, dtype, logarithm, as_column)) EXPECT_TRUE(std::isnan(value));
      }
}

TEST(RowKernels, NormsOfRows) {
  for (const int64_t length : lengths) {
    if (length < 3) continue;  // of one or two numbers next to nothing is left
    const Shape rows{length > 100 ? 6 : 600, length}, images{2, 3, length, length > 100 ? 1 : 5};
    compare(LayerNorm{.output_mean_var = true}, {rows});
    compare(LayerNormGrad{}, {rows, rows});
    compare(InstanceNorm{}, {images});
    compare(InstanceNormGrad{}, {images, images});
    for (const int64_t count : {1, 3}) {
      compare(GroupNorm{.num_groups = count, .output_mean_var = true}, {images});
      compare(GroupNormGrad{{.num_groups = count}}, {images, images});
    }
  }
}

TEST(RowKernels, BatchNormOfChannelsThatAreApart) {
  for (const int64_t inner : {2, 7, 16, 17, 33, 100, 5000}) {
    const Shape shape{4, 5, inner};
    for (const bool fix_gamma : {false, true}) {
      const BatchNorm p{.fix_gamma = fix_gamma};
      compare(p, {shape});
      compare(BatchNormRelu{p}, {shape});
      compare(BatchNormGrad{p}, {shape, shape});
    }
  }
}

TEST(RowKernels, L2NormalizationInEveryMode) {
  for (const std::string mode : {"instance", "channel", "spatial"})
    for (const int64_t width : {1, 7, 16, 33, 150, 3000}) {
      const Shape shape{3, 5, width, 2};
      compare(L2Normalization{.mode = mode}, {shape});
      compare(L2NormalizationGrad{{.mode = mode}}, {shape, shape});
    }
}

TEST(RowKernels, ZeroVarianceAndOneNumberGiveTheShift) {
  if (!cpu_backend::row_kernels<float>()) GTEST_SKIP() << "the processor has no row kernels";
  for (const Shape& shape : {Shape{4, 1}, Shape{4, 10}, Shape{4, 300}}) {
    TestNode node = testing::make_test_node<double>(LayerNorm{}, {shape});
    std::fill(node.values[0].begin(), node.values[0].end(), 1000.3);
    const Values y = run(node, rows_of(node.op)).front();
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y[i], node.values[2][i % static_cast<size_t>(shape[1])], 0.02) << shape;
  }
}

// ---- The instruction sets -------------------------------------------------------------------------------------------

template <class T>
std::vector<T> random_numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-2, 2);
  std::vector<T> numbers(count);
  for (T& number : numbers) number = static_cast<T>(uniform(random));
  return numbers;
}

// What all kernels of a set compute from the same random numbers, as one list.
template <class T>
Values results_of(const cpu_backend::RowKernels<T>& kernels, int64_t rows, int64_t length) {
  const auto count = static_cast<size_t>(rows * length), width = static_cast<size_t>(length);
  const auto x = random_numbers<T>(count, 1), dy = random_numbers<T>(count, 2);
  const auto gamma = random_numbers<T>(width, 3), beta = random_numbers<T>(width, 4);
  std::vector<T> y(count), statistics(2 * static_cast<size_t>(rows));
  Values all;
  const auto keep = [&](const auto& numbers) {
    for (const auto number : numbers) all.push_back(static_cast<double>(number));
  };
  for (const bool logarithm : {false, true}) {
    const cpu_backend::SoftmaxSetting setting{0.5f, logarithm};
    kernels.softmax.rows(x.data(), y.data(), rows, length, setting), keep(y);
    kernels.softmax.rows_grad(dy.data(), x.data(), y.data(), rows, length, setting), keep(y);
    kernels.softmax.columns(x.data(), y.data(), length, rows, length, setting), keep(y);
    kernels.softmax.columns_grad(dy.data(), x.data(), y.data(), length, rows, length, setting), keep(y);
  }
  std::vector<double> by_gamma(width), by_beta(width);
  std::vector<float> partial(2 * (width + 16));
  std::vector<cpu_backend::NormSums> sums(static_cast<size_t>(rows));
  for (const int64_t channels : {int64_t{0}, std::min<int64_t>(2, length)}) {
    const cpu_backend::NormSize size{length, channels, 1e-3};
    kernels.norm.forward(size, 0, rows, x.data(), gamma.data(), beta.data(), y.data(), statistics.data(),
                         statistics.data() + rows);
    keep(y), keep(statistics);
    if (channels == 0)
      kernels.norm.backward_columns(size, 0, rows, dy.data(), x.data(), gamma.data(), y.data(), by_gamma.data(),
                                    by_beta.data(), partial.data());
    else
      kernels.norm.backward(size, 0, rows, dy.data(), x.data(), gamma.data(), y.data(), sums.data());
    keep(y), keep(by_gamma), keep(by_beta);
  }
  for (const auto& sum : sums) keep(Values{sum.gamma, sum.beta});
  kernels.l2.rows(x.data(), y.data(), rows, length, 1e-5), keep(y);
  kernels.l2.rows_grad(dy.data(), x.data(), y.data(), rows, length, 1e-5), keep(y);
  kernels.l2.columns(x.data(), y.data(), length, rows, length, 1e-5), keep(y);
  kernels.l2.columns_grad(dy.data(), x.data(), y.data(), length, rows, length, 1e-5), keep(y);
  const cpu_backend::Channel channel{rows, length, length};
  const auto measured = kernels.channel.measure(channel, x.data());
  keep(Values{measured.mean, measured.variance});
  for (const bool relu : {false, true}) {
    const cpu_backend::ChannelScale scale{0.1f, 0.7f, 0.2f, relu};
    kernels.channel.normalise(channel, scale, x.data(), y.data()), keep(y);
    const auto sum = kernels.channel.sum(channel, scale, dy.data(), x.data());
    keep(Values{sum.gamma, sum.beta});
    kernels.channel.spread(channel, scale, {0.3f, 0.4f}, dy.data(), x.data(), relu ? x.data() : nullptr, y.data());
    keep(y);
  }
  return all;
}

TEST(RowKernels, EveryInstructionSetComputesTheSame) {
  using namespace cpu_backend;
  if (instruction_set() < InstructionSet::avx512) GTEST_SKIP() << "the processor has one instruction set";
  for (const DType dtype : types)
    visit_row_type(dtype, [&]<class T>(std::type_identity<T>) {
      for (const int64_t length : {3, 8, 13, 16, 40, 61, 64, 200, 5000}) {
        const Values wide = results_of(*avx512_row_kernels<T>(), 5, length);
        const Values narrow = results_of(*avx2_row_kernels<T>(), 5, length);
        for (size_t i = 0; i < wide.size(); ++i)
          ASSERT_NEAR(narrow[i], wide[i], tolerance_of(dtype) * std::max(1.0, 4 * std::abs(wide[i])))
              << dtype << " length " << length << " result " << i;
      }
    });
}

}  // namespace
}  // namespace symbind
