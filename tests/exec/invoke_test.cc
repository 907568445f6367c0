// One operator on arrays, now.
#include "symbind/exec/invoke.h"

#include <thread>

#include <gtest/gtest.h>

#include "symbind/exec/indexing.h"
#include "symbind/ops/all.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::all_devices;
using testing::counted;
using testing::fails_with;
using testing::same_bits;
using Floats = std::vector<float>;

TEST(Invoke, RunsAnyOperatorByName) {
  for (const Context context : all_devices()) {
    const NDArray x = array(Floats{1, -2, 3, -4}, {2, 2}, context);
    EXPECT_EQ(invoke("relu", {x})[0].to_vector<float>(), (Floats{1, 0, 3, 0}));
    EXPECT_EQ(invoke("sum", {x}, {{"axis", "0"}})[0].to_vector<float>(), (Floats{4, -6}));
    EXPECT_EQ(invoke("transpose", {x})[0].to_vector<float>(), (Floats{1, 3, -2, -4}));
    EXPECT_EQ(invoke("dot", {x, x})[0].to_vector<float>(), (Floats{-5, 6, -9, 10}));
    EXPECT_EQ(invoke("Concat", {x, x}, {{"dim", "0"}})[0].shape(), (Shape{4, 2}));
  }
}

TEST(Invoke, BuildersTakeAnyNumberOfArrays) {
  const NDArray a = array({{1, 2}}), b = array({{3, 4}}), c = array({{5, 6}}), d = array({{7, 8}});
  EXPECT_EQ(concat({a, b, c, d}, {.dim = 0}).shape(), (Shape{4, 2}));
  EXPECT_EQ(concat({a, b}).to_vector<float>(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(add_n(std::vector<NDArray>{a, b, c, d}).to_vector<float>(), (Floats{16, 20}));
}

TEST(Invoke, ASingleAxisIsANumber) {
  const NDArray x = array({{1, 2}, {3, 5}});
  EXPECT_EQ(sum(x, {.axis = 1}).to_vector<float>(), (Floats{3, 8}));
  EXPECT_EQ(max(x, {.axis = 0}).to_vector<float>(), (Floats{3, 5}));
  EXPECT_EQ(max(x, {.axis = Tuple{0, 1}}).item(), 5);
}

TEST(Invoke, ChoicesAreConstantsOrText) {
  const NDArray x = array({{{{1, 2}, {3, 6}}}});
  const Tuple kernel{2, 2};
  EXPECT_EQ(pooling(x, {.kernel = kernel, .pool_type = pool_type::avg}).item(), 3);
  EXPECT_EQ(pooling(x, {.kernel = kernel, .pool_type = "max"}).item(), 6);
  EXPECT_TRUE(
      fails_with([&] { pooling(x, {.kernel = kernel, .pool_type = "mean"}); }, "must be one of avg, lp, max, sum"));
}

TEST(Invoke, KnowsAliases) {
  const NDArray x = counted({3});
  EXPECT_TRUE(same_bits(invoke("_Plus", {x, x})[0], invoke("elemwise_add", {x, x})[0]));
  EXPECT_TRUE(same_bits(invoke("identity", {x})[0], x));
}

TEST(Invoke, WritesIntoGivenArrays) {
  for (const Context context : all_devices()) {
    const NDArray x = counted({4}, DType::float32, context);
    NDArray out = zeros({4}, context);
    const auto results = invoke("square", {x}, {}, {.out = {out}});
    EXPECT_TRUE(results[0].same_memory(out));
    EXPECT_EQ(out.to_vector<float>(), (Floats{1, 4, 9, 16}));
  }
}

TEST(Invoke, WritesOntoItsInputWhateverTheOperator) {
  NDArray square = array(Floats{1, 2, 3, 4}, {2, 2});
  invoke("transpose", {square}, {}, {.out = {square}});
  EXPECT_EQ(square.to_vector<float>(), (Floats{1, 3, 2, 4}));
  invoke("dot", {square, square}, {}, {.out = {square}});
  EXPECT_EQ(square.to_vector<float>(), (Floats{7, 15, 10, 22}));
  NDArray all = counted({5});
  NDArray shifted = all.slice(1, 5);
  invoke("_plus_scalar", {all.slice(0, 4)}, {{"scalar", "10"}}, {.out = {shifted}});
  EXPECT_EQ(all.to_vector<float>(), (Floats{1, 11, 12, 13, 14}));
}

// Negation may work in place, but not one element further on: it would read what it has written.
TEST(Invoke, WritesOntoAShiftedPartOfItsInput) {
  NDArray six = counted({6});
  const NDArray shifted = six.slice(1, 6), front = six.slice(0, 5);
  invoke("negative", {front}, {}, {.out = {shifted}});
  EXPECT_EQ(six.to_vector<float>(), (Floats{1, -1, -2, -3, -4, -5}));
  for (const int64_t shift : {1, 3, 16}) {
    NDArray many = counted({1000});
    Floats expected = many.to_vector<float>();
    for (int64_t i = 999; i >= shift; --i) expected[static_cast<size_t>(i)] = -expected[static_cast<size_t>(i - shift)];
    const NDArray out = many.slice(shift, 1000);
    invoke("negative", {many.slice(0, 1000 - shift)}, {}, {.out = {out}});
    EXPECT_EQ(many.to_vector<float>(), expected) << "shifted by " << shift;
  }
}

TEST(Invoke, WritesIntoArraysOfAnotherContext) {
  for (const Context context : all_devices()) {
    const NDArray out = zeros({4}, cpu(1));
    invoke("square", {counted({4}, DType::float32, context)}, {}, {.out = {out}});
    EXPECT_EQ(out.to_vector<float>(), (Floats{1, 4, 9, 16})) << "from " << context;
  }
}

TEST(Invoke, OutOfTheWrongShapeTypeOrNumberIsAnError) {
  const NDArray x = counted({4});
  EXPECT_TRUE(fails_with([&] { invoke("square", {x}, {}, {.out = {zeros({3})}}); }, "square", "(4,)", "(3,)"));
  EXPECT_THROW(invoke("square", {x}, {}, {.out = {zeros({4}, cpu(), DType::float64)}}), Error);
  EXPECT_THROW(invoke("square", {x}, {}, {.out = {zeros({4}), zeros({4})}}), Error);
}

TEST(Invoke, OfTheWrongInputsSaysWhatIsTaken) {
  const NDArray x = counted({4});
  EXPECT_TRUE(fails_with([&] { invoke("elemwise_add", {x}); }, "elemwise_add", "lhs", "rhs"));
  EXPECT_THROW(invoke("relu", {NDArray()}), Error);
  EXPECT_TRUE(fails_with([&] { invoke("elemwise_add", {x, counted({3})}); }, "(4,)", "(3,)"));
  EXPECT_TRUE(fails_with([&] { invoke("no_such_operator", {x}); }, "no_such_operator"));
}

TEST(Invoke, OfAMisspeltParameterListsTheRightOnes) {
  EXPECT_TRUE(fails_with([] { invoke("sum", {counted({4})}, {{"axes", "0"}}); }, "sum", "axes", "axis", "keepdims"));
}

TEST(Invoke, CreatesArraysOnTheAskedContext) {
  for (const Context context : all_devices()) {
    const NDArray made = invoke("_ones", {}, {{"shape", "(2, 3)"}, {"dtype", "int32"}}, {.context = context})[0];
    EXPECT_EQ(made.context(), context);
    EXPECT_EQ(made.dtype(), DType::int32);
    EXPECT_EQ(made.to_vector<int32_t>(), (std::vector<int32_t>(6, 1)));
  }
}

// Kernels that are kept are kept for each type.
TEST(Invoke, ComputesInTheTypeOfItsArraysWhateverRanBefore) {
  for (int round = 0; round < 2; ++round)
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float64, DType::float16}) {
      const NDArray data = ones({4, 64}, cpu(), dtype), weight = full({32, 64}, 0.25, cpu(), dtype);
      const NDArray product = invoke("FullyConnected", {data, weight}, {{"num_hidden", "32"}, {"no_bias", "True"}})[0];
      EXPECT_TRUE(same_bits(product, full({4, 32}, 16, cpu(), dtype))) << dtype;
      const NDArray image = ones({2, 16, 8, 8}, cpu(), dtype), kernel = full({16, 16, 1, 1}, 0.5, cpu(), dtype);
      const NDArray convolved =
          invoke("Convolution", {image, kernel}, {{"kernel", "(1, 1)"}, {"num_filter", "16"}, {"no_bias", "True"}})[0];
      EXPECT_TRUE(same_bits(convolved, full({2, 16, 8, 8}, 8, cpu(), dtype))) << dtype;
    }
}

TEST(Invoke, UpdatesWeightsInPlace) {
  for (const Context context : all_devices()) {
    NDArray weight = array({1, 2}, context), momentum = zeros({2}, context);
    const NDArray grad = array({1, 1}, context);
    invoke("sgd_update", {weight, grad}, {{"lr", "0.5"}}, {.out = {weight}});
    EXPECT_EQ(weight.to_vector<float>(), (Floats{0.5, 1.5}));
    for (int i = 0; i < 2; ++i)
      invoke("sgd_mom_update", {weight, grad, momentum}, {{"lr", "0.5"}, {"momentum", "0.5"}}, {.out = {weight}});
    EXPECT_EQ(momentum.to_vector<float>(), (Floats{-0.75, -0.75})) << "the momentum is a state";
    EXPECT_EQ(weight.to_vector<float>(), (Floats{-0.75, 0.25}));
  }
}

TEST(Invoke, TrainsOnlyWhenAsked) {
  const NDArray x = ones({1000});
  EXPECT_TRUE(same_bits(invoke("Dropout", {x})[0], x));
  EXPECT_FALSE(same_bits(invoke("Dropout", {x}, {}, {.is_train = true})[0], x));
}

TEST(Invoke, MayRunOnSeveralThreadsConcurrently) {
  std::vector<NDArray> results(4);
  std::vector<std::thread> threads;
  const NDArray data = testing::random_array({4, 3, 8, 8}, 1), weight = testing::random_array({5, 3, 3, 3}, 2);
  const Attributes attributes{{"kernel", "(3, 3)"}, {"num_filter", "5"}, {"no_bias", "True"}};
  const NDArray expected = invoke("Convolution", {data, weight}, attributes)[0];
  for (NDArray& result : results)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) result = invoke("Convolution", {data, weight}, attributes)[0];
    });
  for (auto& thread : threads) thread.join();
  for (const NDArray& result : results) EXPECT_TRUE(testing::all_close(result, expected));
}

TEST(Invoke, LeavesTheCallersFloatingPointStateAlone) {
  volatile float tiny = 1e-40f;
  invoke("exp", {counted({1000})});
  EXPECT_GT(tiny * 0.5f, 0.0f) << "denormals are not flushed for the caller";
}

// ---- parts of arrays -----------------------------------------------------------------------------------------------

TEST(Indexing, TakesPartsAlongAnyAxis) {
  const NDArray a = counted({3, 4});
  EXPECT_EQ(subarray(a, {{}, {1, 3}}).to_vector<float>(), (Floats{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(subarray(a, {{1, 2}}).to_vector<float>(), (Floats{5, 6, 7, 8}));
  EXPECT_EQ(subarray(a, {{std::nullopt, std::nullopt, 2}, {3, std::nullopt}}).to_vector<float>(), (Floats{4, 12}));
  EXPECT_EQ(subarray(a, {{}, {-1, std::nullopt}}).to_vector<float>(), (Floats{4, 8, 12}));
  EXPECT_EQ(subarray(a, {{std::nullopt, std::nullopt, -1}, {0, 1}}).to_vector<float>(), (Floats{9, 5, 1}));
}

TEST(Indexing, AssignsToParts) {
  NDArray a = zeros({2, 3});
  assign(a, {{}, {1, 2}}, 5);
  EXPECT_EQ(a.to_vector<float>(), (Floats{0, 5, 0, 0, 5, 0}));
  assign(a, {{0, 1}}, counted({1, 3}));
  EXPECT_EQ(a.to_vector<float>(), (Floats{1, 2, 3, 0, 5, 0}));
  assign(a, {{}, {0, 2}}, counted({1, 2}));
  EXPECT_EQ(a.to_vector<float>(), (Floats{1, 2, 3, 1, 2, 0})) << "the value is broadcast";
  EXPECT_THROW(assign(a, {{}, {0, 2}}, counted({3})), Error);
}

TEST(Indexing, AssignsWhateverStoodThereAndConverts) {
  NDArray a = full({2, 2}, std::numeric_limits<double>::quiet_NaN());
  assign(a, {{0, 1}}, counted({1}));
  assign(a, {{1, 2}}, counted({1, 2}, DType::int32, cpu(1)));
  EXPECT_EQ(a.to_vector<float>(), (Floats{1, 1, 1, 2}));
}

TEST(Indexing, TakesStepsLongerThanTheAxis) {
  const NDArray a = counted({4});
  const int64_t longest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(subarray(a, {{1, std::nullopt, longest}}).to_vector<float>(), (Floats{2}));
  EXPECT_EQ(subarray(a, {{std::nullopt, std::nullopt, -longest}}).to_vector<float>(), (Floats{4}));
}

}  // namespace
}  // namespace symbind
